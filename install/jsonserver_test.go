package install

import (
	"bytes"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var testServer = Server{Command: program, Args: []string{"mcp"}}

// nastyServers are further files that have to survive.
var nastyServers = map[string]string{
	"no servers":        "{\n  \"mcpServers\": {}\n}\n",
	"a server":          "{\n  \"mcpServers\": {\n    \"git\": {\n      \"command\": \"uvx\",\n      \"args\": [\"mcp-server-git\"]\n    }\n  }\n}\n",
	"servers, one line": `{"mcpServers": {"git": {"command": "uvx", "args": []}, "x": {"url": "http://127.0.0.1:1/mcp"}}}`,
	"servers, minified": `{"numStartups":3,"mcpServers":{"git":{"command":"uvx"}},"projects":{"/x":{"mcpServers":{"reme":{"command":"y"}}}}}`,
	"servers of others": "{\n  \"servers\": {\"reme\": {}},\n  \"projects\": {\n    \"/src\": {\"mcpServers\": {\"reme\": {\"command\": \"reme-hook\", \"args\": [\"mcp\"]}}}\n  }\n}\n",
	"escaped name":      "{\n  \"mcp\\u0053ervers\": {\n    \"r\\u0065me2\": {}\n  }\n}\n",
	"comment in list":   "{\n  \"mcpServers\": {\n    // \"reme\": {\"command\": \"reme-hook\", \"args\": [\"mcp\"]}\n  }\n}\n",
	"trailing, servers": "{\n\t\"mcpServers\": {\n\t\t\"a\": {\"command\": \"b\",}, // a\n\t},\n}\n",
	"odd servers":       "{\"mcpServers\": {\"a\": null, \"b\": 7, \"c\": [{}], \"d\": \"reme\"}, \"x\": []}\n",
	"doubled servers":   "{\"mcpServers\": {\"a\": 1, \"a\": 2}}\n",
}

func allNasty() map[string]string {
	out := map[string]string{}
	for _, m := range []map[string]string{nasty, nastyServers} {
		for name, text := range m {
			out[name] = text
		}
	}
	return out
}

// withoutServer is what a file means without our server, where an empty list of
// servers is none.
func withoutServer(t testing.TB, text []byte) any {
	v := content(t, text, false)
	top := v.(map[string]any)
	if servers, ok := top[jsonServers].(map[string]any); ok {
		delete(servers, ServerName)
		if len(servers) == 0 {
			delete(top, jsonServers)
		}
	}
	return v
}

func TestServerKeepsTheRest(t *testing.T) {
	for name, text := range allNasty() {
		for variant, src := range variants(text) {
			out := serverRoundTrip(t, name+variant, src)
			white := blank(bytes.TrimPrefix(src, BOM))
			if back, err := RemoveServer(out, src, true); err != nil || !white && !sameButEmpty(back, src) {
				t.Errorf("%s%s: %v, want\n%s\ngot\n%s", name, variant, err, src, back)
			}
		}
	}
}

// serverRoundTrip puts our server into a file that has none, again, for another
// place, and takes it out. It returns the file with the server.
func serverRoundTrip(t testing.TB, name string, src []byte) []byte {
	t.Helper()
	out, err := UpsertServer(src, testServer)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return nil
	}
	moved := Server{Command: `C:\it's "else"where\reme-hook.exe`, Args: []string{"mcp"}}
	other, err := UpsertServer(out, moved)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return nil
	}
	if again, err := UpsertServer(out, testServer); err != nil || !bytes.Equal(again, out) {
		t.Errorf("%s: a second time changes it: %v\n%s", name, err, again)
	}
	if back, err := UpsertServer(other, testServer); err != nil || !bytes.Equal(back, out) {
		t.Errorf("%s: there and back changes it: %v\n%s", name, err, back)
	}
	for want, text := range map[*Server][]byte{&testServer: out, &moved: other} {
		d, err := parseObject(bytes.TrimPrefix(text, BOM))
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
			continue
		}
		if p, err := d.server(); err != nil || !reflect.DeepEqual(p.have, *want) {
			t.Errorf("%s: the server is %+v, %v\n%s", name, p.have, err, text)
		}
		if !reflect.DeepEqual(withoutServer(t, text), withoutServer(t, src)) || bytes.HasPrefix(src, BOM) != bytes.HasPrefix(text, BOM) {
			t.Errorf("%s: the rest changed:\n%s", name, text)
		}
		for _, known := range []bool{true, false} {
			back, err := RemoveServer(text, src, known)
			if err != nil || !reflect.DeepEqual(withoutServer(t, back), withoutServer(t, src)) {
				t.Errorf("%s: %v, left\n%s", name, err, back)
			}
		}
	}
	if crlf := bytes.Count(out, []byte("\r\n")); strings.HasSuffix(name, ", CRLF") && bytes.Contains(src, []byte("\n{")) && crlf != bytes.Count(out, []byte("\n")) {
		t.Errorf("%s: mixed line ends\n%q", name, out)
	}
	return out
}

