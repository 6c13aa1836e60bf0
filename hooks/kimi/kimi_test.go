package kimi

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
)

func payload(t *testing.T, text []byte) hooks.Payload {
	t.Helper()
	return hosttest.Parse(t, string(text))
}

var payloads = filepath.Join("..", "..", "testdata", "payloads", "kimi")

func read(t *testing.T, elem ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{payloads}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind hooks.Kind
		want string
	}{
		"session-start":        {hooks.SessionStart, "SessionStart prompt= lost=false"},
		"session-start.resume": {hooks.SessionStart, "SessionStart prompt= lost=false"},
		"user-prompt-submit":   {hooks.Prompt, "UserPromptSubmit prompt=My favourite drink is tea, remember lost=false"},
		"stop":                 {hooks.TurnEnd, "Stop prompt= lost=false"},
		"stop-failure":         {hooks.Interrupt, "StopFailure prompt= lost=false"},
		"interrupt":            {hooks.Interrupt, "Interrupt prompt= lost=false"},
		"pre-compact":          {hooks.PreCompact, "PreCompact prompt= lost=true"},
		"pre-compact.auto":     {hooks.PreCompact, "PreCompact prompt= lost=true"},
		"session-end":          {hooks.SessionEnd, "SessionEnd prompt= lost=false"},
		"pre-tool-use":         {hooks.PreToolUse, "PreToolUse prompt= lost=false"},
	} {
		e := decode(c.kind, payload(t, read(t, name+".json")))
		got := fmt.Sprintf("%s prompt=%s lost=%v", e.Name, e.Prompt, e.ContextLost && e.TurnLost)
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
		if e.Session.ID == "" || e.Session.Scope != "default" || e.Cwd != "/home/dev/project" || e.Reply != "" || e.Subagent {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestPrompts(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"prompt":"words"}`: "words",
		`{"prompt":""}`:      "",
		`{"prompt":[]}`:      "",
		`{"prompt":[{"type":"text","text":"look"},{"type":"image_url","imageUrl":{"url":"data:"}},{"type":"text"},{"type":"text","text":"there"}]}`: "look\n\nthere",
		`{"prompt":[{"type":"image_url"}]}`: "",
		`{"prompt":7}`:                      "7",
		`{}`:                                "",
	} {
		if got := decode(hooks.Prompt, payload(t, []byte(in))).Prompt; got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		`{"tool_name":"Read","tool_input":{"path":"reme://daily/x.md"}}`:                   {"reme://daily/x.md"},
		`{"tool_name":"Grep","tool_input":{"pattern":"x","path":"reme://daily"}}`:          {"reme://daily", "x"},
		`{"tool_name":"Bash","tool_input":{"command":"reme-hook show reme://daily/x.md"}}`: nil,
		`{}`: nil,
	} {
		if got := decode(hooks.PreToolUse, payload(t, []byte(in))).Paths; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	for kind := hooks.SessionStart; kind <= hooks.PreToolUse; kind++ {
		e := hooks.Event{Kind: kind, Name: "PreToolUse"}
		if out := encode(e, hooks.Outcome{}); len(out) > 0 {
			t.Errorf("%d: %q for nothing", kind, out)
		}
		want := map[hooks.Kind]string{
			hooks.Prompt:     "{what}\n",
			hooks.PreToolUse: `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"a > b"}}` + "\n",
		}
		o := hooks.Outcome{Context: "{what}"}
		if kind == hooks.PreToolUse {
			o = hooks.Outcome{Deny: "a > b"}
		}
		if out := encode(e, o); string(out) != want[kind] {
			t.Errorf("%d: %q, want %q", kind, out, want[kind])
		}
	}
}

func FuzzDecode(f *testing.F) { hosttest.FuzzDecode(f, Adapter()) }
