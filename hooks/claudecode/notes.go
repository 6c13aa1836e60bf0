package claudecode

import (
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/install"
)

// Notes are the instructions and memories that Claude Code reads: the user's, those
// that it writes itself, and those of a project's folder.
func Notes() hooks.Notes {
	return hooks.Notes{Name: "claude-md", Title: "Claude Code", Host: Host, Files: hooks.Files{
		Root:     func() string { return configDir(install.Here()) },
		Patterns: []string{"CLAUDE.md", "projects/*/memory/*.md", "CLAUDE.local.md", ".claude/CLAUDE.md"},
	}}
}
