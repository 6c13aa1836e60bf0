package openclaw

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
	"github.com/agentscope-ai/reme-hook/plugins/nodetest"
)

// play gives the plugin events. Programs that hang are waited for at a higher
// speed.
func play(t *testing.T, speed int, config, script, steps string) nodetest.Played {
	t.Helper()
	return nodetest.Play(t, script, func(dir, program string) []string {
		literal, err := json.Marshal(program)
		if err != nil {
			t.Fatal(err)
		}
		plugin := filepath.Join(dir, "it's \"a\" plugin")
		for name, text := range Files("1.2.3", string(literal)) {
			hosttest.Write(t, filepath.Join(plugin, name), string(text))
		}
		return []string{filepath.Join(plugin, "index.js"), config, fmt.Sprint(speed), steps}
	})
}

// answering is a script that answers with the event.
const answering = `printf '{"prependContext":"about %s"}\n' "$1"`

// nothing is what came of an event.
const nothing = `{"got":null,"slow":false}`

func TestTurn(t *testing.T) {
	t.Parallel()
	p := play(t, 1, `{"scope":"mine"}`, answering, `[
		{"on": "before_prompt_build", "event": {"prompt": "hé\u2028llo", "messages": [{"role": "user", "content": "old"}, {"role": "assistant"}]}, "ctx": {"inputProvenance": {"kind": "external_user"}}},
		{"on": "agent_end", "event": {"success": true, "runId": "r", "messages": [
			{"role": "user", "content": "old"},
			{"role": "assistant", "content": [{"type": "text", "text": "old"}]},
			{"role": "user", "content": [{"type": "image", "data": "AAAA"}, {"type": "text", "text": "héllo"}], "timestamp": 1},
			{"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, {"type": "toolCall", "id": "c"}], "stopReason": "toolUse"},
			{"role": "toolResult", "content": [{"type": "text", "text": "of a tool"}]},
			{"role": "user", "content": "x", "provenance": {"kind": "inter_session"}},
			{"role": "user", "content": "also"},
			{"role": "assistant", "content": [{"type": "text", "text": "Done."}], "stopReason": "stop", "usage": {}}]}},
		{"on": "agent_end", "event": {"success": true, "messages": [{"role": "user", "content": "shortened"}, {"role": "assistant", "content": "x"}, {"role": "user", "content": "more"}]}},
		{"on": "agent_end", "event": {"success": true, "messages": []}},
		{"on": "before_compaction", "event": {"messageCount": 3}},
		{"on": "after_compaction", "event": {"messageCount": 1}},
		{"on": "before_reset", "event": {"reason": "new", "messages": [1]}, "ctx": {"runId": null}},
		{"on": "session_end", "event": {"reason": "shutdown"}},
		{"on": "gateway_stop"}
	]`)
	const ctx = `"agentId":"main","sessionKey":"agent:main:main","sessionId":"s","workspaceDir":"/p","trigger":"user"`
	p.Want(t, []string{
		`{"got":{"prependContext":"about before_prompt_build"},"slow":false}`,
		`{"got":{"code":0,"out":""},"slow":false}`, `{"got":{"code":0,"out":""},"slow":false}`, `{"got":{"code":0,"out":""},"slow":false}`, `{"got":{"code":0,"out":""},"slow":false}`,
		`{"got":{"code":0,"out":""},"slow":false}`, `{"got":{"code":0,"out":""},"slow":false}`, `{"got":{"code":0,"out":""},"slow":false}`,
		`{"got":[],"slow":false}`,
	}, []string{
		`before_prompt_build {"hook":"before_prompt_build","event":{"prompt":"hé\u2028llo"},"ctx":{"runId":"r",` + ctx + `,"inputProvenance":{"kind":"external_user"},"scope":"mine"}}`,
		`agent_end {"hook":"agent_end","event":{"messages":[{"role":"user","content":[{"type":"text","text":"héllo"}]},` +
			`{"role":"assistant","content":[{"type":"text","text":"Let me see."}],"stopReason":"toolUse"},` +
			`{"role":"user","content":"x","provenance":{"kind":"inter_session"}},{"role":"user","content":"also"},` +
			`{"role":"assistant","content":[{"type":"text","text":"Done."}],"stopReason":"stop"}],"success":true},"ctx":{"runId":"r",` + ctx + `,"inputProvenance":{"kind":"external_user"},"scope":"mine"}}`,
		`agent_end {"hook":"agent_end","event":{"messages":[{"role":"user","content":"more"}],"success":true},"ctx":{"runId":"r",` + ctx + `,"scope":"mine"}}`,
		`agent_end {"hook":"agent_end","event":{"messages":[],"success":true},"ctx":{"runId":"r",` + ctx + `,"scope":"mine"}}`,
		`before_compaction {"hook":"before_compaction","event":{},"ctx":{"runId":"r",` + ctx + `,"scope":"mine"}}`,
		`after_compaction {"hook":"after_compaction","event":{},"ctx":{"runId":"r",` + ctx + `,"scope":"mine"}}`,
		`before_reset {"hook":"before_reset","event":{"reason":"new"},"ctx":{"runId":null,` + ctx + `,"scope":"mine"}}`,
		`session_end {"hook":"session_end","event":{"reason":"shutdown"},"ctx":{"runId":"r",` + ctx + `,"scope":"mine"}}`,
	})
}

