//go:build unix

package contract

import (
	"context"
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

// TestIngestKilled kills hooks, and the host in the middle of a turn. The turns are missing from the memory, but for
// those that live capture had; gaps tells which, and brings in these and nothing else.
func TestIngestKilled(t *testing.T) {
	for name, host := range map[string]func(*world) Host{
		"codex": func(w *world) Host { return w.codex },
		"dsh":   func(w *world) Host { return w.with("dsh") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			h := host(w)
			w.must("install", name, "--trust")
			hook := filepath.Join(w.home, ".reme/integrations/bin/reme-hook")
			replace := func(content []byte) []byte {
				t.Helper()
				old, err := os.ReadFile(hook)
				if err == nil {
					err = os.WriteFile(hook+".new", content, 0o755)
				}
				if err == nil {
					err = os.Rename(hook+".new", hook)
				}
				if err != nil {
					t.Fatal(err)
				}
				return old
			}
			s := w.run(h, Turn{Prompt: "The gasket of pump seven is made of hemp."}, Step{Text: "Noted."}).Session
			program := replace([]byte("#!/bin/sh\nkill -9 $$\n"))
			w.run(h, Turn{Prompt: "And of pump eight?", Session: s}, Step{Text: "Of cork."})
			w.model(h).Script(Step{Shell: "echo tool-output"}, Step{Hang: true})
			ctx, kill := context.WithCancel(w.Context())
			defer kill()
			go func() {
				<-w.model(h).Hanging()
				kill()
			}()
			if r, err := h.Run(ctx, Turn{Prompt: "Look into pump nine.", Session: s}); ctx.Err() == nil {
				t.Fatalf("it was not killed: %+v, %v", r, err)
			}
			replace(program)
			w.delivered()

			gaps := func(args ...string) (turns []string, messages int) {
				t.Helper()
				var out struct {
					Hosts []struct {
						Gaps []struct {
							Turns    []string
							Messages int
						}
					}
				}
				r := w.must(append([]string{"ingest", "gaps", name, "--json"}, args...)...)
				if err := json.Unmarshal([]byte(r.Stdout), &out); err != nil || len(out.Hosts) != 1 || len(out.Hosts[0].Gaps) > 1 {
					t.Fatalf("gaps: %v\n%s", err, r.Stdout)
				}
				for _, g := range out.Hosts[0].Gaps {
					turns, messages = g.Turns, g.Messages
				}
				return turns, messages
			}
			before := w.dialogs(h, ".reme/workspace")
			if turns, messages := gaps(); len(turns) != 2 || messages != 3 {
				t.Errorf("gaps: %d messages of turns %v, want 3 of two", messages, turns)
			}
			if now := w.dialogs(h, ".reme/workspace"); now != before {
				t.Errorf("looking for gaps changed the memory:\n%s\nwas\n%s", now, before)
			}
			gaps("--fix")
			w.dialog(h, s, "user: The gasket of pump seven is made of hemp.", "assistant: Noted.", "user: And of pump eight?", "assistant: Of cork.", "user: Look into pump nine.")
			if now := w.dialogs(h, ".reme/workspace"); !strings.HasPrefix(now, before) || strings.Contains(now, "tool-output") {
				t.Errorf("after the fix:\n%s\nwas\n%s", now, before)
			}
			w.run(h, Turn{Prompt: "Go on.", Session: s}, Step{Text: "Gladly."})
			w.delivered()
			if turns, messages := gaps(); len(turns) != 0 {
				t.Errorf("gaps after the fix: %d messages of turns %v", messages, turns)
			}
		})
	}
}
