package dsh

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/install"
)

var (
	testRow    = pluginRow("/home/u/.reme/integrations/dsh/reme-hook.mjs", "/home/u/.reme/integrations/bin/reme-hook")
	testServer = serverRow(install.Server{Command: "/home/u/.reme/integrations/bin/reme-hook", Args: []string{"mcp"}})
)

// nasty are files that have to survive. Each is also tried with other line ends,
// a byte order mark, and without its last newline.
var nasty = map[string]string{
	"nothing":             "",
	"white":               " \n\n",
	"only comments":       "# one\n\n  # two\n",
	"template":            "# Your patch layer for this dsh profile, applied after every bundle layer:\n# a top-level YAML array (`!!js` expressions allowed).\n[]\n",
	"empty list":          "[]\n",
	"spaced empty list":   "[ ]\n",
	"broken empty list":   "[\n  # nothing yet\n]\n",
	"one row":             "- id: tool-web\n  disabled: true\n",
	"comments":            "# top\n\n# of the row\n- id: a # here\n  # there\n  disabled: true\n# end\n",
	"document":            "%YAML 1.1\n# c\n--- # start\n- id: a\n...\n",
	"document, flow":      "---\n[{id: a}]\n",
	"indented list":       "  # of the row\n  - id: a\n    disabled: true\n  - id: b\n",
	"dash alone":          "-\n  id: a\n-\n\n  # x\n  id: b\n",
	"dash and comment":    "- # first\n  id: a\n",
	"deep dash":           "-     id: a\n      disabled: true\n",
	"inserts":             "- insert:\n    - id: mine\n      name: /opt/mine.mjs\n      config:\n        list: [1, 2, {a: 'b, ]'}]\n- id: mine\n  disabled: !!js process.env.NOT_MINE\n",
	"flush inserts":       "- insert:\n  - id: mine\n    name: x\n  id: group\n",
	"folded":              "- id: a\n  config:\n    text: >-\n      one\n      two\n\n    more: |+\n      keep\n\n\n",
	"literal at the end":  "- id: a\n  config:\n    text: |\n      # no comment\n      - no row",
	"kept at the end":     "- id: a\n  config:\n    text: |+\n      x\n\n\n",
	"quoted":              "- id: \"a\\u00e9\\\"\"\n  name: 'it''s'\n- {id: b, name: \"x # y\", disabled: !!js '!process.env.X'}\n",
	"anchors":             "- &base\n  id: a\n  config: &c {x: 1}\n- id: b\n  config: *c\n- *base\n",
	"json":                "[\n  {\"id\": \"a\", \"config\": {\"x\": [1, \"]\", \"\\\"}\"]}},\n  {\"id\": \"b\"}\n]\n",
	"json in one line":    "[{\"id\":\"a\"},{\"id\":\"b\"}]",
	"flow, trailing":      "[ {id: a}, # one\n  {id: b}, # two\n]\n",
	"flow, plain":         "[{id: a, name: it's \"so\"}]\n",
	"flow of flow":        "[{insert: [{id: mine, name: x}]}, {id: mine, disabled: false}]\n",
	"other languages":     "# привет 你好\n- id: \"наш\"\n  name: '/home/ü/🙂.mjs'\n",
	"numbers and nulls":   "- id: 007\n  a: 0x1F\n  b: ~\n  c: 1e3\n  d: 2026-11-30\n  e: yes\n",
	"duplicate keys":      "- id: a\n  x: 1\n  x: 2\n",
	"strange keys":        "- ? id\n  : a\n  \"disabled\" : true\n",
	"blank lines":         "\n\n- id: a\n\n\n- id: b\n\n\n",
	"spaces at line ends": "- id: a  \n  name: x \t\n",
	"similar":             "- insert:\n    - id: reme-hook-bundle\n      name: reme-hook-dsh\n- id: reme\n  name: /x/reme-hook.mjs\n",
	"switched off":        "- id: reme-hook\n  disabled: true\n",
	"tabs in values":      "- id: a\n  name: \"x\ty\"\n",
}

