//go:build unix

package cmd

import (
	"bytes"
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
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/install"
	"github.com/agentscope-ai/reme-hook/internal/crash"
	"github.com/agentscope-ai/reme-hook/spool"
)

// steps are those of durable writes that a disk may refuse.
var steps = []string{"folder.make", "file.make", "file.write", "file.sync", "file.rename", "folder.sync", "rows.open", "rows.write", "rows.sync", "lock"}

// TestDiskRefuses has the disk refuse each step of durable writes, and all of them. As
// long as there is one place for what is said it is kept, and the log tells of what is
// not. What was kept arrives when the disk is well again: once, and in order.
func TestDiskRefuses(t *testing.T) {
	defer func(was func(string) error) { crash.Fault = was }(crash.Fault)
	errnos := []syscall.Errno{syscall.ENOSPC, syscall.EROFS, syscall.EACCES, syscall.EIO}
	for i, step := range append(steps, "all") {
		refused := errnos[i%len(errnos) : i%len(errnos)+1]
		switch step {
		case "all":
			refused = errnos
		case "lock":
			refused = []syscall.Errno{syscall.ENOLCK, syscall.ENOSYS}
		}
		for _, errno := range refused {
			t.Run(fmt.Sprintf("%s, %v", step, errno), func(t *testing.T) { diskRefuses(t, step, errno) })
		}
	}
}

