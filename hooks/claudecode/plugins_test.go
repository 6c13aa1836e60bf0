package claudecode

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
)

func TestPlugins(t *testing.T) {
	t.Parallel()
	env := hosttest.Env(t)
	if got := (Target{}).Plugins(env); len(got) > 0 {
		t.Errorf("without settings: %q", got)
	}
	hosttest.Write(t, filepath.Join(env.Home, ".claude", "settings.json"), `{"enabledPlugins": {"b@m": true, "a@m": true, /* off */ "c@m": false, "d@m": "x",}}`)
	if got := (Target{}).Plugins(env); !slices.Equal(got, []string{"a@m", "b@m"}) {
		t.Errorf("%q", got)
	}
}
