//go:build unix

package contract

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newDSH makes a machine that has DSH too, where the product is not installed.
func newDSH(t *testing.T) (*world, *DSH) {
	t.Helper()
	w := newWorld(t)
	return w, w.with("dsh").(*DSH)
}

// newWiredDSH makes a machine with all three hosts wired.
func newWiredDSH(t *testing.T) (*world, *DSH) {
	t.Helper()
	w, d := newDSH(t)
	w.must("install", "codex", "claude-code", "dsh", "--trust")
	return w, d
}

// turns is several turns of one process of DSH that have to go well.
func (w *world) turns(d *DSH, session string, prompts []string, steps ...Step) Result {
	w.Helper()
	d.Model.Script(steps...)
	r, err := d.Turns(w.Context(), Turn{Session: session}, prompts...)
	if err != nil {
		w.Fatalf("dsh: %v\n%s\n%s", err, r.Stdout, r.Stderr)
	}
	w.well(d, r, steps[len(steps)-1].Text)
	return r
}

const dshPatch = ".dsh/cordis.patch.yml"

// dshRow is a user's own configuration: it is in force, or DSH does not start.
const dshRow = "# mine\r\n- id: tool-web # no web\r\n  disabled: true"

// What is told to DSH, Codex or Claude Code is known to the others, and afterwards nothing of the product is left.
func TestDSHLoop(t *testing.T) {
	w, d := newDSH(t)
	w.joins(d, dshPatch, dshRow)
}

// A session of several turns and processes: each memory is shown once and stays, a tool's output is not captured, a
// compaction takes the memories so that they are shown again, and turns go on counting.
func TestDSHSession(t *testing.T) {
	w, d := newWiredDSH(t)
	w.say(w.codex, "", billing)
	w.say(w.codex, "", server)
	s := w.turns(d, "", []string{askBilling, askServer, askBilling},
		Step{Shell: "echo tool''ran"}, Step{Text: "One."}, Step{Text: "Two."}, Step{Text: "Three."}).Session
	w.shown(w.last(d, Main), 2, billing)
	w.shown(w.last(d, Main), 2, server)
	if got := w.last(d, Main).Role("tool"); len(got) != 1 || !strings.Contains(got[0], "toolran") {
		w.Errorf("tool results %q", got)
	}
	w.turns(d, s, []string{askServer, "/compact", askBilling}, Step{Text: "Four."}, Step{Text: "Five."})
	if compaction := w.last(d, Compaction); strings.Contains(compaction.Last(), "reme-") {
		w.Errorf("the summariser is asked %q", compaction.Last())
	}
	w.shown(w.last(d, Main), 1, billing)
	w.say(d, s, askServer, Step{Text: "Six."})
	w.shown(w.last(d, Main), 2, server)
	w.dialog(d, s, "user: "+askBilling, "assistant: One.", "user: "+askServer, "assistant: Two.",
		"user: "+askBilling, "assistant: Three.", "user: "+askServer, "assistant: Four.",
		"user: "+askBilling, "assistant: Five.", "user: "+askServer, "assistant: Six.")
	var ids []string
	for _, r := range w.rows(d) {
		ids = append(ids, r.ID)
	}
	want := "1:user 1:assistant 2:user 2:assistant 3:user 3:assistant 4:user 4:assistant 5:user 5:assistant 6:user 6:assistant"
	if got := strings.Join(ids, " "); got != want {
		w.Errorf("ids %s, want %s", got, want)
	}
}

// A compaction within a turn, here after a tool call, may take the memories of this turn or leave them. They are there
// once afterwards.
func TestDSHCompactionWithinTurn(t *testing.T) {
	for name, retained := range map[string]int{"taken": 0, "left": 150} {
		t.Run(name, func(t *testing.T) {
			w, d := newWiredDSH(t)
			d.Patch = []map[string]any{{"id": "compaction-basic", "config": map[string]any{"retainTokens": retained}}}
			w.say(w.codex, "", billing)
			w.say(w.codex, "", server)
			s := w.turns(d, "", []string{askServer, askBilling},
				Step{Text: "Six five four three."}, Step{Shell: "echo tool", Tokens: tooMany}, Step{Text: "In spring."}).Session
			w.last(d, Compaction)
			w.shown(w.last(d, Main), 1, billing)
			w.dialog(d, s, "user: "+askServer, "assistant: Six five four three.", "user: "+askBilling, "assistant: In spring.")
		})
	}
}

// A turn that the model's service fails, or that the user interrupts, keeps its prompt.
func TestDSHUnfinished(t *testing.T) {
	t.Run("error", func(t *testing.T) {
		w, d := newWiredDSH(t)
		r := w.run(d, Turn{Prompt: billing}, Step{Status: 400})
		if r.Code != 1 {
			w.Errorf("exit status %d, want 1", r.Code)
		}
		w.unfinished(d, w.codex, r.Session)
	})
	t.Run("interrupt", func(t *testing.T) {
		w, d := newWiredDSH(t)
		r := w.run(d, Turn{Prompt: billing, Interrupt: d.Model.Hanging()}, Step{Hang: true})
		if r.Code != 130 {
			w.Errorf("exit status %d, want 130", r.Code)
		}
		w.unfinished(d, w.codex, r.Session)
	})
}

