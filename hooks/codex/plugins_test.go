package codex

import (
	"slices"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
)

func TestPlugins(t *testing.T) {
	t.Parallel()
	env := hosttest.Env(t)
	if got := (Target{}).Plugins(env); len(got) > 0 {
		t.Errorf("without a configuration: %q", got)
	}
	hosttest.Write(t, configFile(env), "[plugins.\"b@m\"]\nenabled = true\n[plugins.\"a@m\"]\n[plugins.\"c@m\"]\nenabled = false\n")
	if got := (Target{}).Plugins(env); !slices.Equal(got, []string{"a@m", "b@m"}) {
		t.Errorf("%q", got)
	}
}