func FuzzServer(f *testing.F) {
	for _, text := range allNasty() {
		for _, src := range variants(text) {
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if out, err := UpsertServer(src, testServer); err == nil {
			if d, err := parseObject(bytes.TrimPrefix(src, BOM)); err == nil {
				if p, err := d.server(); err != nil || p.index >= 0 {
					return // it is there already
				}
			}
			if _, err := UpsertServer(out, testServer); err != nil {
				t.Fatal(err)
			}
			serverRoundTrip(t, "fuzz", src)
		} else if left, err := RemoveServer(src, nil, false); err != nil || !bytes.Equal(left, src) {
			t.Fatalf("%v\n%s", err, left)
		}
	})
}

func TestServerLayout(t *testing.T) {
	for _, tc := range []struct{ src, want string }{
		{"", "{\n  \"mcpServers\": {\n    \"reme\": {\n      \"command\": \"CMD\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  }\n}\n"},
		{"{\n\t\"a\": 1 // x\n}", "{\n\t\"a\": 1, // x\n\t\"mcpServers\": {\n\t\t\"reme\": {\n\t\t\t\"command\": \"CMD\",\n\t\t\t\"args\": [\n\t\t\t\t\"mcp\"\n\t\t\t]\n\t\t}\n\t}\n}"},
		{`{"mcpServers":{"a":{}}}`, `{"mcpServers":{"a":{},"reme":{"command":"CMD","args":["mcp"]}}}`},
		// What is there of ours keeps all but its command.
		{`{"mcpServers": {"reme": {"type": "stdio", "command": "reme-hook", "args": ["mcp"], "env": {"A": "b"}}}}`, `{"mcpServers": {"reme": {"type": "stdio", "command": "CMD", "args": ["mcp"], "env": {"A": "b"}}}}`},
		{"{\"mcpServers\": {\n  \"reme\": { // mine\n    \"enabled\": false,\n    \"command\": \"/old/reme-hook\", // moved\n    \"args\": [\"mcp\"],\n  }}}", "{\"mcpServers\": {\n  \"reme\": { // mine\n    \"enabled\": false,\n    \"command\": \"CMD\", // moved\n    \"args\": [\"mcp\"],\n  }}}"},
	} {
		got, err := UpsertServer([]byte(tc.src), testServer)
		if want := strings.ReplaceAll(tc.want, "CMD", program); err != nil || string(got) != want {
			t.Errorf("%v\n got %s\nwant %s", err, got, want)
		}
	}
}

// TestServerArguments: a server of ours that has other arguments gets those of an install.
func TestServerArguments(t *testing.T) {
	want := Server{Command: program, Args: []string{"mcp", "--host", "kimi"}}
	for src, out := range map[string]string{
		`{"mcpServers": {"reme": {"command": "CMD", "args": ["mcp"], "env": {}}}}`:                                                                                               `{"mcpServers": {"reme": {"command": "CMD", "args": ["mcp","--host","kimi"], "env": {}}}}`,
		"{\n  \"mcpServers\": {\n    \"reme\": {\n      \"args\": [\n        \"mcp\",\n        \"-v\" // loud\n      ],\n      \"command\": \"/old/reme-hook\"\n    }\n  }\n}\n": "{\n  \"mcpServers\": {\n    \"reme\": {\n      \"args\": [\"mcp\",\"--host\",\"kimi\"],\n      \"command\": \"CMD\"\n    }\n  }\n}\n",
	} {
		fill := strings.NewReplacer("CMD", program)
		got, err := UpsertServer([]byte(fill.Replace(src)), want)
		if err != nil || string(got) != fill.Replace(out) {
			t.Errorf("%v\n got %s\nwant %s", err, got, fill.Replace(out))
		}
	}
}

func TestServerRefused(t *testing.T) {
	cases := map[string]string{
		"servers a list":  `{"mcpServers": []}`,
		"servers null":    `{"mcpServers": null}`,
		"servers twice":   `{"mcpServers": {}, "mcpServers": {}}`,
		"our name twice":  `{"mcpServers": {"reme": {"command": "reme-hook", "args": ["mcp"]}, "r\u0065me": {}}}`,
		"a service":       `{"mcpServers": {"reme": {"url": "http://127.0.0.1:2333/mcp"}}}`,
		"another program": `{"mcpServers": {"reme": {"command": "uvx", "args": ["reme"]}}}`,
		"no arguments":    `{"mcpServers": {"reme": {"command": "reme-hook"}}}`,
		"null":            `{"mcpServers": {"reme": null}}`,
		"odd command":     `{"mcpServers": {"reme": {"command": ["reme-hook"], "args": ["mcp"]}}}`,
		"other spelling":  `{"mcpServers": {"reme": {"Command": "reme-hook", "args": ["mcp"]}}}`,
		"command twice":   `{"mcpServers": {"reme": {"command": "x", "command": "reme-hook", "args": ["mcp"]}}}`,
	}
	for name, src := range refused {
		if !strings.Contains(src, "hooks") {
			cases[name] = src
		}
	}
	for name, src := range cases {
		if out, err := UpsertServer([]byte(src), testServer); err == nil {
			t.Errorf("%s passed:\n%s", name, out)
		}
		// An uninstall takes nothing of theirs, and is not stopped by what was never ours.
		if left, err := RemoveServer([]byte(src), nil, false); err != nil || string(left) != src {
			t.Errorf("%s: %v, left\n%s", name, err, left)
		}
	}
	if _, err := UpsertServer([]byte(cases["a service"]), testServer); !errors.Is(err, ErrForeignServer) {
		t.Errorf("another's server: %v", err)
	}
}

