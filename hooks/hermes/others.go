package hermes

import (
	"strings"

	"github.com/agentscope-ai/reme-hook/install"
)

// OtherPlugins implements [install.PluginLister]: the memory provider beside our
// shell hooks, the plugins that the user has enabled, and the shell hooks of others
// by their commands.
func (t Target) OtherPlugins(env install.Env) []string {
	c, err := readConfig(env)
	if err != nil {
		return nil
	}
	ours, _ := t.plugin(env, install.Options{})
	var out []string
	add := func(name string) {
		if name != "" && (name != providerName || ours.Foreign() != nil) {
			out = append(out, name)
		}
	}
	if len(c.hooks()) > 0 { // else it is in our place, which Check tells
		add(c.provider())
	}
	for _, plugin := range items(value(resolved(value(c.Root, "plugins")), "enabled")) {
		add(resolved(plugin).Value)
	}
	for _, list := range pairs(resolved(value(c.Root, "hooks"))) {
		for _, item := range items(list) {
			if command := value(resolved(item), "command"); command != nil && !isOurHook(resolved(item)) {
				add(strings.ReplaceAll(command.Value, env.Home, "~")) // the user's own name says nothing
			}
		}
	}
	return out
}
