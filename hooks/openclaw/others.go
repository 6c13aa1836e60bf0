package openclaw

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"

	"github.com/agentscope-ai/reme-hook/install"
)

// memorySlot is for the one plugin of the kind memory that OpenClaw loads.
const memorySlot = "memory"

// OtherPlugins implements [install.PluginLister]: what is entered or in a slot, and
// not switched off.
func (Target) OtherPlugins(env install.Env) []string {
	c, err := readConfig(configFile(env))
	if err != nil || isFalse(c.Plugins.Enabled) {
		return nil
	}
	ids := map[string]bool{}
	for _, id := range c.Plugins.Slots {
		ids[id] = true
	}
	for id, e := range c.Plugins.Entries {
		ids[id] = !isFalse(e.Enabled) && (c.Plugins.Slots[memorySlot] == id || kind(env, id) != memorySlot)
	}
	delete(ids, pluginID) // one of another with our name stands in the way of an install
	maps.DeleteFunc(ids, func(id string, on bool) bool { return !on || slices.Contains(c.Plugins.Deny, id) || !c.allows(id) })
	return slices.Sorted(maps.Keys(ids))
}

// kind is the kind of a plugin that is installed, "" if it has none.
func kind(env install.Env, id string) string {
	var manifest struct{ Kind string }
	text, err := install.ReadFile(filepath.Join(stateDir(env), "extensions", id, "openclaw.plugin.json"))
	if err != nil {
		return ""
	}
	v, _ := parseJSON(text)
	std, _ := json.Marshal(v)
	_ = json.Unmarshal(std, &manifest) // one that nobody reads is OpenClaw's to complain about
	return manifest.Kind
}
