//go:build unix

package contract

import (
	"maps"
	"strings"
	"testing"
)

// What a PreCompact hook prints goes to the summariser, whatever it is. So it is asked what it is asked without us.
func TestClaudeCompact(t *testing.T) {
	w := newWired(t)
	bare := newBare(t)
	for _, w := range []*world{w, bare} {
		s := w.run(w.claude, Turn{Prompt: billing}, Step{Text: "Noted."}).Session
		r := w.run(w.claude, Turn{Prompt: "/compact", Session: s})
		if r.Code != 0 || len(r.Complaints) > 0 {
			w.Errorf("exit status %d, complaints %q", r.Code, r.Complaints)
		}
		if w != bare {
			if !strings.Contains(r.Stdout, "PreCompact [") || !strings.Contains(r.Stdout, "completed successfully") {
				w.Errorf("no PreCompact hook ran: %s", r.Stdout)
			}
			w.say(w.claude, s, "And now?", Step{Text: "On we go."})
			w.dialog(w.claude, s, "user: "+billing, "assistant: Noted.", "user: And now?", "assistant: On we go.")
		}
	}
	got, want := w.last(w.claude, Compaction), bare.last(bare.claude, Compaction)
	if !sameButHome(got.Last(), want.Last()) {
		w.Errorf("the summariser is asked\n%s\nwithout us\n%s", got.Last(), want.Last())
	}
	if len(got.Frames()) != 0 || strings.Contains(got.Last(), "Additional Instructions") {
		w.Errorf("the summariser's request has %d frames: %s", len(got.Frames()), got.Last())
	}
}

// A subagent works in the background: the host wakes the model with a prompt of its own making, which is no prompt of the
// user. The answer to it is an answer.
func TestClaudeSubagent(t *testing.T) {
	w := newWired(t)
	w.say(w.codex, "", billing)
	s := w.say(w.claude, "", "Let somebody look into it.", Step{Spawn: askBilling}, Step{Text: "They are at it."}, Step{Text: "They found out."}).Session
	if got := w.last(w.claude, Main).Text(); !strings.Contains(got, "<task-notification>") || !strings.Contains(got, subagentText) {
		w.Errorf("no notification in the last request")
	}
	if n := len(w.last(w.claude, Subagent).Frames()); n != 0 {
		w.Errorf("%d frames in the subagent's request", n)
	}
	if n := len(w.last(w.claude, Main).Frames()); n != 0 {
		w.Errorf("%d frames in the main request: the notification was answered with a recall", n)
	}
	w.dialog(w.claude, s, "user: Let somebody look into it.", "assistant: They are at it.", "assistant: They found out.")
	if rows := w.rows(w.claude); len(rows) != 3 {
		w.Errorf("captured: %+v", rows)
	}
}

// Several turns of one process are several turns.
func TestClaudeStream(t *testing.T) {
	w := newWired(t)
	w.say(w.codex, "", billing)
	w.say(w.codex, "", server)
	w.claude.Model.Script(Step{Text: "One."}, Step{Text: "Two."}, Step{Text: "Three."})
	r, err := w.claude.Stream(w.Context(), Turn{}, askBilling, askServer, askBilling)
	if err != nil {
		w.Fatal(err)
	}
	w.well(w.claude, r, "Three.")
	w.shown(w.last(w.claude, Main), 2, billing)
	w.shown(w.last(w.claude, Main), 2, server)
	w.dialog(w.claude, r.Session, "user: "+askBilling, "assistant: One.", "user: "+askServer, "assistant: Two.",
		"user: "+askBilling, "assistant: Three.")
}

// Claude Code takes a settings file with a comment for none at all and says so nowhere. So doctor has to say it. The
// comment is kept.
func TestClaudeComments(t *testing.T) {
	w := newWorld(t)
	w.put(".claude/settings.json", "// mine\n{\n  \"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"true\"}]}]}\n}\n", 0o600)
	before := w.snapshot()
	w.hook("install", "claude-code")
	if r := w.run(w.claude, Turn{Prompt: "Hello?"}); r.Code != 0 || len(r.Hooks) > 0 {
		w.Fatalf("exit status %d, hooks %v: this release reads comments", r.Code, r.Hooks)
	}
	if r := w.hook("doctor", "claude-code"); r.Code != 3 || !strings.Contains(r.Stdout, "comments") {
		w.Errorf("doctor: exit status %d, want 3 and a word about comments\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	w.must("uninstall", "--all")
	if after := w.snapshot(); !maps.Equal(before, after) {
		w.Errorf("after uninstall:\n%q\nwant:\n%q", after, before)
	}
}
