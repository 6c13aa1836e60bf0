package hosttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/install"
)

// bundle is a file of a host's plugin as it lies in the repository.
func bundle(host client.Host, name string) string {
	return filepath.Join("..", "..", "plugins", string(host), filepath.FromSlash(name))
}

// PluginHooks checks that the plugin of a marketplace has the hooks of an
// install, with the program on the PATH.
func PluginHooks(t *testing.T, host install.JSONHost) {
	t.Helper()
	file := bundle(host.Host, "hooks/hooks.json")
	hooks, err := host.File(file, install.OnPath)
	if err != nil {
		t.Fatal(err)
	}
	want, err := hooks.Upsert(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := Get(t, file); got != string(want) {
		t.Errorf("%s is not\n%s", file, want)
	}
}

// Plugin puts the plugin of a marketplace into dir, where a host would, and
// checks that it alone is as good as an install, and worth a word beside one.
// enable switches it on or off; remove is how the word says it is taken out.
func Plugin(t *testing.T, target install.Target, env install.Env, dir, remove string, enable func(on bool)) {
	t.Helper()
	for _, name := range []string{"hooks/hooks.json", ".mcp.json"} {
		Write(t, filepath.Join(dir, filepath.FromSlash(name)), Get(t, bundle(target.Host(), name)))
	}
	check := func(what string, hooks, servers int, onPath bool, problem string) install.Report {
		t.Helper()
		r := target.Check(env, install.Options{})
		if len(r.Hooks) != hooks || len(r.Servers) != servers || r.OnPath != onPath || hooks > 0 && len(r.Missing) > 0 || len(r.Problems) > 0 != (problem != "") {
			t.Errorf("%s: %+v", what, r)
		}
		for _, p := range r.Problems {
			if !strings.HasPrefix(p.What, problem+":") || !strings.Contains(p.Do, remove) || p.Off {
				t.Errorf("%s: %+v", what, p)
			}
		}
		return r
	}
	enable(false)
	check("switched off", 0, 0, false, "")
	enable(true)
	n := len(target.Check(env, install.Options{}).Hooks)
	r := check("alone", n, 1, true, "")
	if n == 0 || !r.HasServer() || !r.Hooks[0].Current || !r.Servers[0].Current {
		t.Errorf("alone: %+v", r)
	}
	for _, c := range []struct {
		part           install.Part
		hooks, servers int
		problem        string
	}{
		{"", 2 * n, 2, "each hook runs twice, and the model has the tools twice"},
		{install.HooksPart, 2 * n, 1, "each hook runs twice"},
		{install.ServerPart, n, 2, "the model has the tools twice"},
	} {
		if _, err := install.Install(t.Context(), target, env, install.Options{Part: c.part}); err != nil {
			t.Fatal(err)
		}
		check("beside "+string(c.part), c.hooks, c.servers, false, c.problem)
		if _, err := install.Uninstall(t.Context(), target, env, install.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	check("gone", 0, 0, false, "")
}
