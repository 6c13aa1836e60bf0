package dsh

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
	"github.com/agentscope-ai/reme-hook/plugins/nodetest"
)

// play gives the plugin events. Programs that hang are waited for at a higher
// speed.
func play(t *testing.T, speed int, script, steps string) nodetest.Played {
	t.Helper()
	return nodetest.Play(t, script, func(dir, program string) []string {
		shim := filepath.Join(dir, "it's \"a\" plugin.mjs")
		if err := errors.Join(os.WriteFile(shim, Files()[ShimName], 0o600), os.WriteFile(filepath.Join(dir, "tools.json"), Files()["tools.json"], 0o600)); err != nil {
			t.Fatal(err)
		}
		return []string{shim, program, fmt.Sprint(speed), steps}
	})
}

// answering is a script that answers with the event and its session.
const answering = `[ "$1" = session-end ] || printf '{"context":"about %s"}\n' "$1"`

func TestTurn(t *testing.T) {
	t.Parallel()
	p := play(t, 1, answering, `[
		{"start": "startup"},
		{"event": "turn/start", "data": {"turn": 1}},
		{"step": [["user", "hé\u2028llo"], ["plugin", "It is Monday."]]},
		{"event": "assistant/message", "data": {"turn": 1, "message": {"content": [{"type": "text", "text": "Let me see."}, {"type": "tool-call"}]}}},
		{"step": []},
		{"event": "assistant/message", "data": {"turn": 1, "message": {"content": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "Done."}]}}},
		{"event": "assistant/message", "data": {"turn": 1, "message": {"content": [{"type": "tool-call"}]}}},
		{"event": "assistant/message", "data": {"turn": 1, "interrupted": true, "message": {"content": [{"type": "text", "text": "Half an ans"}]}}},
		{"event": "turn/end", "data": {"turn": 1, "reason": {"kind": "completed"}}},
		{"event": "turn/start", "data": {"turn": 2}},
		{"step": [["user", "one"], ["tool", "x"], ["user", "two"]], "turn": 2},
		{"event": "turn/end", "data": {"turn": 2, "reason": {"kind": "error"}}},
		{"dispose": 1}
	]`)
	p.Want(t, []string{
		`{"step":{"kind":"enter","messages":["user: hé\u2028llo","plugin: It is Monday.","plugin: about pre-step"],"extra":1},"slow":false}`,
		`{"step":{"kind":"enter","messages":[],"extra":1},"slow":false}`,
		`{"step":{"kind":"enter","messages":["user: one","tool: x","user: two","plugin: about pre-step","plugin: about pre-step"],"extra":1},"slow":false}`,
		`{"dispose":null,"slow":false}`,
	}, []string{
		`session-start {"event":"session-start","session_id":"s","cwd":"/p","source":"startup"}`,
		`pre-step {"event":"pre-step","session_id":"s","cwd":"/p","turn":1,"message_id":"m0","prompt":[{"type":"text","text":"hé\u2028llo"}]}`,
		`turn-end {"event":"turn-end","session_id":"s","cwd":"/p","turn":1,"reply":[{"type":"text","text":"Done."}]}`,
		`pre-step {"event":"pre-step","session_id":"s","cwd":"/p","turn":2,"message_id":"m0","prompt":[{"type":"text","text":"one"}]}`,
		`pre-step {"event":"pre-step","session_id":"s","cwd":"/p","turn":2,"message_id":"m2","prompt":[{"type":"text","text":"two"}]}`,
		`turn-end {"event":"turn-end","session_id":"s","cwd":"/p","turn":2}`,
		`session-end {"event":"session-end","session_id":"s","cwd":"/p"}`,
	})
}

