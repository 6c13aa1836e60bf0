package openclaw

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
	"github.com/agentscope-ai/reme-hook/install"
)

var target = Target{Version: "1.2.3"}

func mustInstall(t *testing.T, env install.Env) []install.Change {
	t.Helper()
	changes, err := install.Install(t.Context(), target, env, install.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func mustUninstall(t *testing.T, env install.Env) {
	t.Helper()
	if _, err := install.Uninstall(t.Context(), target, env, install.Options{}); err != nil {
		t.Fatal(err)
	}
}

func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); err == nil {
		t.Errorf("%s is still there", path)
	}
}

// problems is what Check has to say, and what to do, a line each.
func problems(env install.Env) string {
	var b strings.Builder
	for _, p := range target.Check(env, install.Options{}).Problems {
		b.WriteString(p.What + " → " + p.Do + "\n")
	}
	return b.String()
}

const fresh = `{
  "plugins": {
    "entries": {
      "reme": {
        "enabled": true,
        "hooks": {
          "allowConversationAccess": true
        }
      }
    }
  }
}
`

func TestFreshMachine(t *testing.T) {
	t.Parallel()
	env := hosttest.Env(t)
	if changes := mustInstall(t, env); len(changes) != 5 {
		t.Errorf("%d changes", len(changes))
	}
	dir := filepath.Join(env.Home, ".openclaw")
	if got := hosttest.Get(t, filepath.Join(dir, "openclaw.json")); got != fresh {
		t.Errorf("the configuration is\n%s", got)
	}
	if index := hosttest.Get(t, filepath.Join(dir, "extensions", "reme", "index.js")); !strings.Contains(index, "Made by reme-hook 1.2.3") {
		t.Error("the plugin does not say who made it")
	}
	if changes := mustInstall(t, env); len(changes) != 0 {
		t.Errorf("a second install changes %v", changes)
	}
	if p := problems(env); p != "" {
		t.Error(p)
	}
	report := target.Check(env, install.Options{})
	if len(report.Hooks) != len(Adapter().Events) || !report.Hooks[0].Current {
		t.Errorf("%+v", report)
	}
	if report := (Target{Version: "2"}).Check(env, install.Options{}); report.Hooks[0].Current {
		t.Error("the plugin of an older version passes as current")
	}
	mustUninstall(t, env)
	gone(t, dir)

	mustInstall(t, env)
	hosttest.Write(t, configFile(env), strings.ReplaceAll(fresh, "\n", "")) // as somebody else writes it
	mustUninstall(t, env)
	gone(t, dir)
	if report := target.Check(env, install.Options{}); len(report.Hooks)+len(report.Problems) > 0 {
		t.Errorf("%+v", report)
	}
}

// TestConfigs: what an install makes of a configuration, and that an uninstall
// gives it back, also if OpenClaw wrote it anew.
func TestConfigs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, after, problem string }{
		"empty":          {"", fresh, ""},
		"something":      {"{\n\t\"gateway\": {\"port\": 1}\n}", "{\n\t\"gateway\": {\"port\": 1},\n\t\"plugins\": {\n\t\t\"entries\": {\n\t\t\t\"reme\": {\n\t\t\t\t\"enabled\": true,\n\t\t\t\t\"hooks\": {\n\t\t\t\t\t\"allowConversationAccess\": true\n\t\t\t\t}\n\t\t\t}\n\t\t}\n\t}\n}", ""},
		"another plugin": {`{"plugins":{"entries":{"x":{"enabled":false}},"slots":{"memory":"memory-core"}}}`, `{"plugins":{"entries":{"x":{"enabled":false},"reme":{"enabled":true,"hooks":{"allowConversationAccess":true}}},"slots":{"memory":"memory-core"}}}`, ""},
		"a list":         {`{"plugins":{"allow":["x"]}}`, `{"plugins":{"allow":["x","reme"],"entries":{"reme":{"enabled":true,"hooks":{"allowConversationAccess":true}}}}}`, ""},
		"an empty list":  {`{"plugins":{"allow":[]}}`, `{"plugins":{"allow":[],"entries":{"reme":{"enabled":true,"hooks":{"allowConversationAccess":true}}}}}`, ""},
		"denied":         {`{"plugins":{"deny":["reme"]}}`, `{"plugins":{"deny":["reme"],"entries":{"reme":{"enabled":true,"hooks":{"allowConversationAccess":true}}}}}`, "denies the plugin"},
		"no plugins":     {`{"plugins":{"enabled":false}}`, `{"plugins":{"enabled":false,"entries":{"reme":{"enabled":true,"hooks":{"allowConversationAccess":true}}}}}`, "all plugins are switched off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := hosttest.Env(t)
			path := configFile(env)
			hosttest.Write(t, path, c.before)
			mustInstall(t, env)
			got := hosttest.Get(t, path)
			if got != c.after {
				t.Errorf("%s, want %s", got, c.after)
			}
			if p := problems(env); (p != "") != (c.problem != "") || !strings.Contains(p, c.problem) {
				t.Errorf("problems %q, want %q", p, c.problem)
			}
			hosttest.Write(t, path, got+"\n") // as somebody else writes it
			mustUninstall(t, env)
			if got := hosttest.Get(t, path); strings.Contains(got, `reme":`) || strings.Contains(got, "entries") != strings.Contains(c.before, "entries") {
				t.Errorf("%s, was %s", got, c.before)
			}
			gone(t, filepath.Join(env.Home, ".openclaw", "extensions"))

			hosttest.Write(t, path, c.before)
			mustInstall(t, env)
			mustUninstall(t, env)
			if got := hosttest.Get(t, path); got != c.before {
				t.Errorf("%s, was %s", got, c.before)
			}
		})
	}
}

