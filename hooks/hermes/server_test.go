package hermes

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/install"
	"gopkg.in/yaml.v3"
)

var testServer = install.Server{Command: "/home/u/.reme/integrations/bin/reme-hook", Args: []string{"mcp"}}

// withServers are further files that have to survive.
var withServers = map[string]string{
	"server":             "mcp_servers:\n  git:\n    command: uvx\n    args:\n    - mcp-server-git\nz: 1\n",
	"server last":        "a: 1\nmcp_servers:   # all\n\n      git: {command: uvx}",
	"empty servers":      "mcp_servers: {} # none\n",
	"no servers":         "mcp_servers: # none\nz: 1\n",
	"null servers":       "mcp_servers: ~\n",
	"servers in braces":  "mcp_servers: {git: {command: uvx, args: ['}', \"]\"]}, x: {url: 'http://x'}}\n",
	"over lines":         "mcp_servers: {\n  git: {command: uvx}, # git\n}\n",
	"names like ours":    "mcp_servers:\n  reme2: {command: x}\nx:\n  reme: 1\n",
	"servers, windows":   "mcp_servers:\r\n  git:\r\n    command: uvx\r\nz: 1\r\n",
	"quoted servers":     "\"mcp_servers\":\n  'git': {}\n",
	"servers in a value": "a: \"mcp_servers:\\n  reme: x\"\nb: |\n  mcp_servers:\n    reme: x\n",
}

func TestServerUpsert(t *testing.T) {
	t.Parallel()
	moved := install.Server{Command: `/it's "else"where/$HOME/ü\/reme-hook`, Args: []string{"mcp"}}
	for _, texts := range []map[string]string{withServers, befores()} {
		for name, text := range texts {
			before, err := parse([]byte(text))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			out, err := upsertServer([]byte(text), testServer)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if again, err := upsertServer(out, testServer); err != nil || !bytes.Equal(again, out) {
				t.Errorf("%s: the second time %q, %v", name, again, err)
			}
			other, err := upsertServer(out, moved)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for want, text := range map[*install.Server][]byte{&testServer: out, &moved: other} {
				c, err := parse(text)
				if err != nil || !reflect.DeepEqual(c.server(), *want) || !install.SameYAML(c.others(serverSetting(*want)), before.others(serverSetting(*want))) {
					t.Errorf("%s: %q, %v", name, text, err)
				}
				// An end of the last line is left.
				left, err := removeServer(text, before.Bytes(), true)
				if err != nil || strings.TrimRight(string(left), "\r\n") != strings.TrimRight(string(before.Bytes()), "\r\n") && name != "null servers" {
					t.Errorf("%s: without us %q, %v, was %q", name, left, err, before.Bytes())
				}
			}
			// As Hermes writes it after a setting was changed.
			var all map[string]any
			if yaml.Unmarshal(out, &all) != nil {
				continue
			}
			rewritten, err := yaml.Marshal(all)
			if err != nil {
				t.Fatal(err)
			}
			left, err := removeServer(rewritten, before.Bytes(), true)
			if err != nil || bytes.Contains(left, []byte("integrations/bin")) {
				t.Errorf("%s: rewritten as %q, without us %q, %v", name, rewritten, left, err)
			}
		}
	}
}

// befores are the files of another test as they were.
func befores() map[string]string {
	out := map[string]string{}
	for name, e := range edits {
		out[name+" "] = e.before
	}
	return out
}

func TestServerEdited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, updated, removed string }{
		"with more": {
			"a: 1 # one\nmcp_servers:\n  # us\n  reme:\n    command: /old/reme-hook # it\n    args:\n    - mcp\n    enabled: false\n    env: {A: b}\n  git: {}\n",
			"a: 1 # one\nmcp_servers:\n  # us\n  reme:\n    command: 'NEW' # it\n    args:\n    - mcp\n    enabled: false\n    env: {A: b}\n  git: {}\n",
			"a: 1 # one\nmcp_servers:\n  # us\n  git: {}\n",
		},
		"alone": {
			"mcp_servers:\n  reme:\n    args: [mcp]\n    command: \"reme-hook\"\nz: 1\n",
			"mcp_servers:\n  reme:\n    args: [mcp]\n    command: 'NEW'\nz: 1\n",
			"z: 1\n",
		},
		"in braces": {
			"{mcp_servers: {git: {}, reme: {command: '/it''s/reme-hook', args: [mcp, x]}}, z: 1}\n",
			"{mcp_servers: {reme: {command: 'NEW', args: [mcp]}, git: {}}, z: 1}\n",
			"{mcp_servers: {git: {}}, z: 1}\n",
		},
	} {
		got, err := upsertServer([]byte(c.text), testServer)
		if want := strings.ReplaceAll(c.updated, "NEW", testServer.Command); err != nil || string(got) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, got, want)
		}
		if left, err := removeServer([]byte(c.text), nil, false); err != nil || string(left) != c.removed {
			t.Errorf("%s: %v, left %q, want %q", name, err, left, c.removed)
		}
	}
	for name, c := range map[string]struct{ text, why string }{
		"a service":       {"mcp_servers:\n  reme:\n    url: http://127.0.0.1:2333/mcp\n", "another MCP server"},
		"another program": {"mcp_servers: {reme: {command: uvx, args: [mcp]}}\n", "another MCP server"},
		"text":            {"mcp_servers: no\n", "not edited"},
		"shared":          {"x: &x {git: {}}\nmcp_servers: *x\n", "not edited"},
		"twice":           {"mcp_servers: {}\nmcp_servers: {}\n", "twice"},
	} {
		if got, err := upsertServer([]byte(c.text), testServer); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %q, %v", name, got, err)
		} else if name == "a service" && !errors.Is(err, install.ErrForeignServer) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := removeServer([]byte(c.text), nil, false); err != nil || string(left) != c.text {
			t.Errorf("%s: left %q, %v", name, left, err)
		}
	}
	if _, err := upsertServer(nil, install.Server{Command: "/${X}/reme-hook", Args: []string{"mcp"}}); err == nil {
		t.Error("a variable passed")
	}
	out, err := upsertServer(nil, testServer)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := removeServer(out, nil, true); err != nil || left != nil {
		t.Errorf("a file that was not there: %q, %v", left, err)
	}
}

// FuzzServer checks that an edit adds the server and nothing else, and that it
// can be taken back.
func FuzzServer(f *testing.F) {
	for _, texts := range []map[string]string{withServers, befores()} {
		for _, text := range texts {
			f.Add([]byte(text))
		}
	}
	s := serverSetting(testServer)
	f.Fuzz(func(t *testing.T, text []byte) {
		before, err := parse(text)
		if err != nil || before.node(s) != nil {
			return
		}
		out, err := upsertServer(text, testServer)
		if err != nil {
			return
		}
		c, err := parse(out)
		if err != nil || !reflect.DeepEqual(c.server(), testServer) || !install.SameYAML(c.others(s), before.others(s)) {
			t.Fatalf("%q became %q (%v)", text, out, err)
		}
		if left, err := removeServer(out, text, true); err == nil {
			q, err := parse(left)
			if err != nil || q.node(s) != nil || !install.SameYAML(q.others(s), before.others(s)) {
				t.Fatalf("%q became %q and then %q (%v)", text, out, left, err)
			}
		}
	})
}
