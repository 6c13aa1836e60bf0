package codex

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/install"
)

var testServer = install.Server{Command: "/home/u/.reme/integrations/bin/reme-hook", Args: []string{"mcp"}}

// nastyConfigs are files that have to survive. Each is also tried with other line
// ends, a byte order mark, and without its last newline.
var nastyConfigs = map[string]string{
	"nothing":              "",
	"white":                " \n\t\n",
	"only comments":        "# one\n\n  # two\n",
	"keys":                 "model = \"gpt-5.1\"\n# last\n",
	"blank lines":          "\n\na = 1\n\n\n\n",
	"tables":               "a = 1\n\n[features]\nhooks = true # yes\n\n[projects.\"/src/it's\"]\ntrust_level = \"trusted\"\n",
	"approvals":            "[hooks.state]\n\n[hooks.state.\"/x/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:00\"\n",
	"servers":              "[mcp_servers.git]\ncommand = \"uvx\"\nargs = [\n  \"mcp-server-git\", # it\n]\n\n[mcp_servers.git.env]\nA = \"b\"\n",
	"servers in a table":   "[mcp_servers]\ngit = { command = \"uvx\" }\nremember = {url = \"http://127.0.0.1:1/mcp\"}\n\n[tui]\nx = 1\n",
	"empty servers":        "[mcp_servers] # none\n\n[tui]\nx = 1\n",
	"dotted":               "mcp_servers.git.command = \"uvx\"\nb = 2\n\n[c]\nd = 1\n",
	"server of a profile":  "[profiles.x.mcp_servers.reme]\ncommand = \"y\"\n",
	"names like ours":      "[mcp_servers.reme2]\ncommand = \"y\"\n\n[\"mcp_servers.reme\"]\ncommand = \"z\"\n",
	"quoted table":         "[\"mcp_servers\".'git']\ncommand = 'uvx'\n",
	"in strings":           "a = \"\"\"\n[mcp_servers.reme]\ncommand = \"x\"\n\"\"\"\nb = '''\n# [mcp_servers.reme]'''\n",
	"commented out":        "# [mcp_servers.reme]\n# command = \"reme-hook\"\n# args = [\"mcp\"]\n",
	"array of tables":      "[[a]]\nb = 1\n\n[[a]]\nb = 2\n",
	"end in a comment":     "a = 1\n[b]\n# nothing in it\n",
	"indented":             "  [a]\n    b = 1\n\t[c]\n\td = 2\n",
	"dates and numbers":    "a = 2026-11-30T02:06:37Z\nb = 0x1F\nc = 1e3\nd = 1_000\n",
	"no number":            "n = nan\ni = [-inf, {n = nan}]\n",
	"other languages":      "# привет 你好\n\"ключ\" = \"🙂\"\n",
	"long strings at end":  "[a]\nb = '''\n# no comment\n\n'''\n",
	"spaces at line ends":  "a = 1  \n[b] \t\nc = 2 \n  \n",
	"multi-line arrays":    "notify = [\n  \"a\",\n\n  \"b\",\n]\n[a]\n\"[x]\" = [ [1], [2] ]\n",
	"inline with brackets": "a = { b = \"[mcp_servers.reme]\", c = [ { d = \"}\" } ] }\n",
}

func configVariants(text string) map[string][]byte {
	return map[string][]byte{
		"":             []byte(text),
		", CRLF":       []byte(strings.ReplaceAll(text, "\n", "\r\n")),
		", BOM":        append(bytes.Clone(install.BOM), text...),
		", no newline": []byte(strings.TrimRight(text, "\n")),
	}
}

func TestServerInConfig(t *testing.T) {
	t.Parallel()
	for name, text := range nastyConfigs {
		for variant, src := range configVariants(text) {
			serverRoundTrip(t, name+variant, src)
		}
	}
}

