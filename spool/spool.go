// Package spool keeps every turn on disk until a service has confirmed it.
//
// It promises that what Put has accepted survives a crash and a power cut, that
// the messages of one session are delivered in the order in which they were put
// (a turn that ends after the next one has begun goes before that one), and that
// a record leaves only when the service's answer names each of its
// events. It never deletes anything else: what a service refuses for good is
// moved to quarantine with the reason. What is in it when it is full stays, and what
// comes then is for its caller to hand over at once.
//
// A record is one JSON file, pending/<session key>/<number>-<random>.json, that
// is written once and never changed: a hook that has something to keep waits for
// nobody. (With one file a turn, which its hooks completed under a lock, sixty
// hooks at once on a busy machine starved each other until some were killed.) The
// numbers grow within a session, so that order does not depend on any clock; the
// random part keeps apart what two hooks put at the same time. A record may be
// open: its turn goes on, and it is delivered with what follows. Because a service
// drops events that it has seen, delivering a record again, or early, does no
// harm.
package spool

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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

// What a spool holds at most. What is there already stays; a turn that finds it full
// is for the service to take at once.
const (
	maxRecords = 50_000
	maxBytes   = 1 << 30
)

// ErrFull is the error of Put when the spool has no room.
var ErrFull = errors.New("the spool is full")

// Grace is how long a hook may take to deliver what it has put; after that
// somebody else should.
const Grace = 5 * time.Second

// Turn is one record: what was said in a turn of a session, or in a part of it.
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

	MaxRecords, MaxBytes int // 0 for what the constants say
}

func (s Spool) pending(key client.SessionKey) string {
	return filepath.Join(s.Dir, "pending", string(key))
}

func (s Spool) quarantine(key client.SessionKey) string {
	return filepath.Join(s.Dir, "quarantine", string(key))
}

// Full tells whether the spool has no room for another record. It looks at sizes
// only when there are many records, as a single one has few MiB at most.
func (s Spool) Full() bool {
	records, bytes := cmp.Or(s.MaxRecords, maxRecords), int64(cmp.Or(s.MaxBytes, maxBytes))
	var files []os.DirEntry
	for _, quarantined := range []bool{false, true} {
		keys, _ := s.keys(quarantined)
		for _, key := range keys {
			dir := s.pending(key)
			if quarantined {
				dir = s.quarantine(key)
			}
			entries, _ := os.ReadDir(dir)
			if files = append(files, entries...); len(files) >= records {
				return true
			}
		}
	}
	if len(files) < records/100 {
		return false
	}
	for _, f := range files {
		if st, err := f.Info(); err == nil {
			bytes -= st.Size()
		}
	}
	return bytes <= 0
}

// Put makes a record durable, or is [ErrFull]. Version and UpdatedAt are filled in.
func (s Spool) Put(t Turn) error {
	if s.Full() {
		return ErrFull
	}
	dir := s.pending(t.Key())
	number := 1
	for _, dir := range []string{dir, s.quarantine(t.Key())} { // what was refused comes before, if it is released
		names, err := names(dir)
		if err != nil {
			return err
		}
		if len(names) > 0 {
			number = max(number, numberOf(names[len(names)-1])+1)
		}
	}
	t.UpdatedAt = s.Now()
	return write(filepath.Join(dir, newName(number)), t)
}

// Close ends the session's open turn, if there is one. A flush before a
// compaction or at the end of the session is asked for even if no turn was open.
func (s Spool) Close(session client.Session, flush client.FlushReason) error {
	records, err := s.load(session.Key())
	if err != nil {
		return err
	}
	open := slices.ContainsFunc(records, func(r record) bool { return r.Open && !r.Provisional })
	if !open && flush == client.TurnEnd {
		return nil
	}
	return s.Put(Turn{Session: session, Flush: flush})
}

// Settle drops the session's provisional records whose text is among those that
// the host's log has told by now, under their real ids.
func (s Spool) Settle(session client.Session, told func(text string) bool) error {
	return s.eachProvisional(session, func(path string, r record) error {
		if slices.ContainsFunc(r.Events, func(e client.Event) bool { return !told(e.Content) }) {
			return nil
		}
		return os.Remove(path)
	})
}

// Abandon makes the session's provisional records final, as the host's log will
// not tell them any more, but for the one that has just begun with a text.
func (s Spool) Abandon(session client.Session, begun string) error {
	return s.eachProvisional(session, func(path string, r record) error {
		if slices.ContainsFunc(r.Events, func(e client.Event) bool { return e.Content == begun }) {
			return nil
		}
		r.Open, r.Provisional = false, false
		return write(path, r.Turn)
	})
}

