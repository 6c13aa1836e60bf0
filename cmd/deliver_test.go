//go:build unix

package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/spool"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// TestDelivererOutlivesTheHost lets a hook start the deliverer and kills the
// hook's process group at once, as a host does that is closed: a turn that an
// earlier hook left behind arrives all the same.
func TestDelivererOutlivesTheHost(t *testing.T) {
	t.Parallel()
	home := newHome(t)
	dir := filepath.Join(home, ".reme")
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	s := spool.Spool{Dir: filepath.Join(dir, "integrations", "spool"), Now: func() time.Time { return now.Add(-time.Hour) }}
	left := client.Session{Host: "codex", Scope: "default", ID: "left"}
	err := s.Put(spool.Turn{Session: left, Turn: "t1", Events: []client.Event{{ID: "t1:user", Role: client.User, Content: "left behind", CreatedAt: now}}})
	if err != nil {
		t.Fatal(err)
	}

	hook := exec.Command("reme-hook", "codex", "session-start")
	hook.Env = append(os.Environ(), "HOME="+home, "TEST_NOW="+now.Format(time.RFC3339))
	hook.Stdin = strings.NewReader(`{"session_id":"new","hook_event_name":"SessionStart","source":"startup"}`)
	hook.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if out, err := hook.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%s, %v", out, err)
	}
	syscall.Kill(-hook.Process.Pid, syscall.SIGKILL) // the group is gone if nobody stayed in it

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for tick := time.Tick(5 * time.Millisecond); ; <-tick {
		keys, err := s.Pending()
		if err != nil || ctx.Err() != nil {
			t.Fatalf("the turn was not delivered: %v, %v", keys, err)
		}
		if len(keys) == 0 {
			break
		}
	}
	ws, err := workspace.Open(filepath.Join(dir, "workspace"), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	sessions, err := ws.Sessions(t.Context(), 0)
	if err != nil || len(sessions) != 1 || sessions[0].Title != "left behind" {
		t.Errorf("remembered: %+v, %v", sessions, err)
	}
	rest(t, filepath.Join(dir, "integrations"))
}

// slow is a memory that takes its time, or for ever.
type slow struct {
	memory
	each  time.Duration
	taken []string
}

func (s *slow) Append(ctx context.Context, r client.AppendRequest) (client.AppendResult, error) {
	var patience <-chan time.Time
	if s.each > 0 {
		patience = time.After(s.each)
	}
	select {
	case <-patience:
	case <-ctx.Done():
		return client.AppendResult{}, ctx.Err()
	}
	res := client.AppendResult{}
	for _, e := range r.Events {
		res.EventIDs = append(res.EventIDs, e.ID)
	}
	s.taken = append(s.taken, r.Session.ID)
	return res, nil
}

func (s *slow) Flush(context.Context, client.FlushRequest) (client.FlushResult, error) {
	return client.FlushResult{}, nil
}

func (s *slow) Close() error { return nil }

// A deliverer ends by itself, after a minute, whether the memory hangs or is only slow.
// What it has not delivered by then is the next one's.
func TestDelivererEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		m := &slow{}
		a := &app{now: time.Now, dir: dir, memory: func() (memory, error) { return m, nil }}
		const sessions = 9
		for i := range sessions {
			err := a.spool().Put(spool.Turn{Session: client.Session{Host: "codex", Scope: "default", ID: fmt.Sprint(i)}, Turn: "t1", Events: []client.Event{{ID: "t1:user", Role: client.User, Content: "x"}}})
			if err != nil {
				t.Fatal(err)
			}
		}
		deliver := func(left int) {
			t.Helper()
			begin := time.Now()
			if err := a.deliver(t.Context()); left > 0 && !errors.Is(err, context.DeadlineExceeded) || left == 0 && err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); took > deliverLife || left > 0 && took < deliverLife {
				t.Errorf("it took %v", took)
			}
			if keys, err := a.spool().Pending(); err != nil || len(keys) != left {
				t.Errorf("%d are left, want %d, %v", len(keys), left, err)
			}
			if failed := a.link().Load().Delivery.Failures > 0; failed != (left > 0) {
				t.Errorf("noted as failed: %v", failed)
			}
		}
		deliver(sessions)
		m.each = 11 * time.Second
		deliver(sessions - 5)
		deliver(0)
		slices.Sort(m.taken)
		if want := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8"}; !slices.Equal(m.taken, want) {
			t.Errorf("taken %q", m.taken)
		}
	})
}