// TestOddPrograms: whatever stands in the place of the program, OpenClaw goes on
// with what it had, waits only for a program that hangs, and nothing is left
// running.
func TestOddPrograms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		memory string
		slow   bool
	}{
		"missing":           {script: ""},
		"silent":            {script: "exit 0"},
		"exit 2":            {script: `echo '{"prependContext":"x"}'; exit 2`},
		"killed":            {script: `echo '{"prependContext":"x"}'; kill -KILL $$`},
		"garbage":           {script: `printf '{"prependContext":"x"\377'`},
		"no object":         {script: "echo 7"},
		"null":              {script: "echo null"},
		"no string":         {script: `echo '{"prependContext":["x"],"systemPrompt":"y"}'`},
		"two objects":       {script: `echo '{"prependContext":"x"} {"prependContext":"y"}'`},
		"more than it may":  {script: `echo '{"prependContext":"x","systemPrompt":"y"}'`, memory: "x"},
		"endless":           {script: "yes"},
		"hangs":             {script: "sleep 600", slow: true},
		"holds the pipe":    {script: `echo '{"prependContext":"x"}'; sleep 600 &`, slow: true},
		"in pieces":         {script: `printf '{"prepend'; sleep 0.02; printf 'Context":"caf\303'; sleep 0.02; printf '\251"}'`, memory: "café"},
		"with space around": {script: `printf '\n {"prependContext":"x"}\r\n\n'`, memory: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			speed := 1
			if c.slow {
				speed = 6
			}
			p := play(t, speed, "{}", c.script, `[{"on": "before_prompt_build", "event": {"prompt": "hello"}}]`)
			want := fmt.Sprintf(`{"got":null,"slow":%v}`, c.slow)
			if c.memory != "" {
				want = `{"got":{"prependContext":"` + c.memory + `"},"slow":false}`
			}
			if len(p.Lines) != 1 || p.Lines[0] != want {
				t.Errorf("%q, want %q", p.Lines, want)
			}
			if p.Orphan {
				t.Error("a child is still there")
			}
		})
	}
}

// TestEnd: OpenClaw waits a second for a child that has something to store, and
// the child outlives OpenClaw.
func TestEnd(t *testing.T) {
	t.Parallel()
	p := play(t, 10, "{}", `sleep 1; echo "$1 is done" >>"${0%/*}/calls"`, `[{"on": "agent_end", "event": {"messages": []}}]`)
	if len(p.Lines) != 1 || p.Lines[0] != `{"got":null,"slow":true}` {
		t.Errorf("came of it: %q", p.Lines)
	}
	if len(p.Calls) != 2 || p.Calls[1] != "agent_end is done" {
		t.Errorf("was called: %q", p.Calls)
	}
}

// TestOrder: the children of one session run one after the other, those of two at
// the same time.
func TestOrder(t *testing.T) {
	t.Parallel()
	const script = `case $payload in *first*) until grep -q other "${0%/*}/calls"; do :; done; echo ready >>"${0%/*}/calls";; esac; ` + answering
	p := play(t, 1, "{}", script, `[{"together": [
		{"on": "before_prompt_build", "event": {"prompt": "first"}, "ctx": {"sessionKey": "a"}},
		{"on": "before_prompt_build", "event": {"prompt": "second"}, "ctx": {"sessionKey": "a"}},
		{"on": "before_prompt_build", "event": {"prompt": "other"}, "ctx": {"sessionKey": "b"}}
	]}]`)
	var order []string
	for _, call := range p.Calls {
		for _, word := range []string{"first", "second", "other", "ready"} {
			if strings.Contains(call, word) {
				order = append(order, word)
			}
		}
	}
	if i, j := slices.Index(order, "ready"), slices.Index(order, "second"); len(order) != 4 || i < 0 || j < i {
		t.Errorf("was called: %q", order)
	}
	if len(p.Lines) != 1 || strings.Count(p.Lines[0], "about before_prompt_build") != 3 {
		t.Errorf("came of it: %q", p.Lines)
	}
}