// variants of a file's bytes.
func variants(text string) []string {
	return []string{
		text, strings.ReplaceAll(text, "\n", "\r\n"), "\ufeff" + text, strings.TrimSuffix(text, "\n"),
		"\ufeff" + strings.TrimSuffix(strings.ReplaceAll(text, "\n", "\r\n"), "\r\n"),
	}
}

func TestInstallAndUninstallAreByteExact(t *testing.T) {
	t.Parallel()
	for name, text := range nasty {
		for _, text := range variants(text) {
			roundTrip(t, name, []byte(text))
		}
	}
}

// roundTrip installs the plugin into a file, or the server.
func roundTrip(t testing.TB, name string, text []byte) {
	t.Helper()
	const shim, program = "/elsewhere/dsh/reme-hook.mjs", "/it's \"else\"where/$HOME/ü/reme-hook"
	plugin, server := pluginRow(shim, program), serverRow(install.Server{Command: program, Args: []string{"mcp"}})
	rowRoundTrip(t, name, text, testRow, plugin)
	rowRoundTrip(t, name+", server", text, testServer, server)
	rowRoundTrip(t, name+", plugin for server", text, testServer, plugin)
}

// rowRoundTrip installs a row into a file, again, another one, and uninstalls.
func rowRoundTrip(t testing.TB, name string, text []byte, r, moved row) {
	t.Helper()
	installed, err := upsert(text, r)
	if err != nil {
		t.Errorf("%s: %q: %v", name, text, err)
		return
	}
	one(t, name, installed, r)
	again, err := upsert(installed, r)
	if err != nil || !bytes.Equal(again, installed) {
		t.Errorf("%s: a second install changes\n%q to\n%q (%v)", name, installed, again, err)
	}
	other, err := upsert(installed, moved)
	if err != nil {
		t.Errorf("%s: %q: %v", name, installed, err)
		return
	}
	one(t, name, other, moved)
	for _, installed := range [][]byte{installed, other} {
		left, err := remove(installed, text, true)
		if err != nil || !bytes.Equal(left, text) {
			t.Errorf("%s: uninstalled %q leaves\n%q, want\n%q (%v)", name, installed, left, text, err)
		}
		p, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if left, err := remove(installed, nil, false); p.Root != nil && (err != nil || !bytes.Equal(left, text)) {
			t.Errorf("%s: uninstalled without a receipt %q leaves\n%q (%v)", name, installed, left, err)
		}
	}
}

// one checks that a file holds r, current, and nothing more of ours, and that DSH
// would take it for a list of rows.
func one(t testing.TB, name string, text []byte, r row) {
	t.Helper()
	p, err := parse(text)
	if err != nil {
		t.Errorf("%s: %q: %v", name, text, err)
		return
	}
	if ours := p.ours(); len(ours) != 1 || !ours[0].current(r) || ours[0].off() {
		t.Errorf("%s: rows of ours in %q: %+v", name, text, ours)
	}
	for _, server := range p.ours(serverID) {
		config := member(server.row, "config")
		if s := serverOf(server.row); !s.Ours() || value(member(config, "serverName")) != "reme" || value(member(config, "transport")) != "stdio" {
			t.Errorf("%s: the server is %+v in %q", name, s, text)
		}
	}
	if bytes.Contains(text, []byte("\r\n")) && strings.Contains(strings.ReplaceAll(string(text), "\r\n", ""), "\n") {
		t.Errorf("%s: mixed line ends in %q", name, text)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"mapping":          {"id: a\n", "not a list of rows"},
		"scalar":           {"hello\n", "not a list of rows"},
		"null":             {"null\n", "not a list of rows"},
		"only a start":     {"---\n", "not a list of rows"},
		"list of strings":  {"- a\n- b\n", "not a list of rows"},
		"list of lists":    {"[[]]\n", "not a list of rows"},
		"null row":         {"- id: a\n-\n", "not a list of rows"},
		"unbalanced":       {"[{id: a}\n", "cannot be read as YAML"},
		"tab indentation":  {"- id: a\n\tname: b\n", "cannot be read as YAML"},
		"unknown anchor":   {"- *a\n", "cannot be read as YAML"},
		"two documents":    {"- id: a\n---\n- id: b\n", "more than one document"},
		"tagged list":      {"!!seq\n- id: a\n", "begins in a way"},
		"list behind dash": {"--- [{id: a}]\n", "begins in a way"},
		"old Mac":          {"- id: a\r- id: b\r", "line breaks"},
		"line separator":   {"- id: \"a\u2028b\"\n", "line breaks"},
		"not UTF-8":        {"- id: \xff\n", "not UTF-8"},
		"UTF-16":           {"\xff\xfe-\x00 \x00", "not UTF-8"},
	} {
		if out, err := upsert([]byte(c.text), testRow); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q; made %q", name, err, c.want, out)
		}
	}
}

