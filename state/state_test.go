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