// TestSubagent: a task of a subagent comes as a message of the user. Only the
// guard is for subagents too.
func TestSubagent(t *testing.T) {
	t.Parallel()
	p := play(t, 1, `echo '{"context":"x","deny":"no"}'`, `[
		{"start": "startup", "child": true},
		{"event": "turn/start", "data": {"turn": 1}, "child": true},
		{"step": [["user", "a task"]], "child": true},
		{"tool": {"path": "reme://a"}, "child": true},
		{"event": "turn/end", "data": {"turn": 1}, "child": true},
		{"event": "compaction/start", "data": {"turn": 1}, "child": true},
		{"disposed": 1, "child": true},
		{"dispose": 1}
	]`)
	p.Want(t, []string{
		`{"step":{"kind":"enter","messages":["user: a task"],"extra":1},"slow":false}`,
		`{"tool":{"kind":"deny","reason":"no"},"slow":false}`,
		`{"dispose":null,"slow":false}`,
	}, []string{`pre-execute {"event":"pre-execute","session_id":"c","cwd":"/p","origin":"subagent","tool":"read","arguments":{"path":"reme://a"}}`})
}

func TestGuard(t *testing.T) {
	t.Parallel()
	p := play(t, 1, `echo '{"context":"x"}'`, `[
		{"tool": {"path": "a.md"}},
		{"tool": {"path": "reme://a"}, "nobody": true},
		{"tool": {"path": "reme://a"}}
	]`)
	p.Want(t, []string{
		`{"tool":{"kind":"allow"},"slow":false}`, `{"tool":{"kind":"allow"},"slow":false}`, `{"tool":{"kind":"allow"},"slow":false}`,
	}, []string{`pre-execute {"event":"pre-execute","session_id":"s","cwd":"/p","tool":"read","arguments":{"path":"reme://a"}}`})
}

// TestCompaction: what is said after one is for the turn that goes on, and for
// no other.
func TestCompaction(t *testing.T) {
	t.Parallel()
	p := play(t, 1, answering, `[
		{"event": "turn/start", "data": {"turn": 1}},
		{"step": [["user", "one"]]},
		{"event": "compaction/start", "data": {"turn": 1, "compactionId": "a"}},
		{"event": "compaction/end", "data": {"turn": 1, "compactionId": "a", "error": "failed"}},
		{"step": []},
		{"keep": [1]},
		{"event": "compaction/start", "data": {"turn": 1, "compactionId": "b"}},
		{"event": "compaction/summary", "data": {"compactionId": "b", "summary": [{"type": "text", "text": "all of it"}]}},
		{"event": "compaction/end", "data": {"turn": 1, "compactionId": "b"}},
		{"step": []},
		{"step": []},
		{"keep": [1, 2]},
		{"event": "compaction/end", "data": {"turn": 1, "compactionId": "c"}},
		{"event": "turn/start", "data": {"turn": 2}},
		{"step": [["user", "two"]], "turn": 2},
		{"disposed": 1},
		{"dispose": 1}
	]`)
	p.Want(t, []string{
		`{"step":{"kind":"enter","messages":["user: one","plugin: about pre-step"],"extra":1},"slow":false}`,
		`{"step":{"kind":"enter","messages":[],"extra":1},"slow":false}`,
		`{"step":{"kind":"enter","messages":["plugin: about session-start"],"extra":1},"slow":false}`,
		`{"step":{"kind":"enter","messages":[],"extra":1},"slow":false}`,
		`{"step":{"kind":"enter","messages":["user: two","plugin: about pre-step"],"extra":1},"slow":false}`,
		`{"dispose":null,"slow":false}`,
	}, []string{
		`pre-step {"event":"pre-step","session_id":"s","cwd":"/p","turn":1,"message_id":"m0","prompt":[{"type":"text","text":"one"}]}`,
		`pre-compact {"event":"pre-compact","session_id":"s","cwd":"/p","turn":1}`,
		`pre-compact {"event":"pre-compact","session_id":"s","cwd":"/p","turn":1}`,
		`post-compact {"event":"post-compact","session_id":"s","cwd":"/p","summary":[{"type":"text","text":"all of it"}]}`,
		`session-start {"event":"session-start","session_id":"s","cwd":"/p","source":"compact","compaction_id":"b","turn":1,"kept":false}`,
		`session-start {"event":"session-start","session_id":"s","cwd":"/p","source":"compact","compaction_id":"c","turn":1,"kept":true}`,
		`pre-step {"event":"pre-step","session_id":"s","cwd":"/p","turn":2,"message_id":"m0","prompt":[{"type":"text","text":"two"}]}`,
		`session-end {"event":"session-end","session_id":"s","cwd":"/p"}`,
	})
}

