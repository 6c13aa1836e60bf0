package dsh

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/install"
)

func TestOtherPlugins(t *testing.T) {
	t.Parallel()
	const manifest = `{"dsh": {"profile": {"bundles": ["BUNDLE"]}}}`
	for name, c := range map[string]struct {
		bundle, profile, all string // the profile's bundle and rows, and the rows of all profiles
		want                 []string
	}{
		"nothing":            {},
		"our bundle":         {bundle: bundle},
		"a bundle":           {bundle: "@agentscope-ai/reme-dsh-plugin", want: []string{"@agentscope-ai/reme-dsh-plugin"}},
		"a row for all":      {all: "- insert: [{id: ov, name: '@openviking/dsh-plugin'}]\n", want: []string{"@openviking/dsh-plugin"}},
		"a row of a profile": {profile: "- insert: [{id: ov, name: 'HOME/openviking/index.mjs'}]\n", want: []string{"~/openviking/index.mjs"}},
		"in both places":     {bundle: "x", profile: "- insert: [{id: ov, name: x}]\n", want: []string{"x"}},
		"switched off":       {all: "- insert: [{id: ov, name: '@openviking/dsh-plugin', disabled: true}]\n"},
		"a change of a row":  {all: "- id: ov\n  config: {name: openviking}\n"},
		"nobody reads it":    {all: "a: b\n", profile: "[", bundle: `"`},
		"of other types":     {all: "- insert: x\n- insert: [y, {name: [z]}, {}]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := testEnv(t)
			profile := filepath.Join(env.Home, ".dsh", "profiles", "web")
			write(t, filepath.Join(profile, "package.json"), strings.Replace(manifest, "BUNDLE", c.bundle, 1))
			if c.profile != "" {
				write(t, filepath.Join(profile, "cordis.patch.yml"), strings.ReplaceAll(c.profile, "HOME", env.Home))
			}
			if c.all != "" {
				write(t, patchFile(env), c.all)
			}
			check := func(when string) {
				if got := target.OtherPlugins(env); !slices.Equal(got, c.want) {
					t.Errorf("%s: %q, want %q", when, got, c.want)
				}
			}
			check("without us")
			if _, err := install.Install(t.Context(), target, env, install.Options{}); err == nil {
				check("with us")
			}
		})
	}
}
