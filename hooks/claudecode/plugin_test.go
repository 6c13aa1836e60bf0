package claudecode

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
)

func TestPlugin(t *testing.T) {
	t.Parallel()
	hosttest.PluginHooks(t, configured)
	env := hosttest.Env(t)
	home := filepath.Join(env.Home, ".claude")
	dir := filepath.Join(home, "plugins", "cache", "reme-hook", "reme", "0.1.0")
	type place struct {
		InstallPath string `json:"installPath"`
	}
	installed, err := json.Marshal(map[string]any{"version": 2, "plugins": map[string][]place{"reme@reme-hook": {{dir}}, "other@x": {{home}}, "none@x": {}}})
	if err != nil {
		t.Fatal(err)
	}
	hosttest.Write(t, filepath.Join(home, "plugins", "installed_plugins.json"), string(installed))
	hosttest.Plugin(t, Target{}, env, dir, "claude plugin uninstall reme@reme-hook", func(on bool) {
		hosttest.Write(t, filepath.Join(home, "settings.json"), fmt.Sprintf(`{"enabledPlugins": {"reme@reme-hook": %t, "other@x": true, "none@x": true}}`, on))
	})
}
