package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

func mustAppendAll(t *testing.T, w *Workspace, reqs ...client.AppendRequest) {
	t.Helper()
	if err := w.AppendAll(t.Context(), reqs); err != nil {
		t.Fatal(err)
	}
}

// TestAppendAll stores sessions together, of which one is there, one comes in two
// parts, and one has nothing new. What was stored is found, and once, before and
// after it is indexed.
func TestAppendAll(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	a, b, c := testSession("a"), testSession("b"), testSession("c")
	mustAppend(t, w, a, testTurn(0, "Where is the kettle?", "On the stove.")...)
	all := []client.AppendRequest{
		{Session: a, Events: append(testTurn(0, "Where is the kettle?", "On the stove."), testTurn(1, "And the pangolin?", "Asleep.")...)},
		{Session: b, Cwd: "/one", Events: testTurn(2, "What is an okapi?", "A giraffe.")},
		{Session: b, Cwd: "/two", Events: append(testTurn(3, "And a quokka?", "A wallaby."), client.Event{ID: "9:user", Role: client.User, Content: " \n"})},
		{Session: a},
		{Session: c},
	}
	mustAppendAll(t, w, all...)
	mustAppendAll(t, w, all...)
	wantRows(t, w, a, 0, 1)
	wantRows(t, w, b, 2, 3)
	if _, err := w.SessionEvents(t.Context(), client.SessionEventsRequest{Session: c}); err != nil {
		t.Error(err)
	}
	for _, word := range []string{"kettle", "pangolin", "okapi", "quokka"} {
		if items := mustRecall(t, w, word); len(items) != 1 {
			t.Errorf("%s: %+v", word, items)
		}
	}
	if res := mustAppend(t, w, b, testTurn(3, "And a quokka?", "A wallaby.")...); res.Duplicate != 2 || res.Total != 4 {
		t.Errorf("append of what is there: %+v", res)
	}
	if st := mustStats(t, w); st.Turns != 4 || st.Sessions != 2 || st.Queued != 2 {
		t.Errorf("stats: %+v", st)
	}
}

// Stats does not wait until much is indexed, nor for another process that is at it, and
// says so.
func TestStatsOfWhatIsNotIndexed(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	var all []client.AppendRequest
	for i := range 12 {
		turn := testTurn(i, "How?", strings.Repeat(fmt.Sprintf("so%d ", i), maxBegin/20))
		all = append(all, client.AppendRequest{Session: testSession(fmt.Sprint("s", i)), Events: turn})
	}
	mustAppendAll(t, w, all...)
	unlock, ok, err := durable.TryLock(w.abs(syncLock))
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if st := mustStats(t, w); !st.Behind || st.Turns != 0 {
		t.Errorf("while another process is at it: %+v", st)
	}
	unlock()
	if st := mustStats(t, w); !st.Behind || st.Turns == 0 || st.Turns == len(all) {
		t.Errorf("at first: %+v", st)
	}
	if err := w.Drain(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if st := mustStats(t, w); st.Behind || st.Turns != len(all) {
		t.Errorf("at last: %+v", st)
	}
}

// What AppendAll has stored is queued by whoever drains, and its notes are written.
func TestAppendAllIsDrained(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	mustAppendAll(t, w, client.AppendRequest{Session: testSession("a"), Events: testTurn(0, "What is it?", "A pangolin.")})
	if err := w.Drain(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if st := mustStats(t, w); st.Notes != 1 || st.Queued != 0 {
		t.Errorf("stats: %+v", st)
	}
}

func TestAppendAllRefuses(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	good := client.AppendRequest{Session: testSession("a"), Events: testTurn(0, "q", "a")}
	bad := client.AppendRequest{Session: testSession("b"), Events: []client.Event{{ID: "1:user", Role: "system", Content: "x", CreatedAt: time.Unix(0, 0)}}}
	if err := w.AppendAll(t.Context(), []client.AppendRequest{good, bad}); client.ClassOf(err) != client.Permanent {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(w.abs(dialogPath(good.Session))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
}

// TestKilledAppendAll kills the process in the middle. The next one has all, once.
func TestKilledAppendAll(t *testing.T) {
	for _, point := range []string{"append.written", "bulk.written", "bulk.synced"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := openAt(t, t.TempDir(), noon)
			env := []string{childAction + "=bulk", childSpread + "=3"}
			wantKilled(t, hook(t, w.dir, append(env, childCrash+"="+point)...))
			if err := hook(t, w.dir, env...).Run(); err != nil {
				t.Fatal(err)
			}
			for n := range 3 {
				wantRows(t, w, testSession(fmt.Sprint("s", n)), n)
			}
			if st := mustStats(t, w); st.Turns != 3 || st.Index != IndexOK {
				t.Errorf("stats: %+v", st)
			}
		})
	}
}

// While much is indexed, and after that was broken off, a recall does not begin to
// index as well: it answers from what is there.
func TestRecallWhileMuchIsIndexed(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	mustAppend(t, w, testSession("a"), testTurn(0, "What is a pangolin?", "A mammal.")...)
	mustAppendAll(t, w, client.AppendRequest{Session: testSession("b"), Events: testTurn(1, "What is an okapi?", strings.Repeat("A giraffe. ", maxCatchUp/10))})
	all, err := w.walk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	broken := found{path: dialogDir + "/codex"} // a folder cannot be read as a file
	err = w.use(t.Context(), func(x *index) error {
		_, err := w.take(t.Context(), x, walked{files: append([]found{broken}, all.files...)}, true, math.MaxInt64)
		return err
	})
	if err == nil {
		t.Fatal("it was not broken off")
	}
	if items := mustRecall(t, w, "pangolin"); len(items) != 1 || !w.Behind() {
		t.Errorf("behind: %v, %+v", w.Behind(), items)
	}
	if items := mustRecall(t, w, "okapi"); len(items) != 0 {
		t.Errorf("indexed by a recall: %+v", items)
	}
	if err := w.Drain(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if items := mustRecall(t, w, "okapi"); len(items) != 1 || w.Behind() {
		t.Errorf("behind: %v, %+v", w.Behind(), items)
	}
}