// TestOddPrograms: whatever stands in the place of the program, DSH goes on with
// what it had, waits only for a program that hangs, and nothing is left running.
func TestOddPrograms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		memory string
		slow   bool
	}{
		"missing":           {script: ""},
		"silent":            {script: "exit 0"},
		"exit 2":            {script: `echo '{"context":"x"}'; exit 2`},
		"killed":            {script: `echo '{"context":"x"}'; kill -KILL $$`},
		"garbage":           {script: `printf '{"context":"x"\377'`},
		"no object":         {script: "echo 7"},
		"null":              {script: "echo null"},
		"no string":         {script: `echo '{"context":["x"],"deny":{}}'`},
		"two objects":       {script: `echo '{"context":"x"} {"context":"y"}'`},
		"endless":           {script: "yes"},
		"hangs":             {script: "sleep 600", slow: true},
		"holds the pipe":    {script: `echo '{"context":"x"}'; sleep 600 &`, slow: true},
		"in pieces":         {script: `printf '{"con'; sleep 0.02; printf 'text":"caf\303'; sleep 0.02; printf '\251"}'`, memory: `,"plugin: café"`},
		"with space around": {script: `printf '\n {"context":"x"}\r\n\n'`, memory: `,"plugin: x"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			speed := 1
			if c.slow {
				speed = 6
			}
			p := play(t, speed, c.script, `[{"step": [["user", "hello"]]}, {"tool": {"path": "reme://a"}}, {"dispose": 1}]`)
			var got []struct {
				Step *json.RawMessage
				Tool *json.RawMessage
				Slow bool
			}
			if err := json.Unmarshal([]byte("["+strings.Join(p.Lines, ",")+"]"), &got); err != nil || len(got) != 3 {
				t.Fatalf("%q, %v", p.Lines, err)
			}
			if step, want := string(*got[0].Step), `{"kind":"enter","messages":["user: hello"`+c.memory+`],"extra":1}`; step != want {
				t.Errorf("step: %s, want %s", step, want)
			}
			if tool := string(*got[1].Tool); tool != `{"kind":"allow"}` {
				t.Errorf("tool: %s", tool)
			}
			if c.slow != got[0].Slow {
				t.Errorf("slow: %v", p.Lines)
			}
			if p.Orphan {
				t.Error("a child is still there")
			}
		})
	}
}

// TestImpatience: DSH waits no longer than one limit, also if children queue up,
// and not at all if the turn is over. The prompt is stored all the same. When it
// ends, nothing stays behind.
func TestImpatience(t *testing.T) {
	t.Parallel()
	// Half a limit is left for the child of the aborted step to begin, and for that of the turn's end.
	p := play(t, 2, `case $payload in *slow*) sleep 600;; esac; echo '{"context":"x"}'`, `[
		{"start": "slow"},
		{"step": [["user", "one"]]},
		{"step": [["user", "two, slow"]], "abort": 750},
		{"step": [["user", "three"]], "reject": true},
		{"event": "assistant/message", "data": {"turn": 1, "message": {"content": [{"type": "text", "text": "slow"}]}}},
		{"event": "turn/end", "data": {"turn": 1}},
		{"dispose": 1},
		{"exit": 1}
	]`)
	if len(p.Lines) != 4 || strings.Contains(strings.Join(p.Lines, ""), "plugin: x") {
		t.Fatalf("came of it: %q", p.Lines)
	}
	if !strings.Contains(p.Lines[0], `"slow":true`) || !strings.Contains(p.Lines[1], `"slow":false`) || p.Lines[2] != `{"step":{"kind":"reject"},"slow":false}` {
		t.Errorf("came of it: %q", p.Lines)
	}
	var events []string
	for _, call := range p.Calls {
		event, payload, _ := strings.Cut(call, " ")
		if event == "pre-step" && strings.Contains(payload, "two, slow") {
			event = "pre-step two"
		}
		events = append(events, event)
	}
	if got := strings.Join(events, ", "); got != "session-start, pre-step, pre-step two, turn-end" {
		t.Errorf("was called: %s", got)
	}
	if p.Orphan {
		t.Error("a child is still there")
	}
}

// TestOddHost: events that are not what DSH sends now do not disturb DSH.
func TestOddHost(t *testing.T) {
	t.Parallel()
	p := play(t, 1, answering, `[
		{"odd": "agent/session-start", "args": [{}]},
		{"odd": "agent/pre-step", "args": [{}]},
		{"odd": "agent/pre-step", "args": [{"agent": {}, "signal": {}}]},
		{"odd": "session/event", "args": [{}, {"type": "turn/end"}]},
		{"odd": "session/event", "args": [{}, {"type": "turn/end", "data": {}}]},
		{"odd": "tools/pre-execute", "args": [{"agent": {}, "arguments": "reme://"}]},
		{"odd": "session/disposed", "args": [null]},
		{"dispose": 1}
	]`)
	p.Want(t, []string{`{"odd":"next","slow":false}`, `{"odd":"next","slow":false}`, `{"odd":"next","slow":false}`, `{"dispose":null,"slow":false}`}, nil)
}

func TestTools(t *testing.T) { hosttest.Tools(t, "reme_", "tools.json") }

// TestToolCalls: the model's tools are jobs of the program.
func TestToolCalls(t *testing.T) {
	t.Parallel()
	p := play(t, 1, `case $1 in
		search) echo "{\"answer\":\"found\",\"success\":true,\"metadata\":{}}";;
		read) echo "{\"answer\":\"path must not be empty\",\"success\":false,\"metadata\":{}}"; exit 1;;
		daily_list) echo "{\"answer\":[1],\"success\":true,\"metadata\":{}}";;
		*) echo oops; exit 3;;
	esac`, `[
		{"call": "reme_search", "args": {"query": "x"}},
		{"call": "reme_read"},
		{"call": "reme_daily_list", "args": {}},
		{"call": "reme_remember", "args": {"content": "x"}},
		{"dispose": 1}
	]`)
	p.Want(t, []string{
		`{"call":[{"type":"text","text":"found"}],"slow":false}`,
		`{"call":{"error":"path must not be empty"},"slow":false}`,
		`{"call":[{"type":"text","text":"[1]"}],"slow":false}`,
		`{"call":{"error":"the memory cannot be reached"},"slow":false}`,
		`{"dispose":null,"slow":false}`,
	}, []string{`search {"query":"x"}`, `read {}`, `daily_list {}`, `remember {"content":"x"}`})
}

// TestQueue: what waits behind children that hang does not hold DSH at its end.
func TestQueue(t *testing.T) {
	t.Parallel()
	p := play(t, 6, "sleep 600", `[{"event": "turn/end"}, {"event": "turn/end"}, {"event": "turn/end"}, {"dispose": 1}]`)
	if len(p.Calls) > 2 || p.Orphan {
		t.Errorf("was called: %q; a child is still there: %v", p.Calls, p.Orphan)
	}
}

func TestTheShim(t *testing.T) {
	t.Parallel()
	text := string(Files()[ShimName])
	// What it imports from the host would keep it from loading.
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "import") && !strings.Contains(line, "from 'node:") {
			t.Error(line)
		}
	}
}

func TestTheBundle(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("package.json")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Name    string            `json:"name"`
		Version string            `json:"version"`
		Exports map[string]string `json:"exports"`
		Files   []string          `json:"files"`
		DSH     struct {
			Bundle struct {
				Patch string `json:"patch"`
			} `json:"bundle"`
		} `json:"dsh"`
	}
	if err := json.Unmarshal(b, &manifest); err != nil {
		t.Fatal(err)
	}
	patch, err := os.ReadFile(manifest.DSH.Bundle.Patch)
	if err != nil || !strings.Contains(string(patch), "name: "+manifest.Name+"\n") {
		t.Errorf("%v: %s", err, patch)
	}
	if !strings.Contains(string(Files()[ShimName]), ", version "+manifest.Version+".") {
		t.Errorf("the plugin does not say that it is %s", manifest.Version)
	}
	for _, file := range append(manifest.Files, manifest.Exports["."]) {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
}
