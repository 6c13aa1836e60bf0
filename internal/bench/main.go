// Command bench times hooks as whole processes, as a host pays for them, beside
// a static Go program that prints {} (the floor), node and python.
//
//	go run ./internal/bench [-runs 50] [-turns 1000] [-memory DIR] [-peer 'NAME=COMMAND'] [-rebuild]
//
// The memory is filled with turns of spliced prose. One in DIR is kept and used
// again. A peer is the hook of another program: it gets the prompt of Claude Code.
//
// With -rebuild only prompts are timed, without and with a process that builds the
// index of the memory anew.
//
// All commands take turns, so that a noisy machine treats them alike. The table
// has the minimum and the median in milliseconds, the median over the floor's, and
// the median of the processor's time, which other programs hardly change.
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
	"github.com/agentscope-ai/reme-hook/hooks/claudecode"
	"github.com/agentscope-ai/reme-hook/hooks/codex"
	"github.com/agentscope-ai/reme-hook/internal/prose"
	"github.com/agentscope-ai/reme-hook/workspace"
)

const floorProgram = `package main

import "os"

func main() { os.Stdout.WriteString("{}\n") }
`

// answers are what has to be in the output of commands.
var answers = map[string]string{"user-prompt-submit, one fact": "E1037", "mcp, from start to the list of tools": "daily_list"}

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
	cpu   []time.Duration
}

