package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/internal/durable"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// crowd is many hook processes on one home, and the account of what they must have
// kept.
type crowd struct {
	*testing.T
	home  string
	hosts []*hooks.Adapter
	env   []string
	mu    sync.Mutex
	sent  map[client.Session][]message // in order of their turns
}

// message is something that was said to a hook.
type message struct {
	turn int
	text string
	kept bool // the hook was not killed
}

// newCrowd has all hosts but those whose turns are read from their own logs.
func newCrowd(t *testing.T) *crowd {
	c := &crowd{T: t, home: newHome(t), sent: map[client.Session][]message{}}
	for _, h := range knownHosts() {
		if h.ReadLog == nil {
			c.hosts = append(c.hosts, h.Adapter)
		}
	}
	c.env = append(os.Environ(), "HOME="+c.home)
	return c
}

// at is the time of day of a second of the crowd's life.
func at(second int) string {
	return time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC).Add(time.Duration(second) * time.Second).Format(time.RFC3339)
}

// eventOf is the name that a host has for a kind of event, "" if it has none.
func eventOf(a *hooks.Adapter, kind hooks.Kind) string {
	var names []string
	for name, k := range a.Events {
		if k == kind {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return names[0]
}

// command is a hook process that is about to tell something.
func (c *crowd) command(a *hooks.Adapter, e hooks.Event, second int, env ...string) *exec.Cmd {
	cmd := exec.Command("reme-hook", string(a.Host), eventOf(a, e.Kind))
	cmd.Env = append(slices.Clone(c.env), append(env, "TEST_NOW="+at(second))...)
	cmd.Stdin = bytes.NewReader(a.Sample(e))
	return cmd
}

// note adds to the account. Messages of a session may be noted in any order.
func (c *crowd) note(a *hooks.Adapter, e hooks.Event, turn int, kept bool) {
	payload, err := hooks.ReadPayload(bytes.NewReader(a.Sample(e)))
	if err != nil {
		c.Fatal(err)
	}
	s := a.Decode(e.Kind, payload).Session
	s.Host = a.Host
	text := e.Prompt
	if e.Kind == hooks.TurnEnd {
		text = e.Reply
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[s] = append(c.sent[s], message{turn, text, kept})
}

// settle lets the deliverer do its work, and complains about whatever is not as it
// should be once nothing runs any more.
func (c *crowd) settle() {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	dir := filepath.Join(c.home, ".reme", "integrations")
	for second := 100_000; ; second += 4000 {
		// One that a hook has started may be at it.
		cmd := exec.CommandContext(ctx, "reme-hook", deliverCommand)
		cmd.Env = append(slices.Clone(c.env), "TEST_NOW="+at(second))
		if out, err := cmd.CombinedOutput(); err != nil {
			c.Fatalf("deliver: %s, %v", out, err)
		}
		var unlocks []func()
		for _, lock := range []string{"deliver.lock", "extract.lock"} {
			unlock, err := durable.Lock(ctx, filepath.Join(dir, lock))
			if err != nil {
				c.Fatal(err)
			}
			unlocks = append(unlocks, unlock)
		}
		complaints := append(c.leftovers(ctx), c.accounts()...)
		if len(complaints) == 0 {
			return // with the locks, so that no late deliverer works while the home is removed
		}
		for _, unlock := range unlocks {
			unlock()
		}
		if ctx.Err() != nil || second > 130_000 {
			c.Fatalf("%s\nlogged:\n%s", strings.Join(complaints[:min(len(complaints), 20)], "\n"), strings.Join(c.failures(), "\n"))
		}
	}
}

// newHome is a folder that is removed at the end of the test, also if a deliverer that a
// hook has started is at it.
func newHome(t testing.TB) string {
	t.Helper()
	home, err := os.MkdirTemp("", "home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		var err error
		for range 1000 {
			if err = os.RemoveAll(home); err == nil {
				return
			}
		}
		t.Error(err)
	})
	return home
}

// rest waits until no deliverer works on a folder of the integrations. None will, while
// the home is removed.
func rest(t *testing.T, dir string) {
	t.Helper()
	for _, lock := range []string{"deliver.lock", "extract.lock"} {
		unlock, err := durable.Lock(t.Context(), filepath.Join(dir, lock))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { runtime.KeepAlive(unlock) })
	}
}

// failures are lines of the log that tell why something may be missing.
func (c *crowd) failures() (out []string) {
	data, _ := os.ReadFile(filepath.Join(c.home, ".reme", "integrations", "log", "hook.jsonl"))
	for line := range strings.Lines(string(data)) {
		if !strings.Contains(line, `"INFO"`) && !strings.Contains(line, `"msg":"state"`) && len(out) < 20 {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// leftovers finds temporary files, records and locks that nobody will free.
func (c *crowd) leftovers(ctx context.Context) (out []string) {
	err := filepath.WalkDir(c.home, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case strings.HasSuffix(path, ".tmp") || strings.Contains(path, ".sqlite.new") || strings.Contains(path, "damaged") ||
			strings.HasSuffix(path, ".json") && strings.Contains(path, string(filepath.Separator)+"spool"+string(filepath.Separator)):
			out = append(out, "left behind: "+path)
		case strings.HasSuffix(path, ".lock") && filepath.Base(path) != "deliver.lock" && filepath.Base(path) != "extract.lock":
			unlock, err := durable.Lock(ctx, path)
			if err != nil {
				return err
			}
			unlock()
		}
		return nil
	})
	if err != nil {
		out = append(out, err.Error())
	}
	return out
}

// accounts compares the rows on disk with what was told: nothing twice, nothing
// missing, nothing in a session that nobody held, a prompt before its answer, turns in
// order.
func (c *crowd) accounts() (out []string) {
	dialogs := filepath.Join(c.home, ".reme", "workspace", "session", "dialog")
	strange, err := durable.Glob(dialogs, "*/*")
	if err != nil {
		out = append(out, err.Error())
	}
	for s, sent := range c.sent {
		path := filepath.Join(dialogs, string(s.Host), string(s.Key())+".jsonl")
		strange = slices.DeleteFunc(strange, func(other string) bool { return other == path })
		data, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			out = append(out, err.Error())
		}
		rows := map[string]int{}
		last := 0
		for line := range bytes.Lines(data) {
			var row struct {
				Content []struct{ Text string }
			}
			if err := json.Unmarshal(line, &row); err != nil || len(row.Content) != 1 {
				out = append(out, fmt.Sprintf("%s: bad row %s", s.Key(), line))
				continue
			}
			rows[row.Content[0].Text]++
			if n, ok := strings.CutPrefix(row.Content[0].Text, "answer "); ok && rows["prompt "+n] == 0 && slices.ContainsFunc(sent, func(m message) bool { return m.kept && m.text == "prompt "+n }) {
				out = append(out, fmt.Sprintf("%s: answer %s comes before its prompt", s.Key(), n))
			}
			if i := slices.IndexFunc(sent, func(m message) bool { return m.text == row.Content[0].Text }); i < 0 {
				out = append(out, fmt.Sprintf("%s: nobody said %q", s.Key(), row.Content[0].Text))
			} else if order := 2 * sent[i].turn; sent[i].turn >= 0 {
				if strings.HasPrefix(sent[i].text, "answer") {
					order++
				}
				if order < last {
					out = append(out, fmt.Sprintf("%s: %q comes too late", s.Key(), sent[i].text))
				}
				last = order
			}
		}
		for _, m := range sent {
			if n := rows[m.text]; n > 1 || n == 0 && m.kept {
				out = append(out, fmt.Sprintf("%s: %q is there %d times", s.Key(), m.text, n))
			}
		}
	}
	for _, path := range strange {
		out = append(out, "nobody held "+path)
	}
	return out
}

// recalled checks that the index has each turn that the rows have.
func (c *crowd) recalled() {
	c.Helper()
	ws, err := workspace.Open(filepath.Join(c.home, ".reme", "workspace"), workspace.Options{})
	if err != nil {
		c.Fatal(err)
	}
	defer ws.Close()
	st, err := ws.Stats(c.Context())
	if err != nil || st.Index != workspace.IndexOK {
		c.Errorf("the index is %s (%s), %v", st.Index, st.Why, err)
	}
	turns := map[string]bool{}
	for s, sent := range c.sent {
		for _, m := range sent {
			if m.kept {
				turns[fmt.Sprint(s.Key(), m.turn)] = true
			}
		}
	}
	if st.Turns < len(turns) {
		c.Errorf("%d turns are indexed, %d were told", st.Turns, len(turns))
	}
}
