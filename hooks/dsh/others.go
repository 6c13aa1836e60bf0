package dsh

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentscope-ai/reme-hook/install"
)

// OtherPlugins implements [install.PluginLister]: the bundles of all profiles, and
// the modules that their rows load.
func (Target) OtherPlugins(env install.Env) []string {
	patches := []string{patchFile(env)}
	var out []string
	for _, profile := range profiles(env) {
		patches = append(patches, filepath.Join(profile, filepath.Base(patches[0])))
		out = append(out, bundles(profile)...)
	}
	for _, path := range patches {
		text, _ := install.ReadFile(path)
		p, err := parse(text)
		if err != nil {
			continue
		}
		for _, row := range p.inserted {
			if ourID(row) == "" && !isTrue(member(row, "disabled")) {
				out = append(out, strings.ReplaceAll(value(member(row, "name")), env.Home, "~")) // the user's own name says nothing
			}
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(name string) bool { return name == bundle || name == "" })
}
