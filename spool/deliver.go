package spool

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/crash"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// Deliver hands the due records of one session to the service, in order, and
// removes those that it confirms. It stops at the first error that may pass, and
// returns it; a record that is refused for good goes to quarantine and the rest
// goes on. Only one process delivers a session at a time; the others wait until
// ctx ends.
func (s Spool) Deliver(ctx context.Context, key client.SessionKey, svc client.Service) error {
	unlock, err := s.lockDelivery(ctx, key)
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
			return s.sweep(key)
		}
		due := s.due(records)
		if len(due) == 0 {
			return nil
		}
		if err := s.deliver(ctx, key, batch(due), svc); err != nil {
			return err
		}
	}
}

func (s Spool) lockDelivery(ctx context.Context, key client.SessionKey) (unlock func(), err error) {
	return durable.Stripes(filepath.Join(s.Dir, "lock", "deliver")).Lock(ctx, string(key))
}

// What is sent at once, at most; a single record may have more bytes.
const (
	maxBatch      = 64 // records
	maxBatchBytes = 4 << 20
)

// batch takes from the beginning of records what can be sent at once: messages
// from one folder. Notes and what cannot be read go alone.
func batch(records []record) []record {
	alone := func(r record) bool { return r.err != nil || r.Note != nil }
	n, bytes := 1, records[0].size()
	for n < min(len(records), maxBatch) && !alone(records[0]) && !alone(records[n]) && records[n].Cwd == records[0].Cwd {
		if bytes += records[n].size(); bytes > maxBatchBytes {
			break
		}
		n++
	}
	return records[:n]
}

// deliver hands over some records. If they are refused together, each is tried
// alone.
func (s Spool) deliver(ctx context.Context, key client.SessionKey, records []record, svc client.Service) error {
	err := s.send(ctx, records, svc)
	if client.ClassOf(err) == client.Permanent {
		if len(records) == 1 {
			return s.refuse(key, records[0], err)
		}
		for i := range records {
			if err := s.deliver(ctx, key, records[i:i+1], svc); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	crash.Point("deliver.appended")
	for _, r := range records {
		if err := os.Remove(filepath.Join(s.pending(key), r.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	crash.Point("deliver.removed")
	return nil
}

// send makes the calls for some records.
func (s Spool) send(ctx context.Context, records []record, svc client.Service) error {
	first := records[0]
	if first.err != nil {
		return &client.Error{Class: client.Permanent, Reason: first.err.Error()}
	}
	req := client.AppendRequest{Session: first.Session, Cwd: first.Cwd}
	var flush client.FlushReason
	for _, r := range records {
		req.Events = append(req.Events, r.Events...)
		flush = cmp.Or(r.Flush, flush)
	}
	if len(req.Events) > 0 {
		res, err := svc.Append(ctx, req)
		if err != nil {
			return err
		}
		for _, e := range req.Events {
			if !slices.Contains(res.EventIDs, e.ID) {
				return &client.Error{Reason: "the service did not confirm every event"}
			}
		}
	}
	if first.Note != nil {
		if _, err := svc.Remember(ctx, *first.Note); err != nil {
			return err
		}
		return nil
	}
	_, err := svc.Flush(ctx, client.FlushRequest{Session: first.Session, Reason: cmp.Or(flush, client.TurnEnd)})
	return err
}

// DeliverAll delivers every session that has turns due, until nothing is left.
// It does nothing and returns false if another process is at it. It stops at
// the first error. What killed writers left goes.
func (s Spool) DeliverAll(ctx context.Context, svc client.Service) (ran bool, err error) {
	unlock, ok, err := durable.TryLock(filepath.Join(s.Dir, "lock", "deliverer.lock"))
	if err != nil || !ok {
		return false, err
	}
	defer unlock()
	if err := s.tidy(); err != nil {
		return true, err
	}
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

// refuse moves a record to quarantine.
func (s Spool) refuse(key client.SessionKey, r record, reason error) error {
	from, dir := filepath.Join(s.pending(key), r.name), s.quarantine(key)
	if err := durable.MkdirAll(dir); err != nil {
		return err
	}
	path := filepath.Join(dir, newName(numberOf(r.name)))
	if r.err != nil {
		return os.Rename(from, path)
	}
	r.Open = false
	r.Reason = reason.Error()
	if err := write(path, r.Turn); err != nil {
		return err
	}
	crash.Point("refuse.written")
	return os.Remove(from)
}

// sweep removes the folder of a session that has nothing pending, with what
// killed writers left in it.
func (s Spool) sweep(key client.SessionKey) error {
	err := durable.Sweep(s.pending(key))
	os.Remove(s.pending(key)) // stays if somebody keeps something in it
	return err
}

// tidy does that for all sessions, also those of which nothing but a temporary file
// is left.
func (s Spool) tidy() error {
	for _, folder := range []string{"pending", "quarantine"} {
		folder = filepath.Join(s.Dir, folder)
		if err := durable.SweepAll(folder); err != nil {
			return err
		}
		sessions, _ := os.ReadDir(folder)
		for _, e := range sessions {
			os.Remove(filepath.Join(folder, e.Name())) // those with records stay
		}
	}
	return nil
}

// Entry is a record as it lies in the spool.
type Entry struct {
	Key    client.SessionKey
	Name   string // of its file; they sort by age
	State  State
	Turn   Turn
	Damage string // why Turn could not be read
	Bytes  int64
}

// State says what is to become of a record.
type State string

// The states of records.
const (
	Pending     State = "pending"     // to be delivered
	Unfinished  State = "unfinished"  // its turn goes on; nothing is to be done yet
	Quarantined State = "quarantined" // refused for good
)

// Count counts records by their states.
func Count(entries []Entry) map[State]int {
	n := map[State]int{}
	for _, e := range entries {
		n[e.State]++
	}
	return n
}

// List returns all records, pending ones first, by session and age.
func (s Spool) List() ([]Entry, error) {
	var out []Entry
	for _, quarantined := range []bool{false, true} {
		keys, err := s.keys(quarantined)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			dir := s.pending(key)
			if quarantined {
				dir = s.quarantine(key)
			}
			records, err := load(dir)
			if err != nil {
				return nil, err
			}
			due := s.due(records)
			for _, r := range records {
				e := Entry{Key: key, Name: r.name, State: Pending, Turn: r.Turn}
				if st, err := os.Stat(filepath.Join(dir, r.name)); err == nil {
					e.Bytes = st.Size()
				}
				if r.err != nil {
					e.Damage = r.err.Error()
				}
				if quarantined {
					e.State = Quarantined
				} else if !slices.ContainsFunc(due, func(d record) bool { return d.name == r.name }) {
					e.State = Unfinished
				}
				out = append(out, e)
			}
		}
	}
	return out, nil
}

// Neglected tells whether any session but one has turns that should have been
// delivered by now; whoever sees it starts a delivery.
func (s Spool) Neglected(but client.SessionKey) (bool, error) {
	keys, err := s.Pending()
	return slices.ContainsFunc(keys, func(key client.SessionKey) bool { return key != but && s.Due(key, Grace) }), err
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
