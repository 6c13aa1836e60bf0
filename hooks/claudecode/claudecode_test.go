package claudecode

import (
	"fmt"
	"strings"
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
		"SessionStart":           {hooks.SessionStart, "SessionStart turn= prompt= reply= sub=false lost=false turnlost=false"},
		"SessionStart.resume":    {hooks.SessionStart, "SessionStart turn= prompt= reply= sub=false lost=false turnlost=false"},
		"SessionStart.fork":      {hooks.SessionStart, "SessionStart turn= prompt= reply= sub=false lost=false turnlost=false"},
		"SessionStart.clear":     {hooks.SessionStart, "SessionStart turn= prompt= reply= sub=false lost=true turnlost=true"},
		"SessionStart.compact":   {hooks.SessionStart, "SessionStart turn=483546a7-06e6-4f78-8bf1-977d66a0ee70 prompt= reply= sub=false lost=true turnlost=true"},
		"UserPromptSubmit":       {hooks.Prompt, "UserPromptSubmit turn=b3237e55-9415-40fe-850e-c293336c548f prompt=hello reply= sub=false lost=false turnlost=false"},
		"Stop":                   {hooks.TurnEnd, "Stop turn=b3237e55-9415-40fe-850e-c293336c548f prompt= reply=R1 sub=false lost=false turnlost=false"},
		"StopFailure":            {hooks.Interrupt, "StopFailure turn=b6d1c168-afee-46ff-bb43-50516da7713a prompt= reply= sub=false lost=false turnlost=false"},
		"SubagentStop":           {hooks.TurnEnd, "SubagentStop turn=9dc5670d-9d2a-4d7b-9d29-54c88564109a prompt= reply=subagent answer sub=true lost=false turnlost=false"},
		"SessionEnd":             {hooks.SessionEnd, "SessionEnd turn=b3237e55-9415-40fe-850e-c293336c548f prompt= reply= sub=false lost=false turnlost=false"},
		"PreCompact.auto":        {hooks.PreCompact, "PreCompact turn=45bf5196-4b3c-49a5-99e4-9428d34d71f2 prompt= reply= sub=false lost=false turnlost=false"},
		"UserPromptSubmit.slash": {hooks.Prompt, "UserPromptSubmit turn=09a15c82-c8c0-4957-ab75-8669b49da235 prompt=/foo alpha beta reply= sub=false lost=false turnlost=false"},
	} {
		e := decode(c.kind, payload(t, name))
		got := fmt.Sprintf("%s turn=%s prompt=%s reply=%s sub=%v lost=%v turnlost=%v", e.Name, e.Turn, e.Prompt, e.Reply, e.Subagent, e.ContextLost, e.TurnLost)
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
		if e.Session.ID == "" || e.Session.Scope != "default" || !strings.HasPrefix(e.Cwd, "/home/dev/project") {
			t.Errorf("%s: %+v in %s", name, e.Session, e.Cwd)
		}
	}
}

func TestEncodeSaysNothingBeforeACompaction(t *testing.T) {
	t.Parallel()
	o := hooks.Outcome{Context: "x", Deny: "y"}
	if out := encode(hooks.Event{Kind: hooks.PreCompact, Name: "PreCompact"}, o); out != nil {
		t.Errorf("said %q", out)
	}
	if out := string(encode(hooks.Event{Kind: hooks.Prompt, Name: "UserPromptSubmit"}, hooks.Outcome{Context: "a && b <c>\r\n\u2028"})); out !=
		`{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"a && b <c>\r\n\u2028"}}`+"\n" {
		t.Errorf("said %q", out)
	}
	if out := encode(hooks.Event{Kind: hooks.Prompt}, hooks.Outcome{}); out != nil {
		t.Errorf("said %q", out)
	}
}

// TestFlatSession is not parallel: see [hosttest.Flat].
func TestFlatSession(t *testing.T) {
	hosttest.Flat(t, "0f8fad5b-d9cb-469f-a165-70867728950e", Adapter, nil)
}

func FuzzDecode(f *testing.F) { hosttest.FuzzDecode(f, Adapter()) }
