//go:build unix

package contract

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/hooks/claudecode"
	"github.com/agentscope-ai/reme-hook/hooks/codex"
	"github.com/agentscope-ai/reme-hook/hooks/dsh"
	"github.com/agentscope-ai/reme-hook/hooks/hermes"
	"github.com/agentscope-ai/reme-hook/hooks/kimi"
	"github.com/agentscope-ai/reme-hook/hooks/openclaw"
	"github.com/agentscope-ai/reme-hook/install"
)

// capability is what the runs showed of one event of a host.
type capability struct {
	fired, context, kept, denied bool
}

var (
	capabilitiesMu sync.Mutex
	// budgets has how long a host lets the hook of an event run, by host and event.
	budgets = map[string]map[string]time.Duration{}
	// capabilities has what was seen, by host and event.
	capabilities = map[string]map[string]capability{}
)

// noteCapabilities reads from the product's log which hooks ran on a machine and what came of them.
func noteCapabilities(t *testing.T, home string) {
	f, err := os.Open(filepath.Join(home, ".reme/integrations/log/hook.jsonl"))
	if err != nil {
		return // the product was not installed there
	}
	defer f.Close()
	capabilitiesMu.Lock()
	defer capabilitiesMu.Unlock()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line struct {
			Msg, Host, Event string
			Context, Kept    int
			Denied           bool
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Errorf("the log has %q: %v", lines.Text(), err)
		}
		if line.Msg != "handled" {
			continue
		}
		if capabilities[line.Host] == nil {
			capabilities[line.Host] = map[string]capability{}
		}
		c := capabilities[line.Host][line.Event]
		capabilities[line.Host][line.Event] = capability{true, c.context || line.Context > 0, c.kept || line.Kept > 0, c.denied || line.Denied}
	}
}

// noteBudgets reads from the configurations on a machine how long each host lets a hook run.
func noteBudgets(w *world) {
	env := install.Env{Home: w.home, Environ: []string{"PATH=" + w.path()}, IntegrationsDir: filepath.Join(w.home, ".reme", "integrations"), LookPath: exec.LookPath}
	capabilitiesMu.Lock()
	defer capabilitiesMu.Unlock()
	for _, t := range []install.Target{codex.Target{}, claudecode.Target{}, kimi.Target{}, dsh.Target{}, hermes.Target{}, openclaw.Target{}} {
		if budgets[string(t.Host())] == nil {
			budgets[string(t.Host())] = map[string]time.Duration{}
		}
		for _, c := range t.Check(env, install.Options{}).Hooks {
			budgets[string(t.Host())][c.Event] = c.Timeout
		}
	}
}

const capabilitiesPage = "../../docs/hosts.md"

// checkCapabilities compares docs/hosts.md with what a whole run showed; with REME_CONTRACT_UPDATE=1 it writes the page. Events
// and budgets must be the same. What an event did is only reported if it differs: some hosts end before a hook of theirs has
// run, one time out of a few.
func checkCapabilities() int {
	if f := flag.Lookup("test.run"); f != nil && f.Value.String() != "" {
		return 0 // a part of the tests shows a part of the events
	}
	page := renderCapabilities()
	if os.Getenv("REME_CONTRACT_UPDATE") == "1" {
		if err := os.WriteFile(capabilitiesPage, []byte(page), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	have, err := os.ReadFile(capabilitiesPage)
	if err != nil || string(have) != page {
		fmt.Fprintf(os.Stderr, "docs/hosts.md is not what the runs showed; run them with REME_CONTRACT_UPDATE=1. They showed:\n%s", page)
	}
	unmarked := func(s string) string { return strings.NewReplacer("| yes ", "| ", "| – ", "| ").Replace(s) }
	if err != nil || unmarked(string(have)) != unmarked(page) {
		return 1
	}
	return 0
}

func renderCapabilities() string {
	var b strings.Builder
	b.WriteString(`# What each host can do

Written by the contract tests from what the real hosts did, event by event: how long the host lets the hook run, whether it fired in any of them, whether a memory went to the model with it,
whether something was kept at it, whether it refused a tool. Do not edit; run the tests with REME_CONTRACT_UPDATE=1.

| host | event | budget | fired | memory goes in | something is kept | refuses reme:// files |
| --- | --- | --- | --- | --- | --- | --- |
`)
	mark := map[bool]string{true: "yes", false: "–"}
	for _, a := range []*hooks.Adapter{codex.Adapter(), claudecode.Adapter(), kimi.Adapter(), dsh.Adapter(), hermes.Adapter(), openclaw.Adapter()} {
		for _, event := range slices.Sorted(maps.Keys(a.Events)) {
			c := capabilities[string(a.Host)][event]
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", a.Host, event, budgets[string(a.Host)][event], mark[c.fired], mark[c.context], mark[c.kept], mark[c.denied])
		}
	}
	return b.String()
}