func main() {
	runs := flag.Int("runs", 50, "counted runs of each command")
	turns := flag.Int("turns", 1000, "turns in the memory")
	memory := flag.String("memory", "", "folder of a memory that is kept, filled if it is not there")
	rebuild := flag.Bool("rebuild", false, "time prompts beside a process that builds the index anew")
	var peers []*contender
	flag.Func("peer", "another program's hook, as NAME=COMMAND", func(arg string) error {
		name, command, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("want NAME=COMMAND")
		}
		peers = append(peers, &contender{name: name, argv: strings.Fields(command), stdin: func(run int) []byte {
			return claudecode.Adapter().Sample(hooks.Event{Kind: hooks.Prompt, Session: client.Session{ID: fmt.Sprintf("peer-%d", run)}, Cwd: os.TempDir(), Prompt: fact})
		}})
		return nil
	})
	flag.Parse()
	dir, err := os.MkdirTemp("", "reme-hook-bench-")
	check(err)
	defer os.RemoveAll(dir)

	floor, hook := filepath.Join(dir, "floor"), filepath.Join(dir, "reme-hook")
	check(os.WriteFile(floor+".go", []byte(floorProgram), 0o600))
	build(floor, floor+".go")
	build(hook, "github.com/agentscope-ai/reme-hook")
	if *memory == "" {
		*memory = filepath.Join(dir, "memory")
	}
	source, err := prose.Load()
	check(err)
	fill(source, hook, *memory, *turns)

	event := func(kind hooks.Kind, prompt, reply string) func(int) []byte {
		return func(run int) []byte {
			return codex.Adapter().Sample(hooks.Event{
				Kind: kind, Session: client.Session{ID: fmt.Sprintf("bench-%d", run)}, Turn: client.TurnID(fmt.Sprintf("turn-%d", run)),
				Cwd: dir, Prompt: prompt, Reply: reply,
			})
		}
	}
	prompts := &contender{name: "user-prompt-submit, other prompts", argv: []string{hook, "codex", "user-prompt-submit"}, stdin: func(run int) []byte {
		return event(hooks.Prompt, source.Prompt(run), "")(1e6 + run)
	}}
	home := filepath.Join(dir, "home")
	env := append(os.Environ(), "HOME="+home, "USERPROFILE="+home, "REME_WORKSPACE="+*memory)
	if *rebuild {
		besideRebuild(prompts, env, *memory, *runs)
		return
	}
	warm(source, *memory)
	list := []*contender{
		{name: "floor: static Go, prints {}", argv: []string{floor}},
		{name: "hook without work (unknown event)", argv: []string{hook, "codex", "none"}},
		{name: "hook without work (subagent's prompt)", argv: []string{hook, "codex", "user-prompt-submit"}, stdin: func(int) []byte {
			return []byte(`{"session_id":"s","agent_id":"a","prompt":"x"}`)
		}},
		{name: "session-start", argv: []string{hook, "codex", "session-start"}, stdin: event(hooks.SessionStart, "", "")},
		{name: "user-prompt-submit, nothing to recall", argv: []string{hook, "codex", "user-prompt-submit"}, stdin: event(hooks.Prompt, "go on", "")},
		{name: "user-prompt-submit, one fact", argv: []string{hook, "codex", "user-prompt-submit"}, stdin: event(hooks.Prompt, fact, "")},
		prompts,
		{name: "stop, synced and delivered", argv: []string{hook, "codex", "stop"}, stdin: event(hooks.TurnEnd, "", strings.Repeat("The parser now skips blank lines and the test passes. ", 20))},
		{name: "mcp, from start to the list of tools", argv: []string{hook, "mcp", "--host", "codex"}, stdin: func(int) []byte { return []byte(listTools) }},
		{name: "node -e 0", argv: []string{"node", "-e", "0"}},
		{name: "python3 -c 0", argv: []string{"python3", "-c", "0"}},
	}
	list = append(list, peers...)
	list = slices.DeleteFunc(list, func(c *contender) bool {
		_, err := exec.LookPath(c.argv[0])
		return err != nil
	})
	for run := -2; run < *runs; run++ { // the first two rounds warm up
		for _, c := range list {
			took, cpu, out := c.run(env, run)
			if run >= 0 {
				c.took, c.cpu = append(c.took, took), append(c.cpu, cpu)
			}
			if want, ok := answers[c.name]; ok && !bytes.Contains(out, []byte(want)) {
				log.Fatalf("%s: no %s in %s", c.name, want, out)
			}
		}
	}
	fmt.Printf("%d runs of each in turn, %d turns in the memory\n", *runs, *turns)
	const row = "%-40s %9.2f %9.2f %9.2f %9.2f %9.2f\n"
	fmt.Printf(strings.ReplaceAll(row, ".2f", "s"), "", "min ms", "median ms", "+ floor", "cpu ms", "+ floor")
	base, baseCPU := median(list[0].took), median(list[0].cpu)
	for _, c := range list {
		m, cpu := median(c.took), median(c.cpu)
		fmt.Printf(row, c.name, ms(slices.Min(c.took)), ms(m), ms(m-base), ms(cpu), ms(cpu-baseCPU))
	}
}

// besideRebuild times prompts, and then as many as there is time for while another
// process builds the index anew.
func besideRebuild(prompts *contender, env []string, memory string, runs int) {
	report := func(name string, took []time.Duration) {
		slices.Sort(took)
		fmt.Printf("%-32s %5d prompts, ms: p50 %.1f, p95 %.1f, max %.1f\n", name, len(took), ms(took[len(took)/2]), ms(took[len(took)*95/100]), ms(took[len(took)-1]))
	}
	var alone, beside []time.Duration
	for n := range runs {
		took, _, _ := prompts.run(env, n)
		alone = append(alone, took)
	}
	report("alone", alone)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(filepath.Join(memory, "metadata", "reme-hook", "index.sqlite"+suffix)); err != nil && !os.IsNotExist(err) {
			check(err)
		}
	}
	cmd := exec.Command(prompts.argv[0], "sessions")
	cmd.Env = env
	start := time.Now()
	check(cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for n := runs; ; n++ {
		select {
		case err := <-done:
			check(err)
			report(fmt.Sprintf("beside a rebuild of %.1f s", time.Since(start).Seconds()), beside)
			return
		default:
			took, _, _ := prompts.run(env, n)
			beside = append(beside, took)
		}
	}
}