// TestRowsOfOthersStay: where our row cannot be cut out by lines, the user has to
// do it.
func TestRowsOfOthersStay(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"flow in block":      "- insert: [{id: new, name: x}, {id: reme-hook, name: y}]\n",
		"marks in a text":    "- id: a\n  text: |\n    " + beginMark + "\n- insert: [{id: reme-hook}]\n",
		"anchor in our row":  "- insert:\n    - id: reme-hook\n      config: &c {command: x}\n- id: a\n  config: *c\n",
		"braces in comments": "[{insert: [{id: reme-hook}, # }\n  {id: new}]}, {id: b}]\n",
	} {
		if left, err := remove([]byte(text), nil, false); err == nil && name != "braces in comments" {
			t.Errorf("%s: left\n%s", name, left)
		}
		if installed, err := upsert([]byte(text), testRow); err == nil && name != "braces in comments" {
			t.Errorf("%s: made\n%s", name, installed)
		}
	}
}

// TestEdited is about files in which the user changed something after the
// install, within our lines or around them.
func TestEdited(t *testing.T) {
	t.Parallel()
	const text = "# mine\n- id: a\n"
	installed, err := upsert([]byte(text), testRow)
	if err != nil {
		t.Fatal(err)
	}
	block := strings.TrimSuffix(string(installed), text)
	for name, c := range map[string]struct {
		old, new  string // replaced in what was installed
		removed   string // what an uninstall leaves
		rewritten bool   // an install has to change it
	}{
		"row before":        {block, "- id: new\n" + block, "- id: new\n" + text, false},
		"row after":         {"- id: a\n", "- id: a\n- id: new\n", text + "- id: new\n", false},
		"markers gone":      {beginMark + "\n", "", text, false},
		"end marker gone":   {endMark + "\n", "", text, false},
		"markers doubled":   {beginMark + "\n", beginMark + "\n" + endMark + "\n" + beginMark + "\n", text, false},
		"marker moved":      {beginMark + "\n- insert:\n", "- insert:\n" + beginMark + "\n", text, false},
		"row within":        {endMark, "- id: new\n" + endMark, "- id: new\n" + text, false},
		"row in our insert": {endMark, "    - id: new\n      name: x\n" + endMark, "- insert:\n    - id: new\n      name: x\n" + text, false},
		"row in front":      {"    - id: reme-hook\n", "    - id: new\n      name: x\n    - id: reme-hook\n", "- insert:\n    - id: new\n      name: x\n" + text, false},
		"comment within":    {"      config:\n", "      # so it is\n      config:\n", "      # so it is\n" + text, false},
		"more config":       {"        command:", "        more: [1, 2]\n        command:", text, false},
		"condition":         {"disabled: !!js '", "disabled: !!js 'process.env.NO_MEMORY || ", text, false},
		"switched off":      {"disabled: !!js ", "disabled: true # !!js ", text, false},
		"guard gone":        {"      disabled: " + testRow.disabledYAML() + "\n", "", text, true},
		"guard weakened":    {testRow.disabledYAML(), "false", text, true},
		"id changed":        {"- id: reme-hook", "- id: memory", text, true},
		"name changed":      {"name: " + testRow.nameYAML(), "name: /old/place.mjs", text, true},
		"doubled":           {block, block + block, text, true},
		"in flow style":     {block, "- {insert: [{id: reme-hook, name: x}]}\n", text, true},
		"only the markers":  {block, beginMark + "\n" + endMark + "\n", text, true},
	} {
		edited := []byte(strings.Replace(string(installed), c.old, c.new, 1))
		if bytes.Equal(edited, installed) {
			t.Fatalf("%s: nothing was edited", name)
		}
		again, err := upsert(edited, testRow)
		if err != nil || bytes.Equal(again, edited) == c.rewritten {
			t.Errorf("%s: an install makes\n%s(%v)", name, again, err)
		}
		if p, err := parse(again); err != nil || len(p.ours()) != 1 || !p.ours()[0].current(testRow) {
			t.Errorf("%s: the row is not in\n%s(%v)", name, again, err)
		}
		left, err := remove(edited, []byte(text), true)
		if err != nil || string(left) != c.removed {
			t.Errorf("%s: an uninstall leaves\n%s(%v), want\n%s", name, left, err, c.removed)
		}
	}
}