func diskRefuses(t *testing.T, step string, errno syscall.Errno) {
	m := newMachine(t, fault{kind: embedded, loses: step == "all"})
	var want []string
	say := func(event, turn, text string) {
		t.Helper()
		role := "user"
		if event == "stop" {
			role = "assistant"
		}
		if out, _ := m.hook(event, "a", turn, text); out != "" {
			t.Errorf("%s: the host gets %q", event, out)
		}
		lost := strings.Contains(m.log.String(), "turn lost")
		if kept := m.keeps("a", text); kept == lost {
			t.Errorf("%s: kept: %v, and the log says\n%s", text, kept, m.log.String())
		}
		if !lost {
			want = append(want, role+": "+text)
		}
	}
	say("user-prompt-submit", "t1", "Let us begin.")
	say("stop", "t1", "With pleasure.")
	asked := 0
	crash.Fault = func(s string) error {
		if s == step || step == "all" {
			asked++
			return &os.PathError{Op: s, Path: "x", Err: errno}
		}
		return nil
	}
	say("user-prompt-submit", "t2", "Go on with it.")
	say("stop", "t2", "I do.")
	say("user-prompt-submit", "t3", "And what now?")
	m.hook("pre-compact", "a", "t3", "")
	m.hook("session-end", "a", "", "")
	crash.Fault = func(string) error { return nil }
	if asked == 0 {
		t.Error("the step was never taken")
	}
	if step != "all" && len(want) != 5 {
		t.Errorf("kept is %q", want)
	}
	m.clock = m.clock.Add(20 * time.Minute)
	say("user-prompt-submit", "t4", "All is well again.")
	say("stop", "t4", "It is.")
	if got := m.stored("a"); got != strings.Join(want, "\n") {
		t.Errorf("the memory has\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	if entries, err := m.spool().List(); err != nil || len(entries) > 0 {
		t.Errorf("left in the spool: %+v, %v", entries, err)
	}
	if left := (&crowd{T: t, home: m.home}).leftovers(t.Context()); len(left) > 0 {
		t.Error(strings.Join(left, "\n"))
	}
}

// keeps tells whether what was said in a session is on the disk: as a whole, in the
// spool or in the memory.
func (m *machine) keeps(session, text string) bool {
	m.Helper()
	for _, t := range m.spool().Waiting(client.Session{Host: "codex", Scope: "default", ID: session}, time.Time{}) {
		for _, e := range t.Events {
			if e.Content == text {
				return true
			}
		}
	}
	rows, err := os.ReadFile(filepath.Join(m.config.Workspace, "session", "dialog", "codex", sessionA+".jsonl"))
	return err == nil && bytes.Contains(rows, []byte(`"text":"`+text+`"`)) && bytes.HasSuffix(rows, []byte("\n"))
}

// TestDiskRefusesInstall has the disk refuse one step of an install after the other. One
// that fails has changed nothing of the user's, and after the next one an uninstall gives
// back every byte.
func TestDiskRefusesInstall(t *testing.T) {
	defer func(was func(string) error) { crash.Fault = was }(crash.Fault)
	const stride = 3 // of the steps of a host, beginning with another one for each
	for i, h := range knownHosts() {
		failed := 0
		for fatal := 1 + i%stride; ; fatal += stride {
			env := envOf(t.TempDir(), nil)
			files, err := h.Target.Files(env, install.Options{})
			if err != nil {
				t.Fatal(err)
			}
			theirs := map[string]string{}
			for _, f := range files {
				if !isOurs(f) && bodies[filepath.Ext(f.Path)] != nil {
					theirs[f.Path] = bodies[filepath.Ext(f.Path)][0]
					if err := errors.Join(os.MkdirAll(filepath.Dir(f.Path), 0o700), os.WriteFile(f.Path, []byte(theirs[f.Path]), 0o640)); err != nil {
						t.Fatal(err)
					}
				}
			}
			unharmed := func(when string) {
				t.Helper()
				for path, text := range theirs {
					if got, err := os.ReadFile(path); err != nil || string(got) != text {
						t.Errorf("%s, step %d, %s: %s is %q, %v", h.Adapter.Host, fatal, when, path, got, err)
					}
				}
				if left := (&crowd{T: t, home: env.Home}).leftovers(t.Context()); len(left) > 0 {
					t.Errorf("%s, step %d, %s: %s", h.Adapter.Host, fatal, when, strings.Join(left, "\n"))
				}
			}
			step := 0
			crash.Fault = func(string) error {
				if step++; step == fatal {
					return syscall.ENOSPC
				}
				return nil
			}
			_, err = install.Install(t.Context(), h.Target, env, install.Options{})
			crash.Fault = func(string) error { return nil }
			if err != nil {
				failed++
				unharmed("after it failed")
			}
			if step < fatal {
				break
			}
			for _, do := range []func(context.Context, install.Target, install.Env, install.Options) ([]install.Change, error){install.Install, install.Uninstall} {
				if _, err := do(t.Context(), h.Target, env, install.Options{}); err != nil {
					t.Errorf("%s, step %d: %v", h.Adapter.Host, fatal, err)
				}
			}
			unharmed("after an uninstall")
		}
		if failed < 3 {
			t.Errorf("%s: only %d installs failed", h.Adapter.Host, failed)
		}
	}
}

// Doctor names folders in which nothing can be locked.
func TestDoctorFindsNoLocks(t *testing.T) {
	defer func(was func(string) error) { crash.Fault = was }(crash.Fault)
	p := newWards(t).admit(t)
	crash.Fault = func(step string) error {
		if step == "lock" {
			return syscall.ENOLCK
		}
		return nil
	}
	if got := bad(p.doctor.Examine(t.Context(), nil)); !slices.Equal(got, []string{"no-locks"}) {
		t.Errorf("found %q", got)
	}
}

// TestNoRoom runs hooks that may write files of a few blocks only, which looks like a
// disk that becomes full in the middle of a file: a write comes back short. What is on
// the disk as a whole when a hook has ended arrives once there is room, and nothing
// else.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	for _, blocks := range []int{0, 1, 2, 4, 16} {
		t.Run(fmt.Sprint(blocks), func(t *testing.T) {
			t.Parallel()
			home := newHome(t)
			session := client.Session{Host: "codex", Scope: "default", ID: "lab"}
			var want strings.Builder
			hook := func(blocks, event, turn, member, text string) {
				t.Helper()
				cmd := exec.Command("sh", "-c", "ulimit -f "+blocks+"; exec reme-hook codex "+event)
				cmd.Env = append(os.Environ(), "HOME="+home, "TEST_NOW="+at(0))
				if blocks == "unlimited" {
					cmd.Env = append(cmd.Env, "TEST_NOW="+at(3600))
				}
				cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"session_id":"lab","turn_id":%q,"cwd":"/p",%q:%q}`, turn, member, text))
				if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
					t.Errorf("%s: %v, %s", event, err, out)
				}
				if text == "" {
					return
				}
				var disk bytes.Buffer
				for _, r := range (spool.Spool{Dir: filepath.Join(home, ".reme", "integrations", "spool")}).Waiting(session, time.Time{}) {
					for _, e := range r.Events {
						fmt.Fprintln(&disk, e.Content)
					}
				}
				rows, _ := os.ReadFile(filepath.Join(home, ".reme", "workspace", "session", "dialog", "codex", string(session.Key())+".jsonl"))
				disk.Write(rows)
				switch kept := strings.Contains(disk.String(), text); {
				case kept && member == "prompt":
					fmt.Fprintf(&want, "user: %s\n", text)
				case kept:
					fmt.Fprintf(&want, "assistant: %s\n", text)
				case blocks != "0":
					t.Errorf("%s is nowhere", text)
				}
			}
			few := fmt.Sprint(blocks)
			for _, turn := range []string{"1", "2", "3"} {
				hook(few, "user-prompt-submit", turn, "prompt", "question "+turn)
				hook(few, "stop", turn, "last_assistant_message", "answer "+turn)
			}
			hook(few, "session-end", "", "reason", "")
			hook("unlimited", "user-prompt-submit", "4", "prompt", "question 4")
			hook("unlimited", "stop", "4", "last_assistant_message", "answer 4")
			cmd := exec.Command("sh", "-c", "reme-hook spool replay >/dev/null; reme-hook show lab")
			cmd.Env = append(os.Environ(), "HOME="+home, "TEST_NOW="+at(3700))
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != want.String() {
				t.Errorf("the memory has\n%s\nwant\n%s\n%v", out, want.String(), err)
			}
			rest(t, filepath.Join(home, ".reme", "integrations"))
			if left := (&crowd{T: t, home: home}).leftovers(t.Context()); len(left) > 0 {
				t.Error(strings.Join(left, "\n"))
			}
		})
	}
}
