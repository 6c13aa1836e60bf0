package openclaw

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
	"github.com/agentscope-ai/reme-hook/install"
)

func TestOtherPlugins(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config string
		want   []string
	}{
		"nothing":         {},
		"ours":            {config: fresh},
		"entered":         {config: `{"plugins": {"entries": {"openviking": {}, "reme": {"enabled": true}}}}`, want: []string{"openviking"}},
		"switched off":    {config: `{"plugins": {"entries": {"openviking": {"enabled": false}}}}`},
		"all off":         {config: `{"plugins": {"enabled": false, "entries": {"openviking": {"enabled": true}}}}`},
		"denied":          {config: `{"plugins": {"deny": ["openviking"], "slots": {"contextEngine": "openviking"}}}`},
		"not allowed":     {config: `{"plugins": {"allow": ["reme"], "entries": {"openviking": {"enabled": true}}}}`},
		"in a slot":       {config: `{"plugins": {"slots": {"memory": "memory-core", "contextEngine": "openviking"}}}`, want: []string{"memory-core", "openviking"}},
		"off in a slot":   {config: `{"plugins": {"slots": {"contextEngine": "openviking"}, "entries": {"openviking": {"enabled": false}}}}`},
		"not in its slot": {config: `{"plugins": {"entries": {"memory-x": {"enabled": true}}}}`},
		"in its slot":     {config: `{"plugins": {"slots": {"memory": "memory-x"}, "entries": {"memory-x": {"enabled": true}}}}`, want: []string{"memory-x"}},
		"unreadable":      {config: `{`},
		"of other types":  {config: `{"plugins": {"slots": 1, "entries": {"x": []}}}`, want: []string{"x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := hosttest.Env(t)
			if c.config != "" {
				hosttest.Write(t, configFile(env), c.config)
			}
			hosttest.Write(t, filepath.Join(stateDir(env), "extensions", "memory-x", "openclaw.plugin.json"), `{"id": "memory-x", "kind": "memory", /* JSON5 */ }`)
			if got := target.OtherPlugins(env); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// ReMe's own plugin has the name of ours. What is said of it is not said of ours.
func TestCheckOfAnothers(t *testing.T) {
	t.Parallel()
	env := hosttest.Env(t)
	hosttest.Write(t, configFile(env), fresh)
	hosttest.Write(t, filepath.Join(pluginDir(env), mainFile), "export default {}")
	if r := target.Check(env, install.Options{}); len(r.Problems)+len(r.Hooks) > 0 {
		t.Errorf("%+v", r)
	}
}
