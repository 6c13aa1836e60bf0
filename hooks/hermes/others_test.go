package hermes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
	"github.com/agentscope-ai/reme-hook/install"
)

func TestOtherPlugins(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config, provider string // the text of a provider in our place
		shell            bool   // we are connected by shell hooks
		want             []string
	}{
		"nothing":                            {},
		"ours":                               {config: "memory:\n  provider: reme\n"},
		"our hooks":                          {shell: true},
		"our hooks, and another provider":    {config: "memory:\n  provider: openviking\n", shell: true, want: []string{"openviking"}},
		"another provider in our place":      {config: "memory:\n  provider: openviking\n"},
		"ReMe's own provider beside ours":    {config: "plugins: {enabled: [reme, 'notes']}\n", provider: "class MemoryProvider: ...", shell: true, want: []string{"reme", "notes"}},
		"enabled plugins":                    {config: "plugins:\n  enabled:\n  - openviking\n  disabled: [reme]\n", want: []string{"openviking"}},
		"hooks of others":                    {config: "hooks:\n  pre_llm_call:\n  - {command: 'HOME/openviking/recall.sh now'}\n  - {matcher: x}\n", shell: true, want: []string{"~/openviking/recall.sh now"}},
		"written in a way that nobody reads": {config: "memory: [\n"},
		"of other types":                     {config: "plugins: {enabled: openviking}\nhooks: [x]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := newEnv(t)
			if c.config != "" {
				hosttest.Write(t, configFile(env), strings.ReplaceAll(c.config, "HOME", env.Home))
			}
			if c.provider != "" {
				hosttest.Write(t, filepath.Join(pluginDir(env), "__init__.py"), c.provider)
			}
			if c.shell {
				if _, err := install.Install(t.Context(), Target{}, env, install.Options{ShellHooks: true}); err != nil {
					t.Fatal(err)
				}
			}
			if got := (Target{}).OtherPlugins(env); !slices.Equal(got, c.want) {
				text, _ := os.ReadFile(configFile(env))
				t.Errorf("%q, want %q of %s", got, c.want, text)
			}
		})
	}
}
