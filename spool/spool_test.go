package spool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/crash"
)

// service keeps event ids in a file, so that it survives the death of a
// process.
type service struct {
	file string
	mu   sync.Mutex
	fail map[client.EventID]error
	mute bool // confirms nothing
}

func (s *service) ids(t testing.TB) []string {
	data, err := os.ReadFile(s.file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(data))
}

func (s *service) Append(_ context.Context, r client.AppendRequest) (client.AppendResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var res client.AppendResult
	for _, e := range r.Events {
		if err := s.fail[e.ID]; err != nil {
			return res, err
		}
	}
	f, err := os.OpenFile(s.file, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return res, err
	}
	defer f.Close()
	data, err := os.ReadFile(s.file)
	if err != nil {
		return res, err
	}
	have := strings.Fields(string(data))
	for _, e := range r.Events {
		if !slices.Contains(have, string(e.ID)) {
			if _, err := fmt.Fprintln(f, e.ID); err != nil {
				return res, err
			}
		}
		if !s.mute {
			res.EventIDs = append(res.EventIDs, e.ID)
		}
	}
	return res, nil
}

func (*service) Flush(context.Context, client.FlushRequest) (client.FlushResult, error) {
	return client.FlushResult{}, nil
}

func (*service) Recall(context.Context, client.RecallRequest) (client.RecallResult, error) {
	return client.RecallResult{}, nil
}

func (*service) Remember(context.Context, client.RememberRequest) (client.Note, error) {
	return client.Note{}, nil
}

func (*service) Info(context.Context) (client.Info, error) { return client.Info{}, nil }

var start = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

var session = client.Session{Host: "codex", Scope: "default", ID: "s"}

func newSpool(t *testing.T) (Spool, *service) {
	dir := t.TempDir()
	return Spool{Dir: filepath.Join(dir, "spool"), Now: func() time.Time { return start }}, &service{file: filepath.Join(dir, "service")}
}

func turn(id string, events ...string) Turn {
	t := Turn{Session: session, Turn: client.TurnID(id), Flush: client.TurnEnd}
	for _, e := range events {
		t.Events = append(t.Events, client.Event{ID: client.EventID(e), Role: client.User, Content: "text of " + e, CreatedAt: start})
	}
	return t
}

func put(t *testing.T, s Spool, turns ...Turn) {
	t.Helper()
	for _, turn := range turns {
		if err := s.Put(turn); err != nil {
			t.Fatal(err)
		}
	}
}

func expect(t *testing.T, svc *service, want ...string) {
	t.Helper()
	if got := svc.ids(t); !slices.Equal(got, want) {
		t.Errorf("the service has %v, want %v", got, want)
	}
}

