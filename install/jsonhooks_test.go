package install

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/tailscale/hujson"
)

// testHost stands for a host of the Claude Code family.
var testHost = JSONHost{
	Host: "claude-code", Shell: PosixShell,
	Hooks: []Hook{
		{HostEvent: "UserPromptSubmit", Event: "user-prompt-submit", Timeout: 5},
		{HostEvent: "Stop", Event: "stop", Timeout: 5},
		{HostEvent: "PreToolUse", Event: "pre-tool-use", Timeout: 5, Matcher: "Read|Edit"},
	},
}

const program = "/home/u/.reme/integrations/bin/reme-hook"

func testGroups(t testing.TB) []Group {
	groups, err := testHost.Groups(program)
	if err != nil {
		t.Fatal(err)
	}
	return groups
}

// nasty are files that have to survive. Each is also tried with other line ends,
// a byte order mark, and without its last newline.
var nasty = map[string]string{
	"comma in a string":    "{\n  \"a\": \",}\", \"b\": \",]\", \"c\": \"// no comment\",\n}\n",
	"empty object":         "{}\n",
	"spaced empty object":  "{ }\n",
	"broken empty object":  "{\n}\n",
	"space around":         "\n\n  {}  \n\n",
	"two spaces":           "{\n  \"model\": \"opus\"\n}\n",
	"four spaces":          "{\n    \"model\": \"opus\",\n    \"env\": {\n        \"A\": \"1\"\n    }\n}\n",
	"tabs":                 "{\n\t\"model\": \"opus\"\n}\n",
	"no indentation":       "{\n\"model\": \"opus\"\n}\n",
	"one line":             "{\"model\": \"opus\", \"env\": {\"A\": \"1\"}}\n",
	"minified":             "{\"model\":\"opus\",\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"a\"}]}]}}",
	"one line, hooks":      "{ \"hooks\": { \"Stop\": [ { \"hooks\": [ { \"type\": \"command\", \"command\": \"a && b\" } ] } ] } }\n",
	"mixed lines":          "{ \"a\": 1,\n  \"hooks\": {\"Stop\": []}, \"b\":\n2 }\n",
	"line comments":        "// top\n{\n  // before\n  \"model\": \"opus\" // after\n  // last\n}\n// end\n",
	"comment without end":  "{\n  \"a\": 1\n} // end",
	"comment in flat":      "{\"hooks\": {\"Stop\": [ {\"hooks\": []}, // note\n ]}}\n",
	"comment in empty":     "{ // nothing yet\n}\n",
	"comment only list":    "{\n  \"hooks\": {\n    \"Stop\": [\n      // {\"hooks\": [{\"type\": \"command\", \"command\": \"reme-hook claude-code stop\"}]}\n    ]\n  }\n}\n",
	"block comments":       "/* a */ { /* b */ \"m\" /* c */ : /* d */ 1 /* e */ , /* f */ \"hooks\" /* g */ : /* h */ { /* i */ } /* j */ } /* k */\n",
	"comment like end":     "{\n  \"a\": \"// no /* comment */ ,}\", /* , } ] */\n  \"b\": [1, 2,], // ] }\n}\n",
	"trailing commas":      "{\n  \"a\": [1, 2, ],\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"x\",},],},\n    ],\n  },\n}\n",
	"trailing, flat":       "{\"a\": 1,}\n",
	"comma before comment": "{\n  \"a\": 1, // one\n  \"b\": 2, // two\n}\n",
	"string with comma":    "{\n  \"permissions\": {\"deny\": [\"Bash(echo ',}')\", \"\\\",]\"]}\n}\n",
	"unescaped operators":  "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"a && b > c < d\"\n          }\n        ]\n      }\n    ]\n  }\n}\n",
	"escapes":              "{\n  \"caf\\u00e9\": \"\\ud83d\\ude00 \\/ \\u2028\",\n  \"raw\": \"é🙂\u2028\"\n}\n",
	"escaped hooks key":    "{\n  \"\\u0068ooks\": {\n    \"St\\u006fp\": []\n  }\n}\n",
	"odd key order":        "{\n  \"z\": 1,\n  \"hooks\": {\n    \"Stop\": [],\n    \"PreToolUse\": []\n  },\n  \"a\": {\"y\": 1, \"b\": 2}\n}\n",
	"big numbers":          "{\n  \"n\": 12345678901234567890.10e-3,\n  \"z\": -0.0\n}\n",
	"doubled other key":    "{\n  \"a\": 1,\n  \"a\": 2\n}\n",
	"empty hooks":          "{\n  \"hooks\": {}\n}\n",
	"empty events":         "{\n  \"hooks\": {\n    \"Stop\": [],\n    \"UserPromptSubmit\": [ ]\n  }\n}\n",
	"foreign events":       "{\n  \"hooks\": {\n    \"Notification\": [{\"matcher\": \"\", \"hooks\": []}],\n    \"Unknown\": []\n  }\n}\n",
	"foreign groups":       "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Bash\",\n        \"hooks\": [\n          { \"type\": \"command\", \"command\": \"guard\" },\n          { \"type\": \"prompt\", \"prompt\": \"ok?\" }\n        ]\n      }\n    ]\n  }\n}\n",
	"malformed group":      "{\n  \"hooks\": {\n    \"Stop\": [\n      { \"type\": \"command\", \"command\": \"flat\" },\n      7,\n      { \"hooks\": \"no\" },\n      { \"hooks\": [3, null, {\"command\": 5}] }\n    ]\n  }\n}\n",
	"deep indentation":     "{\n        \"hooks\": {\n                \"Stop\": []\n        }\n}\n",
	"indented document":    "  {\n    \"a\": 1\n  }\n",
	"blank lines":          "{\n\n  \"a\": 1,\n\n\n  \"b\": 2\n\n}\n\n\n",
	"closing on last line": "{\n  \"a\": 1 }\n",
	"null":                 "null\n",
	"nothing":              "",
	"white":                " \n\t\n",
	"hooks first":          "{\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [] }]\n  }, \"x\": true\n}\n",
}

