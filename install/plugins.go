package install

import (
	"bytes"
	"path/filepath"
)

// PluginLister is a [Target] whose host runs plugins, another memory among them
// perhaps.
type PluginLister interface {
	// Plugins are those that are switched on for the user: their ids and folders. It
	// is empty if the host's files cannot be read, which is reported elsewhere.
	Plugins(Env) map[string]string
}

// OwnPlugin tells whether the plugin in a folder is one that calls us.
func OwnPlugin(dir string) bool {
	for _, name := range []string{"hooks/hooks.json", ".mcp.json", "kimi.plugin.json"} {
		if b, err := ReadFile(filepath.Join(dir, filepath.FromSlash(name))); err == nil && bytes.Contains(b, []byte("reme-hook")) {
			return true
		}
	}
	return false
}
