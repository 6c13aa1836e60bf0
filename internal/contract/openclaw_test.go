//go:build unix

package contract

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// withGateway puts OpenClaw on the machine, which is driven through a gateway once [world.startGateway] was called.
func (w *world) withGateway() *OpenClaw {
	w.Helper()
	o := w.with("openclaw").(*OpenClaw)
	w.Cleanup(o.Stop)
	return o
}

func (w *world) startGateway(o *OpenClaw) {
	w.Helper()
	if err := o.Start(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// command is a command of OpenClaw that has to go well and to print something.
func (w *world) command(o *OpenClaw, want string, args ...string) {
	w.Helper()
	r, err := o.Command(w.Context(), args...)
	if err != nil || r.Code != 0 || !strings.Contains(r.Stdout, want) {
		w.Errorf("openclaw %s: exit status %d, %v, want %q\n%s%s", strings.Join(args, " "), r.Code, err, want, r.Stdout, r.Stderr)
	}
}

// heartbeat has OpenClaw look after itself, told of an event, and returns what it asks the model then.
func (w *world) heartbeat(o *OpenClaw, event string) Request {
	w.Helper()
	n := len(o.Model.Requests(Main))
	w.command(o, "ok", "system", "event", "--text", event, "--mode", "now")
	return w.awaited(o, n, "")
}

// awaited waits until OpenClaw asks the model something after the first n requests whose last words of a user, or in a user's
// name, have a text.
func (w *world) awaited(o *OpenClaw, n int, text string) Request {
	w.Helper()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	limit := time.After(turnLimit)
	for {
		for _, r := range o.Model.Requests(Main)[n:] {
			said := slices.DeleteFunc(r.Role("user"), func(s string) bool { return strings.HasPrefix(s, "<<<BEGIN_OPENCLAW_INTERNAL") })
			if len(said) > 0 && strings.Contains(said[len(said)-1], text) {
				return r
			}
		}
		select {
		case <-look.C:
		case <-limit:
			w.Fatalf("the model was not asked %q", text)
		}
	}
}

// chat says something in a session as the user of a gateway's own page does, who does not wait for an answer.
func (w *world) chat(o *OpenClaw, key, text string) {
	w.Helper()
	w.command(o, "runId", "gateway", "call", "chat.send", "--json", "--params", toJSON(map[string]string{"sessionKey": key, "message": text, "idempotencyKey": newUUID()}))
}

// called is a call of one of the tools that OpenClaw does not name to the model.
func called(name string, args map[string]any) Step {
	return Step{Tool: "tool_call", Args: map[string]any{"id": name, "args": args}}
}

const openclawConfig = ".openclaw/openclaw.json"

// A day of a gateway. What is told to one of OpenClaw, Codex and Claude Code is known to the others; what is recalled
// is for one turn; a failed turn keeps its prompt; a compaction, /new and a broken program do no harm; and afterwards
// nothing of the product is left.
func TestOpenClawGateway(t *testing.T) {
	w := newWorld(t)
	o := w.withGateway()
	before, err := os.ReadFile(filepath.Join(w.home, openclawConfig))
	if err != nil {
		t.Fatal(err)
	}
	w.must("install", "codex", "claude-code", "openclaw", "--trust")
	w.startGateway(o)

	w.say(w.codex, "", billing, Step{Text: "Noted."})
	s := w.say(o, "", askBilling, Step{Shell: "echo tool''ran"}, Step{Text: "In spring."}).Session
	w.shown(w.last(o, Main), 1, billing)
	if got := w.last(o, Main).Role("tool"); len(got) != 1 || !strings.Contains(got[0], "toolran") {
		w.Errorf("tool results %q", got)
	}
	told := w.say(o, "", server, Step{Text: "Understood."}).Session
	w.say(w.claude, "", askServer, Step{Text: "That one."})
	w.shown(w.last(w.claude, Main), 1, server)

	// The memory of the turn before is gone from the conversation, and there again.
	w.say(o, s, askBilling, Step{Text: "On 23 March."})
	w.shown(w.last(o, Main), 1, billing)

	// Nobody said what a heartbeat says.
	w.delivered()
	rows := len(w.rows(o))
	if asked := w.heartbeat(o, askBilling); !strings.Contains(asked.Text(), askBilling) || len(asked.Frames()) > 0 {
		w.Errorf("a heartbeat asks %q", asked.Messages[1:])
	}

	// The tools of the plugin.
	w.say(o, "", "Use them all.",
		called("reme_remember", map[string]any{"content": "The cellar door squeaks on Mondays.", "title": "Cellar door"}),
		called("reme_search", map[string]any{"query": "staging database port"}),
		called("reme_daily_list", map[string]any{}),
		called("reme_read", map[string]any{"path": "session/none.jsonl"}),
		called("reme_traverse", map[string]any{"path": "daily"}),
		Step{Text: "Used."})
	results := w.last(o, Main).Role("tool")
	for i, want := range []string{"daily/", "6543", "cellar-door", "none.jsonl", "daily"} {
		if len(results) != 5 || !strings.Contains(results[i], want) || strings.Contains(results[i], "cannot be reached") {
			w.Errorf("tool results %q, want %q in number %d", results, want, i)
		}
	}

	w.delivered()
	if got := len(w.rows(o)); got != rows+2 {
		w.Errorf("%d rows, want %d", got, rows+2)
	}

	// A compaction and /new flush, and the session goes on.
	w.command(o, `"ok": true`, "sessions", "compact", "agent:main:explicit:"+s, "--json")
	if asked := w.last(o, Compaction).Text(); strings.Contains(asked, "reme-") {
		w.Errorf("the summariser is asked %q", asked)
	}
	w.say(o, s, askServer, Step{Text: "6543."})
	w.shown(w.last(o, Main), 1, server)
	w.run(o, Turn{Prompt: "/new", Session: s})
	w.say(o, s, askBilling, Step{Text: "Again."})
	w.shown(w.last(o, Main), 1, billing)
	w.dialog(o, s, "user: "+askBilling, "assistant: In spring.", "user: "+askBilling, "assistant: On 23 March.",
		"user: "+askServer, "assistant: 6543.", "user: "+askBilling, "assistant: Again.")
	w.dialog(o, told, "user: "+server, "assistant: Understood.")

	// The model's service fails: OpenClaw calls it a success.
	const kettle = "The office kettle is called Bartholomew and wants descaling every Thursday."
	failed := w.run(o, Turn{Prompt: kettle}, Step{Status: 400})
	w.dialog(o, failed.Session, "user: "+kettle)
	w.say(w.codex, "", "When does the office kettle want descaling?")
	w.shown(w.last(w.codex, Main), 1, kettle)
	w.say(o, failed.Session, "Go on, please.", Step{Text: "Well."})
	w.dialog(o, failed.Session, "user: "+kettle, "user: Go on, please.", "assistant: Well.")

	if r := w.hook("doctor", "openclaw"); r.Code != 0 {
		w.Errorf("doctor: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	w.ingested(o, 8, named)

	rows = len(w.rows(o))
	const program = ".reme/integrations/bin/reme-hook"
	for name, script := range map[string]string{
		"missing": "",
		"hangs":   "sleep 600 & sleep 600",
		"garbage": "echo garbage; echo '{'; head -c 3000000 /dev/zero | tr '\\0' '\\377'; echo garbage >&2",
		"exit 2":  "echo '{\"prependContext\":\"fatal\"}'; exit 2",
		"crash":   "kill -SEGV $$",
	} {
		if err := os.RemoveAll(filepath.Join(w.home, program)); err != nil {
			w.Fatal(err)
		}
		if script != "" {
			w.put(program, "#!/bin/sh\n"+script+"\n", 0o755)
		}
		n := len(o.Model.Requests(Main))
		w.say(o, "", askBilling, Step{Text: "Here I am."})
		if rs := o.Model.Requests(Main); len(rs) != n+1 || len(rs[n].Frames()) > 0 || strings.Contains(rs[n].Text(), "fatal") {
			w.Errorf("%s: %d model requests", name, len(rs)-n)
		}
	}
	if got := len(w.rows(o)); got != rows {
		w.Errorf("%d rows, were %d", got, rows)
	}
	o.Stop()
	w.backfill(o, w.workspace, 5, 5) // the turns of the broken programs; the other sessions are as they were
	if got := len(w.rows(o)); got != rows+10 {
		w.Errorf("%d rows after the backfill, were %d", got, rows)
	}

	w.must("uninstall", "--all")
	after, err := os.ReadFile(filepath.Join(w.home, openclawConfig))
	if err != nil || string(after) != string(before) {
		w.Errorf("after uninstall %q, %v, want %q", after, err, before)
	}
	if _, err := os.Stat(filepath.Join(w.home, ".openclaw/extensions")); !os.IsNotExist(err) {
		w.Errorf("the plugin's folder is still there: %v", err)
	}
}

// What OpenClaw and its agents tell each other and themselves is nothing that a user said: nothing is recalled for it, and
// nothing is kept of it. What a user says while the agent works is kept. By the log, all of it is the same.
func TestOpenClawMachinery(t *testing.T) {
	w := newWorld(t)
	o := w.withGateway()
	w.must("install", "codex", "openclaw", "--trust")
	w.agents(o, "main", "helper")
	w.startGateway(o)
	w.say(w.codex, "", billing, Step{Text: "Noted."})

	helped := w.run(o, Turn{Prompt: server, Args: []string{"--agent", "helper"}}, Step{Text: "Understood."})
	w.well(o, helped, "Understood.")

	pipe := filepath.Join(w.home, "tmp", "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	const key, begin, more = "agent:main:explicit:pumps", "Please look into the pumps.", "Into pump seven first."
	o.Model.Script(Step{Tool: "exec", Args: map[string]any{"command": "cat '" + pipe + "'", "yieldMs": turnLimit.Milliseconds()}}, Step{Text: "I have."})
	w.chat(o, key, begin)
	working, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for the agent
	if err != nil {
		t.Fatal(err)
	}
	w.chat(o, key, more)
	working.Close()
	pumped, turns := []string{"user: " + begin, "user: " + more, "assistant: I have."}, 3
	if asked := w.awaited(o, 0, more); slices.Contains(asked.Role("assistant"), "I have.") {
		// The turn had ended before OpenClaw got to what was said in it, which has one of its own then.
		pumped, turns = []string{"user: " + begin, "assistant: I have.", "user: " + more, "assistant: ok"}, 4
	}

	n := len(o.Model.Requests(Main))
	asking := w.say(o, "", "Ask around.", called("sessions_send", map[string]any{"sessionKey": "agent:helper:explicit:" + helped.Session, "message": askBilling, "timeoutSeconds": 60}),
		Step{Text: "ok"}, called("sessions_spawn", map[string]any{"task": askBilling, "visible": true}), Step{Text: "ok"}).Session
	machine := []Request{w.awaited(o, n, askBilling), w.awaited(o, n, "Agent-to-agent announce step."), w.awaited(o, n, "[Subagent Task]"), w.awaited(o, n, "task: ")}
	w.command(o, "id", "cron", "add", "--json", "--name", "daily", "--at", "1s", "--message", askBilling, "--session", "session:"+key, "--no-deliver")
	machine = append(machine, w.awaited(o, n, "[cron:"))
	for _, r := range machine {
		if len(r.Frames()) > 0 {
			t.Errorf("recalled for a machine: %q", r.Role("user"))
		}
	}
	o.Stop()
	w.delivered()
	var pumps string
	for _, r := range w.rows(o) {
		if len(r.Content) > 0 && r.Content[0].Text == begin {
			pumps = r.Metadata.Session
		}
	}
	w.dialog(o, pumps, pumped...)
	w.dialog(o, asking, "user: Ask around.", "assistant: ok")
	w.dialog(o, helped.Session, "user: "+server, "assistant: Understood.")
	if rows := w.rows(o); len(rows) != len(pumped)+4 {
		t.Errorf("captured of machines: %+v", rows)
	}
	w.ingested(o, turns, named)
}

// agents gives OpenClaw agents of these names.
func (w *world) agents(o *OpenClaw, names ...string) {
	w.Helper()
	var config map[string]any
	text, err := os.ReadFile(filepath.Join(w.home, openclawConfig))
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		w.Fatal(err)
	}
	entries := map[string]any{}
	for _, name := range names {
		entries[name] = map[string]any{"workspace": o.Project}
	}
	config["agents"].(map[string]any)["entries"] = entries
	w.put(openclawConfig, toJSON(config), 0o600)
}

// Without a gateway, each turn is a process of its own, which waits for nobody when it ends.
func TestOpenClawEmbedded(t *testing.T) {
	w := newWorld(t)
	o := w.withGateway()
	w.must("install", "codex", "claude-code", "openclaw", "--trust")
	w.say(w.codex, "", billing)

	s := w.say(o, "", askBilling, Step{Text: "In spring."}).Session
	w.shown(w.last(o, Main), 1, billing)
	w.say(o, s, askBilling, Step{Text: "On 23 March."})
	w.shown(w.last(o, Main), 1, billing)
	w.dialog(o, s, "user: "+askBilling, "assistant: In spring.", "user: "+askBilling, "assistant: On 23 March.")

	// Ctrl-C while the model answers.
	r := w.run(o, Turn{Prompt: server, Interrupt: o.Model.Hanging()}, Step{Hang: true})
	if r.Code == 0 {
		w.Errorf("exit status 0 after an interrupt")
	}
	w.dialog(o, r.Session, "user: "+server)
	w.say(w.claude, "", askServer)
	w.shown(w.last(w.claude, Main), 1, server)

	// Ctrl-C before the model was asked, of which no hook tells: the memory learns of it with the session's next event.
	const kettle = "The office kettle is called Bartholomew and wants descaling every Thursday."
	held := filepath.Join(w.home, "tmp", "held")
	const program = ".reme/integrations/bin/reme-hook"
	real := filepath.Join(w.home, "tmp", "reme-hook")
	if err := os.Rename(filepath.Join(w.home, program), real); err != nil {
		t.Fatal(err)
	}
	w.put(program, "#!/bin/sh\n'"+real+"' \"$@\" && echo >'"+held+"' && sleep 600\n", 0o755)
	n := len(o.Model.Requests())
	r = w.run(o, Turn{Prompt: kettle, Interrupt: opened(w, held)})
	if r.Code == 0 || len(o.Model.Requests()) > n {
		w.Errorf("exit status %d, %d model requests", r.Code, len(o.Model.Requests())-n)
	}
	if err := os.Rename(real, filepath.Join(w.home, program)); err != nil {
		t.Fatal(err)
	}
	w.say(o, r.Session, "Go on, please.", Step{Text: "Well."})
	w.dialog(o, r.Session, "user: "+kettle, "user: Go on, please.", "assistant: Well.")

	// It complains of every plugin that it has not installed itself, and of nothing else.
	doctor, err := o.Command(w.Context(), "plugins", "doctor")
	if err != nil || strings.Count(doctor.Stdout, "\n- ") != 1 || !strings.Contains(doctor.Stdout, "\n- reme: OpenClaw can't verify where this plugin came from.") {
		w.Errorf("plugins doctor: %v\n%s%s", err, doctor.Stdout, doctor.Stderr)
	}
	w.command(o, "connected", "reme", "status")
	w.command(o, "recall works", "reme", "doctor")
	w.command(o, "nothing to change", "reme", "setup")

	var ids []string
	for _, row := range w.rows(o) {
		ids = append(ids, row.ID)
	}
	w.backfill(o, w.workspace, 4, 0) // OpenClaw keeps nothing of a turn for which it asked no model
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 8 {
		w.Errorf("captured %q, want 8 messages", ids)
	}
}

// opened yields when somebody has opened a pipe, made at path, to write.
func opened(w *world, path string) <-chan struct{} {
	w.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		w.Fatal(err)
	}
	yes := make(chan struct{})
	go func() {
		defer close(yes)
		_, _ = os.ReadFile(path)
	}()
	return yes
}
