package state

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

var (
	start   = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	session = client.Session{Host: "codex", Scope: "default", ID: "s"}
)

func newStore(t *testing.T) Store {
	return Store{Dir: filepath.Join(t.TempDir(), "state"), Now: func() time.Time { return start }}
}

func TestConcurrentUpdates(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			err := s.Update(context.Background(), session, func(st *Session) error {
				st.Prompts++
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	last, ok, err := s.Last("codex")
	if err != nil || !ok || last.Prompts != 50 {
		t.Errorf("%d of 50 updates, %v", last.Prompts, err)
	}
}

func TestUnusableFilesStartAfresh(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"empty":           "",
		"garbage":         "\x00\x01",
		"another version": `{"version":99,"host":"codex","scope_id":"default","session_id":"s","prompts":7}`,
		"another session": `{"version":1,"host":"codex","scope_id":"default","session_id":"other","prompts":7}`,
	} {
		s := newStore(t)
		if err := os.MkdirAll(filepath.Dir(s.path(session)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.path(session), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		err := s.Update(t.Context(), session, func(st *Session) error {
			if st.Prompts != 0 || st.ID != "s" {
				t.Errorf("%s: read %+v", name, st)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFailedChangeIsNotSaved(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	want := errors.New("no")
	if err := s.Update(t.Context(), session, func(st *Session) error { st.Prompts = 5; return want }); !errors.Is(err, want) {
		t.Error(err)
	}
	if _, ok, err := s.Last("codex"); ok || err != nil {
		t.Errorf("saved, %v", err)
	}
}

func TestRepeated(t *testing.T) {
	t.Parallel()
	var s Session
	for _, c := range []struct {
		after time.Duration
		print string
		want  bool
	}{
		{0, "a", false}, {time.Second, "a", true}, {time.Second, "b", false}, {2 * time.Second, "a", true},
		{5 * time.Second, "a", false}, {-time.Hour, "a", false},
	} {
		if got := s.Repeated(c.print, start.Add(c.after)); got != c.want {
			t.Errorf("%s after %v: %v", c.print, c.after, got)
		}
	}
}

// A wrong clock expires nothing, and the mark that a session is to be left alone lasts.
func TestExpire(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	old := start.Add(-100 * 24 * time.Hour)
	make := func(id string, fileTime time.Time, bypassed bool) client.Session {
		session := client.Session{Host: "codex", Scope: "default", ID: id}
		s.Now = func() time.Time { return old }
		if err := s.Update(t.Context(), session, func(st *Session) error { st.Prompts, st.Bypassed = 1, bypassed; return nil }); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(s.path(session), fileTime, fileTime); err != nil {
			t.Fatal(err)
		}
		return session
	}
	long := time.Now().Add(-100 * 24 * time.Hour)
	over, held, wrongClock := make("over", long, false), make("held", long, true), make("wrong clock", time.Now(), false)
	s.Now = func() time.Time { return start }
	young := client.Session{Host: "codex", Scope: "default", ID: "young"}
	if err := s.Update(t.Context(), young, func(st *Session) error { st.Prompts = 1; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.Expire(); err != nil {
		t.Fatal(err)
	}
	for session, want := range map[client.Session]int{over: 0, held: 1, wrongClock: 1, young: 1} {
		if got := s.Get(session).Prompts; got != want {
			t.Errorf("%s: %d prompts, want %d", session.ID, got, want)
		}
	}
}

// Folders with signs in them that mean something to shells are folders like any other.
func TestExpireInOddFolders(t *testing.T) {
	t.Parallel()
	s := Store{Dir: filepath.Join(t.TempDir(), `a[b]*?\c`), Now: func() time.Time { return start }}
	if err := s.Update(t.Context(), session, func(*Session) error { return nil }); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-200 * 24 * time.Hour)
	if err := os.Chtimes(s.path(session), long, long); err != nil {
		t.Fatal(err)
	}
	s.Now = func() time.Time { return start.Add(100 * 24 * time.Hour) }
	if err := s.Expire(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.path(session)); !errors.Is(err, os.ErrNotExist) {
		t.Error("nothing was found")
	}
}

// FuzzState: whatever is in a file of state, a session can go on, and has nothing of
// another one.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"version":1,"host":"codex","scope_id":"default","session_id":"s","prompts":2,"shown":["a","b"],"shown_before":9,"seen":[{"fingerprint":"x","at":"2026-11-30T09:00:00Z"}]}`))
	f.Add([]byte(`{"version":1,"host":"codex","scope_id":"default","session_id":"s","shown_before":-1,"ordinal":-9223372036854775808}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newStore(t)
		if err := os.MkdirAll(filepath.Dir(s.path(session)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.path(session), data, 0o600); err != nil {
			t.Fatal(err)
		}
		err := s.Update(t.Context(), session, func(st *Session) error {
			if st.Session != session {
				t.Errorf("the state of %+v", st.Session)
			}
			st.Begin("next")
			st.Show([]string{"m"})
			st.Forget(false)
			st.Forget(true)
			if st.Repeated("f", start) || !st.Repeated("f", start) {
				t.Error("what was seen is not remembered")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
