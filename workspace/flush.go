package workspace

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/crash"
)

const (
	// Settled is how long a session must be silent before its turns are extracted
	// without being asked for.
	Settled = 10 * time.Minute
	// extractions is how many sessions are extracted at once.
	extractions = 2
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
		ended := req.Reason != client.TurnEnd
		res.Queued = w.enqueue(ctx, string(req.Key()), path, ended) == nil
		crash.Point("flush.queued")
		deadline, limited := ctx.Deadline()
		if !w.extracted(req.Key(), w.now()) && (req.Wait || ended && (!limited || time.Until(deadline) > noteTime)) {
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

func (w *Workspace) enqueue(ctx context.Context, key, path string, ended bool) error {
	return w.use(ctx, func(x *index) error {
		var queued bool
		err := x.db.QueryRowContext(ctx, "SELECT EXISTS(SELECT 1 FROM queue WHERE key=? AND ended>=?)", key, ended).Scan(&queued)
		if err != nil || queued {
			return err
		}
		return x.write(ctx, func(t *tx) error { return t.enqueue(key, path, ended) })
	})
}

func (t *tx) enqueue(key, path string, ended bool) error {
	return t.exec("INSERT INTO queue VALUES(?,?,?,0,0) ON CONFLICT(key) DO UPDATE SET ended = max(ended, excluded.ended)", key, path, ended)
}

// noteSession extracts a session and takes it off the queue. The lock is held for
// both, so that a session is extracted once at a time, and a turn appended
// meanwhile is queued after it.
func (w *Workspace) noteSession(ctx context.Context, key, path string) error {
	unlock, err := w.locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	return w.noteLocked(ctx, key, path)
}

func (w *Workspace) noteLocked(ctx context.Context, key, path string) error {
	if err := w.extract(ctx, path); err != nil {
		return err
	}
	crash.Point("note.listed")
	w.dequeue(ctx, key)
	return nil
}

func (w *Workspace) dequeue(ctx context.Context, key string) {
	_ = w.use(ctx, func(x *index) error {
		return x.write(ctx, func(t *tx) error { return t.exec("DELETE FROM queue WHERE key=?", key) })
	})
}

// queued is a session in the queue.
type queued struct {
	key, path string
	failures  int
}

// Drain extracts the queued sessions that have been silent for some time and are
// not extracted elsewhere, the oldest first and a few at once. One that fails is left alone for a time that
// doubles with each failure, and the rest goes on. It ends with the error of ctx if
// that ends first; the rest stays queued.
func (w *Workspace) Drain(ctx context.Context, silent time.Duration) error {
	due, err := w.due(ctx, silent)
	if err != nil {
		return errors.Join(ctx.Err(), err)
	}
	var mu sync.Mutex
	var errs []error
	var group errgroup.Group
	group.SetLimit(extractions)
	for _, q := range due {
		group.Go(func() error {
			if err := w.drainSession(ctx, q); err != nil && ctx.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
			return nil
		})
	}
	_ = group.Wait()
	return cmp.Or(ctx.Err(), errors.Join(errs...))
}

// due lists what Drain is to do.
func (w *Workspace) due(ctx context.Context, silent time.Duration) (due []queued, err error) {
	err = w.use(ctx, func(x *index) error {
		if err := w.trySync(ctx, x); err != nil {
			return err
		}
		due = nil
		// A last turn in the future was written under a wrong clock, and so was a wait
		// that is longer than any.
		rows, err := x.db.QueryContext(ctx, `SELECT q.key, q.path, q.failures, ifnull(f.last,0) FROM queue q LEFT JOIN files f ON f.path = q.path
			WHERE (f.id IS NULL OR abs(?1 - f.last) >= ?2) AND NOT q.due BETWEEN ?1 + 1 AND ?1 + ?3 ORDER BY f.last`,
			w.now().UnixMilli(), silent.Milliseconds(), (2 * client.LongestWait).Milliseconds())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var q queued
			var last int64
			if err := rows.Scan(&q.key, &q.path, &q.failures, &last); err != nil {
				return err
			}
			if !w.extracted(client.SessionKey(q.key), time.UnixMilli(last)) {
				due = append(due, q)
			}
		}
		return rows.Err()
	})
	return due, err
}

// drainSession extracts a session unless another process has done so meanwhile.
func (w *Workspace) drainSession(ctx context.Context, q queued) error {
	unlock, err := w.locks.Lock(ctx, q.key)
	if err != nil {
		return err
	}
	defer unlock()
	var left bool
	err = w.use(ctx, func(x *index) error {
		return x.db.QueryRowContext(ctx, "SELECT EXISTS(SELECT 1 FROM queue WHERE key=? AND failures=?)", q.key, q.failures).Scan(&left)
	})
	if err != nil || !left {
		return err
	}
	err = w.noteLocked(ctx, q.key, q.path)
	if err == nil || ctx.Err() != nil {
		return err
	}
	failures := q.failures + 1
	due := w.now().Add(client.RetryWait(err, failures)).UnixMilli()
	return errors.Join(err, w.use(ctx, func(x *index) error {
		return x.write(ctx, func(t *tx) error {
			return t.exec("UPDATE queue SET failures=?, due=? WHERE key=?", failures, due, q.key)
		})
	}))
}

// isOurs reports whether a dialog file is of a session that we are to note: one
// whose rows say what its name says.
func (r *record) isOurs() bool {
	return strings.HasPrefix(r.path, dialogDir+"/") && r.session.Validate() == nil && r.path == dialogPath(r.session)
}