// variants of a file's bytes.
func variants(text string) map[string][]byte {
	return map[string][]byte{
		"":             []byte(text),
		", CRLF":       []byte(strings.ReplaceAll(text, "\n", "\r\n")),
		", BOM":        append(bytes.Clone(BOM), text...),
		", no newline": []byte(strings.TrimRight(text, "\n")),
	}
}

// content is what a file means, without our hooks if drop is set.
func content(t testing.TB, text []byte, drop bool) any {
	text, _ = bytes.CutPrefix(text, BOM)
	if s := bytes.TrimSpace(text); len(s) == 0 || string(s) == "null" {
		return map[string]any{}
	}
	std, err := hujson.Standardize(append(bytes.Clone(text), '\n'))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	dec := json.NewDecoder(bytes.NewReader(std))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	hooks, ok := v.(map[string]any)["hooks"].(map[string]any)
	if !drop || !ok {
		return v
	}
	for event, groups := range hooks {
		var kept []any
		for _, g := range groups.([]any) {
			handlers, ok := group(g)
			var left []any
			for _, h := range handlers {
				m, _ := h.(map[string]any)
				if command, _ := m["command"].(string); !testHost.ours(command) {
					left = append(left, h)
				}
			}
			switch {
			case !ok || len(left) == len(handlers):
				kept = append(kept, g)
			case len(left) > 0:
				g.(map[string]any)["hooks"] = left
				kept = append(kept, g)
			}
		}
		if hooks[event] = kept; len(kept) == 0 {
			delete(hooks, event)
		}
	}
	if len(hooks) == 0 {
		delete(v.(map[string]any), "hooks")
	}
	return v
}

func group(g any) ([]any, bool) {
	m, ok := g.(map[string]any)
	if !ok {
		return nil, false
	}
	handlers, ok := m["hooks"].([]any)
	return handlers, ok
}

func TestUpsertKeepsTheRest(t *testing.T) {
	groups := testGroups(t)
	for name, text := range nasty {
		for variant, src := range variants(text) {
			out, err := UpsertHooks(src, groups, testHost.ours)
			if err != nil {
				t.Errorf("%s%s: %v", name, variant, err)
				continue
			}
			if !reflect.DeepEqual(content(t, out, true), content(t, src, true)) {
				t.Errorf("%s%s: the rest changed:\n%s", name, variant, out)
			}
			placed, err := ListHooks(out, testHost.ours)
			if err != nil || len(placed) != len(groups) {
				t.Errorf("%s%s: %d hooks, %v\n%s", name, variant, len(placed), err, out)
			}
			if again, err := UpsertHooks(out, groups, testHost.ours); err != nil || !bytes.Equal(again, out) {
				t.Errorf("%s%s: a second time changes it: %v\n%s", name, variant, err, again)
			}
			if bytes.Contains(out, []byte(`\u0026`)) || bytes.HasPrefix(src, BOM) != bytes.HasPrefix(out, BOM) {
				t.Errorf("%s%s:\n%s", name, variant, out)
			}
			if crlf := bytes.Count(out, []byte("\r\n")); variant == ", CRLF" && bytes.Contains(src, []byte("\n{")) && crlf != bytes.Count(out, []byte("\n")) {
				t.Errorf("%s%s: mixed line ends\n%q", name, variant, out)
			}
			// Lines of the original stay: nothing but commas is added to them.
			for line := range strings.Lines(string(src)) {
				line = strings.TrimSpace(line)
				if len(line) > 8 && !bytes.Contains(out, []byte(line)) && strings.Contains(line, "//") && strings.Contains(text, "\n") {
					if _, comment, _ := strings.Cut(line, "//"); !bytes.Contains(out, []byte(comment)) {
						t.Errorf("%s%s: comment %q is gone\n%s", name, variant, comment, out)
					}
				}
			}
		}
	}
}

