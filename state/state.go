// Package state keeps what hooks of one session must remember from one event to
// the next: the running turn, how many of its messages were numbered, and which
// memories the session was shown.
//
// It promises that concurrent hooks of a session see each other's changes, and
// that a damaged or missing file is never an error: the session starts afresh.
// No turn lives here; what must not be lost is in package spool.
package state

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// version is the version of the file format.
const version = 1

// Twice is how soon the same event is taken for a second registration of the
// same hook.
const Twice = 2 * time.Second

// maxShown bounds the list of memories that a session was shown.
const maxShown = 500

// Session is the state of one session.
type Session struct {
	Version int `json:"version"`
	client.Session
	Turn       client.TurnID `json:"turn_id,omitempty"`  // the last one seen
	Running    bool          `json:"running,omitempty"`  // that turn has not ended
	Bypassed   bool          `json:"bypassed,omitempty"` // the user held it, or turns of it, without memory
	Private    bool          `json:"private,omitempty"`  // the user wants nothing of Turn kept
	Ordinal    int           `json:"ordinal,omitempty"`  // turns numbered by us, where the host has no ids
	Life       string        `json:"life,omitempty"`     // part of their names: of no other state that the session has had, here or elsewhere
	Prompts    int           `json:"prompts,omitempty"`  // user messages of Turn
	Replies    int           `json:"replies,omitempty"`  // assistant messages of Turn
	LastReply  string        `json:"last_reply,omitempty"`
	Cursor     string        `json:"cursor,omitempty"`       // up to where the host's log was read
	Introduced bool          `json:"introduced,omitempty"`   // its context has what was last said in the project
	Asked      string        `json:"asked,omitempty"`        // what the running turn is about, to recall it again after a compaction
	Shown      []string      `json:"shown,omitempty"`        // ids of memories in the session's context
	Before     int           `json:"shown_before,omitempty"` // how many of Shown are from before Turn
	Seen       []Sighting    `json:"seen,omitempty"`
	Event      string        `json:"event"` // the last one
	UpdatedAt  time.Time     `json:"updated_at"`
}

// Sighting is an event that was handled.
type Sighting struct {
	Fingerprint string    `json:"fingerprint"`
	At          time.Time `json:"at"`
}

// Begin makes turn the session's current one, unless it is already.
func (s *Session) Begin(turn client.TurnID) {
	if s.Turn != turn {
		s.Turn, s.Private, s.Prompts, s.Replies, s.LastReply, s.Asked = turn, false, 0, 0, "", ""
		s.Before = len(s.Shown)
	}
}

// Show notes that the session's context has memories.
func (s *Session) Show(ids []string) {
	s.Shown = append(s.Shown, ids...)
	over := max(0, len(s.Shown)-maxShown)
	s.Shown, s.Before = s.Shown[over:], max(0, s.Before-over)
}

// Forget notes that the context has lost what was shown before the running turn
// and, if turn says so, in it.
func (s *Session) Forget(turn bool) {
	s.Shown = s.Shown[min(s.Before, len(s.Shown)):]
	if turn {
		s.Shown = nil
	}
	s.Before = 0
	s.Introduced = false
}

// Repeated tells whether the same event was handled a moment ago, and remembers
// it.
func (s *Session) Repeated(fingerprint string, now time.Time) bool {
	s.Seen = slices.DeleteFunc(s.Seen, func(x Sighting) bool {
		age := now.Sub(x.At)
		return age < 0 || age > Twice
	})
	if slices.ContainsFunc(s.Seen, func(x Sighting) bool { return x.Fingerprint == fingerprint }) {
		return true
	}
	s.Seen = append(s.Seen, Sighting{fingerprint, now})
	return false
}

// Store keeps the sessions in a folder, one file each.
type Store struct {
	Dir string
	Now func() time.Time
}

// Get returns the state of a session as it is now.
func (s Store) Get(session client.Session) Session { return s.load(s.path(session), session) }

// Update changes the state of a session under its lock. Nothing is saved if
// change returns an error.
func (s Store) Update(ctx context.Context, session client.Session, change func(*Session) error) error {
	unlock, err := durable.Stripes(filepath.Join(s.Dir, "lock")).Lock(ctx, string(session.Key()))
	if err != nil {
		return err
	}
	defer unlock()
	path := s.path(session)
	st := s.load(path, session)
	if err := change(&st); err != nil {
		return err
	}
	st.Version = version
	st.UpdatedAt = s.Now()
	data, err := json.Marshal(st)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	return durable.ReplaceFile(path, append(data, '\n'))
}

func (s Store) folder(host client.Host) string { return filepath.Join(s.Dir, host.Slug()) }

func (s Store) path(session client.Session) string {
	return filepath.Join(s.folder(session.Host), string(session.Key())+".json")
}

func (s Store) load(path string, session client.Session) Session {
	data, err := os.ReadFile(path)
	if err == nil {
		var st Session
		if json.Unmarshal(data, &st) == nil && st.Version == version && st.Session == session {
			return st
		}
	}
	return Session{Session: session}
}

// kept is how long the state of a session is kept after its last event. A session
// that is resumed later starts afresh.
const kept = 90 * 24 * time.Hour

// Expire deletes the state of sessions that ended long ago. That of a session which
// the user held without memory stays, as that is all that keeps it from being
// brought in from the host's log.
func (s Store) Expire() error {
	files, err := durable.Glob(s.Dir, "*/*.json")
	if err != nil {
		return err
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		var st Session
		if err != nil || json.Unmarshal(data, &st) != nil || st.Bypassed || s.Now().Sub(st.UpdatedAt) < kept {
			continue
		}
		// By both clocks: a wrong one says nothing of the age of a file.
		if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) < kept {
			continue
		}
		if err := s.forget(st.Session, st.UpdatedAt); err != nil {
			return err
		}
	}
	return nil
}

// forget deletes the state of a session, under its lock, unless it has changed.
func (s Store) forget(session client.Session, at time.Time) error {
	unlock, ok, err := durable.Stripes(filepath.Join(s.Dir, "lock")).TryLock(string(session.Key()))
	if err != nil || !ok {
		return err
	}
	defer unlock()
	if path := s.path(session); s.load(path, session).UpdatedAt.Equal(at) {
		return os.Remove(path)
	}
	return nil
}

// Last returns the most recently updated session of a host, if there is one.
func (s Store) Last(host client.Host) (Session, bool, error) {
	dir := s.folder(host)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Session{}, false, nil
	}
	if err != nil {
		return Session{}, false, err
	}
	var newest Session
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		var st Session
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err == nil && json.Unmarshal(data, &st) == nil && st.UpdatedAt.After(newest.UpdatedAt) {
			newest = st
		}
	}
	return newest, !newest.UpdatedAt.IsZero(), nil
}
