//go:build unix

package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/install"
	"github.com/agentscope-ai/reme-hook/spool"
)

// lab is a home in which shell scripts run hooks, the functions prompt and stop among
// other things.
const lab = `
hook() { echo "{\"session_id\":\"lab\",\"turn_id\":\"$2\",\"cwd\":\"/p\",$3}" | reme-hook codex $1 || echo "status $?"; }
prompt() { hook user-prompt-submit $1 "\"prompt\":\"question $1\""; }
stop() { hook stop $1 "\"last_assistant_message\":\"answer $1\""; }
later() { export TEST_NOW=2026-11-30T0$1:00:00Z; }
trouble() { prompt bad; stop bad; hook pre-compact bad '"trigger":"auto"'; hook session-end bad '"reason":"other"'; }
`

// runLab runs a script in a new home on a file system of its own, if ns says so, and
// returns the rest of what it printed once what hooks may print is taken off.
func runLab(t *testing.T, ns []string, script string) string {
	t.Helper()
	home := newHome(t)
	argv := append(ns, "sh", "-ec", lab+script)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+home, "TEST_NOW="+at(0))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var rest []string
	for line := range strings.Lines(string(out)) {
		if !json.Valid([]byte(line)) {
			rest = append(rest, line)
		}
	}
	return strings.Join(rest, "")
}

const said = "user: question 1\nassistant: answer 1\n"

// namespace makes the tools with which a script has mounts or file permissions of its
// own, or skips the test.
func namespace(t *testing.T, flags string) []string {
	t.Helper()
	ns := []string{"unshare", flags}
	if flags == "-rm" {
		if out, err := exec.Command("unshare", "-rm", "sh", "-c", "mount -t tmpfs none /mnt").CombinedOutput(); err != nil {
			t.Skipf("no mounts here: %s", out)
		}
	} else if out, err := exec.Command("unshare", flags, "true").CombinedOutput(); err != nil {
		t.Skipf("no namespaces here: %s", out)
	}
	return ns
}

// TestFullDisk: what was said before the disk was full is there, once and whole, and
// what is said when there is room again as well. Meanwhile hooks say nothing that they
// should not.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	got := runLab(t, namespace(t, "-rm"), `
mount -t tmpfs -o size=2m none "$HOME"
prompt 1; stop 1
dd if=/dev/zero of="$HOME/filler" bs=4k 2>/dev/null || true
trouble
rm "$HOME/filler"
later 1
prompt 3; stop 3
reme-hook spool replay >/dev/null
reme-hook show lab
find "$HOME" -name '*.tmp'
`)
	for _, lost := range []string{"user: question bad\n", "assistant: answer bad\n"} { // or not, if there was a hole for it
		got = strings.Replace(got, lost, "", 1)
	}
	if want := said + "user: question 3\nassistant: answer 3\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestReadOnlyDisk is the same with a file system that cannot be written.
func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	got := runLab(t, namespace(t, "-rm"), `
mount -t tmpfs none "$HOME"
prompt 1; stop 1
mount -o remount,ro "$HOME"
trouble
reme-hook recall question | grep -o 'question 1'
mount -o remount,rw "$HOME"
later 1
prompt 3; stop 3
reme-hook show lab
`)
	if want := "question 1\n" + said + "user: question 3\nassistant: answer 3\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestForbidden is the same with folders that the user may not write.
func TestForbidden(t *testing.T) {
	t.Parallel()
	var ns []string
	if os.Getuid() == 0 {
		ns = namespace(t, "-U") // where root is a user like any other
	}
	got := runLab(t, ns, `