func TestOrderSurvivesTheClock(t *testing.T) {
	t.Parallel()
	s, svc := newSpool(t)
	for i, jump := range []time.Duration{0, -365 * 24 * time.Hour, 365 * 24 * time.Hour, time.Hour} {
		s.Now = func() time.Time { return start.Add(jump) }
		put(t, s, turn(fmt.Sprint(i), fmt.Sprint("e", i)))
	}
	if err := s.Deliver(t.Context(), session.Key(), svc); err != nil {
		t.Fatal(err)
	}
	expect(t, svc, "e0", "e1", "e2", "e3")
	entries, err := os.ReadDir(filepath.Join(s.Dir, "pending"))
	if err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestOpenTurn(t *testing.T) {
	t.Parallel()
	s, svc := newSpool(t)
	open := turn("1", "e1")
	open.Open = true
	put(t, s, open)
	if err := s.Deliver(t.Context(), session.Key(), svc); err != nil {
		t.Fatal(err)
	}
	expect(t, svc)
	if got := s.Waiting(session, time.Time{}); len(got) != 1 || got[0].Turn != "1" {
		t.Errorf("waiting: %+v", got)
	}
	if got := s.Waiting(session, s.Now()); len(got) > 0 {
		t.Errorf("waiting since: %+v", got)
	}
	steered := turn("1", "e2")
	steered.Open = true
	put(t, s, steered)
	if s.Due(session.Key(), 0) {
		t.Error("a turn that goes on is due")
	}
	put(t, s, turn("1", "e3"))
	if err := s.Deliver(t.Context(), session.Key(), svc); err != nil {
		t.Fatal(err)
	}
	expect(t, svc, "e1", "e2", "e3")

	for name, after := range map[string]time.Duration{"late": OpenFor, "clock back": -time.Minute} {
		s, svc := newSpool(t)
		put(t, s, open)
		s.Now = func() time.Time { return start.Add(after) }
		if err := s.Deliver(t.Context(), session.Key(), svc); err != nil {
			t.Fatal(err)
		}
		if got := svc.ids(t); len(got) != 1 {
			t.Errorf("%s: the abandoned turn was not delivered", name)
		}
	}
}

// A host may tell the end of a turn when the next one has begun.
func TestLateEnd(t *testing.T) {
	t.Parallel()
	open := func(id string, events ...string) Turn {
		r := turn(id, events...)
		r.Open = true
		return r
	}
	s, svc := newSpool(t)
	put(t, s, open("1", "e1"), open("2", "e3"), turn("1", "e2"))
	deliver := func(want ...string) {
		t.Helper()
		if err := s.Deliver(t.Context(), session.Key(), svc); err != nil {
			t.Fatal(err)
		}
		expect(t, svc, want...)
	}
	deliver("e1", "e2")
	put(t, s, turn("2", "e4"))
	deliver("e1", "e2", "e3", "e4")

	// Whatever ends the session ends the turn that runs.
	put(t, s, turn("", "e5"), open("3", "e6"), Turn{Session: session})
	deliver("e1", "e2", "e3", "e4", "e5", "e6")
}

func TestErrors(t *testing.T) {
	t.Parallel()
	s, svc := newSpool(t)
	put(t, s, turn("1", "e1"), turn("2", "e2"), turn("3", "e3"))
	svc.fail = map[client.EventID]error{"e2": &client.Error{Reason: "busy"}}
	if err := s.Deliver(t.Context(), session.Key(), svc); err == nil {
		t.Error("no error")
	}
	expect(t, svc)
	svc.fail = map[client.EventID]error{"e2": &client.Error{Class: client.Permanent, Reason: "refused"}}
	if err := s.Deliver(t.Context(), session.Key(), svc); err != nil {
		t.Error(err)
	}
	expect(t, svc, "e1", "e3")
	svc.fail = nil
	release(t, s)
	if err := s.Deliver(t.Context(), session.Key(), svc); err != nil {
		t.Fatal(err)
	}
	expect(t, svc, "e1", "e3", "e2")
}

// release releases what is in quarantine.
func release(t *testing.T, s Spool) {
	t.Helper()
	entries, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.State == Quarantined {
			if err := s.Release(e); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A deliverer that tidies up does not come in the way of hooks that are writing.
func TestConcurrentPuts(t *testing.T) {
	t.Parallel()
	s, svc := newSpool(t)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			if err := s.Put(turn(fmt.Sprint(i), fmt.Sprint("e", i))); err != nil {
				t.Error(err)
			}
			if i%10 == 0 {
				if err := s.Deliver(context.Background(), session.Key(), svc); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := s.Deliver(t.Context(), session.Key(), svc); err != nil {
		t.Fatal(err)
	}
	if got := svc.ids(t); len(got) != 60 {
		t.Errorf("%d of 60 arrived", len(got))
	}
}

func TestNothingLeavesUnconfirmed(t *testing.T) {
	t.Parallel()
	s, svc := newSpool(t)
	put(t, s, turn("1", "e1"))
	svc.mute = true
	if err := s.Deliver(t.Context(), session.Key(), svc); err == nil {
		t.Error("no error")
	}
	if n, err := names(s.pending(session.Key())); err != nil || len(n) != 1 {
		t.Errorf("pending: %v, %v", n, err)
	}
}

func TestPrivateFiles(t *testing.T) {
	t.Parallel()
	s, _ := newSpool(t)
	put(t, s, turn("1", "e1"))
	err := filepath.WalkDir(s.Dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err == nil && st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, st.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFilesOfOthersStay(t *testing.T) {
	t.Parallel()
	s, svc := newSpool(t)
	put(t, s, turn("1", "e1"))
	dir := s.pending(session.Key())
	for _, name := range []string{".reme-hook-0123456789abcdef.tmp", "notes.txt", "00000002-89abcdef.json.bak"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Deliver(t.Context(), session.Key(), svc); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func FuzzParseTurn(f *testing.F) {
	good, err := json.Marshal(turn("1", "e1"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"version":1,"host":"h","scope_id":"s","session_id":"i","events":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		turn, err := parseTurn(data)
		if err == nil && turn.Validate() != nil {
			t.Errorf("accepted a turn of no session: %s", data)
		}
	})
}

// TestCrash kills a process at each point of put and deliver: afterwards each
// accepted turn arrives once, in order, and nothing else is left.
func TestCrash(t *testing.T) {
	if point := os.Getenv("SPOOL_CRASH_AT"); point != "" {
		crash.Point = func(at string) {
			if at == point {
				if self, err := os.FindProcess(os.Getpid()); err == nil {
					self.Kill()
				}
				select {}
			}
		}
		s := Spool{Dir: os.Getenv("SPOOL_DIR"), Now: func() time.Time { return start }}
		svc := &service{file: os.Getenv("SPOOL_SERVICE")}
		s.Put(turn("2", "e2"))
		s.Deliver(context.Background(), session.Key(), svc)
		return
	}
	for point, accepted := range map[string]bool{
		"put.begin": false, "file.made": false, "file.written": false, "file.renamed": true, "put.written": true,
		"deliver.appended": true, "deliver.removed": true, "never": true,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s, svc := newSpool(t)
			put(t, s, turn("1", "e1"))
			c := exec.Command(os.Args[0], "-test.run=^TestCrash$")
			c.Env = append(os.Environ(), "SPOOL_CRASH_AT="+point, "SPOOL_DIR="+s.Dir, "SPOOL_SERVICE="+svc.file)
			if err := c.Run(); (err == nil) != (point == "never") {
				t.Fatalf("the process ended with %v", err)
			}
			put(t, s, turn("3", "e3"))
			if err := s.Deliver(t.Context(), session.Key(), svc); err != nil {
				t.Fatal(err)
			}
			want := []string{"e1", "e2", "e3"}
			if !accepted {
				want = []string{"e1", "e3"}
			}
			expect(t, svc, want...)
			if entries, err := os.ReadDir(filepath.Join(s.Dir, "pending")); err != nil || len(entries) != 0 {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}

// TestCrashOfRefusal kills a process that moves a record to quarantine: it is there
// when the next delivery has come by, and only there.
func TestCrashOfRefusal(t *testing.T) {
	if dir := os.Getenv("SPOOL_REFUSE_DIR"); dir != "" {
		crash.Point = func(at string) {
			if at == os.Getenv("SPOOL_REFUSE_AT") {
				if self, err := os.FindProcess(os.Getpid()); err == nil {
					self.Kill()
				}
				select {}
			}
		}
		s := Spool{Dir: dir, Now: func() time.Time { return start }}
		s.Deliver(context.Background(), session.Key(), refusing(t))
		return
	}
	for _, point := range []string{"file.made", "file.renamed", "refuse.written"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s, _ := newSpool(t)
			put(t, s, turn("1", "bad"), turn("2", "good"))
			c := exec.Command(os.Args[0], "-test.run=^TestCrashOfRefusal$")
			c.Env = append(os.Environ(), "SPOOL_REFUSE_DIR="+s.Dir, "SPOOL_REFUSE_AT="+point)
			if err := c.Run(); err == nil {
				t.Fatal("the process was not killed")
			}
			svc := refusing(t)
			if _, err := s.DeliverAll(t.Context(), svc); err != nil {
				t.Fatal(err)
			}
			expect(t, svc, "good")
			entries, err := s.List()
			if err != nil || len(entries) == 0 {
				t.Fatalf("%v, %v", entries, err)
			}
			for _, e := range entries { // killed before it removed the pending one, it is refused again
				if e.State != Quarantined || e.Turn.Events[0].ID != "bad" {
					t.Errorf("left: %+v", e)
				}
			}
			wantTidy(t, s)
		})
	}
}

// refusing is a service that refuses the event bad for good.
func refusing(t *testing.T) *service {
	return &service{file: filepath.Join(t.TempDir(), "service"), fail: map[client.EventID]error{"bad": &client.Error{Class: client.Permanent, Reason: "no"}}}
}

// wantTidy checks that nothing is in the spool but records and locks.
func wantTidy(t *testing.T, s Spool) {
	t.Helper()
	err := filepath.WalkDir(s.Dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && numberOf(d.Name()) == 0 && filepath.Ext(path) != ".lock" {
			t.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What a killed hook left of a session that nobody goes on with goes as well.
func TestLeftOfADeadSession(t *testing.T) {
	t.Parallel()
	s, svc := newSpool(t)
	dir := s.pending(session.Key())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".reme-hook-0123456789abcdef.tmp"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeliverAll(t.Context(), svc); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(filepath.Join(s.Dir, "pending")); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// What is in a full spool stays, and nothing is added.
func TestFull(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(*Spool){
		"records": func(s *Spool) { s.MaxRecords = 2 },
		"bytes":   func(s *Spool) { s.MaxRecords, s.MaxBytes = 100, 1<<20 },
	} {
		s, svc := newSpool(t)
		limit(&s)
		large := turn("1", "e1")
		large.Events[0].Content = strings.Repeat("x", 1<<20)
		put(t, s, large)
		if name == "records" {
			put(t, s, turn("2", "e2"))
		}
		other := turn("9", "e9")
		other.Session.ID = "other"
		for _, late := range []Turn{turn("3", "e3"), other} {
			if err := s.Put(late); !errors.Is(err, ErrFull) || !s.Full() {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := s.Deliver(t.Context(), session.Key(), svc); err != nil {
			t.Fatal(err)
		}
		if s.Full() {
			t.Errorf("%s: an empty spool is full", name)
		}
		put(t, s, turn("3", "e3"))
		if err := s.Deliver(t.Context(), session.Key(), svc); err != nil {
			t.Fatal(err)
		}
		if got := svc.ids(t); got[0] != "e1" || got[len(got)-1] != "e3" {
			t.Errorf("%s: the service has %v", name, got)
		}
	}
}
