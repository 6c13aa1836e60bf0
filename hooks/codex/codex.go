// Package codex is all that is known of OpenAI's Codex CLI: what its hooks send
// and accept, and where its configuration is. Observed on release 0.171.0.
package codex

import (
	"encoding/json"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
)

// Host is Codex's name on the command line.
const Host client.Host = "codex"

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
		Decode:     decode,
		Encode:     hooks.EncodeJSON,
		Sample:     sample,
		MaxContext: maxContext,
		Size:       hooks.Bytes,
		Envelopes:  []string{"environment_context", "hook_prompt", "turn_aborted", "subagent_notification"},
	}
}

func decode(kind hooks.Kind, p hooks.Payload) hooks.Event {
	e := hooks.Event{
		Name:    p.String("hook_event_name"),
		Session: client.Session{Scope: "default", ID: p.String("session_id")},
		Turn:    client.TurnID(p.String("turn_id")),
		Cwd:     p.String("cwd"),
		Prompt:  p.Text("prompt"),
		Reply:   p.Text("last_assistant_message"),
		// A subagent's prompts come under its parent's session id.
		Subagent: p.String("agent_id") != "",
	}
	switch kind {
	case hooks.SessionStart:
		e.Compacted = p.String("source") == "compact"
		e.ContextLost = e.Compacted || p.String("source") == "clear"
	case hooks.PreToolUse:
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

func sample(e hooks.Event) []byte {
	payload := map[string]any{
		"session_id": e.Session.ID, "turn_id": string(e.Turn), "transcript_path": nil, "cwd": e.Cwd,
		"model": "gpt-5.1", "permission_mode": "default",
	}
	switch e.Kind {
	case hooks.Prompt:
		payload["hook_event_name"], payload["prompt"] = "UserPromptSubmit", e.Prompt
	case hooks.TurnEnd:
		payload["hook_event_name"], payload["last_assistant_message"] = "Stop", e.Reply
		payload["stop_hook_active"] = false
	}
	out, err := json.Marshal(payload)
	if err != nil {
		panic(err) // a map of strings always marshals
	}
	return out
}