// TestOddHost: events that are not what OpenClaw sends now do not disturb it.
func TestOddHost(t *testing.T) {
	t.Parallel()
	p := play(t, 1, "null", "exit 1", `[
		{"on": "before_prompt_build", "ctx": null},
		{"on": "before_prompt_build", "event": null},
		{"on": "agent_end"},
		{"on": "agent_end", "event": {"messages": [null, 7]}},
		{"on": "agent_end", "event": {"messages": [{"role": "user", "content": null}]}, "ctx": null},
		{"on": "session_end", "ctx": null},
		{"on": "gateway_stop", "ctx": null}
	]`)
	p.Want(t, append(slices.Repeat([]string{nothing}, 6), `{"got":[],"slow":false}`), nil)
}

func TestToolCalls(t *testing.T) {
	t.Parallel()
	p := play(t, 1, "{}", `case $1 in
		search) echo "{\"answer\":\"found\",\"success\":true,\"metadata\":{\"n\":1}}";;
		read) echo "{\"answer\":\"path must not be empty\",\"success\":false,\"metadata\":{}}"; exit 1;;
		daily_list) echo "{\"answer\":[1],\"success\":true,\"metadata\":{}}";;
		*) echo oops; exit 3;;
	esac`, `[
		{"tool": "reme_search", "args": {"query": "x"}},
		{"tool": "reme_read"},
		{"tool": "reme_daily_list", "args": {}},
		{"tool": "reme_remember", "args": {"content": "x"}}
	]`)
	p.Want(t, []string{
		`{"got":{"content":[{"type":"text","text":"found"}],"details":{"n":1}},"slow":false}`,
		`{"got":{"error":"path must not be empty"},"slow":false}`,
		`{"got":{"content":[{"type":"text","text":"[1]"}],"details":{}},"slow":false}`,
		`{"got":{"error":"the memory cannot be reached"},"slow":false}`,
	}, []string{`search {"query":"x"}`, `read {}`, `daily_list {}`, `remember {"content":"x"}`})
}

// TestSettings: what is set in OpenClaw's configuration goes to the program, all
// else is as it was.
func TestSettings(t *testing.T) {
	t.Setenv("REME_RECALL_LIMIT", "3")
	t.Setenv("OPENCLAW_PROFILE", "work")
	const script = `echo "$REME_SERVICE $REME_RECALL $REME_CAPTURE $REME_RECALL_LIMIT $REME_RECALL_MAX_CHARS" >>"${0%/*}/calls"`
	p := play(t, 1, `{"endpoint":"http://127.0.0.1:1","autoRecall":false,"autoCapture":true,"recallMaxChars":500}`, script, `[{"on": "before_prompt_build", "event": {}}]`)
	if len(p.Calls) != 2 || p.Calls[1] != "http://127.0.0.1:1 false true 3 500" || !strings.Contains(p.Calls[0], `"profile":"work"`) {
		t.Errorf("%q", p.Calls)
	}
}

func TestTools(t *testing.T) { hosttest.Tools(t, "reme_", "tools.json") }

func TestFiles(t *testing.T) {
	t.Parallel()
	files := Files("1.2.3", `"/x y/reme-hook"`)
	if Program(files["index.js"]) != `"/x y/reme-hook"` || Program(files["package.json"]) != "" {
		t.Errorf("%q", files)
	}
	for _, name := range []string{"index.js", "openclaw.plugin.json"} {
		if text := string(files[name]); strings.Count(text, "1.2.3") != 1 || strings.Contains(text, "0.0.0") {
			t.Errorf("%s has not the version", name)
		}
	}
	// What it imports from the host would keep it from loading.
	for line := range strings.Lines(shim) {
		if strings.HasPrefix(line, "import") && !strings.Contains(line, "from 'node:") {
			t.Error(line)
		}
	}
}

// TestManifests: the two manifests speak of what is there.
func TestManifests(t *testing.T) {
	t.Parallel()
	var plugin struct {
		Contracts struct{ Tools []string }
		Kind      any
	}
	var pack struct {
		Files    []string
		OpenClaw struct{ Extensions []string }
	}
	var declared []struct{ Name string }
	for text, into := range map[string]any{manifest: &plugin, string(pkg): &pack, string(tools): &declared} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, tool := range declared {
		names = append(names, tool.Name)
	}
	if !slices.Equal(plugin.Contracts.Tools, names) || len(names) == 0 {
		t.Errorf("the manifest has the tools %q, declared are %q", plugin.Contracts.Tools, names)
	}
	if plugin.Kind != nil {
		t.Error("a kind would take the memory's slot")
	}
	for _, file := range append(pack.Files, pack.OpenClaw.Extensions...) {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
}