// TestRemoveIsTheInverse holds also without a receipt, but for containers that
// were empty before and for files without any JSON.
func TestRemoveIsTheInverse(t *testing.T) {
	groups := testGroups(t)
	for name, text := range nasty {
		for variant, src := range variants(text) {
			out, err := UpsertHooks(src, groups, testHost.ours)
			if err != nil {
				t.Fatal(err)
			}
			for _, known := range []bool{true, false} {
				back, err := RemoveHooks(out, src, known, testHost.ours)
				if err != nil {
					t.Fatalf("%s%s: %v", name, variant, err)
				}
				if !reflect.DeepEqual(content(t, back, true), content(t, src, true)) {
					t.Errorf("%s%s: the rest changed:\n%s", name, variant, back)
				}
				white := strings.TrimSpace(text) == "" || strings.TrimSpace(text) == "null"
				if known && !white && !sameButEmpty(back, src) {
					t.Errorf("%s%s: want\n%s\ngot\n%s", name, variant, src, back)
				}
			}
		}
	}
}

// sameButEmpty compares, taking containers that hold nothing but space for one
// another.
func sameButEmpty(a, b []byte) bool {
	squeeze := func(b []byte) string {
		s := string(b)
		for _, pair := range []string{"{}", "[]"} {
			for _, space := range []string{" ", "\n", "\r\n"} {
				s = strings.ReplaceAll(s, pair[:1]+space+pair[1:], pair)
			}
		}
		return s
	}
	return squeeze(a) == squeeze(b)
}

func TestUpsertAdopts(t *testing.T) {
	old := func(event string) string {
		return `{"type": "command", "command": "/old/reme-hook claude-code ` + event + `"}`
	}
	for name, tc := range map[string]struct{ src, want string }{
		"moved in place": {
			`{"hooks": {"Stop": [{"hooks": [A]}, {"hooks": [` + old("stop") + `]}, {"hooks": [B]}]}}`,
			`{"hooks": {"Stop": [{"hooks": [A]}, OURS, {"hooks": [B]}]}}`,
		},
		"doubled": {
			`{"hooks": {"Stop": [{"hooks": [` + old("stop") + `]}, {"hooks": [A]}, {"hooks": [` + old("stop") + `]}]}}`,
			`{"hooks": {"Stop": [OURS, {"hooks": [A]}]}}`,
		},
		"in another's group": {
			`{"hooks": {"Stop": [{"hooks": [A, ` + old("stop") + `]}]}}`,
			`{"hooks": {"Stop": [{"hooks": [A, HANDLER]}]}}`,
		},
		"in another's group with a matcher": {
			`{"hooks": {"Stop": [{"matcher": "x", "hooks": [` + old("stop") + `, A]}]}}`,
			`{"hooks": {"Stop": [{"matcher": "x", "hooks": [A]}, OURS]}}`,
		},
		"wrong event": {
			`{"hooks": {"Stop": [{"hooks": [` + old("session-end") + `]}]}}`,
			`{"hooks": {"Stop": [OURS]}}`,
		},
		"event no longer wanted": {
			`{"hooks": {"SubagentStop": [{"hooks": [` + old("stop") + `]}, {"hooks": [A]}], "Stop": [OURS]}}`,
			`{"hooks": {"SubagentStop": [{"hooks": [A]}], "Stop": [OURS]}}`,
		},
		"edited by the user": {
			`{"hooks": {"Stop": [{"hooks": [HANDLER, A]}]}}`,
			`{"hooks": {"Stop": [{"hooks": [HANDLER, A]}]}}`,
		},
	} {
		groups := []Group{testGroups(t)[1]}
		handler, err := json.Marshal(groups[0].Handler)
		if err != nil {
			t.Fatal(err)
		}
		h := strings.ReplaceAll(strings.ReplaceAll(string(handler), `\u0026`, "&"), `\u003e`, ">")
		fill := strings.NewReplacer("OURS", `{"hooks":[`+h+`]}`, "HANDLER", h, "A", `{"type": "command", "command": "a"}`, "B", `{"type": "command", "command": "b"}`)
		got, err := UpsertHooks([]byte(fill.Replace(tc.src)), groups, testHost.ours)
		if want := fill.Replace(tc.want); err != nil || string(got) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, got, want)
		}
	}
}

