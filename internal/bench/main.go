// Command bench times hooks as whole processes, as a host pays for them, beside
// a static Go program that prints {} (the floor), node and python.
//
//	go run ./internal/bench [-runs 50] [-turns 1000]
//
// All commands take turns, so that a noisy machine treats them alike. The table
// has the minimum and the median in milliseconds, and the median over the
// floor's.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/hooks/codex"
	"github.com/agentscope-ai/reme-hook/workspace"
)

const floorProgram = `package main

import "os"

func main() { os.Stdout.WriteString("{}\n") }
`

// answers are what has to be in the output of commands.
var answers = map[string]string{"user-prompt-submit, recall": "E1037", "mcp, from start to the list of tools": "daily_list"}

// listTools is what an agent asks an MCP server when it starts.
const listTools = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`

// contender is a command in the comparison.
type contender struct {
	name  string
	argv  []string
	stdin func(run int) []byte
	took  []time.Duration
}

func main() {
	runs := flag.Int("runs", 50, "counted runs of each command")
	turns := flag.Int("turns", 1000, "turns in the memory")
	flag.Parse()
	dir, err := os.MkdirTemp("", "reme-hook-bench-")
	check(err)
	defer os.RemoveAll(dir)

	floor, hook := filepath.Join(dir, "floor"), filepath.Join(dir, "reme-hook")
	check(os.WriteFile(floor+".go", []byte(floorProgram), 0o600))
	build(floor, floor+".go")
	build(hook, "github.com/agentscope-ai/reme-hook")
	home := filepath.Join(dir, "home")
	fill(filepath.Join(home, ".reme", "workspace"), *turns)

	event := func(kind hooks.Kind, prompt, reply string) func(int) []byte {
		return func(run int) []byte {
			return codex.Adapter().Sample(hooks.Event{
				Kind: kind, Session: client.Session{ID: fmt.Sprintf("bench-%d", run)}, Turn: client.TurnID(fmt.Sprintf("turn-%d", run)),
				Cwd: dir, Prompt: prompt, Reply: reply,
			})
		}
	}
	list := []*contender{
		{name: "floor: static Go, prints {}", argv: []string{floor}},
		{name: "hook without work (unknown event)", argv: []string{hook, "codex", "none"}},
		{name: "hook without work (subagent's prompt)", argv: []string{hook, "codex", "user-prompt-submit"}, stdin: func(int) []byte {
			return []byte(`{"session_id":"s","agent_id":"a","prompt":"x"}`)
		}},
		{name: "session-start", argv: []string{hook, "codex", "session-start"}, stdin: event(hooks.SessionStart, "", "")},
		{name: "user-prompt-submit, nothing to recall", argv: []string{hook, "codex", "user-prompt-submit"}, stdin: event(hooks.Prompt, "go on", "")},
		{name: "user-prompt-submit, recall", argv: []string{hook, "codex", "user-prompt-submit"}, stdin: event(hooks.Prompt, "why did the deploy of component37 fail with E1037 again?", "")},
		{name: "stop, synced and delivered", argv: []string{hook, "codex", "stop"}, stdin: event(hooks.TurnEnd, "", strings.Repeat("The parser now skips blank lines and the test passes. ", 20))},
		{name: "mcp, from start to the list of tools", argv: []string{hook, "mcp", "--host", "codex"}, stdin: func(int) []byte { return []byte(listTools) }},
		{name: "node -e 0", argv: []string{"node", "-e", "0"}},
		{name: "python3 -c 0", argv: []string{"python3", "-c", "0"}},
	}
	list = slices.DeleteFunc(list, func(c *contender) bool {
		_, err := exec.LookPath(c.argv[0])
		return err != nil
	})
	env := append(os.Environ(), "HOME="+home, "USERPROFILE="+home)
	for run := -2; run < *runs; run++ { // the first two rounds warm up
		for _, c := range list {
			took, out := c.run(env, run)
			if run >= 0 {
				c.took = append(c.took, took)
			}
			if want, ok := answers[c.name]; ok && !bytes.Contains(out, []byte(want)) {
				log.Fatalf("%s: no %s in %s", c.name, want, out)
			}
		}
	}
	fmt.Printf("%d runs of each in turn, %d turns in the memory\n", *runs, *turns)
	fmt.Printf("%-40s %9s %9s %9s %9s\n", "", "min ms", "median ms", "× floor", "+ floor")
	base := median(list[0].took)
	for _, c := range list {
		m := median(c.took)
		fmt.Printf("%-40s %9.2f %9.2f %9.2f %9.2f\n", c.name, ms(slices.Min(c.took)), ms(m), float64(m)/float64(base), ms(m-base))
	}
}

func (c *contender) run(env []string, n int) (time.Duration, []byte) {
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	cmd.Env = env
	if c.stdin != nil {
		cmd.Stdin = bytes.NewReader(c.stdin(n))
	}
	start := time.Now()
	out, err := cmd.Output()
	took := time.Since(start)
	if err != nil {
		log.Fatalf("%s: %v", c.name, err)
	}
	return took, out
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func build(out, source string) {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	check(cmd.Run())
}

// fill makes a memory of so many turns in sessions of ten.
func fill(dir string, turns int) {
	ws, err := workspace.Open(dir, workspace.Options{})
	check(err)
	defer ws.Close()
	at := time.Now().Add(-30 * 24 * time.Hour)
	for first := 0; first < turns; first += 10 {
		req := client.AppendRequest{Session: client.Session{Host: "claude-code", Scope: "default", ID: fmt.Sprintf("filled-%d", first)}, Cwd: "/src/app"}
		for i := first; i < min(first+10, turns); i++ {
			id := client.TurnID(fmt.Sprintf("t%d", i))
			at = at.Add(time.Minute)
			req.Events = append(req.Events,
				client.Event{ID: client.NewEventID(id, client.User, 1), Role: client.User, CreatedAt: at,
					Content: fmt.Sprintf("The deploy of component%d fails with E%d in %s, why?", i, 1000+i, words(i))},
				client.Event{ID: client.NewEventID(id, client.Assistant, 1), Role: client.Assistant, CreatedAt: at,
					Content: fmt.Sprintf("The %s of component%d was missing; I added it to config/%d.yaml and the tests pass.", words(i*7+1), i, i)})
		}
		_, err := ws.Append(context.Background(), req)
		check(err)
	}
}

func words(n int) string {
	list := []string{"staging", "parser", "database", "migration", "cache", "scheduler", "login", "billing", "search", "upload", "router", "token", "queue"}
	return list[n%len(list)] + " " + list[(n/3)%len(list)]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