func TestServerEdited(t *testing.T) {
	t.Parallel()
	const text = "# mine\n- id: a\n"
	installed, err := upsert([]byte(text), testServer)
	if err != nil {
		t.Fatal(err)
	}
	server := testServer.block("", "\n")
	if string(installed) != server+text {
		t.Fatalf("installed\n%s", installed)
	}
	for name, c := range map[string]struct {
		old, new  string // replaced in what was installed
		removed   string // what an uninstall leaves
		rewritten bool   // an install has to change it
	}{
		"switched off":    {"disabled: !!js ", "disabled: true # !!js ", text, false},
		"more config":     {"        transport: ", "        toolCallTimeoutMs: 9\n        transport: ", text, false},
		"removed":         {server, "", text, true},
		"plugin too":      {server, server + testRow.block("", "\n"), text, true},
		"program moved":   {"        command: '/home/u", "        command: '/old", text, true},
		"id changed":      {"- id: reme-hook-mcp", "- id: tools", text, true},
		"guard gone":      {"      disabled: " + testServer.disabledYAML() + "\n", "", text, true},
		"guard weakened":  {testServer.disabledYAML(), "false", text, true},
		"doubled":         {server, server + server, text, true},
		"not marked":      {beginMark + "\n", "", text, false},
		"in flow style":   {server, "- " + testServer.flow() + "\n", text, false},
		"nothing in flow": {server, "- {insert: [{id: reme-hook-mcp}]}\n", text, true},
	} {
		edited := []byte(strings.Replace(string(installed), c.old, c.new, 1))
		if bytes.Equal(edited, installed) {
			t.Fatalf("%s: nothing was edited", name)
		}
		again, err := upsert(edited, testServer)
		if err != nil || bytes.Equal(again, edited) == c.rewritten {
			t.Errorf("%s: an install makes\n%s(%v)", name, again, err)
		}
		p, err := parse(again)
		if err != nil || len(p.ours()) != 1 || !p.ours()[0].current(testServer) {
			t.Errorf("%s: the rows are not in\n%s(%v)", name, again, err)
		}
		for _, text := range [][]byte{edited, again} {
			left, err := remove(text, nil, false)
			if err != nil || string(left) != c.removed {
				t.Errorf("%s: an uninstall leaves\n%s(%v), want\n%s", name, left, err, c.removed)
			}
		}
	}
	const other = "- insert:\n    - id: mine\n      name: '@deepseek-ai/dsh-mcp-client'\n      config: {serverName: reme, transport: streamable-http, url: http://127.0.0.1:2333/mcp}\n"
	if out, err := upsert([]byte(other), testServer); !errors.Is(err, install.ErrForeignServer) {
		t.Errorf("another's server: %s%v", out, err)
	}
	if _, err := upsert([]byte(other), testRow); err != nil {
		t.Error(err)
	}
}

