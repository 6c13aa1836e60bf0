//go:build unix

package contract

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// newKimi makes a machine that has Kimi Code too, where the product is not installed.
func newKimi(t *testing.T) (*world, *Kimi) {
	t.Helper()
	w := newWorld(t)
	return w, w.with("kimi").(*Kimi)
}

// newWiredKimi makes a machine with all three hosts wired.
func newWiredKimi(t *testing.T) (*world, *Kimi) {
	t.Helper()
	w, k := newKimi(t)
	w.must("install", "codex", "claude-code", "kimi", "--trust")
	return w, k
}

const kimiConfig = ".kimi-code/config.toml"

// kimiUser is a user's own configuration, whose hook must go on running.
const kimiUser = "# mine\r\n[[hooks]]\r\nevent = \"Stop\" # each time\r\ncommand = \"echo x >>~/theirs\"\r\n\r\n[thinking]\r\nenabled = false"

// What is told to Kimi Code, Codex or Claude Code is known to the others, and afterwards nothing of the product is left.
func TestKimiLoop(t *testing.T) {
	w, k := newKimi(t)
	w.joins(k, kimiConfig, kimiUser)
	if raw, _ := os.ReadFile(filepath.Join(w.home, "theirs")); string(raw) != "x\nx\nx\nx\n" {
		w.Errorf("the user's own hook wrote %q", raw)
	}
}

// A memory is shown once in a session and stays, over a resume too; of a turn with a tool call, the prompt and the answer
// are captured and the tool's output is not.
func TestKimiSession(t *testing.T) {
	w, k := newWiredKimi(t)
	w.say(w.codex, "", billing)
	w.say(w.codex, "", server)
	s := w.say(k, "", askBilling, Step{Shell: "echo tool''ran"}, Step{Text: "One."}).Session
	w.shown(w.last(k, Main), 1, billing)
	if got := w.last(k, Main).Role("tool"); len(got) != 1 || !strings.Contains(got[0], "toolran") {
		w.Errorf("tool results %q", got)
	}
	w.say(k, s, askBilling, Step{Text: "Two."})
	w.shown(w.last(k, Main), 1, billing)
	w.say(k, s, askServer, Step{Text: "Three."})
	w.shown(w.last(k, Main), 2, billing)
	w.shown(w.last(k, Main), 2, server)
	w.dialog(k, s, "user: "+askBilling, "assistant: One.", "user: "+askBilling, "assistant: Two.",
		"user: "+askServer, "assistant: Three.")
}

// A compaction takes from the model all that it was shown, also in the turn that it is made for, and no event follows that
// could show it again in that turn. The next prompt does.
func TestKimiAutoCompaction(t *testing.T) {
	w, k := newWiredKimi(t)
	w.say(w.codex, "", billing)
	w.say(w.codex, "", server)
	s := w.say(k, "", askBilling, Step{Text: "One.", Tokens: kimiWindow - 5000}).Session
	w.shown(w.last(k, Main), 1, billing)
	r := w.say(k, s, askServer, Step{Text: "Two."})
	if !slices.Contains(r.Hooks, "PreCompact") {
		w.Errorf("no PreCompact hook, only %v", r.Hooks)
	}
	compaction := w.last(k, Compaction)
	if strings.Contains(compaction.Last(), "reme-") {
		w.Errorf("the summariser is asked %q", compaction.Last())
	}
	if n := len(w.last(k, Main).Frames()); n != 0 {
		w.Errorf("%d frames after the compaction: this release keeps them", n)
	}
	w.say(k, s, askBilling, Step{Text: "Three."})
	w.shown(w.last(k, Main), 1, billing)
	w.say(k, s, askServer, Step{Text: "Four."})
	w.shown(w.last(k, Main), 2, server)
	w.dialog(k, s, "user: "+askBilling, "assistant: One.", "user: "+askServer, "assistant: Two.",
		"user: "+askBilling, "assistant: Three.", "user: "+askServer, "assistant: Four.")
}

// A subagent's Stop comes under the session's id in the middle of the turn. Nothing of the subagent is captured.
func TestKimiSubagent(t *testing.T) {
	w, k := newWiredKimi(t)
	w.say(w.codex, "", billing)
	r := w.say(k, "", "Let somebody look into it.", Step{Spawn: askBilling}, Step{Text: "They found out."})
	if got := w.last(k, Main).Role("tool"); !strings.Contains(strings.Join(got, "\n"), subagentText) {
		w.Errorf("tool results %q", got)
	}
	if n := len(w.last(k, Subagent).Frames()); n != 0 {
		w.Errorf("%d frames in the subagent's request", n)
	}
	stops := 0
	for _, h := range r.Hooks {
		if h == "Stop" {
			stops++
		}
	}
	if stops != 2 {
		w.Errorf("hooks %v, want two stops", r.Hooks)
	}
	w.dialog(k, r.Session, "user: Let somebody look into it.", "assistant: They found out.")
	if rows := w.rows(k); len(rows) != 2 {
		w.Errorf("captured: %+v", rows)
	}
}

