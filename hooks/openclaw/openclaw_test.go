package openclaw

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
)

// TestPayloads reads what the plugin sends of a real session.
func TestPayloads(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "payloads", string(Host), "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	gw := client.Session{Scope: "main", ID: "gw-1"}
	wants := map[string]func(hooks.Event) bool{
		"before_prompt_build": func(e hooks.Event) bool {
			return e.Session == gw && e.Prompt == "What is my favourite colour?" && e.Turn == "b96eb996-a307-458b-9a64-228d8af58e34"
		},
		"before_prompt_build.local": func(e hooks.Event) bool { return e.Prompt == "My favourite colour is teal." },
		"agent_end": func(e hooks.Event) bool {
			return e.Session == gw && slices.Equal(e.Answered, []string{"What is my favourite colour?"}) && e.Reply == "It is teal." && e.Turn == "b96eb996-a307-458b-9a64-228d8af58e34"
		},
		"agent_end.with-tool":   func(e hooks.Event) bool { return e.Reply == "Noted: teal." },
		"agent_end.model-error": func(e hooks.Event) bool { return slices.Equal(e.Answered, []string{"hello T4err"}) && e.Reply == "" },
		"agent_end.aborted":     func(e hooks.Event) bool { return slices.Equal(e.Answered, []string{"hello T5int2"}) && e.Reply == "" },
		"before_compaction":     func(e hooks.Event) bool { return e.Session.ID == "gw-3" && !e.ContextLost },
		"after_compaction":      func(e hooks.Event) bool { return e.Session.ID == "gw-3" && e.Summary == "" },
		"before_reset":          func(e hooks.Event) bool { return e.Session == gw },
		"session_end":           func(e hooks.Event) bool { return e.Session.ID == "gw-3" },
		"session_end.new":       func(e hooks.Event) bool { return e.Session == gw },
	}
	if len(files) != len(wants) {
		t.Errorf("%d payloads, want %d", len(files), len(wants))
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		event, _, _ := strings.Cut(name, ".")
		kind, ok := Adapter().Events[strings.ReplaceAll(event, "_", "-")]
		if !ok || wants[name] == nil {
			t.Errorf("%s: no such event", name)
			continue
		}
		e := decode(kind, hosttest.Payload(t, Host, name))
		if e.Name != event || e.Session.Scope != "main" || e.Cwd != "/home/dev/project" && event != "session_end" || e.Subagent || !wants[name](e) {
			t.Errorf("%s reads as %+v", name, e)
		}
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	const prompt = `"event":{"prompt":"x"}`
	for name, c := range map[string]struct {
		kind    hooks.Kind
		payload string
		want    func(hooks.Event) bool
	}{
		"an agent":            {hooks.Prompt, `{"ctx":{"sessionId":"s","agentId":"work"}}`, func(e hooks.Event) bool { return e.Session.Scope == "work" }},
		"a profile":           {hooks.Prompt, `{"ctx":{"sessionId":"s","agentId":"a","profile":"dev"}}`, func(e hooks.Event) bool { return e.Session.Scope == "dev/a" }},
		"the default profile": {hooks.Prompt, `{"ctx":{"sessionId":"s","profile":"default"}}`, func(e hooks.Event) bool { return e.Session.Scope == "main" }},
		"a scope of the user": {hooks.Prompt, `{"ctx":{"sessionId":"s","agentId":"a","profile":"dev","scope":"mine"}}`, func(e hooks.Event) bool { return e.Session.Scope == "mine" }},
		"an id in the event":  {hooks.SessionEnd, `{"event":{"sessionId":"s"}}`, func(e hooks.Event) bool { return e.Session.ID == "s" }},
		"a channel":           {hooks.Prompt, `{"event":{"prompt":"[Telegram Ann] x","currentUserMessage":"x"}}`, func(e hooks.Event) bool { return e.Prompt == "x" }},
		"only a picture":      {hooks.Prompt, `{"event":{"prompt":"what a channel adds","currentUserMessage":""}}`, func(e hooks.Event) bool { return e.Prompt == "" }},
		"heartbeat":           {hooks.Prompt, `{` + prompt + `,"ctx":{"trigger":"heartbeat"}}`, func(e hooks.Event) bool { return e.Subagent }},
		"cron":                {hooks.TurnEnd, `{"ctx":{"trigger":"cron"}}`, func(e hooks.Event) bool { return e.Subagent }},
		"another session":     {hooks.Prompt, `{` + prompt + `,"ctx":{"trigger":"user","inputProvenance":{"kind":"inter_session"}}}`, func(e hooks.Event) bool { return e.Subagent }},
		"the system":          {hooks.TurnEnd, `{"ctx":{"inputProvenance":{"kind":"internal_system"}}}`, func(e hooks.Event) bool { return e.Subagent }},
		"a user":              {hooks.Prompt, `{` + prompt + `,"ctx":{"trigger":"user","inputProvenance":{"kind":"external_user"}}}`, func(e hooks.Event) bool { return !e.Subagent && e.Prompt == "x" }},
		"nobody knows":        {hooks.Prompt, `{` + prompt + `}`, func(e hooks.Event) bool { return !e.Subagent && e.Prompt == "x" }},
		"overflow":            {hooks.PreCompact, `{"ctx":{"trigger":"overflow"}}`, func(e hooks.Event) bool { return !e.Subagent }},
		"of a subagent":       {hooks.PreCompact, `{"ctx":{"sessionKey":"agent:main:subagent:1"}}`, func(e hooks.Event) bool { return e.Subagent }},
		"raw, a failed turn":  {hooks.TurnEnd, `{"event":{"success":false,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}}`, func(e hooks.Event) bool { return slices.Equal(e.Answered, []string{"a"}) && e.Reply == "" }},
		"failed after a tool": {hooks.TurnEnd, `{"event":{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","stopReason":"toolUse"},{"role":"assistant","content":[],"stopReason":"error"}]}}`, func(e hooks.Event) bool { return e.Reply == "" }},
		"failed, then not":    {hooks.TurnEnd, `{"event":{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[],"stopReason":"error"},{"role":"assistant","content":"b","stopReason":"length"}]}}`, func(e hooks.Event) bool { return e.Reply == "b" }},
		"steered": {hooks.TurnEnd, `{"event":{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","stopReason":"toolUse"},{"role":"user","content":"c"},{"role":"user","content":"x","provenance":{"kind":"inter_session"}},{"role":"user","content":[{"type":"text","text":"d"}]},{"role":"assistant","content":"e","stopReason":"stop"}]}}`, func(e hooks.Event) bool {
			return slices.Equal(e.Answered, []string{"a", "c", "d"}) && e.Reply == "e" && !e.Subagent
		}},
		"another attempt":      {hooks.TurnEnd, `{"event":{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","stopReason":"error"},{"role":"user","content":"a"},{"role":"assistant","content":"","stopReason":"stop"}]}}`, func(e hooks.Event) bool { return slices.Equal(e.Answered, []string{"a"}) && e.Reply == "" }},
		"only pictures":        {hooks.TurnEnd, `{"event":{"messages":[{"role":"user","content":[]},{"role":"assistant","content":"b"}]}}`, func(e hooks.Event) bool { return len(e.Answered) == 0 && e.Reply == "b" && !e.Subagent }},
		"a spawned session":    {hooks.TurnEnd, `{"event":{"messages":[{"role":"user","content":"[Subagent Context] You are"},{"role":"assistant","content":"b"}]},"ctx":{"sessionKey":"agent:main:dashboard:1"}}`, func(e hooks.Event) bool { return e.Subagent }},
		"a history of replies": {hooks.TurnEnd, `{"event":{"messages":[{"role":"assistant","content":"b"}]}}`, func(e hooks.Event) bool { return len(e.Answered) == 0 && e.Reply == "b" }},
		"odd types":            {hooks.TurnEnd, `{"hook":1,"event":[],"ctx":"x"}`, func(e hooks.Event) bool { return e.Session.ID == "" && e.Reply == "" }},
		"odd messages":         {hooks.TurnEnd, `{"event":{"messages":{"role":"user"}}}`, func(e hooks.Event) bool { return len(e.Answered) == 0 }},
		"a summary":            {hooks.PostCompact, `{"event":{"summary":"all of it"}}`, func(e hooks.Event) bool { return e.Summary == "all of it" }},
	} {
		if e := decode(c.kind, hosttest.Parse(t, c.payload)); !c.want(e) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestMachineSessions(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"":                               false,
		"agent:main:main":                false,
		"agent:main:explicit:gw-1":       false,
		"agent:main:explicit:cron":       false,
		"agent:main:explicit:heartbeat":  false,
		"agent:main:telegram:direct:7":   false,
		"agent:cron:main":                false,
		"agent:main:acp:1":               false,
		"agent:main:subagent:1":          true,
		"agent:main:cron:daily":          true,
		"agent:main:cron:daily:run:1":    true,
		"agent:main:hook:1":              true,
		"agent:main:heartbeat":           true,
		"agent:main:main:heartbeat":      true,
		"subagent:1":                     true,
		"agent:main:telegram:subagent:7": false,
	} {
		if got := isMachineSession(key); got != want {
			t.Errorf("%q: %v", key, got)
		}
	}
}

func TestSaid(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string]string{
		" hello ":                      "hello",
		"[cron:1 daily] Read the news": "",
		internalStart + "\nsubagents: none\n" + internalEnd + "\n\nhello":      "hello",
		internalStart + " never ends":                                          "",
		"about " + internalStart + " in a text":                                "about " + internalStart + " in a text",
		"[Subagent Context] You are":                                           "",
		"[Inter-session message] sourceSession=x\ny":                           "",
		skillsStart + " Read:\n- weather" + skillsEnd + "\n/weather in Bern":   "/weather in Bern",
		skillsStart + " I said.":                                               skillsStart + " I said.",
		queued + "\n\n---\nQueued #1 (from cli)\nOne.\n\n---\nQueued #2\nTwo.": "One.\n\nTwo.",
		queued + " is a text":                                                  queued + " is a text",
	} {
		if got := said(prompt); got != want {
			t.Errorf("of %q: %q, want %q", prompt, got, want)
		}
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	out := encode(hooks.Event{}, hooks.Outcome{Context: "<a> & \"b\"\n"})
	if want := `{"prependContext":"<a> & \"b\"\n"}` + "\n"; string(out) != want {
		t.Errorf("%q, want %q", out, want)
	}
	if out := encode(hooks.Event{}, hooks.Outcome{Deny: "no"}); out != nil {
		t.Errorf("%q for what OpenClaw is not told", out)
	}
}

// TestFlatSession is not parallel: see [hosttest.Flat].
func TestFlatSession(t *testing.T) {
	hosttest.Flat(t, "0f8fad5b-d9cb-469f-a165-70867728950e", Adapter, nil)
}

func FuzzDecode(f *testing.F) { hosttest.FuzzDecode(f, Adapter()) }
