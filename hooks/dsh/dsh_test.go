package dsh

import (
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

var read = hosttest.Parse

func describe(e hooks.Event) string {
	return fmt.Sprintf("%s turn=%s prompt=%s reply=%s summary=%s sub=%v lost=%v turnlost=%v paths=%v", e.Name, e.Turn, e.Prompt, e.Reply, e.Summary, e.Subagent, e.ContextLost, e.TurnLost, e.Paths)
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind hooks.Kind
		want string
	}{
		"session-start":          {hooks.SessionStart, "session-start turn= prompt= reply= summary= sub=false lost=false turnlost=false paths=[]"},
		"session-start.resume":   {hooks.SessionStart, "session-start turn= prompt= reply= summary= sub=false lost=false turnlost=false paths=[]"},
		"session-start.compact":  {hooks.SessionStart, "session-start turn=2 prompt= reply= summary= sub=false lost=true turnlost=true paths=[]"},
		"session-start.kept":     {hooks.SessionStart, "session-start turn=2 prompt= reply= summary= sub=false lost=true turnlost=false paths=[]"},
		"session-start.subagent": {hooks.SessionStart, " turn= prompt= reply= summary= sub=true lost=false turnlost=false paths=[]"},
		"pre-step":               {hooks.Prompt, "pre-step turn=1 prompt=What colour do we deploy with? reply= summary= sub=false lost=false turnlost=false paths=[]"},
		"turn-end":               {hooks.TurnEnd, "turn-end turn=1 prompt= reply=We deploy with teal. summary= sub=false lost=false turnlost=false paths=[]"},
		"turn-end.error":         {hooks.TurnEnd, "turn-end turn=1 prompt= reply= summary= sub=false lost=false turnlost=false paths=[]"},
		"turn-end.subagent":      {hooks.TurnEnd, " turn=1 prompt= reply= summary= sub=true lost=false turnlost=false paths=[]"},
		"pre-compact":            {hooks.PreCompact, "pre-compact turn= prompt= reply= summary= sub=false lost=false turnlost=false paths=[]"},
		"post-compact":           {hooks.PostCompact, "post-compact turn= prompt= reply= summary=summary of the earlier turns sub=false lost=false turnlost=false paths=[]"},
		"session-end":            {hooks.SessionEnd, "session-end turn= prompt= reply= summary= sub=false lost=false turnlost=false paths=[]"},
		"pre-execute":            {hooks.PreToolUse, "pre-execute turn= prompt= reply= summary= sub=false lost=false turnlost=false paths=[reme://daily/x.md]"},
	} {
		e := decode(c.kind, payload(t, name))
		if got := describe(e); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
		if e.Session.ID == "" || e.Session.Scope != "default" || e.Cwd != "/home/dev/project" {
			t.Errorf("%s: %+v in %s", name, e.Session, e.Cwd)
		}
	}
}

// TestDecodeOddities reads what no DSH was seen to send yet.
func TestDecodeOddities(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"event":"pre-step","turn":"7","prompt":"text","session_id":"s"}`:                                             "pre-step turn=7 prompt=text reply= summary= sub=false lost=false turnlost=false paths=[]",
		`{"event":"pre-step","prompt":[{"type":"image"},{"type":"text","text":"a"},7,{"type":"text","text":"b"}]}`:     "pre-step turn= prompt= reply= summary= sub=false lost=false turnlost=false paths=[]",
		`{"event":"pre-step","prompt":[{"type":"image"},{"type":"text","text":"a"},{"type":"text","text":"b\ud800"}]}`: "pre-step turn= prompt=a\n\nb\ufffd reply= summary= sub=false lost=false turnlost=false paths=[]",
		`{"event":7,"turn":{},"origin":["subagent"],"prompt":null}`:                                                    "7 turn= prompt= reply= summary= sub=false lost=false turnlost=false paths=[]",
		`{}`: " turn= prompt= reply= summary= sub=false lost=false turnlost=false paths=[]",
	} {
		if got := describe(decode(hooks.Prompt, read(t, text))); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`{"tool":"read","arguments":{"file_path":"a.md"}}`:               {"a.md"},
		`{"tool":"grep","arguments":{"pattern":"reme://","path":"src"}}`: {"src"},
		`{"tool":"bash","arguments":{"command":"cat reme://x"}}`:         nil,
		`{"tool":"read","arguments":"a.md"}`:                             nil,
		`{}`:                                                             nil,
	} {
		if got := decode(hooks.PreToolUse, read(t, text)).Paths; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]hooks.Outcome{
		"": {},
		`{"context":"a \"quoted\"\nline"}` + "\n": {Context: "a \"quoted\"\nline"},
		`{"deny":"no"}` + "\n":                    {Deny: "no"},
	} {
		if got := string(encode(hooks.Event{}, o)); got != want {
			t.Errorf("%+v: %q, want %q", o, got, want)
		}
	}
}

// TestFlatSession is not parallel: see [hosttest.Flat].
func TestFlatSession(t *testing.T) {
	hosttest.Flat(t, "0f8fad5b-d9cb-469f-a165-70867728950e", Adapter, nil)
}

func FuzzDecode(f *testing.F) { hosttest.FuzzDecode(f, Adapter()) }
