package spool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/crash"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// Deliver hands the pending turns of one session to the service, in order, and
// removes those that it confirms. It stops at the first error that may pass,
// and returns it; a turn that is refused for good goes to quarantine and the
// rest goes on. Only one process delivers a session at a time; the others wait
// until ctx ends.
func (s Spool) Deliver(ctx context.Context, key client.SessionKey, svc client.Service) error {
	unlock, err := durable.Stripes(filepath.Join(s.Dir, "lock", "deliver")).Lock(ctx, string(key))
	if err != nil {
		return err
	}
	defer unlock()
	for {
		records, err := s.load(key)
		if err != nil {
			return err
		}
		if len(records) == 0 {
			return s.sweep(ctx, key)
		}
		records = slices.DeleteFunc(records, func(r record) bool { return !s.due(r) })
		if len(records) == 0 {
			return nil
		}
		for _, r := range records {
			if err := s.deliver(ctx, key, r, svc); err != nil {
				return err
			}
		}
	}
}

// DeliverAll delivers every session that has turns due, until nothing is left.
// It does nothing and returns false if another process is at it. It stops at
// the first error.
func (s Spool) DeliverAll(ctx context.Context, svc client.Service) (ran bool, err error) {
	unlock, ok, err := durable.TryLock(filepath.Join(s.Dir, "lock", "deliverer.lock"))
	if err != nil || !ok {
		return false, err
	}
	defer unlock()
	for ctx.Err() == nil {
		keys, err := s.Pending()
		if err != nil {
			return true, err
		}
		keys = slices.DeleteFunc(keys, func(key client.SessionKey) bool { return !s.Due(key, 0) })
		if len(keys) == 0 {
			return true, nil
		}
		for _, key := range keys {
			if err := s.Deliver(ctx, key, svc); err != nil {
				return true, err
			}
		}
	}
	return true, ctx.Err()
}

// deliver hands over one record that is due.
func (s Spool) deliver(ctx context.Context, key client.SessionKey, r record, svc client.Service) error {
	if r.err != nil {
		return s.refuse(key, r, r.err)
	}
	path := s.file(key, r.number)
	if r.Open {
		// An abandoned turn: from here on no event is added to its file, so that it
		// may be removed.
		err := s.locked(ctx, key, func() error {
			t, err := readTurn(path)
			if err != nil {
				return err
			}
			r.Turn = t
			return s.close(key, r, client.TurnEnd)
		})
		if err != nil {
			return err
		}
	}
	if len(r.Events) > 0 {
		res, err := svc.Append(ctx, client.AppendRequest{Session: r.Session, Cwd: r.Cwd, Events: r.Events})
		if client.ClassOf(err) == client.Permanent {
			return s.refuse(key, r, err)
		}
		if err != nil {
			return err
		}
		for _, e := range r.Events {
			if !slices.Contains(res.EventIDs, e.ID) {
				return &client.Error{Reason: "the service did not confirm every event"}
			}
		}
	}
	if r.Note != nil {
		if _, err := svc.Remember(ctx, *r.Note); client.ClassOf(err) == client.Permanent {
			return s.refuse(key, r, err)
		} else if err != nil {
			return err
		}
	}
	crash.Point("deliver.appended")
	_, err := svc.Flush(ctx, client.FlushRequest{Session: r.Session, Reason: cmp.Or(r.Flush, client.TurnEnd)})
	if err != nil && client.ClassOf(err) != client.Permanent {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	crash.Point("deliver.removed")
	return nil
}

// refuse moves a record to quarantine.
func (s Spool) refuse(key client.SessionKey, r record, reason error) error {
	from := s.file(key, r.number)
	dir := s.quarantine(key)
	if err := durable.MkdirAll(dir); err != nil {
		return err
	}
	taken, err := numbers(dir)
	if err != nil {
		return err
	}
	to := 1
	if len(taken) > 0 {
		to = taken[len(taken)-1] + 1
	}
	path := filepath.Join(dir, fmt.Sprintf("%08d.json", to))
	if r.err != nil {
		return os.Rename(from, path)
	}
	r.Open = false
	r.Reason = reason.Error()
	if err := s.write(path, r.Turn); err != nil {
		return err
	}
	return os.Remove(from)
}

// sweep removes the folder of a session that has nothing pending, with what
// killed writers left in it.
func (s Spool) sweep(ctx context.Context, key client.SessionKey) error {
	dir := s.pending(key)
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	return s.locked(ctx, key, func() error {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		if n, _ := numbers(dir); len(n) > 0 {
			return nil
		}
		for _, e := range entries {
			if temporary(e.Name()) {
				if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
					return err
				}
			}
		}
		os.Remove(dir) // stays if somebody keeps something in it
		return nil
	})
}

// temporary tells the names that durable.WriteFile uses before it renames.
func temporary(name string) bool {
	number, random, ok := strings.Cut(name, ".json")
	return ok && digits(number) && digits(random)
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// Entry is a record as it lies in the spool.
type Entry struct {
	Key         client.SessionKey `json:"key"`
	Number      int               `json:"number"`
	Quarantined bool              `json:"quarantined,omitempty"`
	Running     bool              `json:"running,omitempty"` // the turn has not ended; nothing is to be done
	Turn        Turn              `json:"turn"`
	Damage      string            `json:"damage,omitempty"` // why Turn could not be read
	Bytes       int64             `json:"bytes"`
}

// List returns all records, pending ones first, by session and number.
func (s Spool) List() ([]Entry, error) {
	var out []Entry
	for _, q := range []bool{false, true} {
		keys, err := s.keys(q)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			dir := s.pending(key)
			if q {
				dir = s.quarantine(key)
			}
			numbers, err := numbers(dir)
			if err != nil {
				return nil, err
			}
			for _, n := range numbers {
				path := filepath.Join(dir, fmt.Sprintf("%08d.json", n))
				st, err := os.Stat(path)
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if err != nil {
					return nil, err
				}
				e := Entry{Key: key, Number: n, Quarantined: q, Bytes: st.Size()}
				if e.Turn, err = readTurn(path); err != nil {
					e.Damage = err.Error()
				}
				e.Running = !s.due(record{e.Turn, n, err})
				out = append(out, e)
			}
		}
	}
	return out, nil
}

// Pending lists the sessions that have pending turns.
func (s Spool) Pending() ([]client.SessionKey, error) { return s.keys(false) }

func (s Spool) keys(quarantined bool) ([]client.SessionKey, error) {
	name := "pending"
	if quarantined {
		name = "quarantine"
	}
	entries, err := os.ReadDir(filepath.Join(s.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []client.SessionKey
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, client.SessionKey(e.Name()))
		}
	}
	return out, nil
}

// Release puts the quarantined turns of a session back to the end of its
// pending ones, damaged records excepted.
func (s Spool) Release(ctx context.Context, key client.SessionKey) error {
	dir := s.quarantine(key)
	taken, err := numbers(dir)
	if err != nil {
		return err
	}
	for _, n := range taken {
		path := filepath.Join(dir, fmt.Sprintf("%08d.json", n))
		t, err := readTurn(path)
		if err != nil {
			continue
		}
		t.Reason = ""
		if err := s.Put(ctx, t); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}
