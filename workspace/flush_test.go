package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

// A session that cannot be extracted waits longer with each failure, also in
// another process and after a restart, and does not keep the others waiting.
func TestDrainBacksOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := noon
	var tried []string
	open := func() *Workspace {
		w, err := Open(dir, Options{Now: func() time.Time { return now }, Location: time.UTC})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		notes := w.extract
		w.extract = func(ctx context.Context, path string) error {
			if path == dialogPath(testSession("bad")) {
				tried = append(tried, path)
				return errors.New("no")
			}
			return notes(ctx, path)
		}
		return w
	}
	w := open()
	mustAppend(t, w, testSession("bad"), testTurn(1, "bad question", "bad answer")...)
	mustAppend(t, w, testSession("good"), testTurn(2, "good question", "good answer")...)
	drain := func(want int, failed bool) {
		t.Helper()
		tried = nil
		if err := w.Drain(t.Context(), Settled); len(tried) != want || (err != nil) != failed {
			t.Errorf("at %s: tried %d times, want %d; %v", now.Sub(noon), len(tried), want, err)
		}
	}
	drain(1, true)
	wantListed(t, w, "2026-11-30", 1)
	drain(0, false)
	for failures := 1; failures < 12; failures++ {
		w.Close()
		w = open()
		wait := min(5*time.Second<<(failures-1), client.LongestWait)
		now = now.Add(wait - time.Millisecond)
		drain(0, false)
		now = now.Add(wait/4 + 2*time.Millisecond)
		drain(1, true)
	}
	// Whoever asks for it has it tried at once; a clock that was wrong is forgotten.
	if _, err := w.Flush(t.Context(), client.FlushRequest{Session: testSession("bad"), Reason: client.TurnEnd, Wait: true}); err == nil {
		t.Error("flush does not tell the failure")
	}
	now = now.Add(-48 * time.Hour)
	drain(1, true)
	if st := mustStats(t, w); st.Queued != 1 {
		t.Errorf("stats: %+v", st)
	}
}

// However many drain at once, also in several processes, a session is extracted
// once, and few are at a time.
func TestDrainsTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const sessions, processes = 20, 4
	var mu sync.Mutex
	var extracted []string
	running, most := 0, 0
	var group sync.WaitGroup
	var all []*Workspace
	for range processes {
		w := openAt(t, dir, noon)
		notes := w.extract
		w.extract = func(ctx context.Context, path string) error {
			mu.Lock()
			extracted = append(extracted, path)
			running++
			most = max(most, running)
			mu.Unlock()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				running--
			}()
			return notes(ctx, path)
		}
		all = append(all, w)
	}
	for i := range sessions {
		mustAppend(t, all[0], testSession(fmt.Sprint("s", i)), testTurn(1, fmt.Sprint("question ", i), "answer")...)
	}
	for _, w := range all {
		group.Go(func() {
			if err := w.Drain(t.Context(), Settled); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	slices.Sort(extracted)
	if n := len(extracted); n != sessions || len(slices.Compact(extracted)) != sessions {
		t.Errorf("%d extractions", n)
	}
	if most > processes*extractions {
		t.Errorf("%d at once", most)
	}
	wantListed(t, all[0], "2026-11-30", sessions)
}

// With no silence asked for, all that is queued is extracted, as before the end of
// a server; what the time does not suffice for stays queued.
func TestDrainAll(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	for i := range 6 {
		mustAppend(t, w, testSession(fmt.Sprint("s", i)), testTurn(59, fmt.Sprint("question ", i), "answer")...)
	}
	notes := w.extract
	ctx, cancel := context.WithCancel(t.Context())
	done := 0
	var mu sync.Mutex
	w.extract = func(ctx context.Context, path string) error {
		mu.Lock()
		defer mu.Unlock()
		if done++; done == 3 {
			cancel()
		}
		return notes(ctx, path)
	}
	if err := w.Drain(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if st := mustStats(t, w); st.Queued < 2 || st.Queued > 5 {
		t.Errorf("stats: %+v", st)
	}
	if err := w.Drain(t.Context(), 0); err != nil {
		t.Error(err)
	}
	wantListed(t, w, "2026-11-30", 6)
	if st := mustStats(t, w); st.Queued != 0 {
		t.Errorf("stats: %+v", st)
	}
}
