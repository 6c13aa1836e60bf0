package install

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
)

// PluginLister is a [Target] whose host runs plugins, another memory among them
// perhaps.
type PluginLister interface {
	// OtherPlugins names what takes part in the user's sessions and is not ours: the
	// plugins that are switched on, and what else is called as hooks are. It is empty
	// if the host's files cannot be read, which is reported elsewhere.
	OtherPlugins(Env) []string
}

// OtherPlugins are the names of those plugins, of which the folders are given,
// that do not call us.
func OtherPlugins(folders map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(folders)), func(name string) bool { return ownPlugin(folders[name]) })
}

// ownPlugin tells whether the plugin in a folder is one that calls us.
func ownPlugin(dir string) bool {
	for _, name := range []string{"hooks/hooks.json", ".mcp.json", "kimi.plugin.json"} {
		if b, err := ReadFile(filepath.Join(dir, filepath.FromSlash(name))); err == nil && bytes.Contains(b, []byte("reme-hook")) {
			return true
		}
	}
	return false
}
