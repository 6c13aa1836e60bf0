package claudecode

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAnswering(t *testing.T) {
	t.Parallel()
	const (
		prompt  = `{"type":"user","promptId":"p2","message":{"role":"user","content":"two"}}` + "\n"
		earlier = `{"type":"user","promptId":"p1"}` + "\n" + `{"type":"assistant","message":{}}` + "\n"
		said    = `{"type":"assistant","message":{"role":"assistant"}}` + "\n"
		other   = `{"type":"attachment"}` + "\n" + `{"type":"system","subtype":"compact_boundary"}` + "\n"
		result  = `{"type":"user","promptId":"p2","toolUseResult":{"stdout":"x"}}` + "\n"
		summary = `{"type":"user","promptId":"p2","isCompactSummary":true}` + "\n"
		side    = `{"type":"assistant","isSidechain":true}` + "\n"
	)
	for name, c := range map[string]struct {
		transcript string
		want       bool
	}{
		"prompt just sent":      {earlier + prompt + other, false},
		"answered":              {earlier + prompt + said + other, true},
		"tool result after":     {earlier + prompt + said + result + other, true},
		"summary after":         {earlier + prompt + other + summary, false},
		"a subagent's words":    {earlier + prompt + side, false},
		"cut last line":         {earlier + prompt + `{"type":"assis`, false},
		"prompt is out of view": {other, true},
		"empty":                 {"", true},
		"no newline at the end": {`{"type":"assistant"}`, true},
	} {
		path := filepath.Join(t.TempDir(), "t.jsonl")
		if err := os.WriteFile(path, []byte(c.transcript), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := answering(path, "p2"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !answering(filepath.Join(t.TempDir(), "absent"), "p2") {
		t.Error("a missing transcript counts as the start of the turn")
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"/home/dev/project/reme:/daily/a.md": "reme://daily/a.md",
		"reme://daily/a.md":                  "reme://daily/a.md",
		"/home/dev/reme/daily/a.md":          "/home/dev/reme/daily/a.md",
		"":                                   "",
	} {
		if got := address(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
