package hermes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
)

var read = hosttest.Parse

// Every payload that the real host led to is one of an event, and has the session.
func TestRealPayloads(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "payloads", "hermes", "*.json"))
	if err != nil || len(files) < 9 {
		t.Fatalf("%v, %v", files, err)
	}
	wants := map[string]func(hooks.Event) bool{
		"prefetch": func(e hooks.Event) bool { return e.Prompt == "alpha one is a fact" && len(e.Turn) == 32 },
		"sync_turn": func(e hooks.Event) bool {
			return slices.Equal(e.Answered, []string{"alpha one is a fact"}) && e.Reply == "A1" && len(e.Turn) == 32
		},
		"on_pre_compress":                        func(e hooks.Event) bool { return e.ContextLost && e.TurnLost },
		"on_session_end":                         func(e hooks.Event) bool { return !e.ContextLost },
		"on_session_switch.new":                  func(e hooks.Event) bool { return !e.ContextLost },
		"on_session_switch.rewound":              func(e hooks.Event) bool { return e.ContextLost && e.TurnLost },
		"on_session_switch.compression_in_place": func(e hooks.Event) bool { return !e.ContextLost },
		"on_session_switch.compression_rotate":   func(e hooks.Event) bool { return e.Session.ID == "20261130_014207_31f989" },
		"on_memory_write":                        func(e hooks.Event) bool { return e.Note == "The project uses Go 1.26." },
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		event, _, _ := strings.Cut(name, ".")
		kind, ok := Adapter().Events[strings.ReplaceAll(event, "_", "-")]
		if !ok || wants[name] == nil {
			t.Errorf("%s: no such event", name)
			continue
		}
		e := decode(kind, read(t, string(text)))
		if e.Name != event || e.Session.Scope != "default" || !strings.HasPrefix(e.Session.ID, "2026") || e.Cwd != "/home/dev/project" || e.Subagent || !wants[name](e) {
			t.Errorf("%s reads as %+v", name, e)
		}
	}
}

func TestDecode(t *testing.T) {
	const s = `"session_id":"s","cwd":"/p"`
	session := client.Session{Scope: "default", ID: "s"}
	for name, c := range map[string]struct {
		kind    hooks.Kind
		payload string
		want    func(hooks.Event) bool
	}{
		"a profile":         {hooks.SessionEnd, `{` + s + `,"agent_identity":"coder","hermes_home":"/h"}`, func(e hooks.Event) bool { return e.Session.Scope == "coder" }},
		"a home of its own": {hooks.SessionEnd, `{` + s + `,"agent_identity":"custom","hermes_home":"/h"}`, func(e hooks.Event) bool { return e.Session.Scope == "/h" }},
		"no profile":        {hooks.SessionEnd, `{` + s + `,"agent_identity":null,"hermes_home":"/h"}`, func(e hooks.Event) bool { return e.Session.Scope == "/h" }},
		"nothing known":     {hooks.SessionEnd, `{` + s + `}`, func(e hooks.Event) bool { return e.Session == session && !e.Subagent }},
		"cron":              {hooks.Prompt, `{` + s + `,"platform":"cron","query":"x"}`, func(e hooks.Event) bool { return e.Subagent }},
		"subagent":          {hooks.Prompt, `{` + s + `,"agent_context":"subagent","query":"x"}`, func(e hooks.Event) bool { return e.Subagent }},
		"a review":          {hooks.MemoryWrite, `{` + s + `,"action":"add","content":"x","metadata":{"execution_context":"background_review"}}`, func(e hooks.Event) bool { return e.Subagent }},
		"a chat":            {hooks.Prompt, `{` + s + `,"platform":"telegram","agent_context":"primary","query":"x"}`, func(e hooks.Event) bool { return !e.Subagent && e.Prompt == "x" }},
		"replaced":          {hooks.MemoryWrite, `{` + s + `,"action":"replace","content":"x"}`, func(e hooks.Event) bool { return e.Note == "x" }},
		"removed":           {hooks.MemoryWrite, `{` + s + `,"action":"remove","content":"x"}`, func(e hooks.Event) bool { return e.Note == "" }},
		"odd types":         {hooks.Prompt, `{"session_id":7,"cwd":[],"query":{"a":1},"turn":3,"metadata":4}`, func(e hooks.Event) bool { return e.Session.ID == "7" && e.Turn == "3" && e.Prompt == "" }},
		"rewound, a string": {hooks.SessionEnd, `{` + s + `,"rewound":"true"}`, func(e hooks.Event) bool { return !e.ContextLost }},
	} {
		if e := decode(c.kind, read(t, c.payload)); !c.want(e) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestSaid(t *testing.T) {
	for prompt, want := range map[string]string{
		" hello ": "hello",
		"[ASYNC DELEGATION COMPLETE — d1]\nThe result":                                        "",
		"[ASYNC DELEGATION BATCH COMPLETE — d1]":                                              "",
		"[IMPORTANT: Background process p1 exited]":                                           "",
		"[System note: A new message has arrived.]\n\n[System note: Another.]\n\nhello [you]": "hello [you]",
		"[System note: never ends":                                                            "",
		"about [System note: x] in a text":                                                    "about [System note: x] in a text",
		"[ASYNC] is a word":                                                                   "[ASYNC] is a word",
	} {
		if got := said(prompt); got != want {
			t.Errorf("of %q: %q, want %q", prompt, got, want)
		}
	}
}

func TestEncode(t *testing.T) {
	out := encode(hooks.Event{}, hooks.Outcome{Context: "<a> & \"b\"\n"})
	if want := `{"context":"<a> & \"b\"\n"}` + "\n"; string(out) != want {
		t.Errorf("%q, want %q", out, want)
	}
	if out := encode(hooks.Event{}, hooks.Outcome{Deny: "no"}); string(out) != `{"decision":"block","reason":"no"}`+"\n" {
		t.Errorf("%q", out)
	}
	if out := encode(hooks.Event{}, hooks.Outcome{}); out != nil {
		t.Errorf("%q for nothing", out)
	}
}

// TestFlatSession is not parallel: see [hosttest.Flat].
func TestFlatSession(t *testing.T) {
	hosttest.Flat(t, "0f8fad5b-d9cb-469f-a165-70867728950e", Adapter, nil)
}

func FuzzDecode(f *testing.F) { hosttest.FuzzDecode(f, Adapter()) }
