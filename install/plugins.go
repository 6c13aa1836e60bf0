package install

import (
	"encoding/json"
	"os"
	"slices"

	"github.com/tailscale/hujson"
)

// PluginLister is a [Target] whose host runs plugins, another memory among them
// perhaps.
type PluginLister interface {
	// Plugins lists the ids of the plugins that are switched on for the user; none if
	// the host's files cannot be read, which is reported elsewhere.
	Plugins(Env) []string
}

// Enabled lists the names that a host has switched on, in order.
func Enabled(plugins map[string]bool) []string {
	var out []string
	for id, on := range plugins {
		if on {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// ReadJSON reads a JSON file of a host, which may have comments. It reports whether
// that went well.
func ReadJSON(path string, v any) bool {
	b, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	std, err := hujson.Standardize(b)
	return err == nil && json.Unmarshal(std, v) == nil
}
