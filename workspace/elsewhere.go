package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/client/reme"
	"github.com/agentscope-ai/reme-hook/internal/harmless"
)

// Elsewhere is a ReMe that takes part in the memory: it makes notes of what was
// said, in a workspace of its own or in this one, and searches them.
type Elsewhere interface {
	// Searches tells whether there is anything to be searched: it is known, is not
	// slow or gone, and its notes are not in this workspace.
	Searches() bool
	// Search finds passages, best first. It answers soon if the service is slow or gone.
	Search(ctx context.Context, query string, limit int) []reme.Passage
	// Read returns lines of a note; 0 means the first and the last.
	Read(ctx context.Context, note string, start, end int) (string, error)
	// Notes tells the paths of the notes that were made of a session.
	Notes(client.SessionKey) []string
	// Extracts tells whether it makes the notes of a session whose last turn was at
	// a time.
	Extracts(key client.SessionKey, last time.Time) bool
}

// elsewhereDir is where the notes of the other workspace are, as recalls tell it.
const elsewhereDir = "upstream/"

func (w *Workspace) extracted(key client.SessionKey, last time.Time) bool {
	return w.elsewhere != nil && w.elsewhere.Extracts(key, last)
}

// readElsewhere reads a stretch of a note of the other workspace.
func (w *Workspace) readElsewhere(ctx context.Context, name string, start, end, limit int) (Page, error) {
	if w.elsewhere == nil {
		return Page{}, &client.Error{Class: client.Permanent, Field: "path", Reason: "is of a ReMe that is not in use any more", Err: fs.ErrNotExist}
	}
	text, err := w.elsewhere.Read(ctx, strings.TrimPrefix(name, elsewhereDir), start, end)
	if err != nil {
		return Page{}, &client.Error{Class: client.ClassOf(err), Field: "path", Reason: "cannot be read", Err: err}
	}
	text = harmless.Text(strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) > limit {
		text = cutBytes(text, limit) + "\n[… cut …]"
	}
	p := Page{Path: name, Text: strings.TrimRight(text, "\n")}
	p.Lines = max(start, 1) + strings.Count(p.Text, "\n")
	return p, nil
}

// Queued is a session of which notes are to be made.
type Queued struct {
	Key     string
	Path    string    // of its dialog, relative to the workspace
	Last    time.Time // when it was last heard of
	Ended   bool      // a flush for more than the end of a turn was asked
	Settled bool      // nothing was said for ten minutes
}

// Queued returns the sessions of which notes are to be made, the one that has
// waited longest first. Like the index the queue is derived: a new one has all
// sessions.
func (w *Workspace) Queued(ctx context.Context) ([]Queued, error) {
	var queue []Queued
	err := w.use(ctx, func(x *index) error {
		if err := w.trySync(ctx, x); err != nil {
			return err
		}
		queue = nil
		rows, err := x.db.QueryContext(ctx, "SELECT q.key, q.path, q.ended, ifnull(f.last,0) FROM queue q LEFT JOIN files f ON f.path = q.path ORDER BY f.last")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var q Queued
			var last int64
			if err := rows.Scan(&q.Key, &q.Path, &q.Ended, &last); err != nil {
				return err
			}
			q.Last = time.UnixMilli(last)
			// A last turn in the future was written under a wrong clock.
			q.Settled = w.now().Sub(q.Last).Abs() >= Settled
			queue = append(queue, q)
		}
		return rows.Err()
	})
	return queue, err
}

// Message is one row of a dialog.
type Message struct {
	client.Event
	Session client.Session
	Turn    client.TurnID
	Cwd     string
}

// Messages calls fn for each message of a dialog that has an id, in the order in
// which they were said, until it returns false. It returns how many bytes the
// dialog has.
func (w *Workspace) Messages(ctx context.Context, path string, fn func(Message) bool) (size int64, err error) {
	f, err := os.Open(w.abs(path))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	_, err = scanLines(f, 0, st.Size(), func(line []byte, _, _ int64) bool {
		m, ok := parseRow(line, w.loc)
		if !ok || m.ID == "" || isBlank(m.Text) || m.Host == "" {
			return ctx.Err() == nil
		}
		return ctx.Err() == nil && fn(Message{
			Session: client.Session{Host: m.Host, Scope: m.Scope, ID: m.metadata.Session},
			Event:   client.Event{ID: client.EventID(m.ID), Role: m.Role, Content: m.Text, CreatedAt: m.At}, Turn: m.Turn, Cwd: m.Cwd,
		})
	})
	return st.Size(), errors.Join(err, ctx.Err())
}

// Dequeue takes a session off the queue, unless its dialog has grown beyond size.
func (w *Workspace) Dequeue(ctx context.Context, q Queued, size int64) error {
	unlock, err := w.locks.Lock(ctx, q.Key)
	if err != nil {
		return err
	}
	defer unlock()
	if st, err := os.Stat(w.abs(q.Path)); err == nil && st.Size() > size {
		return nil
	}
	w.dequeue(ctx, q.Key)
	return nil
}
