package cmd

import (
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/hooks/claudecode"
	"github.com/agentscope-ai/reme-hook/hooks/codex"
	"github.com/agentscope-ai/reme-hook/hooks/dsh"
	"github.com/agentscope-ai/reme-hook/hooks/hermes"
	"github.com/agentscope-ai/reme-hook/hooks/kimi"
	"github.com/agentscope-ai/reme-hook/hooks/openclaw"
	"github.com/agentscope-ai/reme-hook/ingest"
	"github.com/agentscope-ai/reme-hook/install"
)

// host is a coding agent that reme-hook knows.
type host struct {
	*hooks.Adapter
	install.Target
}

// knownHosts is the one place where hosts are listed.
func knownHosts() []host {
	return []host{
		{codex.Adapter(), codex.Target{}},
		{claudecode.Adapter(), claudecode.Target{}},
		{kimi.Adapter(), kimi.Target{}},
		{dsh.Adapter(), dsh.Target{}},
		{hermes.Adapter(), hermes.Target{Version: version}},
		{openclaw.Adapter(), openclaw.Target{Version: version}},
	}
}

// knownNotes is the one place where memories of others are listed.
func knownNotes() []hooks.Notes {
	return append([]hooks.Notes{claudecode.Notes(), hermes.Notes()}, ingest.Foreign()...)
}
