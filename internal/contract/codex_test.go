//go:build unix

package contract

import (
	"strings"
	"testing"
)

// A subagent's prompt is no prompt of the user: nothing is recalled for it and nothing of it is captured.
func TestCodexSubagent(t *testing.T) {
	w := newWired(t)
	w.say(w.claude, "", billing)
	s := w.say(w.codex, "", "Let somebody look into it.", Step{Spawn: askBilling}, Step{Await: true}, Step{Text: "They found out."}).Session
	if got := w.last(w.codex, Main).Role("tool"); !strings.Contains(strings.Join(got, "\n"), subagentText) {
		w.Errorf("tool results %q", got)
	}
	if n := len(w.last(w.codex, Subagent).Frames()); n != 0 {
		w.Errorf("%d frames in the subagent's request", n)
	}
	w.dialog(w.codex, s, "user: Let somebody look into it.", "assistant: They found out.")
	if rows := w.rows(w.codex); len(rows) != 2 {
		w.Errorf("captured: %+v", rows)
	}
}

// Codex is silent about hooks that nobody has trusted, so doctor has to say it.
func TestCodexUntrusted(t *testing.T) {
	w := newWorld(t)
	w.must("install", "codex", "claude-code")
	r := w.hook("doctor", "codex")
	if r.Code != 3 || !strings.Contains(strings.ToLower(r.Stdout), "trust") {
		w.Errorf("doctor: exit status %d, want 3\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	if r := w.run(w.codex, Turn{Prompt: "Hello?"}); r.Code != 0 || len(r.Hooks) > 0 {
		w.Errorf("exit status %d, hooks %v", r.Code, r.Hooks)
	}
	w.must("install", "codex", "--trust")
	if r := w.hook("doctor", "codex"); r.Code != 0 {
		w.Errorf("doctor after --trust: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
}