// TestServerAfterEdits: the host has written the file in between.
func TestServerAfterEdits(t *testing.T) {
	for name, tc := range map[string]struct{ original, now, want string }{
		"more settings":         {`{"a": 1}`, `{"a": 2, "mcpServers": {"reme": OURS}, "b": 3}`, `{"a": 2, "b": 3}`},
		"more servers":          {`{}`, `{"mcpServers": {"reme": OURS, "git": {}}}`, `{"mcpServers": {"git": {}}}`},
		"list that was there":   {`{"mcpServers": {}}`, `{"mcpServers": {"reme": OURS}, "b": 3}`, `{"mcpServers": {}, "b": 3}`},
		"no file before":        {"", `{"mcpServers": {"reme": OURS}}`, ""},
		"no file, more":         {"", `{"mcpServers": {"reme": OURS}, "b": 3}`, `{"b": 3}`},
		"taken out by hand":     {`{}`, `{"mcpServers": {}}`, `{"mcpServers": {}}`},
		"replaced by another":   {`{}`, `{"mcpServers": {"reme": {"url": "http://x"}}}`, `{"mcpServers": {"reme": {"url": "http://x"}}}`},
		"rewritten by a host":   {`{}`, "{\n  \"mcpServers\": {\n    \"reme\": {\n      \"args\": [\n        \"mcp\"\n      ],\n      \"command\": \"/old/reme-hook\",\n      \"type\": \"stdio\"\n    }\n  },\n  \"z\": 1\n}", "{\n  \"z\": 1\n}"},
		"comment of somebody's": {`{}`, `{"mcpServers": {"reme": OURS /* x */, // y` + "\n}}", `{"mcpServers": { /* x */ // y` + "\n}}"},
	} {
		fill := strings.NewReplacer("OURS", `{"command": "`+program+`", "args": ["mcp"]}`)
		var original []byte
		if tc.original != "" {
			original = []byte(tc.original)
		}
		got, err := RemoveServer([]byte(fill.Replace(tc.now)), original, true)
		if err != nil || string(got) != tc.want || (got == nil) != (tc.want == "") {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, got, tc.want)
		}
	}
}

func TestServerOfOptions(t *testing.T) {
	env, dir := testEnv(t)
	s := env.Server(Options{}, testHost.Host)
	if err := s.Valid(); err != nil || s.Command != env.BinaryPath() || !s.Ours() || !slices.Equal(s.Args, []string{"mcp", "--host", string(testHost.Host)}) {
		t.Errorf("%+v, %v", s, err)
	}
	for _, path := range []string{"/usr/bin/memory", "/\xff/reme-hook"} {
		if out, err := UpsertServer(nil, env.Server(Options{Command: path}, testHost.Host)); err == nil {
			t.Errorf("%q passed: %s", path, out)
		}
	}
	path := filepath.Join(dir, "mcp.json")
	if got := env.JSONServers(Options{}, testHost.Host, path); got != nil {
		t.Errorf("no file: %+v", got)
	}
	installed, err := UpsertServer(nil, s)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]Registered{
		string(installed): {{s, path, false, true}},
		strings.Replace(string(installed), `"command"`, `"enabled": false, "command"`, 1):     {{s, path, true, true}},
		`{"mcpServers": {"reme": {"command": "/old/reme-hook", "args": ["mcp"]}}}`:            {{Server{"/old/reme-hook", []string{"mcp"}}, path, false, false}},
		`{"mcpServers": {"reme": {"url": "http://127.0.0.1:2333/mcp"}, "other": {}}, "z": 1}`: {{Server{}, path, false, false}},
		`{"mcpServers": {"other": {"command": "reme-hook", "args": ["mcp"]}}}`:                nil,
		"{": nil,
	} {
		write(t, path, []byte(text))
		if got := env.JSONServers(Options{}, testHost.Host, path); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
		plugin := env.PluginServers(Options{}, testHost.Host, path)
		if ours := len(want) > 0 && want[0].Ours(); len(plugin) > 0 != ours || ours && !plugin[0].Current {
			t.Errorf("%s, in a plugin: %+v", text, plugin)
		}
	}
}
