//go:build unix

package contract

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// eachHost runs a test on a machine of its own for each host; other is the host that is not under test.
func eachHost(t *testing.T, make func(*testing.T) *world, test func(w *world, h, other Host)) {
	t.Run("codex", func(t *testing.T) {
		w := make(t)
		test(w, w.codex, w.claude)
	})
	t.Run("claude-code", func(t *testing.T) {
		w := make(t)
		test(w, w.claude, w.codex)
	})
}

// A resumed session gets what is new, and not again what it was shown already.
func TestResume(t *testing.T) {
	eachHost(t, newWired, func(w *world, h, other Host) {
		w.say(other, "", billing)
		s := w.say(h, "", askBilling, Step{Text: "One."}).Session
		w.shown(w.last(h, Main), 1, billing)
		w.say(h, s, askBilling, Step{Text: "Two."})
		w.shown(w.last(h, Main), 1, billing)
		w.say(other, "", server)
		w.say(h, s, askServer, Step{Text: "Three."})
		w.shown(w.last(h, Main), 2, billing)
		w.shown(w.last(h, Main), 2, server)
		w.dialog(h, s, "user: "+askBilling, "assistant: One.", "user: "+askBilling, "assistant: Two.",
			"user: "+askServer, "assistant: Three.")
	})
}

// Of a turn with a tool call, the prompt and the answer are captured and the tool's output is not.
func TestTool(t *testing.T) {
	eachHost(t, newWired, func(w *world, h, _ Host) {
		s := w.say(h, "", "Run it.", Step{Shell: "echo tool''ran"}, Step{Text: "It ran."}).Session
		if got := w.last(h, Main).Role("tool"); len(got) != 1 || !strings.Contains(got[0], "toolran") {
			w.Errorf("tool results %q", got)
		}
		w.dialog(h, s, "user: Run it.", "assistant: It ran.")
	})
}

// An automatic compaction takes from the model what it was shown, so it is shown again; but not what it was shown in this
// very turn, which Codex announces after the compaction and Claude Code before it. The summariser gets no word from us,
// and no turn is captured twice.
func TestAutoCompaction(t *testing.T) {
	eachHost(t, newWired, func(w *world, h, other Host) {
		w.say(other, "", billing)
		w.say(other, "", server)
		s := w.say(h, "", askBilling, Step{Text: "One.", Tokens: tooMany}).Session
		w.shown(w.last(h, Main), 1, billing)
		w.say(h, s, askServer, Step{Text: "Two."})
		compaction := w.last(h, Compaction)
		if n := strings.Count(compaction.Text(), billing); n != 1 || strings.Contains(compaction.Last(), "reme-hook") {
			w.Errorf("%q is %d times in the summariser's request, which ends with %q", billing, n, compaction.Last())
		}
		w.shown(w.last(h, Main), 1, server)
		w.say(h, s, askBilling, Step{Text: "Three."})
		w.shown(w.last(h, Main), 2, billing)
		w.say(h, s, askServer, Step{Text: "Four."})
		w.shown(w.last(h, Main), 2, server)
		w.dialog(h, s, "user: "+askBilling, "assistant: One.", "user: "+askServer, "assistant: Two.",
			"user: "+askBilling, "assistant: Three.", "user: "+askServer, "assistant: Four.")
	})
}

// A compaction within a turn, here after a tool call, takes the memories of this turn as well. They are shown again.
func TestCompactionWithinTurn(t *testing.T) {
	eachHost(t, newWired, func(w *world, h, other Host) {
		w.say(other, "", billing)
		s := w.say(h, "", askBilling, Step{Shell: "echo tool", Tokens: tooMany}, Step{Text: "In spring."}).Session
		w.last(h, Compaction)
		w.shown(w.last(h, Main), 1, billing)
		w.dialog(h, s, "user: "+askBilling, "assistant: In spring.")
	})
}

// tooMany tokens are more than any model's window.
const tooMany = 990_000