prompt 1; stop 1
find "$HOME/.reme" -type d -exec chmod 500 {} +
trouble
find "$HOME/.reme" -type d -exec chmod 700 {} +
later 1
prompt 3; stop 3
reme-hook show lab
`)
	// What is there may still be added to.
	if want := said + "user: question bad\nassistant: answer bad\nuser: question 3\nassistant: answer 3\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestFewDescriptors: with too few descriptors even Go's runtime ends with status 2,
// which blocks a prompt. The command strings that hosts are given end with 0 all the
// same; and from a handful on, the turn is kept.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("reme-hook")
	if err != nil {
		t.Fatal(err)
	}
	raw := 0
	for _, shell := range []install.Shell{install.LoginShell, install.PosixShell} {
		for _, n := range []int{4, 5, 6, 8, 32} {
			home := newHome(t)
			for _, event := range []struct{ name, payload string }{
				{"user-prompt-submit", `{"session_id":"s","turn_id":"t","prompt":"question 1"}`},
				{"stop", `{"session_id":"s","turn_id":"t","last_assistant_message":"answer 1"}`},
			} {
				command, err := install.Command(shell, program, "codex", event.name)
				if err != nil {
					t.Fatal(err)
				}
				run := func(command string) ([]byte, error) {
					cmd := exec.Command("sh", "-c", fmt.Sprintf("ulimit -n %d; exec sh -c \"$0\"", n), command)
					cmd.Env = append(os.Environ(), "HOME="+home, "TEST_NOW="+at(0))
					cmd.Stdin = strings.NewReader(event.payload)
					return cmd.CombinedOutput()
				}
				if out, err := run(command); err != nil || len(out) > 0 {
					t.Errorf("%s with %d descriptors: %v, %s", event.name, n, err, out)
				}
				if n < 9 && event.name == "stop" {
					if _, err := run("exec '" + program + "' codex stop"); err != nil {
						raw++
					}
				}
			}
			rows, _ := filepath.Glob(filepath.Join(home, ".reme", "workspace", "session", "dialog", "codex", "*.jsonl"))
			if n >= 32 && len(rows) != 1 {
				t.Errorf("with %d descriptors nothing is kept", n)
			}
		}
	}
	if raw == 0 {
		t.Error("the program alone never failed: the test proves nothing")
	}
}

// TestMemoryOfAHook: whatever a host sends, a hook does with 36 MiB, most of which it
// has in hand; of the program as it is installed 36 MB were resident.
func TestMemoryOfAHook(t *testing.T) {
	t.Parallel()
	if raceDetector {
		t.Skip("the race detector takes several times as much")
	}
	home := newHome(t)
	text := strings.Repeat(`the quick brown fox, 漢字 and \"quotes\"\n`, (16<<20)/40)
	for name, payload := range map[string]string{
		"user-prompt-submit": `{"session_id":"s","turn_id":"t","prompt":"` + text + `"}`,
		"stop":               `{"session_id":"s","turn_id":"t","last_assistant_message":"` + text + `"}`,
		"pre-tool-use":       `{"session_id":"s","turn_id":"t","tool_input":{"list":[` + strings.Repeat(`{"a":"b","c":[1,2,3]},`, 700_000) + `0]}}`,
	} {
		peak := filepath.Join(t.TempDir(), "peak")
		cmd := exec.Command("reme-hook", "codex", name)
		cmd.Env = append(os.Environ(), "HOME="+home, "TEST_NOW="+at(0), peakEnv+"="+peak)
		cmd.Stdin = strings.NewReader(payload)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%s: %s, %v", name, out, err)
		}
		data, err := os.ReadFile(peak)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := strconv.Atoi(string(data)); err != nil || n > 36<<20 {
			t.Errorf("%s of %d MiB took %d kB, %v", name, len(payload)>>20, n>>10, err)
		}
	}
}

// hangingService listens and never answers. It counts who came.
type hangingService struct {
	url  string
	came chan net.Conn
}

func newHangingService(t *testing.T) *hangingService {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &hangingService{"http://" + l.Addr().String(), make(chan net.Conn, 100)}
	t.Cleanup(func() {
		l.Close()
		for len(s.came) > 0 {
			(<-s.came).Close()
		}
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.came <- c
		}
	}()
	return s
}