func TestGoldenLayout(t *testing.T) {
	groups := testGroups(t)[1:2]
	for _, tc := range []struct{ src, want string }{
		{"", "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"CMD\",\n            \"timeout\": 5\n          }\n        ]\n      }\n    ]\n  }\n}\n"},
		{"{\n\t\"a\": 1 // x\n}", "{\n\t\"a\": 1, // x\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{\n\t\t\t\t\"hooks\": [\n\t\t\t\t\t{\n\t\t\t\t\t\t\"type\": \"command\",\n\t\t\t\t\t\t\"command\": \"CMD\",\n\t\t\t\t\t\t\"timeout\": 5\n\t\t\t\t\t}\n\t\t\t\t]\n\t\t\t}\n\t\t]\n\t}\n}"},
		{`{"a": 1}`, `{"a": 1, "hooks": {"Stop":[{"hooks":[{"type":"command","command":"CMD","timeout":5}]}]}}`},
		{`{"a":1,}`, `{"a":1,"hooks":{"Stop":[{"hooks":[{"type":"command","command":"CMD","timeout":5}]}]},}`},
		{"{\r\n    \"hooks\": {\r\n        \"Stop\": []\r\n    }\r\n}\r\n", "{\r\n    \"hooks\": {\r\n        \"Stop\": [\r\n            {\r\n                \"hooks\": [\r\n                    {\r\n                        \"type\": \"command\",\r\n                        \"command\": \"CMD\",\r\n                        \"timeout\": 5\r\n                    }\r\n                ]\r\n            }\r\n        ]\r\n    }\r\n}\r\n"},
	} {
		got, err := UpsertHooks([]byte(tc.src), groups, testHost.ours)
		if want := strings.ReplaceAll(tc.want, "CMD", groups[0].Handler.Command); err != nil || string(got) != want {
			t.Errorf("%v\n got %s\nwant %s", err, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, src := range refused {
		if out, err := UpsertHooks([]byte(src), testGroups(t), testHost.ours); err == nil {
			t.Errorf("%s passed:\n%s", name, out)
		}
	}
}

// refused are contents that nobody can edit safely.
var refused = map[string]string{
	"array":                "[]",
	"string":               `"x"`,
	"unclosed":             `{"a": 1`,
	"garbage behind":       `{} {}`,
	"single quotes":        `{'a': 1}`,
	"no quotes":            `{a: 1}`,
	"conflict markers":     "<<<<<<< HEAD\n{}\n=======\n{\"a\":1}\n>>>>>>> x\n",
	"not UTF-8":            "{\"a\": \"\xff\xfe\"}",
	"UTF-16":               "\xff\xfe{\x00}\x00",
	"NUL":                  "{}\x00",
	"hooks a list":         `{"hooks": []}`,
	"hooks null":           `{"hooks": null}`,
	"hooks a string":       `{"hooks": "x"}`,
	"event an object":      `{"hooks": {"Stop": {}}}`,
	"event null":           `{"hooks": {"Stop": null}}`,
	"foreign event string": `{"hooks": {"Notification": "x"}}`,
	"hooks twice":          `{"hooks": {}, "hooks": {}}`,
	"event twice":          `{"hooks": {"Stop": [], "Stop": []}}`,
	"unclosed comment":     "{} /* x",
}

// FuzzHooks checks that whatever is accepted keeps its meaning, through an
// install and an uninstall.
func FuzzHooks(f *testing.F) {
	for _, text := range nasty {
		for _, src := range variants(text) {
			f.Add(src)
		}
	}
	for _, text := range refused {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"hooks": {"Stop": [{"hooks": [{"command": "reme-hook claude-code stop"}, {"command": "x"}]}, {"matcher":"m","hooks":[{"command":"reme-hook claude-code x"},{"command":"reme-hook claude-code stop"}]}]}}`))
	groups := testGroups(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		out, err := UpsertHooks(src, groups, testHost.ours)
		if err != nil {
			return
		}
		if !reflect.DeepEqual(content(t, out, true), content(t, src, true)) {
			t.Fatalf("the rest changed:\n%q\n%q", src, out)
		}
		if again, err := UpsertHooks(out, groups, testHost.ours); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("a second time changes it: %v\n%q\n%q", err, out, again)
		}
		for _, known := range []bool{true, false} {
			back, err := RemoveHooks(out, src, known, testHost.ours)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(content(t, back, true), content(t, src, true)) {
				t.Fatalf("uninstall changed the rest:\n%q\n%q", src, back)
			}
			if placed, err := ListHooks(back, testHost.ours); err != nil || len(placed) > 0 {
				t.Fatalf("%d hooks are left: %v\n%q", len(placed), err, back)
			}
		}
	})
}
