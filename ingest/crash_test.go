package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/crash"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// The test binary runs itself as a backfill that is killed at the n-th of all the
// crash points it comes by.
const (
	childLogs   = "INGEST_TEST_LOGS"
	childMemory = "INGEST_TEST_MEMORY"
	childPoints = "INGEST_TEST_POINTS"
	childLater  = "INGEST_TEST_LATER"
)

func TestMain(m *testing.M) {
	if os.Getenv(childLogs) == "" {
		os.Exit(m.Run())
	}
	if err := child(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child() error {
	n, _ := strconv.Atoi(os.Getenv(childPoints))
	var left atomic.Int64
	left.Store(int64(n))
	crash.Point = func(string) {
		if left.Add(-1) != 0 {
			return
		}
		self, err := os.FindProcess(os.Getpid())
		if err != nil || self.Kill() != nil {
			panic("cannot kill myself")
		}
		select {}
	}
	memory := os.Getenv(childMemory)
	ws, err := workspace.Open(memory, workspace.Options{})
	if err != nil {
		return err
	}
	defer ws.Close()
	now := time.Now()
	in := &Ingester{
		Memory: ws, LeftAlone: func(client.Session, string) bool { return false }, Dir: filepath.Join(memory, "ingest"),
		Now: func() time.Time { now = now.Add(checkpoint); return now }, // cursors are saved each time
	}
	_, err = in.Run(context.Background(), fakeHost(os.Getenv(childLogs)), Options{Write: true, Later: os.Getenv(childLater) != ""})
	return err
}

// TestKilled kills backfills 200 times, each ten times over: of those that index at
// once and of those that leave it to others. What they bring in at last is what one
// that nobody killed brings in.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, later := range []string{"", "later"} {
		t.Run(later, func(t *testing.T) {
			t.Parallel()
			killed(t, later)
		})
	}
}

func killed(t *testing.T, later string) {
	w := newWorld(t)
	var sessions []string
	for i := range 30 {
		s := fmt.Sprintf("s%02d", i)
		if i%2 == 1 {
			s += ".zstd"
		}
		sessions = append(sessions, s)
		w.write(s, "t1 user one of "+s, "t1 assistant yes")
		w.write(s, "t1 end", "t2 user two of "+s)
	}
	w.run(Options{Write: true})
	want := w.rows(sessions...)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	run := func(points int) error {
		c := exec.CommandContext(t.Context(), exe)
		c.Env = append(os.Environ(), childLogs+"="+w.logs, childMemory+"="+w.memory, childPoints+"="+strconv.Itoa(points), childLater+"="+later)
		out, err := c.CombinedOutput()
		if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || exit.ExitCode() > 0) {
			t.Fatalf("%v\n%s", err, out)
		}
		return err
	}
	killed := 0
	for killed < 100 {
		w.memory = filepath.Join(t.TempDir(), "memory")
		for range 10 {
			if run(1+random.IntN(40)) == nil {
				break
			}
			killed++
		}
		if err := run(0); err != nil {
			t.Fatal(err)
		}
		if got := w.rows(sessions...); got != want {
			t.Fatalf("after %d kills:\n%s\nwant\n%s", killed, got, want)
		}
	}
}
