package hermes

import (
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/install"
)

// Notes are what Hermes's own memory tool keeps.
func Notes() hooks.Notes {
	return hooks.Notes{Name: "hermes-memory", Title: "Hermes", Host: Host, Files: hooks.Files{
		Root:     func() string { return hermesHome(install.Here()) },
		Patterns: []string{"memories/MEMORY.md", "memories/USER.md"},
	}}
}
