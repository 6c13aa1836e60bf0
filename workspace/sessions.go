package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

// SessionSummary is one conversation of the workspace.
type SessionSummary struct {
	client.Session           // empty host and scope if someone else wrote the file
	Key            string    `json:"key"`
	Path           string    `json:"path"` // relative to the workspace, with slashes
	Cwd            string    `json:"cwd"`  // where it was last at work
	Title          string    `json:"title"`
	Turns          int       `json:"turns"`
	Events         int       `json:"events"`
	First          time.Time `json:"first"` // zero if it has no turns
	Last           time.Time `json:"last"`
}

// Sessions returns the conversations of the workspace, newest first; a limit of 0
// or less means all. It fails only if ctx ends or there is not even memory to
// index in.
func (w *Workspace) Sessions(ctx context.Context, limit int) ([]SessionSummary, error) {
	var list []SessionSummary
	if limit <= 0 {
		limit = -1
	}
	err := w.read(ctx, w.sync, func(x *index) error {
		list = []SessionSummary{}
		rows, err := x.db.QueryContext(ctx, "SELECT "+recordColumns+" FROM files WHERE kind=? ORDER BY last DESC, id DESC LIMIT ?", dialog, limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var r record
			if err := rows.Scan(r.columns()...); err != nil {
				return err
			}
			s := SessionSummary{Session: r.session, Key: r.key, Path: r.path, Cwd: r.cwd, Title: r.title, Turns: r.turns, Events: r.events}
			if s.ID == "" {
				s.ID = r.key
			}
			if r.last != 0 {
				s.First, s.Last = time.UnixMilli(r.first).In(w.loc), time.UnixMilli(r.last).In(w.loc)
			}
			list = append(list, s)
		}
		return rows.Err()
	})
	return list, err
}

// Stats tells what the workspace holds.
type Stats struct {
	Sessions    int        `json:"sessions"`
	Turns       int        `json:"turns"`
	Notes       int        `json:"notes"`
	DialogBytes int64      `json:"dialog_bytes"`
	IndexBytes  int64      `json:"index_bytes"`
	Index       IndexState `json:"index"`
	Why         string     `json:"why,omitempty"` // what is wrong with the index
	Queued      int        `json:"queued"`        // sessions whose notes are still to be written
	Behind      bool       `json:"behind"`        // there is more than was counted, which Drain will index
}

// Stats counts what the workspace holds, as far as it is indexed: much that others
// wrote is not waited for. It fails as Sessions does.
func (w *Workspace) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	update := func(ctx context.Context, x *index) (err error) {
		s.Behind, err = w.begin(ctx, x)
		return err
	}
	err := w.read(ctx, update, func(x *index) error {
		known, err := x.numbers(ctx)
		if err != nil {
			return err
		}
		s.Behind = s.Behind || known["behind"] != 0
		return x.db.QueryRowContext(ctx, `SELECT count(*) FILTER (WHERE kind=0), ifnull(sum(turns) FILTER (WHERE kind=0),0),
			count(*) FILTER (WHERE kind IN (1,2)), ifnull(sum(size) FILTER (WHERE kind=0),0), (SELECT count(*) FROM queue) FROM files`).
			Scan(&s.Sessions, &s.Turns, &s.Notes, &s.DialogBytes, &s.Queued)
	})
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if st, err := os.Stat(w.indexPath() + suffix); err == nil {
			s.IndexBytes += st.Size()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Index, s.Why = w.state, w.why
	return s, err
}

// SessionEvents implements [client.Ledger]. It needs no index and writes nothing.
func (w *Workspace) SessionEvents(ctx context.Context, req client.SessionEventsRequest) (client.SessionEventsResult, error) {
	res := client.SessionEventsResult{Events: []client.Event{}}
	if err := cmp.Or(req.Validate(), validateSession(req.Session)); err != nil {
		return res, err
	}
	f, err := os.Open(w.abs(dialogPath(req.Session)))
	if errors.Is(err, fs.ErrNotExist) {
		return res, nil
	}
	if err != nil {
		return res, storeError("open dialog", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return res, storeError("open dialog", err)
	}
	text, limit := 0, cmp.Or(req.Limit, client.MaxEvents)
	_, err = scanLines(f, 0, st.Size(), func(line []byte, _, _ int64) bool {
		if r, ok := parseRow(line, w.loc); ok {
			if res.Total >= req.Offset && len(res.Events) < limit {
				if text += len(r.Text); text > client.MaxEventsText && len(res.Events) > 0 {
					limit = 0
				} else {
					res.Events = append(res.Events, client.Event{ID: client.EventID(r.ID), Role: r.Role, Content: r.Text, CreatedAt: r.At})
				}
			}
			res.Total++
		}
		return ctx.Err() == nil
	})
	if err != nil {
		return res, storeError("read dialog", err)
	}
	return res, ctx.Err()
}
