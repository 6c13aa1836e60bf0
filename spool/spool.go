// Package spool keeps every turn on disk until a service has confirmed it.
//
// It promises that a turn which Put has accepted survives a crash and a power
// cut, that the turns of one session are delivered in the order in which they
// were put, and that a turn leaves only when the service's answer names each of
// its events. It never deletes anything else: what a service refuses for good
// is moved to quarantine with the reason.
//
// A turn is one JSON file, pending/<session key>/<number>.json. The numbers
// grow within a session, so that order does not depend on any clock. A turn
// that has not ended yet is a file like any other, marked open; the next event
// of the session replaces it. Because a service drops events that it has seen,
// delivering a turn again, or an open turn early, does no harm.
package spool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/crash"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// version is the version of the record format.
const version = 1

// OpenFor is how long a turn may stay open before it counts as abandoned and is
// delivered as it is.
const OpenFor = time.Hour

// provisionalFor is the same for a turn whose id is not known yet: delivered too
// early it would be stored twice.
const provisionalFor = 24 * time.Hour

// Grace is how long a hook may take to deliver what it has put; after that
// somebody else should.
const Grace = 5 * time.Second

// Turn is one record: what was said in a turn of a session.
type Turn struct {
	Version int `json:"version"`
	client.Session
	Turn   client.TurnID           `json:"turn_id,omitempty"`
	Cwd    string                  `json:"cwd,omitempty"`
	Events []client.Event          `json:"events"`         // may be empty: then only the flush or the note counts
	Note   *client.RememberRequest `json:"note,omitempty"` // to be remembered besides
	Open   bool                    `json:"open,omitempty"` // more may come
	// Provisional marks an open turn whose real id and text the host's log will
	// tell: see Settle.
	Provisional bool               `json:"provisional,omitempty"`
	Flush       client.FlushReason `json:"flush,omitempty"` // asked of the service after delivery
	UpdatedAt   time.Time          `json:"updated_at"`
	Reason      string             `json:"reason,omitempty"` // in quarantine: why
}

// Spool is a spool in a folder.
type Spool struct {
	Dir string
	Now func() time.Time
}

func (s Spool) pending(key client.SessionKey) string {
	return filepath.Join(s.Dir, "pending", string(key))
}

func (s Spool) quarantine(key client.SessionKey) string {
	return filepath.Join(s.Dir, "quarantine", string(key))
}

// locked runs f while no other process puts into the same session.
func (s Spool) locked(ctx context.Context, key client.SessionKey, f func() error) error {
	unlock, err := durable.Stripes(filepath.Join(s.Dir, "lock", "put")).Lock(ctx, string(key))
	if err != nil {
		return err
	}
	defer unlock()
	return f()
}

// record is a turn with its number. One that cannot be read has only that and an
// error.
type record struct {
	Turn
	number int
	err    error
}

// load reads the pending records of a session, oldest first. There is seldom
// more than one.
func (s Spool) load(key client.SessionKey) ([]record, error) {
	numbers, err := numbers(s.pending(key))
	if err != nil {
		return nil, err
	}
	var out []record
	for _, n := range numbers {
		t, err := readTurn(s.file(key, n))
		if !errors.Is(err, fs.ErrNotExist) {
			out = append(out, record{t, n, err})
		}
	}
	return out, nil
}

// next is the number after the last of the records.
func next(records []record) int {
	if len(records) == 0 {
		return 1
	}
	return records[len(records)-1].number + 1
}

// Put makes a turn durable. If a record of the same turn is open, the events
// that it lacks are added to it; other open records are closed first, as they
// will get no more events. Provisional records stand apart: they are not closed,
// and one that says the same already is not doubled. Version and UpdatedAt are
// filled in.
func (s Spool) Put(ctx context.Context, t Turn) error {
	key := t.Key()
	return s.locked(ctx, key, func() error {
		records, err := s.load(key)
		if err != nil {
			return err
		}
		number := next(records)
		for _, r := range records {
			switch {
			case !r.Open || t.Note != nil:
			case r.Provisional && t.Provisional && slices.EqualFunc(r.Events, t.Events, sameContent):
				return nil
			case r.Provisional || t.Provisional:
			case r.Turn.Turn == t.Turn:
				number = r.number
				t.Events = merged(r.Events, t.Events)
			default:
				if err := s.close(key, r, client.TurnEnd); err != nil {
					return err
				}
			}
		}
		if len(t.Events) == 0 && t.Note == nil && !forced(t.Flush) {
			return nil
		}
		t.UpdatedAt = s.Now()
		return s.write(s.file(key, number), t)
	})
}

// merged appends the events that are not there yet.
func merged(have, more []client.Event) []client.Event {
	for _, e := range more {
		if !slices.ContainsFunc(have, func(h client.Event) bool { return h.ID == e.ID }) {
			have = append(have, e)
		}
	}
	return have
}

