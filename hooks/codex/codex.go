// Package codex is all that is known of OpenAI's Codex CLI: what its hooks send
// and accept, and where its configuration is. Observed on release 0.171.0.
package codex

import (
	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/install"
)

// Host is Codex's name on the command line.
const Host client.Host = "codex"

const turnID = "turn_id"

// maxContext is below the 10,000 bytes (2,500 tokens at 4 bytes each) at which
// Codex cuts the middle out of injected text.
const maxContext = 9500

// Adapter connects Codex to the pipeline. Stop, Interrupt, PreCompact and
// SessionEnd are answered with nothing at all, which every event accepts.
func Adapter() *hooks.Adapter {
	return &hooks.Adapter{
		Host:  Host,
		Title: "Codex",
		Events: map[string]hooks.Kind{
			"session-start":      hooks.SessionStart,
			"user-prompt-submit": hooks.Prompt,
			"stop":               hooks.TurnEnd,
			"interrupt":          hooks.Interrupt,
			"pre-compact":        hooks.PreCompact,
			"session-end":        hooks.SessionEnd,
			"pre-tool-use":       hooks.PreToolUse,
		},
		Decode:       decode,
		Encode:       hooks.EncodeJSON,
		Sample:       func(e hooks.Event) []byte { return hooks.SampleJSON(e, turnID) },
		Logs:         newLogs(func() string { return codexHome(install.Here()) }),
		MaxContext:   maxContext,
		Size:         hooks.Bytes,
		Envelopes:    []string{"environment_context", "hook_prompt", "turn_aborted", "subagent_notification"},
		StartContext: true,
	}
}

func decode(kind hooks.Kind, p hooks.Payload) hooks.Event {
	e := hooks.DecodeJSON(kind, p, turnID)
	if kind == hooks.PreToolUse {
		e.Paths = paths(p)
	}
	return e
}

// paths are the files that view_image opens or apply_patch changes.
func paths(p hooks.Payload) []string {
	input := p.Object("tool_input")
	var out []string
	for _, key := range []string{"path", "file_path", "dir_path"} {
		if s := input.String(key); s != "" {
			out = append(out, s)
		}
	}
	if p.String("tool_name") == "apply_patch" {
		for _, key := range []string{"command", "input", "patch"} {
			out = append(out, patched(input.Text(key))...)
		}
	}
	return out
}
