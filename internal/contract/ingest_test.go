//go:build unix

package contract

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// TestIngestSame holds conversations with hooks, and reads the hosts' logs of them. A backfill adds nothing to the memory,
// and makes of an empty one the same rows, but for their times.
func TestIngestSame(t *testing.T) {
	for name, talk := range map[string]func(*world) (Host, int){
		"codex": func(w *world) (Host, int) {
			h := w.codex
			s := w.say(h, "", "The gasket of pump seven is made of hemp.", Step{Shell: "echo tool-output"}, Step{Text: "Noted."}).Session
			w.say(h, s, "And of pump eight?", Step{Text: "Of cork."})
			w.interrupt(h, s, "Wait for it.")
			w.say(h, s, "Go on.", Step{Text: "Gladly."})
			return h, 4
		},
		"claude-code": func(w *world) (Host, int) {
			h := w.claude
			w.put("src/project/.claude/commands/pump.md", "Tell about pump $ARGUMENTS.\n", 0o644)
			s := w.say(h, "", "The gasket of pump seven is made of hemp.", Step{Shell: "echo tool-output"}, Step{Text: "Noted."}).Session
			w.say(h, s, "And of pump eight?", Step{Text: "Of cork."})
			w.interrupt(h, s, "Wait for it.")
			w.run(h, Turn{Prompt: "/compact", Session: s})
			w.say(h, s, "Go on.", Step{Text: "Gladly."})
			w.say(h, s, "/pump nine", Step{Text: "Of lead."})
			h.Model.Script(Step{Shell: "sleep 2; echo tool-output"}, Step{Text: "Both."})
			if r, err := h.Steer(w.Context(), Turn{Prompt: "Look at pump ten.", Session: s}, "And at pump eleven."); err != nil || r.Reply != "Both." {
				w.Fatalf("steered: %+v, %v", r, err)
			}
			fork := w.run(h, Turn{Prompt: "In a fork.", Session: s, Args: []string{"--fork-session"}}, Step{Text: "Forked."})
			if fork.Code != 0 {
				w.Fatalf("fork: %+v", fork)
			}
			return h, 7
		},
		"kimi": func(w *world) (Host, int) {
			h := w.with("kimi")
			w.must("install", "kimi")
			s := w.say(h, "", "The gasket of pump seven is made of hemp.", Step{Shell: "echo tool-output"}, Step{Text: "Noted."}).Session
			w.say(h, s, "And of pump eight?", Step{Text: "Of cork."})
			w.interrupt(h, s, "Wait for it.")
			w.say(h, s, "Go on.", Step{Text: "Gladly."})
			return h, 4
		},
		"dsh": func(w *world) (Host, int) {
			h := w.with("dsh").(*DSH)
			w.must("install", "dsh")
			s := w.say(h, "", "The gasket of pump seven is made of hemp.", Step{Shell: "echo tool-output"}, Step{Text: "Noted."}).Session
			w.turns(h, s, []string{"And of pump eight?", "/compact", "Ask somebody."}, Step{Text: "Of cork."}, Step{Spawn: "Tell about pumps."}, Step{Text: "They know nothing."})
			w.interrupt(h, s, "Wait for it.")
			w.turns(h, s, []string{"Go on.", "/fork", "In a fork."}, Step{Text: "Gladly."}, Step{Text: "Forked."})
			return h, 6
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWired(t)
			h, turns := talk(w)
			w.ingested(h, turns, named)
			live := w.dialogs(h, w.workspace, named)
			w.serve()
			w.backfill(h, "", turns, turns)
			if filled := w.dialogs(h, w.workspace, named); filled != live {
				t.Errorf("into a memory at a URL:\n%s\nlive:\n%s", filled, live)
			}
		})
	}
}

// naming tells whether a log has the names that live capture gave to all turns.
type naming bool

const (
	named   naming = true
	unnamed naming = false
)

