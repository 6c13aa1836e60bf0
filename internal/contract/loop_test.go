//go:build unix

package contract

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

const (
	billing    = "Our billing rewrite is called Quillfeather and it goes live on 23 March."
	askBilling = "What is the billing rewrite called, and when does it go live?"
	server     = "The staging database server is named Marmalade and listens on port 6543."
	askServer  = "Which port does the staging database server listen on?"
)

// users are the machines before the product came.
var users = map[string]map[string]string{
	"fresh": {},
	served:  {},
	"lived-in": {
		".codex/hooks.json":     `{"description": "mine", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}`,
		".codex/config.toml":    "# my settings\nmodel_reasoning_effort = \"low\" # cheap\n\n[tui]\nnotifications = false\n",
		".claude/settings.json": "\ufeff{\r\n    \"env\": {\"MINE\": \"1\"},\r\n    \"hooks\": {\r\n        \"Stop\": [ {\"hooks\": [{\"type\": \"command\", \"command\": \"true\"}]} ]\r\n    },\r\n\r\n    \"cleanupPeriodDays\": 300\r\n}",
	},
}

// On a machine that is served, another process keeps the memory.
const served = "served"

// What one host is told, the other one knows in a new session, and afterwards nothing is left of the product in the
// hosts' files.
func TestLoop(t *testing.T) {
	for name, files := range users {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for file, content := range files {
				w.put(file, content, 0o600)
			}
			before := w.snapshot()
			switch name {
			case served:
				w.serve()
				fallthrough
			case "fresh":
				w.must("setup", "--yes")
			default:
				w.must("install", "codex", "claude-code", "--trust")
			}

			told := w.say(w.codex, "", billing, Step{Text: "Noted."})
			asked := w.say(w.claude, "", askBilling, Step{Text: "In spring."})
			w.shown(w.last(w.claude, Main), 1, billing)

			toldBack := w.say(w.claude, "", server, Step{Text: "Understood."})
			askedBack := w.say(w.codex, "", askServer, Step{Text: "That one."})
			w.shown(w.last(w.codex, Main), 1, server)

			w.dialog(w.codex, told.Session, "user: "+billing, "assistant: Noted.")
			w.dialog(w.claude, asked.Session, "user: "+askBilling, "assistant: In spring.")
			w.dialog(w.claude, toldBack.Session, "user: "+server, "assistant: Understood.")
			w.dialog(w.codex, askedBack.Session, "user: "+askServer, "assistant: That one.")

			if r := w.hook("doctor"); r.Code != 0 {
				w.Errorf("doctor: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
			}
			w.must("uninstall", "--all")
			if after := w.snapshot(); !maps.Equal(before, after) {
				w.Errorf("after uninstall:\n%q\nwant:\n%q", after, before)
			}
			w.run(w.codex, Turn{Prompt: askBilling})
			if n := len(w.last(w.codex, Main).Frames()); n != 0 {
				w.Errorf("%d frames after uninstall", n)
			}
		})
	}
}

// joins is the loop of a host that joins Codex and Claude Code. The user's own configuration of it is there before the
// product comes, and after it has gone.
func (w *world) joins(h Host, file, config string) {
	w.Helper()
	const tea = "The office kettle is called Bartholomew and wants descaling every Thursday."
	const askTea = "When does the office kettle want descaling?"
	w.put(file, config, 0o600)
	w.must("install", "codex", "claude-code", h.Name(), "--trust")
	toldCodex := w.say(w.codex, "", billing, Step{Text: "Noted."})
	toldClaude := w.say(w.claude, "", tea, Step{Text: "Poor kettle."})
	asked := w.say(h, "", askBilling, Step{Text: "In spring."})
	w.shown(w.last(h, Main), 1, billing)
	askedTea := w.say(h, "", askTea, Step{Text: "On Thursdays."})
	w.shown(w.last(h, Main), 1, tea)

	told := w.say(h, "", server, Step{Text: "Understood."})
	for _, other := range []Host{w.codex, w.claude} {
		w.say(other, "", askServer, Step{Text: "That one."})
		w.shown(w.last(other, Main), 1, server)
	}

	w.dialog(w.codex, toldCodex.Session, "user: "+billing, "assistant: Noted.")
	w.dialog(w.claude, toldClaude.Session, "user: "+tea, "assistant: Poor kettle.")
	w.dialog(h, asked.Session, "user: "+askBilling, "assistant: In spring.")
	w.dialog(h, askedTea.Session, "user: "+askTea, "assistant: On Thursdays.")
	w.dialog(h, told.Session, "user: "+server, "assistant: Understood.")
	if n := len(w.rows(h)); n != 6 {
		w.Errorf("%d messages of %s were captured, want 6", n, h.Name())
	}
	if r := w.hook("doctor"); r.Code != 0 {
		w.Errorf("doctor: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}

	w.must("uninstall", "--all")
	if raw, err := os.ReadFile(filepath.Join(w.home, file)); string(raw) != config {
		w.Errorf("after uninstall %q, %v", raw, err)
	}
	w.run(h, Turn{Prompt: askBilling})
	if n := len(w.last(h, Main).Frames()); n != 0 {
		w.Errorf("%d frames after uninstall", n)
	}
}
