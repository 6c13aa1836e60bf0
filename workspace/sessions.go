package workspace

import (
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
	err := w.read(ctx, false, func(x *index) error {
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
}

// Stats counts what the workspace holds. It fails as Sessions does.
func (w *Workspace) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	err := w.read(ctx, false, func(x *index) error {
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

// Events returns the messages of a session in the order of their rows, none if
// nothing of it is there. It needs no index and writes nothing.
func (w *Workspace) Events(ctx context.Context, s client.Session) ([]client.Event, error) {
	if err := validateSession(s); err != nil {
		return nil, err
	}
	f, err := os.Open(w.abs(dialogPath(s)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, storeError("open dialog", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, storeError("open dialog", err)
	}
	var events []client.Event
	_, err = scanLines(f, 0, st.Size(), func(line []byte, _, _ int64) bool {
		if r, ok := parseRow(line, w.loc); ok {
			events = append(events, client.Event{ID: client.EventID(r.ID), Role: r.Role, Content: r.Text, CreatedAt: r.At})
		}
		return ctx.Err() == nil
	})
	if err != nil {
		return nil, storeError("read dialog", err)
	}
	return events, ctx.Err()
}
