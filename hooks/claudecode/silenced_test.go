package claudecode

import (
	"path/filepath"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
	"github.com/agentscope-ai/reme-hook/install"
)

// TestSilenced: what starts Claude Code without hooks is found, and what only
// looks like it is not.
func TestSilenced(t *testing.T) {
	t.Parallel()
	managed := managedFile("linux")
	for name, c := range map[string]struct {
		file, text string
		environ    []string
		want       int
	}{
		"nothing":               {"", "", nil, 0},
		"user":                  {".claude/settings.json", `{"disableAllHooks": true}`, nil, 1},
		"user, false":           {".claude/settings.json", `{"disableAllHooks": false, "allowManagedHooksOnly": true}`, nil, 0},
		"organization":          {managed, `{"allowManagedHooksOnly": true}`, nil, 1},
		"organization, all":     {managed, `{"disableAllHooks": true, "allowManagedHooksOnly": true}`, nil, 2},
		"organization, no word": {managed, `{"permissions": {}}`, nil, 0},
		"bare":                  {"", "", []string{"CLAUDE_CODE_SIMPLE=1"}, 1},
		"bare, off":             {"", "", []string{"CLAUDE_CODE_SIMPLE=0", "CLAUDE_CODE_SAFE_MODE="}, 0},
		"safe mode":             {"", "", []string{"CLAUDE_CODE_SAFE_MODE=true"}, 1},
		"bash alias":            {".bashrc", "PATH=x\n  alias claude=\"claude --bare --model x\" # quick\n", nil, 1},
		"fish alias":            {".config/fish/config.fish", "alias claude 'claude --safe-mode'\n", nil, 1},
		"another alias":         {".zshrc", "alias cb='claude --bare'\nalias claude='claude --model opus'\n", nil, 0},
		"commented alias":       {".zshrc", "# alias claude='claude --bare'\n", nil, 0},
		"like it":               {".profile", "alias claude='claude --bare-bones'\n", nil, 0},
	} {
		env := hosttest.Env(t)
		env.Environ = c.environ
		if c.file != "" {
			hosttest.Write(t, filepath.Join(env.Home, filepath.FromSlash(c.file)), c.text)
		}
		got := silenced(env, []string{filepath.Join(env.Home, ".claude", "settings.json")}, filepath.Join(env.Home, filepath.FromSlash(managed)))
		if len(got) != c.want {
			t.Errorf("%s: %+v", name, got)
		}
		for _, p := range got {
			if p.Code != install.Off || !p.Off || p.Do == "" {
				t.Errorf("%s: %+v", name, p)
			}
		}
	}
	seen := map[string]bool{}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		seen[managedFile(goos)] = true
	}
	if len(seen) != 3 {
		t.Errorf("%v", seen)
	}
}
