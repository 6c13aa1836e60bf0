package codex

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
)

func payload(t *testing.T, name string) hooks.Payload {
	t.Helper()
	return hosttest.Payload(t, Host, name)
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind hooks.Kind
		want string
	}{
		"session-start":               {hooks.SessionStart, "SessionStart turn= prompt= reply= sub=false lost=false turnlost=false"},
		"session-start.resume":        {hooks.SessionStart, "SessionStart turn= prompt= reply= sub=false lost=false turnlost=false"},
		"session-start.clear":         {hooks.SessionStart, "SessionStart turn= prompt= reply= sub=false lost=true turnlost=true"},
		"session-start.compact":       {hooks.SessionStart, "SessionStart turn= prompt= reply= sub=false lost=true turnlost=true"},
		"user-prompt-submit":          {hooks.Prompt, "UserPromptSubmit turn=01a22900-eb80-7d41-abc1-89c7e3ad9c29 prompt=Remember that my cat is called Minka. reply= sub=false lost=false turnlost=false"},
		"user-prompt-submit.subagent": {hooks.Prompt, "UserPromptSubmit turn=01a228ff-a416-7863-9a4a-9dd24dbdb2bd prompt=SUBTASK: say hello. reply= sub=true lost=false turnlost=false"},
		"stop":                        {hooks.TurnEnd, "Stop turn=01a22900-eb80-7d41-abc1-89c7e3ad9c29 prompt= reply=Noted: your cat is called Minka. sub=false lost=false turnlost=false"},
		"stop.ephemeral":              {hooks.TurnEnd, "Stop turn=01a22900-782c-7601-afaa-df568e39801c prompt= reply=Yes. sub=false lost=false turnlost=false"},
		"interrupt":                   {hooks.Interrupt, "Interrupt turn=01a228ff-d54d-7543-a656-a64d7e6feb09 prompt= reply= sub=false lost=false turnlost=false"},
	} {
		e := decode(c.kind, payload(t, name))
		got := fmt.Sprintf("%s turn=%s prompt=%s reply=%s sub=%v lost=%v turnlost=%v", e.Name, e.Turn, e.Prompt, e.Reply, e.Subagent, e.ContextLost, e.TurnLost)
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
		if e.Session.ID == "" || e.Session.Scope != "default" || e.Cwd != "/home/dev/project" {
			t.Errorf("%s: %+v in %s", name, e.Session, e.Cwd)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		`{"tool_name":"view_image","tool_input":{"path":"a.png"}}`: {"a.png"},
		`{"tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch\n*** Add File: a\n+*** Add File: c\n*** Update File: b \n*** Move to: d\n*** Delete File: e\n*** End Patch\n"}}`: {"a", "b", "d", "e"},
		`{"tool_name":"apply_patch","tool_input":"*** Add File: a"}`:      nil,
		`{"tool_name":"Bash","tool_input":{"command":"*** Add File: a"}}`: nil,
		`{}`: nil,
	} {
		p, err := hooks.ReadPayload(bytes.NewReader([]byte(in)))
		if err != nil {
			t.Fatal(err)
		}
		if got := decode(hooks.PreToolUse, p).Paths; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

// TestFlatSession is not parallel: see [hosttest.Flat].
func TestFlatSession(t *testing.T) {
	hosttest.Flat(t, "0f8fad5b-d9cb-469f-a165-70867728950e", Adapter, nil)
}

func FuzzDecode(f *testing.F) { hosttest.FuzzDecode(f, Adapter()) }