// serverRoundTrip puts our server into a file that has none, again, for another
// place, and takes it out.
func serverRoundTrip(t testing.TB, name string, src []byte) {
	t.Helper()
	out, err := upsertServer(src, testServer)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	moved := install.Server{Command: `C:\it's "else"where\` + "ü\\reme-hook.exe", Args: []string{"mcp"}}
	other, err := upsertServer(out, moved)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if again, err := upsertServer(out, testServer); err != nil || !bytes.Equal(again, out) {
		t.Errorf("%s: a second time changes it: %v\n%s", name, err, again)
	}
	if back, err := upsertServer(other, testServer); err != nil || !bytes.Equal(back, out) {
		t.Errorf("%s: there and back changes it: %v\n%s", name, err, back)
	}
	before, err := parseServers(bytes.TrimPrefix(src, install.BOM))
	if err != nil {
		t.Fatal(err)
	}
	for want, text := range map[*install.Server][]byte{&testServer: out, &moved: other} {
		after, err := parseServers(bytes.TrimPrefix(text, install.BOM))
		if err != nil || !install.Same(after.ours, *want) || !install.Same(after.others, before.others) || bytes.HasPrefix(src, install.BOM) != bytes.HasPrefix(text, install.BOM) {
			t.Errorf("%s: %+v, %v\n%s", name, after, err, text)
		}
		for _, known := range []bool{true, false} {
			// A last line gets an end; nothing else is left.
			left, err := removeServer(text, src, known)
			if err != nil || !bytes.Equal(left, src) && strings.TrimRight(string(left), "\r\n") != string(src) {
				t.Errorf("%s: %v, want\n%q\ngot\n%q", name, err, src, left)
			}
		}
	}
	if strings.HasSuffix(name, ", CRLF") && bytes.Contains(src, []byte("\n")) && bytes.Count(out, []byte("\r\n")) != bytes.Count(out, []byte("\n")) {
		t.Errorf("%s: mixed line ends\n%q", name, out)
	}
}

func FuzzServer(f *testing.F) {
	for _, text := range nastyConfigs {
		for _, src := range configVariants(text) {
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		before, err := parseServers(bytes.TrimPrefix(src, install.BOM))
		if err != nil || before.named {
			return
		}
		if _, err := upsertServer(src, testServer); err == nil {
			serverRoundTrip(t, "fuzz", src)
		}
	})
}

// TestServerEdited: the user, or Codex, has written in the file in between.
func TestServerEdited(t *testing.T) {
	t.Parallel()
	const ours = "[mcp_servers.reme]\ncommand = '/old/reme-hook'\nargs = [\"mcp\"]\n"
	for name, c := range map[string]struct{ text, updated, removed string }{
		"tables behind": {
			"a = 1\n\n" + ours + "\n[mcp_servers.reme.tools.search]\napproval_mode = \"approve\"\n\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n",
			"a = 1\n\n[mcp_servers.reme]\ncommand = 'NEW'\nargs = [\"mcp\"]\n\n[mcp_servers.reme.tools.search]\napproval_mode = \"approve\"\n\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n",
			"a = 1\n\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n",
		},
		"comments": {
			"# of a\na = 1\n# of us\n[mcp_servers.reme] # us\n  command = \"reme-hook\" # it\n# args\nargs = [\n  \"mcp\",\n]\n# of b\n\n[b]\nc = 1",
			"# of a\na = 1\n# of us\n[mcp_servers.reme] # us\n  command = 'NEW' # it\n# args\nargs = [\n  \"mcp\",\n]\n# of b\n\n[b]\nc = 1",
			"# of a\na = 1\n# of us\n# of b\n\n[b]\nc = 1",
		},
		"added by codex, more keys": {
			"[mcp_servers.reme]\nstartup_timeout_sec = 3\ncommand = \"/usr/bin/reme-hook\"\nargs = [\"mcp\"]\nenabled = false\n\n[mcp_servers.reme.env]\nA = \"b\"\n",
			"[mcp_servers.reme]\nstartup_timeout_sec = 3\ncommand = 'NEW'\nargs = [\"mcp\"]\nenabled = false\n\n[mcp_servers.reme.env]\nA = \"b\"\n",
			"",
		},
		"in a table of servers": {
			"[mcp_servers]\na = {command = \"x\"}\nreme = { args = [\"mcp\"], command = \"reme-hook\" } # us\nb.command = \"y\"\n",
			"[mcp_servers]\na = {command = \"x\"}\nreme = { args = [\"mcp\"], command = 'NEW' } # us\nb.command = \"y\"\n",
			"[mcp_servers]\na = {command = \"x\"}\nb.command = \"y\"\n",
		},
		"dotted": {
			"mcp_servers.reme.command = \"reme-hook\"\nmcp_servers.reme.args = [\n\"mcp\"]\nz = 1\n",
			"mcp_servers.reme.command = 'NEW'\nmcp_servers.reme.args = [\n\"mcp\"]\nz = 1\n",
			"z = 1\n",
		},
		"alone in a table": {
			"[mcp_servers]\nreme = {command = \"reme-hook\", args = [\"mcp\"]}\n",
			"[mcp_servers]\nreme = {command = 'NEW', args = [\"mcp\"]}\n",
			"[mcp_servers]\n",
		},
		"quoted, CRLF": {
			"x = 1\r\n\r\n[\"mcp_servers\" . 'reme']\r\ncommand = \"reme-hook\"\r\nargs = [\"mcp\"]\r\n\r\n[b]\r\n",
			"x = 1\r\n\r\n[\"mcp_servers\" . 'reme']\r\ncommand = 'NEW'\r\nargs = [\"mcp\"]\r\n\r\n[b]\r\n",
			"x = 1\r\n\r\n[b]\r\n",
		},
	} {
		got, err := upsertServer([]byte(c.text), testServer)
		if want := strings.ReplaceAll(c.updated, "'NEW'", quote(testServer.Command)); err != nil || string(got) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, got, want)
		}
		left, err := removeServer([]byte(c.text), nil, false)
		if err != nil || string(left) != c.removed {
			t.Errorf("%s: %v, left %q, want %q", name, err, left, c.removed)
		}
	}
	for src, want := range map[string]string{
		"[mcp_servers.reme]\ncommand = 'reme-hook'\nargs = [ # old\n  'mcp', # it\n  \"-v\", ]\nenabled = false\n": "[mcp_servers.reme]\ncommand = 'NEW'\nargs = [ # old\n  \"mcp\", \"--host\", \"codex\", ]\nenabled = false\n",
		"mcp_servers.reme = {args=[\"mcp\"], command = \"/x/reme-hook\"}\nz = 1\n":                                 "mcp_servers.reme = {args=[\"mcp\", \"--host\", \"codex\"], command = 'NEW'}\nz = 1\n",
	} {
		server := install.Server{Command: testServer.Command, Args: []string{"mcp", "--host", "codex"}}
		got, err := upsertServer([]byte(src), server)
		if want := strings.ReplaceAll(want, "'NEW'", quote(server.Command)); err != nil || string(got) != want {
			t.Errorf("other arguments: %v\n got %s\nwant %s", err, got, want)
		}
	}
	if left, err := removeServer([]byte(ours), nil, true); err != nil || left != nil {
		t.Errorf("a file that was not there: %q, %v", left, err)
	}
}

func TestServerRefusedInConfig(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no TOML":         "a = \n",
		"a service":       "[mcp_servers.reme]\nurl = \"http://127.0.0.1:2333/mcp\"\n",
		"another program": "[mcp_servers.reme]\ncommand = \"uvx\"\nargs = [\"mcp\"]\n",
		"no table":        "[mcp_servers]\nreme = 1\n",
		"inline servers":  "mcp_servers = {git = {command = \"uvx\"}}\n",
		"servers a list":  "mcp_servers = []\n",
	} {
		if out, err := upsertServer([]byte(text), testServer); err == nil {
			t.Errorf("%s passed:\n%s", name, out)
		} else if name == "a service" && !errors.Is(err, install.ErrForeignServer) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := removeServer([]byte(text), nil, false); err != nil || string(left) != text {
			t.Errorf("%s: %v, left\n%s", name, err, left)
		}
	}
	const inline = "mcp_servers = {reme = {command = \"reme-hook\", args = [\"mcp\"]}, x = {}}\n"
	if left, err := removeServer([]byte(inline), nil, false); err == nil || !strings.Contains(err.Error(), "codex mcp remove reme") {
		t.Errorf("%v, left\n%s", err, left)
	}
}

// TestServerAndApprovals: both are in one file.
func TestServerAndApprovals(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	const text = "a = 1 # mine"
	config := filepath.Join(env.Home, ".codex", "config.toml")
	write(t, config, text)
	for _, o := range []install.Options{{}, {Part: install.HooksPart}, {Command: "/elsewhere/reme-hook"}} {
		if _, err := install.Install(t.Context(), Target{}, env, o); err != nil {
			t.Fatal(err)
		}
	}
	if r := (Target{}).Check(env, install.Options{}); len(r.Servers) != 1 || r.Servers[0].Command != "/elsewhere/reme-hook" || r.Servers[0].Current {
		t.Errorf("%+v", r)
	}
	if _, err := install.Install(t.Context(), Target{}, env, install.Options{Part: install.ServerPart}); err != nil {
		t.Fatal(err)
	}
	if r := (Target{}).Check(env, install.Options{}); len(r.Servers) != 1 || !r.Servers[0].Current || r.Hooks[0].Current {
		t.Errorf("%+v", r)
	}
	if _, err := install.Install(t.Context(), Target{}, env, install.Options{}); err != nil {
		t.Fatal(err)
	}
	placed, err := configured.Placed(filepath.Join(env.Home, ".codex", "hooks.json"))
	if err != nil {
		t.Fatal(err)
	}
	// As Codex does, in front of our table.
	approved := strings.Replace(get(t, config), "[mcp_servers", approve(filepath.Join(env.Home, ".codex", "hooks.json"), placed, nil)+"\n[mcp_servers", 1)
	write(t, config, approved)
	project := install.Options{Scope: install.ProjectScope, ProjectDir: t.TempDir()}
	if _, err := install.Uninstall(t.Context(), Target{}, env, project); err != nil || get(t, config) != approved {
		t.Errorf("the uninstall of a project: %v, left\n%s", err, get(t, config))
	}
	if _, err := install.Uninstall(t.Context(), Target{}, env, install.Options{}); err != nil || strings.TrimSpace(get(t, config)) != text {
		t.Errorf("%v, left\n%s", err, get(t, config))
	}
}