func (s Spool) eachProvisional(session client.Session, do func(path string, r record) error) error {
	key := session.Key()
	records, err := s.load(key)
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Provisional {
			if err := do(filepath.Join(s.pending(key), r.name), r); err != nil {
				return err
			}
		}
	}
	return nil
}

// Waiting returns the session's pending records that can be read, oldest first; none if
// the last of them is not younger than a time.
func (s Spool) Waiting(session client.Session, since time.Time) []Turn {
	dir := s.pending(session.Key())
	names, err := names(dir)
	if err != nil || len(names) == 0 {
		return nil
	}
	if last, err := readTurn(filepath.Join(dir, names[len(names)-1])); err == nil && !last.UpdatedAt.After(since) {
		return nil
	}
	records, _ := load(dir)
	var out []Turn
	for _, r := range records {
		if r.err == nil {
			out = append(out, r.Turn)
		}
	}
	return out
}

// Events returns what is there of a session, in quarantine too.
func (s Spool) Events(session client.Session) ([]client.Event, error) {
	var out []client.Event
	for _, dir := range []string{s.pending(session.Key()), s.quarantine(session.Key())} {
		records, err := load(dir)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			if r.err == nil {
				out = append(out, r.Turn.Events...)
			}
		}
	}
	return out, nil
}

// record is a Turn with its file's name. One that cannot be read has only that
// and an error.
type record struct {
	Turn
	name string
	err  error
}

// size is the length of the record's messages, in bytes.
func (r record) size() int {
	n := 0
	for _, e := range r.Events {
		n += len(e.Content)
	}
	return n
}

// load reads the pending records of a session, oldest first.
func (s Spool) load(key client.SessionKey) ([]record, error) { return load(s.pending(key)) }

func load(dir string) ([]record, error) {
	names, err := names(dir)
	if err != nil {
		return nil, err
	}
	var out []record
	for _, name := range names {
		t, err := readTurn(filepath.Join(dir, name))
		if !errors.Is(err, fs.ErrNotExist) {
			out = append(out, record{t, name, err})
		}
	}
	return out, nil
}

// due picks the records that are to be delivered: whose turn has ended, goes on
// in a later record that ends it, or will not end any more; and those that cannot
// be read and must get out of the way.
func (s Spool) due(records []record) []record {
	var out []record
	for i, r := range records {
		age, limit := s.Now().Sub(r.UpdatedAt), OpenFor
		if r.Provisional {
			limit = provisionalFor
		}
		over := slices.ContainsFunc(records[i+1:], func(later record) bool {
			switch id := later.Turn.Turn; {
			case later.Provisional:
				return false
			case id == r.Turn.Turn:
				return !later.Open
			default:
				// The end of a turn that had begun before says nothing of this one: a host may
				// tell it late.
				return id == "" || !slices.ContainsFunc(records[:i], func(earlier record) bool { return earlier.Turn.Turn == id })
			}
		})
		if r.err != nil || !r.Open || over && !r.Provisional || age < 0 || age >= limit {
			out = append(out, r)
		}
	}
	return out
}

// Due tells whether a session has anything to deliver that has been waiting for
// at least the given time: what is younger may be on its way already.
func (s Spool) Due(key client.SessionKey, waited time.Duration) bool {
	records, err := s.load(key)
	return err == nil && slices.ContainsFunc(s.due(records), func(r record) bool {
		age := s.Now().Sub(r.UpdatedAt)
		return age < 0 || age >= waited
	})
}

func write(path string, t Turn) error {
	t.Version = version
	if t.Events == nil {
		t.Events = []client.Event{}
	}
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	crash.Point("put.begin")
	for attempt := 1; ; attempt++ {
		dir := filepath.Dir(path)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			if err := durable.MkdirAll(dir); err != nil {
				return err
			}
			if err := durable.SyncDir(filepath.Dir(dir)); err != nil {
				return err
			}
		}
		err := durable.WriteFile(path, append(data, '\n'))
		if errors.Is(err, fs.ErrNotExist) && attempt < 20 {
			continue // a deliverer has just removed the empty folder; another hook may have made it again
		}
		crash.Point("put.written")
		return err
	}
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

const nameLength = len("00000001-89abcdef.json")

func newName(number int) string { return fmt.Sprintf("%08d-%08x.json", number, rand.Uint32()) }

// numberOf is the number in a record's name, 0 if it is not one.
func numberOf(name string) int {
	var number, random uint32
	if n, err := fmt.Sscanf(name, "%08d-%08x.json", &number, &random); err != nil || n != 2 || len(name) != nameLength {
		return 0
	}
	return int(number)
}

// names lists the records of a session folder, oldest first. A missing folder is
// an empty one.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if numberOf(e.Name()) > 0 && e.Type().IsRegular() {
			out = append(out, e.Name())
		}
	}
	return out, nil
}
