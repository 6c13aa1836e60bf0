package cmd

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client/reme/remetest"
)

// remeMachine is a home from which the program talks to a ReMe.
type remeMachine struct {
	*testing.T
	home string
	reme *remetest.Server
}

func newReMeMachine(t *testing.T) *remeMachine {
	return &remeMachine{t, t.TempDir(), remetest.New(t)}
}

// run runs the program at a time of the day, killed at a named point if there is
// one.
func (m *remeMachine) run(now, crashAt, stdin string, args ...string) (string, error) {
	c := exec.Command("reme-hook", args...)
	c.Env = append(os.Environ(), "HOME="+m.home, "TZ=UTC", "TEST_NOW=2026-11-30T"+now+"Z", "REME_UPSTREAM="+m.reme.URL, crashEnv+"="+crashAt)
	c.Stdin = strings.NewReader(stdin)
	out, err := c.CombinedOutput()
	return string(out), err
}

func (m *remeMachine) must(now, stdin string, args ...string) string {
	m.Helper()
	out, err := m.run(now, "", stdin, args...)
	if err != nil {
		m.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

// rest keeps hooks from starting deliverers for a quarter of an hour.
func (m *remeMachine) rest() {
	m.Helper()
	file := filepath.Join(m.home, ".reme", "integrations", "upstream", "backoff.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"failures":1,"not_before":"2026-11-30T09:15:00Z"}`), 0o600); err != nil {
		m.Fatal(err)
	}
}

// say is a turn of Codex.
func (m *remeMachine) say(now, session, turn, prompt, reply string) {
	m.Helper()
	head := `{"session_id":"` + session + `","turn_id":"` + turn + `","cwd":"/src","hook_event_name":`
	m.must(now, head+`"UserPromptSubmit","prompt":"`+prompt+`"}`, "codex", "user-prompt-submit")
	m.must(now, head+`"Stop","last_assistant_message":"`+reply+`"}`, "codex", "stop")
}

// words are what was said in the extractions so far, each message once for each
// time that it was sent.
func (m *remeMachine) words() []string {
	var out []string
	for _, body := range m.reme.Took() {
		for _, found := range regexp.MustCompile(`"content":"([^"]*)"`).FindAllStringSubmatch(body, -1) {
			out = append(out, found[1])
		}
	}
	return out
}

// TestForwardCrash kills the program at each point of a turn's way to ReMe. The
// next one goes on: with the same bytes if ReMe may have them, and nothing is lost.
func TestForwardCrash(t *testing.T) {
	t.Parallel()
	for point, sent := range map[string]int{
		"forward.frozen": 1, "forward.sent": 1, "forward.answered": 2, "forward.archived": 2, "forward.taken": 1,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			m := newReMeMachine(t)
			if point == "forward.archived" {
				m.reme.Answers = []string{"nothing", "nothing"}
			}
			m.rest()
			m.must("09:00:00", "", "upstream")
			m.say("09:00:10", "s", "t1", "first question", "first answer")
			m.must("09:00:20", `{"session_id":"s","hook_event_name":"SessionEnd","reason":"other"}`, "codex", "session-end")
			if out, err := m.run("10:00:00", point, "", "upstream", "replay"); !killed(err) {
				t.Fatalf("it was not killed: %v\n%s", err, out)
			}
			if err := os.RemoveAll(filepath.Join(m.home, ".reme", "workspace", "metadata")); err != nil {
				t.Fatal(err)
			}
			m.must("11:00:00", "", "upstream", "replay")
			bodies := m.reme.Took()
			if len(bodies) != sent || len(slices.Compact(bodies)) != 1 {
				t.Errorf("sent %d times, want %d, all of the same bytes:\n%s", len(bodies), sent, strings.Join(bodies, "\n"))
			}
			m.must("12:00:00", "", "upstream", "replay")
			if again := m.words(); len(again) > 0 {
				t.Errorf("sent again: %q", again)
			}
		})
	}
}

// A server looks for a ReMe by itself: there may be no hook on its machine.
func TestServeForwards(t *testing.T) {
	t.Parallel()
	// The deliverer that it starts may outlive the test for a moment.
	home, err := os.MkdirTemp("", "serve")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	asked := make(chan struct{})
	found := sync.OnceFunc(func() { close(asked) })
	reme := remetest.New(t)
	l := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found()
		reme.ServeHTTP(w, r)
	}))
	t.Cleanup(l.Close)
	c := program(home, "serve", "--listen", "127.0.0.1:0")
	c.Env = append(c.Env, "REME_UPSTREAM="+l.URL)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	select {
	case <-asked:
	case <-time.After(time.Minute):
		t.Error("it was not asked what it is")
	}
}

func killed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == -1
}
