package ingest

import (
	"path/filepath"

	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/install"
)

// Foreign are the memories of other products. OpenViking's are files below folders
// named memories; what is hidden beside them it has derived.
func Foreign() []hooks.Notes {
	return []hooks.Notes{
		{Name: "openviking", Title: "OpenViking", Files: hooks.Files{
			Root:     func() string { return filepath.Join(install.Here().Home, ".openviking", "data") },
			Patterns: []string{"viking/**/memories/**/[^.]*.md"},
		}},
		{Name: "agentmemory", Title: "agentmemory", Refusal: "agentmemory keeps its memories in a key-value store of its engine (state_store.db), not in plain files, so there is nothing that can be read safely; have agentmemory export them as Markdown, and give the files to 'reme-hook remember'"},
	}
}