// A turn that the model's service fails, or that the user interrupts, gets no Stop. Its prompt is not lost: a later hook
// of any host delivers it.
func TestUnfinished(t *testing.T) {
	t.Run("error", func(t *testing.T) {
		eachHost(t, newWired, func(w *world, h, other Host) {
			r := w.run(h, Turn{Prompt: billing}, Step{Status: 500})
			if r.Code != 1 || len(r.Complaints) > 0 {
				w.Errorf("exit status %d, want 1; complaints %q", r.Code, r.Complaints)
			}
			w.unfinished(h, other, r.Session)
		})
	})
	t.Run("interrupt", func(t *testing.T) {
		eachHost(t, newWired, func(w *world, h, other Host) {
			r := w.run(h, Turn{Prompt: billing, Interrupt: w.model(h).Hanging()}, Step{Hang: true})
			if len(r.Complaints) > 0 {
				w.Errorf("complaints %q", r.Complaints)
			}
			w.unfinished(h, other, r.Session)
		})
	})
}

// unfinished checks that the prompt of a broken turn is known to the other host's next session, and once in the dialog.
func (w *world) unfinished(h, other Host, session string) {
	w.Helper()
	w.say(other, "", "Good morning, shall we begin with the backlog?")
	w.say(other, "", askBilling)
	w.shown(w.last(other, Main), 1, billing)
	w.dialog(h, session, "user: "+billing)
}

// Only file tools are kept from reme:// paths; a shell may name one.
func TestGuard(t *testing.T) {
	fileTool := map[string]Step{
		"codex":       {Tool: "view_image", Args: map[string]any{"path": "reme://daily/2026-11-30.md"}},
		"claude-code": {Tool: "Read", Args: map[string]any{"file_path": "reme://daily/2026-11-30.md"}},
	}
	eachHost(t, newWired, func(w *world, h, _ Host) {
		r := w.run(h, Turn{Prompt: "Open it."}, fileTool[h.Name()], Step{Shell: "echo reme://daily/2026''-11-30.md"}, Step{Text: "Opened."})
		if r.Code != 0 || r.Reply != "Opened." {
			w.Errorf("exit status %d, reply %q", r.Code, r.Reply)
		}
		got := w.last(h, Main).Role("tool")
		if len(got) != 2 {
			w.Fatalf("tool results %q", got)
		}
		if !strings.Contains(got[0], "reme-hook") {
			w.Errorf("the file tool's result is %q", got[0])
		}
		if !strings.Contains(got[1], "reme://daily/2026-11-30.md") {
			w.Errorf("the shell's result is %q", got[1])
		}
	})
}

// Without the product, or with something else in its place, a host works as if it were not there.
func TestUnharmed(t *testing.T) {
	const installed = ".reme/integrations/bin/reme-hook"
	broken := map[string]string{
		"missing": "",
		"hangs":   "exec sleep 600",
		"garbage": "echo garbage; echo '{'; head -c 100000 /dev/zero | tr '\\0' '\\377'; echo garbage >&2",
		"exit-2":  "echo fatal >&2; exit 2",
		"crash":   "kill -SEGV $$",
	}
	for name, script := range broken {
		t.Run(name, func(t *testing.T) {
			eachHost(t, newWired, func(w *world, h, _ Host) {
				if err := os.Remove(filepath.Join(w.home, installed)); err != nil {
					w.Fatal(err)
				}
				if script != "" {
					w.put(installed, "#!/bin/sh\n"+script+"\n", 0o755)
				}
				r := w.run(h, Turn{Prompt: "Hello?"}, Step{Text: "Here I am."})
				if r.Code != 0 || r.Reply != "Here I am." {
					w.Errorf("exit status %d, reply %q\n%s", r.Code, r.Reply, r.Stderr)
				}
				if n := len(w.model(h).Requests(Main)); n != 1 {
					w.Errorf("%d model requests, want 1", n)
				}
				if slices.Contains([]string{"missing", "exit-2"}, name) && len(r.Complaints) > 0 {
					w.Errorf("complaints: %q", r.Complaints)
				}
			})
		})
	}
}