func (c *contender) run(env []string, n int) (took, cpu time.Duration, out []byte) {
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	cmd.Env = env
	if c.stdin != nil {
		cmd.Stdin = bytes.NewReader(c.stdin(n))
	}
	start := time.Now()
	out, err := cmd.Output()
	took = time.Since(start)
	if err != nil {
		log.Fatalf("%s: %v", c.name, err)
	}
	return took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), out
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

// fact is asked for among all that the memory has.
const fact = "why did the deploy of component37 fail with E1037 again?"

// fill makes a memory of so many turns, one of which answers [fact], unless it is
// there.
func fill(source *prose.Source, hook, dir string, turns int) {
	_, err := os.Stat(dir)
	if err != nil {
		check(source.Fill(dir, turns-1, time.Now()))
	}
	ws, openErr := workspace.Open(dir, workspace.Options{})
	check(openErr)
	defer ws.Close()
	_, appendErr := ws.Append(context.Background(), client.AppendRequest{Session: client.Session{Host: "claude-code", Scope: "default", ID: "fact"}, Cwd: "/src/app", Events: []client.Event{
		{ID: "1:user", Role: client.User, Content: "The deploy of component37 fails with E1037 in staging, why?", CreatedAt: time.Now().Add(-time.Hour)},
		{ID: "1:assistant", Role: client.Assistant, Content: "Its migration was missing; I added it to config/37.yaml and the tests pass.", CreatedAt: time.Now().Add(-time.Hour)},
	}})
	check(appendErr)
	env := append(os.Environ(), "REME_WORKSPACE="+dir, "REME_INTEGRATIONS_DIR="+filepath.Join(filepath.Dir(hook), "status"))
	index := contender{name: "index", argv: []string{hook, "sessions"}} // waits until all is indexed
	took, cpu, _ := index.run(env, 0)
	status := contender{name: "status", argv: []string{hook, "status", "--json"}}
	_, _, out := status.run(env, 0)
	if err != nil {
		fmt.Printf("%d turns indexed in %.1f s (%.0f a second; %.1f s of the processor, %.0f a second)\n", turns,
			took.Seconds(), float64(turns)/took.Seconds(), cpu.Seconds(), float64(turns)/cpu.Seconds())
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "_bytes") {
			fmt.Println(strings.TrimSpace(line))
		}
	}
}

// warm times recalls and appends in a process that has the memory open.
func warm(source *prose.Source, dir string) {
	const runs = 100
	ctx := context.Background()
	ws, err := workspace.Open(dir, workspace.Options{})
	check(err)
	defer ws.Close()
	for _, work := range []struct {
		name string
		do   func(i int)
	}{
		{"recall, memory open", func(i int) {
			_, err := ws.Recall(ctx, client.RecallRequest{Query: source.Prompt(i), Purpose: client.ForPrompt, Cwd: "/src/project-1"})
			check(err)
		}},
		{"append of a turn, memory open", func(i int) {
			id := client.TurnID(fmt.Sprintf("%d-%d", time.Now().UnixNano(), i))
			_, err := ws.Append(ctx, client.AppendRequest{Session: client.Session{Host: "codex", Scope: "default", ID: "warm"}, Cwd: "/src/app", Events: []client.Event{
				{ID: client.NewEventID(id, client.User, 1), Role: client.User, Content: source.Prompt(i), CreatedAt: time.Now()},
				{ID: client.NewEventID(id, client.Assistant, 1), Role: client.Assistant, Content: source.Prompt(i + 1), CreatedAt: time.Now()},
			}})
			check(err)
		}},
	} {
		var took []time.Duration
		for i := range runs {
			start := time.Now()
			work.do(i)
			took = append(took, time.Since(start))
		}
		fmt.Printf("%s: median %.2f ms\n", work.name, ms(median(took)))
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
