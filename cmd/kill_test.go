//go:build unix

package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
)

// TestKilledAtRandom kills hooks and deliverers at random: at a random moment, or at
// a random one of the places where a crash is worst. What a hook that lived had been
// told is there afterwards, what one that was killed had been told is there once or not
// at all, all in order, and nothing else is left. TEST_LONG=1 kills 2,000 times.
func TestKilledAtRandom(t *testing.T) {
	t.Parallel()
	kills := 20
	if os.Getenv(longEnv) != "" {
		kills = 2000
	}
	c := newCrowd(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	usual := 30 * time.Millisecond // what a hook takes on this machine now
	killed, points, runs := 0, 0, 0

	signals := []os.Signal{syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT}
	// run runs a process that may be killed, and tells whether it lived.
	run := func(make func(env ...string) *exec.Cmd) bool {
		var env []string
		how := random.IntN(4)
		if how == 0 {
			env = append(env, crashEnv+"="+strconv.Itoa(1+random.IntN(25)))
		}
		runs++
		cmd := make(env...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		begin := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if how == 1 {
			defer time.AfterFunc(time.Duration(random.Int64N(int64(usual)*3/2)), func() { cmd.Process.Signal(signals[random.IntN(len(signals))]) }).Stop()
		}
		err := cmd.Wait()
		if err == nil && stderr.Len() == 0 {
			usual = (9*usual + time.Since(begin)) / 10
			return true
		}
		if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() >= 0 || stderr.Len() > 0 {
			t.Fatalf("not killed, but ended with %v: %s", err, stderr.String())
		}
		if killed++; how == 0 {
			points++
		}
		return false
	}
	for second := 10; killed < kills; second += 10 {
		host := c.hosts[random.IntN(len(c.hosts))]
		session := client.Session{ID: fmt.Sprint("session ", random.IntN(2))}
		turn := client.TurnID(fmt.Sprint("turn-", second))
		tell := func(e hooks.Event, plus int) {
			e.Session, e.Turn, e.Cwd = session, turn, "/p"
			lived := run(func(env ...string) *exec.Cmd { return c.command(host, e, second+plus, env...) })
			c.note(host, e, second, lived)
		}
		tell(hooks.Event{Kind: hooks.Prompt, Prompt: fmt.Sprint("prompt ", second)}, 0)
		if random.IntN(8) > 0 {
			tell(hooks.Event{Kind: hooks.TurnEnd, Reply: fmt.Sprint("answer ", second)}, 5)
		}
		if random.IntN(10) == 0 {
			run(func(env ...string) *exec.Cmd {
				cmd := exec.Command("reme-hook", deliverCommand)
				cmd.Env = append(append(c.env[:len(c.env):len(c.env)], env...), "TEST_NOW="+at(second+6))
				return cmd
			})
		}
	}
	c.settle()
	c.recalled()
	t.Logf("%d of %d processes were killed, %d of them at a named place", killed, runs, points)
}

// TestKilledInstall kills install, its copy of the program, and uninstall at each
// place. The next one does the whole job, gives back every byte and leaves nothing.
func TestKilledInstall(t *testing.T) {
	t.Parallel()
	const before = "{\n  // mine\n  \"hooks\": {},\n}\n"
	for _, c := range []struct{ verb, point string }{
		{"install", "file.made"}, {"install", "file.written"}, {"install", "file.renamed"}, {"install", "copy.written"},
		{"install", "install.noted"}, {"install", "install.changed"}, {"uninstall", "file.made"}, {"uninstall", "uninstall.changed"},
		{"install", "3"}, {"install", "5"}, {"install", "6"}, {"install", "8"}, {"install", "10"},
	} {
		t.Run(c.verb+" "+c.point, func(t *testing.T) {
			t.Parallel()
			home := newHome(t)
			settings := home + "/.claude/settings.json"
			if err := errors.Join(os.Mkdir(home+"/.claude", 0o700), os.WriteFile(settings, []byte(before), 0o640), os.Chmod(settings, 0o640)); err != nil {
				t.Fatal(err)
			}
			run := func(verb, crashAt string) error {
				cmd := exec.Command("reme-hook", verb, "claude-code")
				cmd.Env = append(os.Environ(), "HOME="+home, "TEST_NOW="+at(0), crashEnv+"="+crashAt)
				out, err := cmd.CombinedOutput()
				if exit := new(exec.ExitError); crashAt == "" && err != nil || errors.As(err, &exit) && exit.ExitCode() >= 0 {
					t.Fatalf("%s: %s, %v", verb, out, err)
				}
				return err
			}
			if c.verb == "uninstall" {
				run("install", "")
			}
			if run(c.verb, c.point) == nil {
				t.Fatal("it was not killed")
			}
			if c.verb == "install" {
				run("install", "")
				if data, err := os.ReadFile(settings); err != nil || !strings.Contains(string(data), "reme-hook") || !strings.Contains(string(data), "// mine") {
					t.Errorf("installed: %s, %v", data, err)
				}
			}
			run("uninstall", "")
			data, err := os.ReadFile(settings)
			st, serr := os.Stat(settings)
			if err != nil || serr != nil || string(data) != before || st.Mode() != 0o640 {
				t.Errorf("after uninstall: %q, %v, %v", data, st.Mode(), err)
			}
			left := (&crowd{T: t, home: home}).leftovers(t.Context())
			if len(left) > 0 {
				t.Error(strings.Join(left, "\n"))
			}
		})
	}
}