// handled waits for a hook that the host does not wait for, not even before it exits.
func (w *world) handled(k *Kimi, event string) {
	w.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	limit := time.After(turnLimit)
	for !slices.Contains(handled(k.log()), event) {
		select {
		case <-look.C:
		case <-limit:
			w.Fatalf("no %s hook", event)
		}
	}
}

// A turn that the user interrupts gets no Stop. What was said of it is known to the next session of another host.
func TestKimiInterrupt(t *testing.T) {
	w, k := newWiredKimi(t)
	r := w.run(k, Turn{Prompt: billing, Interrupt: k.Model.Hanging()}, Step{Hang: true})
	if len(r.Complaints) > 0 || slices.Contains(r.Hooks, "Stop") {
		w.Errorf("exit status %d, hooks %v, complaints %q", r.Code, r.Hooks, r.Complaints)
	}
	w.handled(k, "Interrupt")
	w.say(w.claude, "", askBilling)
	w.shown(w.last(w.claude, Main), 1, billing)
	w.dialog(k, r.Session, "user: "+billing, "assistant: Half an ans")
	// The session goes on.
	w.say(k, r.Session, "Go on.", Step{Text: "Well."})
	w.dialog(k, r.Session, "user: "+billing, "assistant: Half an ans", "user: Go on.", "assistant: Well.")
}

// A turn that the model's service fails is not lost either, nor told twice when its session goes on.
func TestKimiError(t *testing.T) {
	w, k := newWiredKimi(t)
	r := w.run(k, Turn{Prompt: billing}, Step{Status: 400})
	if r.Code != 1 || len(r.Complaints) > 0 {
		w.Errorf("exit status %d, want 1; complaints %q", r.Code, r.Complaints)
	}
	w.say(k, r.Session, "And now?", Step{Text: "Now it works."})
	w.dialog(k, r.Session, "user: "+billing, "user: And now?", "assistant: Now it works.")
}

// Only file tools are kept from reme:// paths; a shell may name one.
func TestKimiGuard(t *testing.T) {
	w, k := newWiredKimi(t)
	r := w.run(k, Turn{Prompt: "Open it."},
		Step{Tool: "Read", Args: map[string]any{"path": "reme://daily/2026-11-30.md"}},
		Step{Shell: "echo reme://daily/2026''-11-30.md"}, Step{Text: "Opened."})
	w.well(k, r, "Opened.")
	got := w.last(k, Main).Role("tool")
	if len(got) != 2 || !strings.Contains(got[0], "reme-hook show") || !strings.Contains(got[1], "reme://daily/2026-11-30.md") {
		w.Errorf("tool results %q", got)
	}
}

// Without the product, or with something else in its place, Kimi Code works as if it were not there.
func TestKimiUnharmed(t *testing.T) {
	const installed = ".reme/integrations/bin/reme-hook"
	for name, script := range map[string]string{
		"missing": "",
		"hangs":   "exec sleep 600",
		"garbage": "echo garbage; echo '{'; head -c 100000 /dev/zero | tr '\\0' '\\377'; echo garbage >&2",
		"exit-2":  "echo fatal >&2; exit 2",
		"crash":   "kill -SEGV $$",
	} {
		t.Run(name, func(t *testing.T) {
			w, k := newWiredKimi(t)
			if err := os.Remove(filepath.Join(w.home, installed)); err != nil {
				w.Fatal(err)
			}
			if script != "" {
				w.put(installed, "#!/bin/sh\n"+script+"\n", 0o755)
			}
			r := w.run(k, Turn{Prompt: "Hello?"}, Step{Text: "Here I am."})
			if r.Code != 0 || r.Reply != "Here I am." || len(r.Complaints) > 0 {
				w.Errorf("exit status %d, reply %q, complaints %q\n%s", r.Code, r.Reply, r.Complaints, r.Stderr)
			}
			if n := len(k.Model.Requests(Main)); n != 1 {
				w.Errorf("%d model requests, want 1", n)
			}
		})
	}
}

// Kimi Code takes a file with a single bad hook for one without hooks. So an install into such a file is taken back.
func TestKimiRefuses(t *testing.T) {
	w, _ := newKimi(t)
	const bad = "[[hooks]]\nevent = \"Nonsense\"\ncommand = \"true\"\n"
	w.put(kimiConfig, bad, 0o600)
	if r := w.hook("install", "kimi"); r.Code != 1 || !strings.Contains(r.Stderr, "Nonsense") && !strings.Contains(r.Stderr, "hooks[0].event") {
		w.Errorf("exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	if raw, err := os.ReadFile(filepath.Join(w.home, kimiConfig)); string(raw) != bad {
		w.Errorf("the file is now %q, %v", raw, err)
	}
}