// TestDecided: what the user has decided about the plugin stays, and is told.
func TestDecided(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		`{"enabled":false,"hooks":{"allowConversationAccess":true}}`:                             "is switched off in",
		`{"enabled":true,"hooks":{"allowConversationAccess":false}}`:                             "capture and recall are off",
		`{"enabled":true,"hooks":{"allowConversationAccess":true,"allowPromptInjection":false}}`: "recall is off",
	} {
		env := hosttest.Env(t)
		text := `{"plugins":{"entries":{"reme":` + entry + `}}}`
		hosttest.Write(t, configFile(env), text)
		mustInstall(t, env)
		if got := hosttest.Get(t, configFile(env)); got != text {
			t.Errorf("%s, was %s", got, text)
		}
		if p := problems(env); !strings.Contains(p, want) || strings.Count(p, "\n") != 1 || !strings.Contains(p, "openclaw config set plugins.entries.reme.") {
			t.Errorf("%s: problems %q", entry, p)
		}
	}
}

// TestNotRewritten: what is no strict JSON, includes other files or is made by
// Nix stays as it is, and the user is told the commands.
func TestNotRewritten(t *testing.T) {
	t.Parallel()
	const commands = "openclaw config set plugins.entries.reme.enabled true && openclaw config set plugins.entries.reme.hooks.allowConversationAccess true"
	for name, c := range map[string]struct{ text, other, do string }{
		"comments":         {"{\n  // mine\n  \"gateway\": {},\n}", "", commands},
		"JSON5":            {"{gateway: {port: 1}, 'x': .5}", "", commands},
		"JSON5 with ours":  {"{plugins: {allow: ['reme']}}", "", commands},
		"root include":     {`{"$include":"other.json"}`, `{"gateway":{}}`, commands},
		"plugins included": {`{"plugins":{"$include":["other.json"]}}`, `{"allow":["x"]}`, commands + ` && openclaw config set plugins.allow '["x","reme"]'`},
		"there already":    {`{"plugins":{"$include":"other.json"}}`, `{"entries":{"reme":{"enabled":true,"hooks":{"allowConversationAccess":true}}}, /* ok */}`, ""},
		"list there":       {"{\n  // mine\n  \"plugins\": {\"allow\": [\"x\"]}}", "", commands + ` && openclaw config set plugins.allow '["x","reme"]'`},
		"half of it there": {`{"plugins":{"$include":["other.json"],"entries":{"reme":{"enabled":true},"x":{}}}}`, `{"enabled":true,"entries":{"reme":{"hooks":{"allowConversationAccess":true}}}}`, ""},
		"missing include":  {`{"plugins":{"$include":"none.json"}}`, "", commands},
		"circular include": {`{"plugins":{"$include":"openclaw.json"}}`, "", commands},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := hosttest.Env(t)
			path := configFile(env)
			hosttest.Write(t, path, c.text)
			if c.other != "" {
				hosttest.Write(t, filepath.Join(filepath.Dir(path), "other.json"), c.other)
			}
			if changes := mustInstall(t, env); len(changes) != 4 {
				t.Errorf("%d changes", len(changes))
			}
			p := problems(env)
			if got := hosttest.Get(t, path); got != c.text {
				t.Errorf("%s, was %s", got, c.text)
			}
			if _, do, _ := strings.Cut(strings.TrimSpace(p), " → "); do != c.do {
				t.Errorf("to do: %q, want %q", do, c.do)
			}
			_, err := install.Uninstall(t.Context(), target, env, install.Options{})
			unset := strings.Contains(name, "there already") || strings.Contains(name, "half") || strings.Contains(name, "JSON5 with") || strings.Contains(name, "missing") || strings.Contains(name, "circular")
			if unset != (err != nil && strings.Contains(err.Error(), "openclaw config unset plugins.entries.reme")) {
				t.Errorf("uninstall: %v", err)
			}
		})
	}
	env := hosttest.Env(t)
	env.Environ = []string{"OPENCLAW_NIX_MODE=1"}
	hosttest.Write(t, configFile(env), "{}")
	mustInstall(t, env)
	if got := hosttest.Get(t, configFile(env)); got != "{}" || !strings.Contains(problems(env), commands) {
		t.Errorf("%s, %s", got, problems(env))
	}
	mustUninstall(t, env)
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"plugins":[]}`:                                `"plugins" is no object`,
		`{"plugins":{"entries":{"reme":7}}}`:            `"plugins.entries.reme" is no object`,
		`{"plugins":{},"plugins":{}}`:                   "is there twice",
		`{"plugins":{"entries":{"reme":{"hooks":[]}}}}`: `"plugins.entries.reme.hooks" is no object`,
	} {
		env := hosttest.Env(t)
		hosttest.Write(t, configFile(env), text)
		if _, err := install.Install(t.Context(), target, env, install.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
		gone(t, pluginDir(env))
	}
	env := hosttest.Env(t)
	hosttest.Write(t, filepath.Join(pluginDir(env), "index.js"), "export default {}")
	if _, err := install.Install(t.Context(), target, env, install.Options{}); err == nil || !strings.Contains(err.Error(), "holds another plugin") {
		t.Error(err)
	}
	if _, err := install.Install(t.Context(), target, hosttest.Env(t), install.Options{Scope: install.ProjectScope}); err == nil {
		t.Error("projects have no configuration of OpenClaw")
	}
	if _, err := install.Install(t.Context(), target, hosttest.Env(t), install.Options{Part: install.ServerPart}); err == nil || !strings.Contains(err.Error(), "leave out --mcp-only") {
		t.Error(err)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	for environ, want := range map[string]string{
		"":                         "~/.openclaw ~/.openclaw/openclaw.json",
		"OPENCLAW_PROFILE=work":    "~/.openclaw-work ~/.openclaw-work/openclaw.json",
		"OPENCLAW_PROFILE=default": "~/.openclaw ~/.openclaw/openclaw.json",
		"OPENCLAW_STATE_DIR=/s OPENCLAW_PROFILE=work":        "/s /s/openclaw.json",
		"OPENCLAW_STATE_DIR=~/s":                             "~/s ~/s/openclaw.json",
		"OPENCLAW_CONFIG_PATH=/c.json":                       "~/.openclaw /c.json",
		"OPENCLAW_HOME=/h":                                   "/h/.openclaw /h/.openclaw/openclaw.json",
		"OPENCLAW_HOME=~/h OPENCLAW_CONFIG_PATH=~/c.json":    "~/h/.openclaw ~/h/c.json",
		"OPENCLAW_HOME=~/h OPENCLAW_STATE_DIR=~/.openclaw-x": "~/h/.openclaw-x ~/h/.openclaw-x/openclaw.json",
	} {
		env := install.Env{Home: "/home/dev", Environ: strings.Fields(environ)}
		if got := stateDir(env) + " " + configFile(env); got != strings.ReplaceAll(want, "~", env.Home) {
			t.Errorf("%s: %s, want %s", environ, got, want)
		}
	}
}

func TestPluginGone(t *testing.T) {
	t.Parallel()
	env := hosttest.Env(t)
	mustInstall(t, env)
	if err := os.RemoveAll(pluginDir(env)); err != nil {
		t.Fatal(err)
	}
	if p := problems(env); !strings.Contains(p, "which is not in") {
		t.Error(p)
	}
	mustUninstall(t, env)
	gone(t, configFile(env))
}

func TestReleases(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]bool{"2026.9.6": false, "2026.9.5": true, "2026.10.0": false, "2027.1": false, "2025.12.31": true, "2026.9.6-beta.1": false} {
		if older(v, tested) != want {
			t.Error(v)
		}
	}
	env := hosttest.Env(t)
	program := filepath.Join(env.Home, "openclaw")
	hosttest.WriteProgram(t, program, "#!/bin/sh\necho 'OpenClaw 2026.8.1 (abc1234)'\n")
	env.LookPath = func(string) (string, error) { return program, nil }
	st, err := target.Trusted(context.Background(), env, install.Options{})
	if err != nil || len(st.Problems) != 1 || !strings.Contains(st.Problems[0].What, "OpenClaw 2026.8.1 is older than 2026.9.6") {
		t.Errorf("%+v, %v", st, err)
	}
}