// ingested reads the logs of conversations that were captured live and have so many turns. A backfill adds nothing to the
// memory, and makes of an empty one the same rows, but for their times and for names that the log does not have.
func (w *world) ingested(h Host, turns int, n naming) {
	w.Helper()
	w.delivered()
	live := w.dialogs(h, w.workspace, n)
	w.backfill(h, w.workspace, turns, 0)
	if after := w.dialogs(h, w.workspace, n); after != live {
		w.Errorf("the backfill changed the memory:\n%s\nwas\n%s", after, live)
	}
	other := filepath.Join(w.home, "tmp", "other")
	defer os.RemoveAll(other)
	w.backfill(h, other, turns, turns)
	if filled := w.dialogs(h, other, n); filled != live {
		w.Errorf("from the logs alone:\n%s\nlive:\n%s", filled, live)
	}
	err := filepath.WalkDir(other, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a journal of the index, which is being made
		}
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if bytes.Contains(raw, []byte("toolran")) || bytes.Contains(raw, []byte("tool-output")) {
			w.Errorf("what a tool gave is in %s", path)
		}
		return err
	})
	if err != nil {
		w.Error(err)
	}
}

// backfill brings into a memory what the logs of a host have: so many turns, some of which it lacks.
func (w *world) backfill(h Host, workspace string, turns, missing int) {
	w.Helper()
	env := hostEnv(w.home, w.path(), w.codex.Model.URL(), "REME_WORKSPACE="+workspace)
	r, err := start(w.Context(), w.project, env, nil, nil, binary, "ingest", "backfill", h.Name(), "--yes", "--json")
	var out struct {
		Hosts []struct {
			Turns, Damaged int
			Missing        struct{ Turns int }
			Problems       []any
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(r.Stdout), &out)
	}
	if err != nil || len(out.Hosts) != 1 {
		w.Fatalf("backfill: %v\n%s%s", err, r.Stdout, r.Stderr)
	}
	if got := out.Hosts[0]; got.Turns != turns || got.Missing.Turns != missing || got.Damaged != 0 || len(got.Problems) != 0 {
		w.Errorf("backfill, want %d turns, %d of them missing:\n%s", turns, missing, r.Stdout)
	}
}

// watch follows the log of a host until the test ends. It returns when it begins to, and what it returns waits until
// something was brought in.
func (w *world) watch(h Host) (brought func()) {
	w.Helper()
	c := exec.Command(binary, "ingest", "watch", h.Name())
	c.Env, c.Stderr = hostEnv(w.home, w.path(), w.codex.Model.URL()), os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			w.Errorf("ingest watch: %v", err)
		}
	})
	lines := bufio.NewScanner(out)
	brought = func() {
		w.Helper()
		if !lines.Scan() {
			w.Fatal("ingest watch has ended")
		}
	}
	brought() // says that it watches
	return brought
}

// interrupt begins a turn and stops the agent in the middle of it.
func (w *world) interrupt(h Host, session, prompt string) {
	w.Helper()
	w.run(h, Turn{Prompt: prompt, Session: session, Interrupt: w.model(h).Hanging()}, Step{Hang: true})
}

var (
	times = regexp.MustCompile(`"created_at":"[^"]*"`)
	names = regexp.MustCompile(`"(id|turn_id)":"[^"]*"`)
)

// dialogs is all that a workspace holds of a host, without times.
func (w *world) dialogs(h Host, workspace string, n naming) string {
	w.Helper()
	files, err := filepath.Glob(filepath.Join(workspace, "session/dialog", h.Name(), "*.jsonl"))
	if err != nil || len(files) == 0 {
		w.Fatalf("nothing was captured: %v", err)
	}
	var b strings.Builder
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			w.Fatal(err)
		}
		text := times.ReplaceAllString(string(raw), `"created_at":""`)
		if n == unnamed {
			text = names.ReplaceAllString(text, `"$1":""`)
		}
		b.WriteString(filepath.Base(file) + "\n" + text)
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
			before := w.dialogs(h, w.workspace, named)
			if turns, messages := gaps(); len(turns) != 2 || messages != 3 {
				t.Errorf("gaps: %d messages of turns %v, want 3 of two", messages, turns)
			}
			if now := w.dialogs(h, w.workspace, named); now != before {
				t.Errorf("looking for gaps changed the memory:\n%s\nwas\n%s", now, before)
			}
			gaps("--fix")
			w.dialog(h, s, "user: The gasket of pump seven is made of hemp.", "assistant: Noted.", "user: And of pump eight?", "assistant: Of cork.", "user: Look into pump nine.")
			if now := w.dialogs(h, w.workspace, named); !strings.HasPrefix(now, before) || strings.Contains(now, "tool-output") {
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
