package codex

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agentscope-ai/reme-hook/install"
)

// TestPluginHooks: the plugin of the marketplace has the hooks of an install, with the program on the PATH.
func TestPluginHooks(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "plugins", string(Host), "hooks", "hooks.json")
	hooks, err := configured.File(file, install.OnPath)
	if err != nil {
		t.Fatal(err)
	}
	want, err := hooks.Upsert(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != string(want) {
		t.Errorf("%s: %v, is not\n%s", file, err, want)
	}
}
