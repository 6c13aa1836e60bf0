package workspace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/crash"
)

// The test binary runs itself as a hook would run: a process that appends and
// may be killed at a crash point.
const (
	childDir    = "WORKSPACE_TEST_DIR"
	childCrash  = "WORKSPACE_TEST_CRASH"  // the crash point to die at
	childAction = "WORKSPACE_TEST_ACTION" // what to do: append, bulk, flush, remember
	childFirst  = "WORKSPACE_TEST_FIRST"  // number of the first turn
	childTurns  = "WORKSPACE_TEST_TURNS"  // how many turns
	childSpread = "WORKSPACE_TEST_SPREAD" // over how many sessions
)

func TestMain(m *testing.M) {
	if os.Getenv(childDir) == "" {
		os.Exit(m.Run())
	}
	if err := child(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child() error {
	if at := os.Getenv(childCrash); at != "" {
		crash.Point = func(name string) {
			if name == at {
				self, err := os.FindProcess(os.Getpid())
				if err != nil || self.Kill() != nil {
					panic("cannot kill myself")
				}
				select {}
			}
		}
	}
	ctx := context.Background()
	number := func(name string) int { n, _ := strconv.Atoi(os.Getenv(name)); return n }
	for i := range number(childTurns) {
		// A hook is one process: one workspace for each turn.
		w, err := Open(os.Getenv(childDir), Options{})
		if err != nil {
			return err
		}
		n := number(childFirst) + i
		s := testSession(fmt.Sprint("s", n%number(childSpread)))
		switch os.Getenv(childAction) {
		case "append":
			_, err = w.Append(ctx, client.AppendRequest{Session: s, Events: testTurn(n, fmt.Sprintf("question %d", n), fmt.Sprintf("answer %d", n))})
		case "bulk": // a turn in each session
			var all []client.AppendRequest
			for n := range number(childSpread) {
				all = append(all, client.AppendRequest{Session: testSession(fmt.Sprint("s", n)), Events: testTurn(n, fmt.Sprintf("question %d", n), fmt.Sprintf("answer %d", n))})
			}
			err = w.AppendAll(ctx, all)
		case "flush":
			_, err = w.Flush(ctx, client.FlushRequest{Session: s, Reason: client.SessionEnd})
		case "remember":
			_, err = w.Remember(ctx, client.RememberRequest{Content: fmt.Sprintf("fact %d", n), Title: "fact"})
		}
		if err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		if w.state == IndexUnavailable {
			return errors.New("index: " + w.why)
		}
	}
	return nil
}

func hook(t *testing.T, dir string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childDir+"="+dir, childSpread+"=1", childTurns+"=1")
	cmd.Env = append(cmd.Env, env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	t.Cleanup(func() {
		if stderr.Len() > 0 {
			t.Logf("%v: %s", env, stderr.String())
		}
	})
	return cmd
}

// wantKilled runs a hook that is to be killed and not to fail of itself.
func wantKilled(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Run(); err == nil || cmd.Stderr.(*bytes.Buffer).Len() > 0 {
		t.Fatalf("the hook was not killed: %v", err)
	}
}

// wantRows checks that a dialog has exactly these turns, each once; of each turn
// the question comes before the answer.
func wantRows(t *testing.T, w *Workspace, s client.Session, turns ...int) {
	t.Helper()
	seen := map[string]int{}
	last := map[client.TurnID]client.Role{}
	sc := bufio.NewScanner(strings.NewReader(readFile(t, w, dialogPath(s))))
	for sc.Scan() {
		m, ok := parseRow(sc.Bytes(), w.loc)
		if !ok {
			t.Fatalf("bad row %q", sc.Text())
		}
		seen[m.ID]++
		if last[m.Turn] == client.Assistant {
			t.Errorf("turn %s goes on after its answer", m.Turn)
		}
		last[m.Turn] = m.Role
	}
	for _, n := range turns {
		for _, role := range []client.Role{client.User, client.Assistant} {
			id := string(client.NewEventID(client.TurnID(fmt.Sprint(n)), role, 1))
			if seen[id] != 1 {
				t.Errorf("event %s is there %d times", id, seen[id])
			}
			delete(seen, id)
		}
	}
	if len(seen) > 0 {
		t.Errorf("unexpected events: %v", seen)
	}
}

func TestKilledAppend(t *testing.T) {
	for _, point := range []string{"append.written", "append.synced", "index.made", "index.renamed", "index.commit", "append.indexed"} {
		for _, before := range []int{0, 3} {
			t.Run(fmt.Sprintf("%s/%d", point, before), func(t *testing.T) {
				t.Parallel()
				w := openAt(t, t.TempDir(), noon)
				s := testSession("s0")
				var turns []int
				for n := range before {
					mustAppend(t, w, s, testTurn(n, fmt.Sprintf("question %d", n), fmt.Sprintf("answer %d", n))...)
					turns = append(turns, n)
				}
				if strings.HasPrefix(point, "index.") { // there is none yet, or there was one
					w.Close()
					if err := os.RemoveAll(w.abs(privateDir)); err != nil {
						t.Fatal(err)
					}
				}
				first := childFirst + "=" + fmt.Sprint(before)
				wantKilled(t, hook(t, w.dir, childAction+"=append", first, childCrash+"="+point))
				// The host's next hook sends the turn again.
				if err := hook(t, w.dir, childAction+"=append", first).Run(); err != nil {
					t.Fatal(err)
				}
				res := mustAppend(t, w, s, testTurn(before+1, "pangolin", "yes")...)
				if res.Total != 2*(before+2) {
					t.Errorf("total %d", res.Total)
				}
				wantRows(t, w, s, append(turns, before, before+1)...)
				if st := mustStats(t, w); st.Turns != before+2 || st.Index != IndexOK {
					t.Errorf("stats: %+v", st)
				}
			})
		}
	}
}

// A turn that was written but not indexed is found without another append.
func TestRecallAfterKilledAppend(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	mustAppend(t, w, testSession("s0"), testTurn(0, "hello there", "general")...)
	wantKilled(t, hook(t, w.dir, childAction+"=append", childFirst+"=7", childCrash+"=append.synced"))
	if items := mustRecall(t, w, "question 7"); len(items) != 1 {
		t.Errorf("items: %+v", items)
	}
}

// TestKilledSettingAside kills a hook that has just set a damaged index aside.
func TestKilledSettingAside(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	s := testSession("s0")
	mustAppend(t, w, s, testTurn(0, "question 0", "answer 0")...)
	w.Close()
	if err := os.WriteFile(w.indexPath(), []byte(strings.Repeat("garbage", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	wantKilled(t, hook(t, w.dir, childAction+"=append", childFirst+"=1", childCrash+"=index.aside"))
	if err := hook(t, w.dir, childAction+"=append", childFirst+"=1").Run(); err != nil {
		t.Fatal(err)
	}
	wantRows(t, w, s, 0, 1)
	if st := mustStats(t, w); st.Turns != 2 || st.Index != IndexOK {
		t.Errorf("stats: %+v", st)
	}
}

func TestKilledNote(t *testing.T) {
	for _, point := range []string{"flush.queued", "file.made", "file.written", "file.renamed", "note.written", "note.listed"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := openAt(t, t.TempDir(), noon)
			mustAppend(t, w, testSession("s0"), testTurn(0, "What is it?", "A pangolin.")...)
			wantKilled(t, hook(t, w.dir, childAction+"=flush", childCrash+"="+point))
			if err := hook(t, w.dir, childAction+"=flush").Run(); err != nil {
				t.Fatal(err)
			}
			wantListed(t, w, "2026-11-30", 1)
			if st := mustStats(t, w); st.Notes != 1 || st.Queued != 0 {
				t.Errorf("stats: %+v", st)
			}
		})
	}
	t.Run("remember.written", func(t *testing.T) {
		t.Parallel()
		w := open(t, t.TempDir())
		defer w.Close()
		wantKilled(t, hook(t, w.dir, childAction+"=remember", childCrash+"=remember.written"))
		if err := hook(t, w.dir, childAction+"=remember").Run(); err != nil {
			t.Fatal(err)
		}
		if st := mustStats(t, w); st.Notes != 1 {
			t.Errorf("stats: %+v", st)
		}
		wantListed(t, w, w.day(w.now()), 1)
	})
}

// wantListed checks the list of a day: each note that is there, once.
func wantListed(t *testing.T, w *Workspace, date string, notes int) {
	t.Helper()
	list := readFile(t, w, "daily/"+date+".md")
	if n := strings.Count(list, "\n- [[daily/"+date+"/"); n != notes || !strings.Contains(list, fmt.Sprintf("description: %d note(s) today.\n", notes)) {
		t.Errorf("want %d notes in\n%s", notes, list)
	}
	entries, err := os.ReadDir(w.abs("daily/" + date))
	if err != nil || len(entries) != notes {
		t.Errorf("the folder has %d notes: %v", len(entries), err)
	}
	for _, e := range entries {
		if !strings.Contains(list, "- [[daily/"+date+"/"+e.Name()+"]]") {
			t.Errorf("%s is not listed", e.Name())
		}
	}
}

func TestManyProcesses(t *testing.T) {
	for _, sessions := range []int{1, 20} {
		t.Run(fmt.Sprint(sessions), func(t *testing.T) {
			w := open(t, t.TempDir())
			defer w.Close()
			const hooks, turns = 6, 10
			var cmds []*exec.Cmd
			for i := range hooks {
				// Two processes send each turn.
				cmd := hook(t, w.dir, childAction+"=append", fmt.Sprintf("%s=%d", childFirst, i/2*turns),
					fmt.Sprintf("%s=%d", childTurns, turns), fmt.Sprintf("%s=%d", childSpread, sessions))
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				cmds = append(cmds, cmd)
			}
			for _, cmd := range cmds {
				if err := cmd.Wait(); err != nil {
					t.Error(err)
				}
			}
			want := make([][]int, sessions)
			for n := range hooks / 2 * turns {
				want[n%sessions] = append(want[n%sessions], n)
			}
			for i, turns := range want {
				wantRows(t, w, testSession(fmt.Sprint("s", i)), turns...)
			}
			if aside, _ := filepath.Glob(w.indexPath() + ".damaged-*"); len(aside) > 0 {
				t.Errorf("a good index was set aside: %v", aside)
			}
			if st := mustStats(t, w); st.Turns != hooks/2*turns || st.Sessions != sessions || st.Index != IndexOK || st.Queued != sessions {
				t.Errorf("stats: %+v", st)
			}
		})
	}
}

func TestManyGoroutines(t *testing.T) {
	for _, sessions := range []int{1, 20} {
		t.Run(fmt.Sprint(sessions), func(t *testing.T) {
			t.Parallel()
			w := open(t, t.TempDir())
			defer w.Close()
			const writers = 60
			var wg sync.WaitGroup
			for n := range writers {
				wg.Go(func() {
					s := testSession(fmt.Sprint("s", n%sessions))
					for range 2 {
						own := open(t, w.dir)
						if _, err := own.Append(context.Background(), client.AppendRequest{Session: s, Events: testTurn(n, "question", "answer")}); err != nil {
							t.Error(err)
						}
						own.Close()
						if _, err := w.Recall(context.Background(), client.RecallRequest{Query: "question"}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			for i := range sessions {
				var turns []int
				for n := i; n < writers; n += sessions {
					turns = append(turns, n)
				}
				wantRows(t, w, testSession(fmt.Sprint("s", i)), turns...)
			}
			if st := mustStats(t, w); st.Turns != writers || st.Sessions != sessions {
				t.Errorf("stats: %+v", st)
			}
		})
	}
}
