package hooks

import (
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/client"
)

func TestStripFrames(t *testing.T) {
	t.Parallel()
	const frame = `<reme-context source="auto-recall">` + "\nold\n</reme-context>"
	for name, c := range map[string]struct{ in, want string }{
		"none":                      {"a < b && c > d", "a < b && c > d"},
		"whole":                     {"before " + frame + " after", "before  after"},
		"only":                      {frame, ""},
		"two":                       {frame + "x" + frame, "x"},
		"other attributes":          {`a<reme-context v="1" source='x'>old</reme-context>b`, "ab"},
		"upper case":                {`a<REME-CONTEXT SOURCE="AUTO-RECALL">old</Reme-Context>b`, "ab"},
		"escaped":                   {`a&lt;reme-context source=&quot;auto-recall&quot;&gt;old&lt;/reme-context&gt;b`, "ab"},
		"escaped twice":             {`a&amp;lt;reme-context source=&amp;quot;x&amp;quot;&amp;gt;old&amp;lt;/reme-context&amp;gt;b`, "ab"},
		"numeric escapes":           {`a&#60;reme-context&#62;old&#x3c;/reme-context&#x3E;b`, "ab"},
		"unclosed":                  {`a<reme-context source="auto-recall">old to the end`, "a"},
		"cut in the tag":            {`a <reme-context source="auto-re`, "a "},
		"mentioned":                 {"why is <reme-context> in my prompt?", "why is  in my prompt?"},
		"mentioned in words":        {"the reme-context element", "the reme-context element"},
		"nested":                    {`a<reme-context x="1">b<reme-context x="2">c</reme-context>d</reme-context>e`, "ae"},
		"entries":                   {`a<reme-context s="1"><reme-memory path="p">m</reme-memory></reme-context>b`, "ab"},
		"entry alone":               {`a<reme-memory path="p">m</reme-memory>b`, "ab"},
		"end alone":                 {"a</reme-context>b", "ab"},
		"halves join":               {`a<reme<reme-context x="1">m</reme-context>-context x="1">n</reme-context>b`, "a"},
		"spaces in tags":            {`a< reme-context x="1" >m< / reme-context >b`, "ab"},
		"another element":           {"a<reme-contextual>b</reme-contextual>c", "a<reme-contextual>b</reme-contextual>c"},
		"close of another's frame":  {"x</reme-memory> y", "x y"},
		"OpenViking's":              {`a<openviking-context source="auto-recall" format="digest">m</openviking-context>b<relevant-memories>n</relevant-memories>c<relevant-memory>o</relevant-memory>`, "abc"},
		"ReMe's own guidance":       {"a<reme-guidance>\nReMe keeps memory.\n</reme-guidance>b", "ab"},
		"OpenViking's in ours":      {`a<reme-context s="1"><relevant-memories>n</relevant-memories></reme-context>b`, "ab"},
		"unclosed entry in a frame": {`a<reme-context s="1"><reme-memory p="1">m</reme-context>b`, "a"},
	} {
		if got := StripFrames(c.in); got != c.want {
			t.Errorf("%s: StripFrames(%q) = %q, want %q", name, c.in, got, c.want)
		}
	}
}

func FuzzStripFrames(f *testing.F) {
	f.Add(`a<reme-context source="auto-recall">x</reme-context>b`)
	f.Add(`&lt;reme-memory&gt;&amp;lt;/reme-context`)
	f.Add(`<reme<reme-context>-context>`)
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "\uFFFD")
		out := StripFrames(s)
		if len(tags(out)) > 0 {
			t.Errorf("a tag is left in %q, from %q", out, s)
		}
		if again := StripFrames(out); again != out {
			t.Errorf("not idempotent: %q, then %q", out, again)
		}
		// What was recalled and is put into a frame cannot end it.
		res := client.RecallResult{Items: []client.Item{{ID: "1", Path: s, Snippet: s, Date: s, Host: client.Host(s)}}}
		frame, shown := Frame(res, 1<<30, Bytes)
		if len(shown) != 1 {
			t.Fatal("the item is not shown")
		}
		if n := len(tags(frame)); n != 4 {
			t.Errorf("%d tags in a frame of one entry: %q", n, frame)
		}
		if left := StripFrames("a" + frame + "b"); left != "ab" {
			t.Errorf("the frame leaves %q", left)
		}
	})
}

func TestFrameFits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("漢字 and 😀 words. ", 40)
	var res client.RecallResult
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		res.Items = append(res.Items, client.Item{ID: id, Path: "session/dialog/codex/k.jsonl", StartLine: 1, EndLine: 2, Snippet: long, Date: "2026-11-29", Host: "codex", Score: 0.5})
	}
	for name, size := range map[string]func(string) int{"bytes": Bytes, "utf16": UTF16} {
		whole, all := Frame(res, 1<<20, size)
		if len(all) != len(res.Items) || strings.Contains(whole, "left out") {
			t.Fatalf("%s: %d of %d shown with room for all", name, len(all), len(res.Items))
		}
		for max := 0; max <= size(whole)+200; max += 97 {
			text, shown := Frame(res, max, size)
			if size(text) > max {
				t.Fatalf("%s: %d is over %d", name, size(text), max)
			}
			if (text == "") != (len(shown) == 0) {
				t.Fatalf("%s at %d: %d shown in %q", name, max, len(shown), text)
			}
			if text == "" {
				continue
			}
			if !strings.HasPrefix(text, frameStart) || !strings.HasSuffix(text, frameEnd) {
				t.Fatalf("%s at %d: not a whole frame: %q", name, max, text)
			}
			if got := strings.Count(text, "</reme-memory>"); got != len(shown) {
				t.Fatalf("%s at %d: %d whole entries for %d shown", name, max, got, len(shown))
			}
			if len(shown) < len(res.Items) && !strings.Contains(text, "more left out") {
				t.Fatalf("%s at %d: silent about what was left out", name, max)
			}
		}
	}
}