// TestOneDeliverer: many hooks start deliverers; one of them works, and the others end
// at once. It has nothing of what the host's hook was given, so that the host sees its
// pipes close when the hook ends, and it ends by itself if the service hangs.
func TestOneDeliverer(t *testing.T) {
	t.Parallel()
	home, service := newHome(t), newHangingService(t)
	dir := filepath.Join(home, ".reme", "integrations")
	long := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	s := spool.Spool{Dir: filepath.Join(dir, "spool"), Now: func() time.Time { return long }}
	err := s.Put(spool.Turn{Session: client.Session{Host: "codex", Scope: "default", ID: "left"}, Turn: "t1", Events: []client.Event{{ID: "t1:user", Role: client.User, Content: "left behind", CreatedAt: long}}})
	if err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command("reme-hook", args...)
		cmd.Env = append(os.Environ(), "HOME="+home, "TEST_NOW="+at(0), "REME_SERVICE="+service.url)
		return cmd
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			hook := command("codex", "session-start")
			hook.Stdin = strings.NewReader(fmt.Sprintf(`{"session_id":"new %d","source":"startup"}`, i))
			hook.ExtraFiles = []*os.File{w}
			if out, err := hook.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s, %v", out, err)
			}
		})
	}
	wg.Wait()
	conn := <-service.came // somebody delivers
	w.Close()
	if n, err := io.Copy(io.Discard, r); err != nil || n > 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
	// While that one waits for an answer, another deliverer ends without asking.
	if out, err := command(deliverCommand).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("a second deliverer: %s, %v", out, err)
	}
	if len(service.came) > 0 {
		t.Error("more than one delivers")
	}
	conn.Close()
	rest(t, dir)
}

// Two setups at once, and two installs of each host: in the end everything is installed
// once, and uninstall gives back every byte.
func TestInstallsAtOnce(t *testing.T) {
	t.Parallel()
	home := newHome(t)
	before := map[string]string{
		".claude/settings.json":  "{\n  \"model\":\"x\"  }",
		".kimi-code/config.toml": "# mine\r\nhooks = []\r\n",
	}
	for name, text := range before {
		path := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		cmd := exec.Command("reme-hook", args...)
		cmd.Env = append(os.Environ(), "HOME="+home, "TEST_NOW="+at(0), "PATH="+filepath.Dir(mustLookPath(t, "reme-hook"))+":/usr/bin:/bin")
		out, err := cmd.CombinedOutput()
		if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != exitNeedsUser) {
			t.Errorf("%v: %v, %s", args, err, out)
		}
		return string(out)
	}
	var wg sync.WaitGroup
	for _, args := range [][]string{{"setup", "--yes"}, {"setup", "--yes"}, {"install", "--all"}, {"install", "claude-code"}} {
		wg.Go(func() { run(args...) })
	}
	wg.Wait()
	if out := run("install", "--all", "--dry-run"); out != "" {
		t.Errorf("something is left to install:\n%s", out)
	}
	settings, err := os.ReadFile(filepath.Join(home, ".claude", "settings.json"))
	if n := bytes.Count(settings, []byte("claude-code stop ")); err != nil || n > 1 {
		t.Errorf("the Stop hook is there %d times, %v", n, err)
	}
	run("uninstall", "--all")
	for name, text := range before {
		if data, err := os.ReadFile(filepath.Join(home, filepath.FromSlash(name))); err != nil || string(data) != text {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

// TestUpgradeUnderHooks replaces the installed program again and again while the
// configured command runs: each run finds a whole program, old or new.
func TestUpgradeUnderHooks(t *testing.T) {
	t.Parallel()
	home := newHome(t)
	installed := filepath.Join(home, ".reme", "integrations", "bin", "reme-hook")
	versions := []string{filepath.Join(home, "old"), filepath.Join(home, "new")}
	for i, path := range versions {
		// Long scripts, so that half of one would show.
		script := "#!/bin/sh\n" + strings.Repeat("# padding\n", 50_000) + fmt.Sprintf("cat >/dev/null; echo version %d\n", i)
		if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := install.SelfCopy(versions[0], installed); err != nil {
		t.Fatal(err)
	}
	command, err := install.Command(install.LoginShell, installed, "codex", "stop")
	if err != nil {
		t.Fatal(err)
	}
	upgrade := exec.Command("upgrade", versions[1], versions[0], installed)
	upgrade.Env = append(os.Environ(), "TEST_NOW="+at(0))
	stop, err := upgrade.StdinPipe()
	if err == nil {
		err = upgrade.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		cmd := exec.Command("sh", "-c", command)
		cmd.Stdin = strings.NewReader("{}")
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != "version 0\n" && string(out) != "version 1\n" {
			t.Errorf("%q, %v", out, err)
		}
	}
	stop.Close()
	if err := upgrade.Wait(); err != nil {
		t.Error(err)
	}
}
