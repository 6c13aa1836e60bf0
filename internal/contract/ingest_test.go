//go:build unix

package contract

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestIngestSame holds conversations with hooks, and reads the hosts' logs of them. A backfill adds nothing to the memory,
// and makes of an empty one the same rows, but for their times.
func TestIngestSame(t *testing.T) {
	for name, talk := range map[string]func(*world) Host{
		"codex": func(w *world) Host {
			h := w.codex
			s := w.say(h, "", "The gasket of pump seven is made of hemp.", Step{Shell: "echo tool-output"}, Step{Text: "Noted."}).Session
			w.say(h, s, "And of pump eight?", Step{Text: "Of cork."})
			w.interrupt(h, s, "Wait for it.")
			w.say(h, s, "Go on.", Step{Text: "Gladly."})
			return h
		},
		"claude-code": func(w *world) Host {
			h := w.claude
			w.put("src/project/.claude/commands/pump.md", "Tell about pump $ARGUMENTS.\n", 0o644)
			s := w.say(h, "", "The gasket of pump seven is made of hemp.", Step{Shell: "echo tool-output"}, Step{Text: "Noted."}).Session
			w.say(h, s, "And of pump eight?", Step{Text: "Of cork."})
			w.interrupt(h, s, "Wait for it.")
			w.run(h, Turn{Prompt: "/compact", Session: s})
			w.say(h, s, "Go on.", Step{Text: "Gladly."})
			w.say(h, s, "/pump nine", Step{Text: "Of lead."})
			fork := w.run(h, Turn{Prompt: "In a fork.", Session: s, Args: []string{"--fork-session"}}, Step{Text: "Forked."})
			if fork.Code != 0 {
				w.Fatalf("fork: %+v", fork)
			}
			return h
		},
		"kimi": func(w *world) Host {
			h := w.with("kimi")
			w.must("install", "kimi")
			s := w.say(h, "", "The gasket of pump seven is made of hemp.", Step{Shell: "echo tool-output"}, Step{Text: "Noted."}).Session
			w.say(h, s, "And of pump eight?", Step{Text: "Of cork."})
			w.interrupt(h, s, "Wait for it.")
			w.say(h, s, "Go on.", Step{Text: "Gladly."})
			return h
		},
		"dsh": func(w *world) Host {
			h := w.with("dsh").(*DSH)
			w.must("install", "dsh")
			s := w.ask(h, "", "The gasket of pump seven is made of hemp.", Step{Shell: "echo tool-output"}, Step{Text: "Noted."}).Session
			w.turns(h, s, []string{"And of pump eight?", "/compact", "Ask somebody."}, Step{Text: "Of cork."}, Step{Spawn: "Tell about pumps."}, Step{Text: "They know nothing."})
			w.interrupt(h, s, "Wait for it.")
			w.turns(h, s, []string{"Go on.", "/fork", "In a fork."}, Step{Text: "Gladly."}, Step{Text: "Forked."})
			return h
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWired(t)
			h := talk(w)
			w.delivered()
			live := w.dialogs(h, ".reme/workspace")
			if len(live) == 0 {
				t.Fatal("nothing was captured")
			}
			var out struct {
				Hosts []struct {
					Turns    int
					Missing  struct{ Turns int }
					Problems []any
				}
			}
			r := w.must("ingest", "backfill", name, "--yes", "--json")
			if err := json.Unmarshal([]byte(r.Stdout), &out); err != nil || len(out.Hosts) != 1 || out.Hosts[0].Turns < 4 || out.Hosts[0].Missing.Turns != 0 || len(out.Hosts[0].Problems) != 0 {
				t.Errorf("backfill after live capture: %v\n%s", err, r.Stdout)
			}
			if after := w.dialogs(h, ".reme/workspace"); after != live {
				t.Errorf("the backfill changed the memory:\n%s\nwas\n%s", after, live)
			}
			w.put(".reme/integrations/config.toml", "workspace = \""+filepath.Join(w.home, "other")+"\"\n", 0o600)
			w.must("ingest", "backfill", name, "--yes")
			if filled := w.dialogs(h, "other"); filled != live {
				t.Errorf("from the logs alone:\n%s\nlive:\n%s", filled, live)
			}
		})
	}
}

// interrupt begins a turn and stops the agent in the middle of it.
func (w *world) interrupt(h Host, session, prompt string) {
	w.Helper()
	w.run(h, Turn{Prompt: prompt, Session: session, Interrupt: w.model(h).Hanging()}, Step{Hang: true})
}

var times = regexp.MustCompile(`"created_at":"[^"]*"`)

// dialogs is all that a workspace holds of a host, without times.
func (w *world) dialogs(h Host, workspace string) string {
	w.Helper()
	files, err := filepath.Glob(filepath.Join(w.home, workspace, "session/dialog", h.Name(), "*.jsonl"))
	if err != nil {
		w.Fatal(err)
	}
	var b strings.Builder
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			w.Fatal(err)
		}
		b.WriteString(filepath.Base(file) + "\n" + times.ReplaceAllString(string(raw), `"created_at":""`))
	}
	return b.String()
}
