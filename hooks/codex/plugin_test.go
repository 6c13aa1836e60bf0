package codex

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
)

func TestPlugin(t *testing.T) {
	t.Parallel()
	hosttest.PluginHooks(t, configured)
	env := hosttest.Env(t)
	home := filepath.Join(env.Home, ".codex")
	hosttest.Plugin(t, Target{}, env, filepath.Join(home, "plugins", "cache", "reme-hook", "reme", "0.1.0"), "codex plugin remove reme@reme-hook", func(on bool) {
		hosttest.Write(t, filepath.Join(home, "config.toml"), fmt.Sprintf("[plugins.\"reme@reme-hook\"]\nenabled = %t\n[plugins.\"other@x\"]\nenabled = true\n", on))
	})
}