// A subagent's task is no prompt of the user, although it looks like one: nothing is recalled for it and nothing of it
// is captured.
func TestDSHSubagent(t *testing.T) {
	w, d := newWiredDSH(t)
	w.say(w.codex, "", billing)
	s := w.say(d, "", "Let somebody look into it.", Step{Spawn: askBilling}, Step{Text: "They found out."}).Session
	if got := w.last(d, Main).Role("tool"); !strings.Contains(strings.Join(got, "\n"), subagentText) {
		w.Errorf("tool results %q", got)
	}
	if n := len(w.last(d, Subagent).Frames()); n != 0 {
		w.Errorf("%d frames in the subagent's request", n)
	}
	w.dialog(d, s, "user: Let somebody look into it.", "assistant: They found out.")
	if rows := w.rows(d); len(rows) != 2 {
		w.Errorf("captured: %+v", rows)
	}
}

// Only file tools are kept from reme:// paths; a shell may name one.
func TestDSHGuard(t *testing.T) {
	w, d := newWiredDSH(t)
	const address = "reme://daily/2026-11-30.md"
	w.say(d, "", "Open it.", Step{Tool: "read", Args: map[string]any{"file_path": address}},
		Step{Shell: "echo " + address}, Step{Text: "Opened."})
	got := w.last(d, Main).Role("tool")
	if len(got) != 2 || !strings.Contains(got[0], "reme-hook show") || !strings.Contains(got[1], address) {
		w.Errorf("tool results %q", got)
	}
}

// Without the product, or with something else in its place, DSH works as if it were not there. It would not start if it
// could not load the plugin.
func TestDSHUnharmed(t *testing.T) {
	const program, shim = ".reme/integrations/bin/reme-hook", ".reme/integrations/dsh/reme-hook.mjs"
	for name, broken := range map[string]struct{ file, content string }{
		"no program": {program, ""},
		"no plugin":  {shim, ""},
		"hangs":      {program, "#!/bin/sh\nsleep 600 & sleep 600\n"},
		"garbage":    {program, "#!/bin/sh\necho garbage; echo '{'; head -c 3000000 /dev/zero | tr '\\0' '\\377'; echo garbage >&2\n"},
		"exit 2":     {program, "#!/bin/sh\necho '{\"context\":\"fatal\"}'; exit 2\n"},
		"crash":      {program, "#!/bin/sh\nkill -SEGV $$\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w, d := newWiredDSH(t)
			if err := os.Remove(filepath.Join(w.home, broken.file)); err != nil {
				w.Fatal(err)
			}
			if broken.content != "" {
				w.put(broken.file, broken.content, 0o755)
			}
			w.say(d, "", "Hello?", Step{Text: "Here I am."})
			requests := d.Model.Requests(Main)
			if len(requests) != 1 || strings.Contains(requests[0].Text(), "fatal") {
				w.Errorf("%d model requests", len(requests))
			}
		})
	}
}

// DSH reads YAML, evaluates JavaScript in it and takes the plugin's name for a URL: no folder name may break that.
func TestDSHOddPlace(t *testing.T) {
	t.Run(`it's "100%41" #1 $HOME ü🙂 {a}`, func(t *testing.T) {
		w, d := newDSH(t)
		w.put(dshPatch, "[]", 0o600)
		w.must("install", "dsh")
		w.say(d, "", billing, Step{Text: "Noted."})
		w.must("uninstall", "dsh")
		w.put(dshPatch, dshRow, 0o600)
		w.must("install", "dsh")
		r := w.say(d, "", askBilling, Step{Text: "In spring."})
		w.shown(w.last(d, Main), 1, billing)
		w.dialog(d, r.Session, "user: "+askBilling, "assistant: In spring.")
	})
}

// The same plugin as a bundle, as `dsh plugin add` leaves it, calls the program on the PATH. With both, each memory is
// there once, and doctor says what to do.
func TestDSHBundle(t *testing.T) {
	w, d := newDSH(t)
	w.must("install", "codex", "--trust")
	w.say(w.codex, "", billing)
	source, err := filepath.Abs("../../plugins/dsh")
	if err != nil {
		w.Fatal(err)
	}
	const profile = ".dsh/profiles/headless"
	w.put(profile+"/package.json", toJSON(map[string]any{
		"name": "dsh-profile-headless", "private": true, "dependencies": map[string]any{"reme-hook-dsh": "link:" + source},
		"dsh": map[string]any{"profile": map[string]any{"bundles": []string{"@deepseek-ai/dsh-base", "@deepseek-ai/dsh-headless", "reme-hook-dsh"}}},
	}), 0o600)
	if err := os.MkdirAll(filepath.Join(w.home, profile, "node_modules"), 0o755); err != nil {
		w.Fatal(err)
	}
	for link, target := range map[string]string{profile + "/node_modules/reme-hook-dsh": source, "bin/reme-hook": binary} {
		if err := os.Symlink(target, filepath.Join(w.home, link)); err != nil {
			w.Fatal(err)
		}
	}
	for _, both := range []bool{false, true} {
		if both {
			w.must("install", "dsh")
			if r := w.hook("doctor", "dsh"); r.Code != 3 || !strings.Contains(r.Stdout, "remove reme-hook-dsh") {
				w.Errorf("doctor: exit status %d\n%s", r.Code, r.Stdout)
			}
		}
		r := w.say(d, "", askBilling, Step{Text: "In spring."})
		w.shown(w.last(d, Main), 1, billing)
		w.dialog(d, r.Session, "user: "+askBilling, "assistant: In spring.")
	}
}
