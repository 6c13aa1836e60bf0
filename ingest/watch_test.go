package ingest

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/hooks"
)

// await looks until something is so.
func (w *world) await(what string, so func() bool) {
	w.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	limit := time.After(time.Minute)
	for !so() {
		select {
		case <-look.C:
		case <-limit:
			w.Fatalf("%s: never", what)
		}
	}
}

// TestWatch restarts a watch 20 times under a growing log, and lets it see the log
// grow. What was there before anybody watched is left where it is.
func TestWatch(t *testing.T) {
	t.Parallel()
	for _, a := range []string{"a", "a.zstd"} {
		t.Run(a, func(t *testing.T) {
			t.Parallel()
			watch(t, a)
		})
	}
}

func watch(t *testing.T, a string) {
	w := newWorld(t)
	w.write(a, "t1 user before", "t1 end")
	want := ""
	for i := range 20 {
		turn := fmt.Sprintf("t%d", i+2)
		if i > 0 {
			w.write(a, turn+" user q", turn+" assistant r", turn+" end")
			want += fmt.Sprintf("%s %s:user q\n%[1]s %[2]s:assistant r\n", a, turn)
		}
		in, ws := w.open()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- in.Watch(ctx, []*hooks.Adapter{w.host}, func(Report) {}) }()
		w.await("the look at the beginning", func() bool {
			_, err := os.Stat(in.file("h"))
			return err == nil && w.rows(a) == want
		})
		if i == 10 {
			w.write("b", "t3 user new", "t3 end")
			w.write(a, "t40 user more", "t40 end")
			want += a + " t40:user more\n"
			w.await("what was written meanwhile", func() bool { return w.rows(a, "b") == want+"b t3:user new\n" })
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		ws.Close()
	}
	if got := w.rows(a, "b"); got != want+"b t3:user new\n" {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What a watch has passed over is brought in by a backfill, also after the watch has
// followed it.
func TestBackfillAfterWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "t1 user before", "t1 end")
	w.write("b", "t3 user before", "t3 end")
	w.run(Options{Write: true, follow: true, pass: true})
	w.write("a", "t2 user since", "t2 end")
	w.run(Options{Write: true, follow: true})
	w.expect("a t2:user since")
	if r := w.run(Options{Write: true, follow: true}); r.Unchanged != 2 {
		t.Errorf("followed again: %+v", r)
	}
	if r := w.run(Options{}); r.Missing.Turns != 2 {
		t.Errorf("survey: %+v", r)
	}
	w.run(Options{Write: true})
	w.expect("a t2:user since", "a t1:user before", "b t3:user before")
	if r := w.run(Options{Write: true}); r.Unchanged != 2 {
		t.Errorf("again: %+v", r)
	}
}

// A watch that is stopped before it has passed over all that was there passes over
// it the next time.
func TestPassInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "t1 user before", "t1 end")
	w.write("b", "t3 user before", "t3 end")
	in, _ := w.open()
	ctx, stop := context.WithCancel(t.Context())
	now := time.Now()
	in.Now = func() time.Time { now = now.Add(checkpoint); return now }
	in.Progress = func(Report) { stop() } // after the first log
	if err := in.Watch(ctx, []*hooks.Adapter{w.host}, func(Report) {}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(in.file("h")); err == nil {
		t.Error("a part of it counts as passed")
	}
}
