//go:build unix

package cmd

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
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
	home := t.TempDir()
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
