package workspace

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentscope-ai/reme-hook/client"
)

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Whoever leads a line takes all that stand in it; when they are done, or it leaves,
// the next one leads. A line in which nobody stands is gone.
func TestLines(t *testing.T) {
	t.Parallel()
	var l lines
	newPending := func(session string) *pending {
		return &pending{req: client.AppendRequest{Session: client.Session{Host: "h", Scope: "s", ID: session}}}
	}
	a, b, c, d := newPending("one"), newPending("one"), newPending("one"), newPending("one")
	if !l.join(a) || l.join(b) || l.join(c) || !l.join(newPending("two")) {
		t.Error("not the first of a line leads it")
	}
	if !l.leave(b) || l.leave(b) {
		t.Error("one that waits can leave, once")
	}
	together := l.take(a)
	if !slices.Equal(together, []*pending{a, c}) {
		t.Errorf("%d are taken", len(together))
	}
	if l.leave(c) || l.join(d) || isClosed(c.done) || isClosed(d.lead) {
		t.Error("what is being done has an end or a successor already")
	}
	l.finish(together)
	if !isClosed(a.done) || !isClosed(c.done) || len(d.lead) != 1 {
		t.Error("what is done has no end, or no successor")
	}
	e := newPending("one")
	if l.join(e) || !l.leave(d) || len(e.lead) != 1 {
		t.Error("after a leader that left nobody leads")
	}
	if !l.leave(e) || len(l.lines) != 1 || !l.join(a) {
		t.Error("a line in which nobody stands is not gone")
	}
}

// Appends that wait for a session's lock are done together, each with its own
// answer; one that cannot wait longer does not take the others with it.
func TestAppendTogether(t *testing.T) {
	t.Parallel()
	w := open(t, t.TempDir())
	defer w.Close()
	s := client.Session{Host: "codex", Scope: "default", ID: "s"}
	unlock, err := w.locks.Lock(t.Context(), string(s.Key()))
	if err != nil {
		t.Fatal(err)
	}
	hopeless, cancel := context.WithCancel(t.Context())
	first := &pending{req: client.AppendRequest{Session: s}} // leads until all have come
	if !w.lines.join(first) {
		t.Fatal("somebody else leads")
	}
	const appends = 20
	var totals sync.Map
	var came, group sync.WaitGroup
	ask := func(ctx context.Context, cwd, turn string) error {
		res, err := w.Append(ctx, client.AppendRequest{Session: s, Cwd: cwd, Events: []client.Event{
			{ID: client.EventID(turn + ":user"), Role: client.User, Content: "question " + turn},
			{ID: client.EventID(turn + ":assistant"), Role: client.Assistant, Content: " "},
		}})
		if _, twice := totals.LoadOrStore(res.Total, true); err == nil && (twice || res.Appended != 1 || res.Filtered != 1 || res.Duplicate != 0) {
			t.Errorf("%+v", res)
		}
		return err
	}
	came.Add(appends)
	for i := range appends {
		group.Go(func() {
			came.Done()
			if err := ask(t.Context(), fmt.Sprint("/src/", i), fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		})
	}
	came.Wait()
	cancel()
	if err := ask(hopeless, "", "never"); err == nil || client.ClassOf(err) != client.Retryable {
		t.Errorf("one that cannot wait: %v", err)
	}
	w.lines.leave(first)
	unlock()
	group.Wait()
	text, err := os.ReadFile(w.abs(dialogPath(s)))
	if err != nil || strings.Count(string(text), "\n") != appends || strings.Contains(string(text), "never") {
		t.Errorf("%s, %v", text, err)
	}
	for i := range appends {
		if !strings.Contains(string(text), fmt.Sprintf(`"/src/%d"`, i)) {
			t.Errorf("%d is not there with its folder", i)
		}
	}
	if len(w.lines.lines) > 0 {
		t.Errorf("%d lines are left", len(w.lines.lines))
	}
}

// An append that panics leaves nobody waiting.
func TestAppendPanics(t *testing.T) {
	t.Parallel()
	w := open(t, t.TempDir())
	defer w.Close()
	p := &pending{req: client.AppendRequest{Session: client.Session{Host: "h", Scope: "s", ID: "s"}}, events: []client.Event{{ID: "1"}}}
	q := &pending{req: p.req}
	w.lines.join(p)
	w.lines.join(q)
	together := w.lines.take(p)
	w.dir = "\x00"
	func() {
		defer func() { _ = recover() }()
		w.appendAll(t.Context(), together, func() { panic("unlock") })
	}()
	if !isClosed(p.done) || !isClosed(q.done) || len(w.lines.lines) > 0 {
		t.Error("somebody still waits")
	}
}