// TestMovedKeepsEdits is an install for another place: what the user added to
// the row stays.
func TestMovedKeepsEdits(t *testing.T) {
	t.Parallel()
	installed, err := upsert(nil, testRow)
	if err != nil {
		t.Fatal(err)
	}
	mine := "      # mine\n      config:\n        more: {a: 1}\n"
	edited := strings.Replace(string(installed), "      config:\n", mine, 1)
	moved := pluginRow("/new/dsh/reme-hook.mjs", "/new/reme-hook")
	got, err := upsert([]byte(edited), moved)
	if err != nil {
		t.Fatal(err)
	}
	one(t, "moved", got, moved)
	if !bytes.Contains(got, []byte(mine)) {
		t.Errorf("got\n%s", got)
	}
}

// TestServerArguments: a row of ours that has other arguments gets those of an
// install.
func TestServerArguments(t *testing.T) {
	t.Parallel()
	want := serverRow(install.Server{Command: "/x/reme-hook", Args: []string{"mcp", "--host", "dsh"}})
	for name, change := range map[string]func(string) string{
		"old": func(s string) string {
			return strings.Replace(s, `["mcp","--host","dsh"]`, `["mcp"] # old`, 1) + "        more: 1\n"
		},
		"block": func(s string) string { return strings.Replace(s, `["mcp","--host","dsh"]`, "\n          - mcp", 1) },
		"flow": func(string) string {
			return "[" + serverRow(install.Server{Command: "/x/reme-hook", Args: []string{"mcp"}}).flow() + "]"
		},
	} {
		installed, err := upsert(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := upsert([]byte(change(strings.TrimSuffix(string(installed), endMark+"\n"))), want)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		one(t, name, got, want)
		if name == "old" && !bytes.Contains(got, []byte("more: 1\n")) {
			t.Errorf("what the user added is gone:\n%s", got)
		}
	}
}

// TestLeftovers: a file of comments only, or of nothing, would keep DSH from
// starting.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	installed, err := upsert(nil, testRow)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		now, original string
		known         bool
		want          string // "-": no file
	}{
		"new file":           {string(installed), "-", true, "-"},
		"lost receipt":       {string(installed), "-", false, "-"},
		"comment in new":     {string(installed) + "# mine", "-", true, "# mine\n[]\n"},
		"their rows gone":    {string(installed), "- id: a\n", true, "[]\n"},
		"start of document":  {"---\n" + string(installed), "-", true, "---\n[]\n"},
		"it was blank":       {string(installed), "", true, ""},
		"it was a comment":   {string(installed) + "# c\n", "# c\n", true, "# c\n"},
		"ours was taken out": {"# mine\n", "- id: a\n", true, "# mine\n"},
		"end of document":    {"- id: a\n" + string(installed) + "...\n", "-", false, "- id: a\n...\n"},
		"nothing of ours":    {"- id: a\n", "-", true, "- id: a\n"},
	} {
		original := []byte(c.original)
		if c.original == "-" {
			original = nil
		}
		left, err := remove([]byte(c.now), original, c.known)
		got := string(left)
		if left == nil {
			got = "-"
		}
		if err != nil || got != c.want {
			t.Errorf("%s: left %q, want %q (%v)", name, got, c.want, err)
		}
	}
}

func FuzzPatch(f *testing.F) {
	for _, text := range nasty {
		for _, text := range variants(text) {
			f.Add([]byte(text))
		}
	}
	f.Add([]byte("-\n -:")) // YAML readers disagree on it with themselves
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.Contains(text, []byte("reme-hook")) {
			return // it is ours already
		}
		installed, err := upsert(text, testRow)
		if err != nil {
			return
		}
		before, err := parse(text)
		if err != nil {
			t.Fatalf("%q was edited, but: %v", text, err)
		}
		after, err := parse(installed)
		if err != nil {
			t.Fatalf("%q: %v", installed, err)
		}
		if len(after.ours()) != 1 || !install.SameYAML(after.items[1:], before.items) {
			t.Fatalf("%q became %q", text, installed)
		}
		if again, err := upsert(installed, testRow); err != nil || !bytes.Equal(again, installed) {
			t.Fatalf("%q becomes %q (%v)", installed, again, err)
		}
		if left, err := remove(installed, text, true); err != nil || !bytes.Equal(left, text) {
			t.Fatalf("%q leaves %q, want %q (%v)", installed, left, text, err)
		}
	})
}
