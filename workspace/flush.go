package workspace

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/crash"
)

const (
	// settled is how long a session must be silent before Drain writes its notes.
	settled = 10 * time.Minute
	// noteTime is what writing a note may take; a flush with less time left only
	// queues.
	noteTime = 300 * time.Millisecond
)

// Flush implements [client.Service]. The end of a turn only queues the session;
// any other reason, and Wait, write its notes at once if the time of ctx allows.
// The queue is derived: a session whose note is behind is queued again when the
// index is built again.
func (w *Workspace) Flush(ctx context.Context, req client.FlushRequest) (client.FlushResult, error) {
	if err := validateSession(req.Session); err != nil {
		return client.FlushResult{}, err
	}
	switch req.Reason {
	case client.TurnEnd, client.PreCompact, client.SessionEnd, client.Shutdown:
	default:
		return client.FlushResult{}, &client.Error{Class: client.Permanent, Field: "reason", Reason: "must be turn_end, pre_compact, session_end or shutdown"}
	}
	path := dialogPath(req.Session)
	var res client.FlushResult
	if _, err := os.Stat(w.abs(path)); err == nil {
		// Without an index there is no queue; the next one to be built has it.
		res.Queued = w.enqueue(ctx, string(req.Key()), path) == nil
		deadline, limited := ctx.Deadline()
		if req.Wait || req.Reason != client.TurnEnd && (!limited || time.Until(deadline) > noteTime) {
			if err := w.noteSession(ctx, string(req.Key()), path); err != nil {
				return res, storeError("write note", err)
			}
			res.Queued = true
		}
	}
	_ = w.use(ctx, func(x *index) error {
		return x.db.QueryRowContext(ctx, "SELECT count(*) FROM queue").Scan(&res.Pending)
	})
	return res, nil
}

func (w *Workspace) enqueue(ctx context.Context, key, path string) error {
	return w.use(ctx, func(x *index) error {
		var queued bool
		err := x.db.QueryRowContext(ctx, "SELECT EXISTS(SELECT 1 FROM queue WHERE key=?)", key).Scan(&queued)
		if err != nil || queued {
			return err
		}
		return x.write(ctx, func(t *tx) error { return t.enqueue(key, path) })
	})
}

func (t *tx) enqueue(key, path string) error {
	return t.exec("INSERT OR IGNORE INTO queue VALUES(?,?)", key, path)
}

// noteSession writes the notes of a session and takes it off the queue. The lock
// is held for both, so that a turn appended meanwhile is queued after it.
func (w *Workspace) noteSession(ctx context.Context, key, path string) error {
	unlock, err := w.locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	if err := w.writeNotes(ctx, path); err != nil {
		return err
	}
	crash.Point("note.listed")
	_ = w.use(ctx, func(x *index) error {
		return x.write(ctx, func(t *tx) error { return t.exec("DELETE FROM queue WHERE key=?", key) })
	})
	return nil
}

// Drain writes the notes of the queued sessions that have been silent for ten
// minutes. It ends with the error of ctx if that ends first; the rest stays
// queued.
func (w *Workspace) Drain(ctx context.Context) error {
	type queued struct{ key, path string }
	var due []queued
	err := w.use(ctx, func(x *index) error {
		if err := w.sync(ctx, x, w.walking(ctx)); err != nil {
			return err
		}
		due = nil
		now := w.now().UnixMilli()
		// A last turn in the future was written under a wrong clock.
		rows, err := x.db.QueryContext(ctx, `SELECT q.key, q.path FROM queue q LEFT JOIN files f ON f.path = q.path
			WHERE f.id IS NULL OR abs(? - f.last) >= ? ORDER BY f.last`, now, settled.Milliseconds())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var q queued
			if err := rows.Scan(&q.key, &q.path); err != nil {
				return err
			}
			due = append(due, q)
		}
		return rows.Err()
	})
	for _, q := range due {
		if ctx.Err() != nil {
			break
		}
		err = errors.Join(err, w.noteSession(ctx, q.key, q.path))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return err
}

// isOurs reports whether a dialog file is of a session that we are to note: one
// whose rows say what its name says.
func (r *record) isOurs() bool {
	return strings.HasPrefix(r.path, dialogDir+"/") && r.session.Validate() == nil && r.path == dialogPath(r.session)
}
