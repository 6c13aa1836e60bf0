package kimi

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
)

func TestPlugins(t *testing.T) {
	t.Parallel()
	env := hosttest.Env(t)
	if got := (Target{}).OtherPlugins(env); len(got) > 0 {
		t.Errorf("without plugins: %q", got)
	}
	hosttest.Write(t, filepath.Join(kimiHome(env), "plugins", "installed.json"),
		`{"version":1,"plugins":[{"id":"openviking-memory","root":"/p","enabled":true},{"id":"off","enabled":false}]}`)
	if got := (Target{}).OtherPlugins(env); !slices.Equal(got, []string{"openviking-memory"}) {
		t.Errorf("%q", got)
	}
}