func sameContent(a, b client.Event) bool { return a.Content == b.Content }

// Settle drops the session's provisional turns whose text is among those that
// the host's log has told by now, under their real ids.
func (s Spool) Settle(ctx context.Context, session client.Session, told func(text string) bool) error {
	return s.eachProvisional(ctx, session, func(key client.SessionKey, r record) error {
		if slices.ContainsFunc(r.Events, func(e client.Event) bool { return !told(e.Content) }) {
			return nil
		}
		return os.Remove(s.file(key, r.number))
	})
}

// Abandon closes the session's provisional turns, which the host's log will not
// tell any more, but the one that has just begun with a text.
func (s Spool) Abandon(ctx context.Context, session client.Session, begun string) error {
	return s.eachProvisional(ctx, session, func(key client.SessionKey, r record) error {
		if slices.ContainsFunc(r.Events, func(e client.Event) bool { return e.Content == begun }) {
			return nil
		}
		return s.close(key, r, client.TurnEnd)
	})
}

func (s Spool) eachProvisional(ctx context.Context, session client.Session, do func(client.SessionKey, record) error) error {
	key := session.Key()
	return s.locked(ctx, key, func() error {
		records, err := s.load(key)
		if err != nil {
			return err
		}
		for _, r := range records {
			if r.Open && r.Provisional {
				if err := do(key, r); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Close ends the session's open turn, if there is one: it will get no more
// events; a provisional one only at the end of the session. A flush before a compaction or at the
// end of the session is asked for even if no turn was open.
func (s Spool) Close(ctx context.Context, session client.Session, flush client.FlushReason) error {
	key := session.Key()
	return s.locked(ctx, key, func() error {
		records, err := s.load(key)
		if err != nil {
			return err
		}
		for _, r := range records {
			if r.Open && (!r.Provisional || flush == client.SessionEnd) {
				return s.close(key, r, flush)
			}
		}
		if !forced(flush) {
			return nil
		}
		return s.write(s.file(key, next(records)), Turn{Session: session, Flush: flush, UpdatedAt: s.Now()})
	})
}

// close marks a record as complete.
func (s Spool) close(key client.SessionKey, r record, flush client.FlushReason) error {
	r.Open, r.Provisional = false, false
	r.Flush = flush
	r.UpdatedAt = s.Now()
	return s.write(s.file(key, r.number), r.Turn)
}

// forced tells the flushes that are worth a record of their own.
func forced(r client.FlushReason) bool { return r != "" && r != client.TurnEnd }

// Unfinished returns the session's open turn.
func (s Spool) Unfinished(session client.Session) (Turn, bool) {
	records, err := s.load(session.Key())
	for _, r := range records {
		if r.Open && !r.Provisional {
			return r.Turn, err == nil
		}
	}
	return Turn{}, false
}

// due tells whether a record is to be delivered: its turn has ended, or will not
// end any more, or it cannot be read and must get out of the way.
func (s Spool) due(r record) bool {
	limit := OpenFor
	if r.Provisional {
		limit = provisionalFor
	}
	age := s.Now().Sub(r.UpdatedAt)
	return r.err != nil || !r.Open || age < 0 || age >= limit
}

// Due tells whether a session has anything to deliver that has been waiting for
// at least the given time: what is younger may be on its way already.
func (s Spool) Due(key client.SessionKey, waited time.Duration) bool {
	records, err := s.load(key)
	return err == nil && slices.ContainsFunc(records, func(r record) bool {
		age := s.Now().Sub(r.UpdatedAt)
		return s.due(r) && (age < 0 || age >= waited)
	})
}

func (s Spool) file(key client.SessionKey, n int) string {
	return filepath.Join(s.pending(key), fmt.Sprintf("%08d.json", n))
}

func (s Spool) write(path string, t Turn) error {
	t.Version = version
	if t.Events == nil {
		t.Events = []client.Event{}
	}
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := durable.MkdirAll(dir); err != nil {
			return err
		}
		if err := durable.SyncDir(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	crash.Point("put.begin")
	if err := durable.WriteFile(path, append(data, '\n')); err != nil {
		return err
	}
	crash.Point("put.written")
	return nil
}

func readTurn(path string) (Turn, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Turn{}, err
	}
	return parseTurn(data)
}

func parseTurn(data []byte) (Turn, error) {
	var t Turn
	if err := json.Unmarshal(data, &t); err != nil {
		return Turn{}, fmt.Errorf("damaged record: %w", err)
	}
	if t.Version != version {
		return Turn{}, fmt.Errorf("record of version %d, this program knows %d", t.Version, version)
	}
	return t, t.Validate()
}

// numbers lists the records of a session folder, oldest first. A missing folder
// is an empty one.
func numbers(dir string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []int
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if n, err := strconv.Atoi(name); ok && err == nil && n > 0 && e.Type().IsRegular() {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}
