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
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// version is the version of the record format.
const version = 1

// OpenFor is how long a turn may stay open before it counts as abandoned and is
// delivered as it is.
const OpenFor = time.Hour

// Grace is how long a hook may take to deliver what it has put; after that
// somebody else should.
const Grace = 5 * time.Second

// Turn is one record: what was said in a turn of a session.
type Turn struct {
	Version int `json:"version"`
	client.Session
	Turn      client.TurnID      `json:"turn_id,omitempty"`
	Cwd       string             `json:"cwd,omitempty"`
	Events    []client.Event     `json:"events"`          // may be empty: then only the flush counts
	Open      bool               `json:"open,omitempty"`  // more may come
	Flush     client.FlushReason `json:"flush,omitempty"` // asked of the service after delivery
	UpdatedAt time.Time          `json:"updated_at"`
	Reason    string             `json:"reason,omitempty"` // in quarantine: why
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

// Put makes a turn durable. If the session's open record is of the same turn,
// the events are added to it; an open record of another turn is closed first,
// as it will get no more events. Version and UpdatedAt are filled in.
func (s Spool) Put(ctx context.Context, t Turn) error {
	key := t.Key()
	return s.locked(ctx, key, func() error {
		last, prev, err := s.last(key)
		if err != nil {
			return err
		}
		number := last + 1
		if prev.Open && prev.Turn == t.Turn {
			number = last
			t.Events = append(prev.Events, t.Events...)
		} else if prev.Open {
			if err := s.write(s.file(key, last), s.closed(prev, client.TurnEnd)); err != nil {
				return err
			}
		}
		if len(t.Events) == 0 && !forced(t.Flush) {
			return nil
		}
		t.UpdatedAt = s.Now()
		return s.write(s.file(key, number), t)
	})
}

// Close ends the session's open turn, if there is one: it will get no more
// events. A flush before a compaction or at the end of the session is asked for
// even if no turn was open.
func (s Spool) Close(ctx context.Context, session client.Session, flush client.FlushReason) error {
	key := session.Key()
	return s.locked(ctx, key, func() error {
		last, prev, err := s.last(key)
		switch {
		case err != nil:
			return err
		case prev.Open:
			return s.write(s.file(key, last), s.closed(prev, flush))
		case forced(flush):
			return s.write(s.file(key, last+1), Turn{Session: session, Flush: flush, UpdatedAt: s.Now()})
		}
		return nil
	})
}

// forced tells the flushes that are worth a record of their own.
func forced(r client.FlushReason) bool { return r != "" && r != client.TurnEnd }

// Unfinished returns the session's open turn.
func (s Spool) Unfinished(session client.Session) (Turn, bool) {
	_, t, err := s.last(session.Key())
	return t, err == nil && t.Open
}

// last returns the session's newest record and its number, 0 if it has none. A
// record that cannot be read is returned as an empty one: it is not open.
func (s Spool) last(key client.SessionKey) (int, Turn, error) {
	numbers, err := numbers(s.pending(key))
	if err != nil || len(numbers) == 0 {
		return 0, Turn{}, err
	}
	n := numbers[len(numbers)-1]
	t, err := readTurn(s.file(key, n))
	if err != nil {
		return n, Turn{}, nil
	}
	return n, t, nil
}

func (s Spool) closed(t Turn, flush client.FlushReason) Turn {
	t.Open = false
	t.Flush = flush
	t.UpdatedAt = s.Now()
	return t
}

// due tells whether a record is to be delivered: its turn has ended, or will not
// end any more.
func (s Spool) due(t Turn) bool {
	age := s.Now().Sub(t.UpdatedAt)
	return !t.Open || age < 0 || age >= OpenFor
}

// Due tells whether a session has anything to deliver that has been waiting for
// at least the given time: what is younger may be on its way already.
func (s Spool) Due(key client.SessionKey, waited time.Duration) bool {
	numbers, err := numbers(s.pending(key))
	if err != nil || len(numbers) == 0 {
		return false
	}
	t, err := readTurn(s.file(key, numbers[len(numbers)-1]))
	if err != nil {
		return true
	}
	age := s.Now().Sub(t.UpdatedAt)
	return (len(numbers) > 1 || s.due(t)) && (age < 0 || age >= waited)
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
	crashPoint("put.begin")
	if err := durable.WriteFile(path, append(data, '\n')); err != nil {
		return err
	}
	crashPoint("put.written")
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

// crashPoint marks a place at which tests kill the process.
var crashPoint = func(string) {}
