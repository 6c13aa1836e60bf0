// Package kimi is all that is known of Moonshot's Kimi Code: what its hooks send
// and accept, where its configuration is, and how its session files tell the
// turns. Observed on release 2.1.0.
package kimi

import (
	"encoding/json"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/install"
)

// Host is Kimi Code's name on the command line.
const Host client.Host = "kimi"

// turnID names the turn in the payloads of a self-test. Kimi itself sends none
// with a prompt or a stop: its session files tell the turns.
const turnID = "turn_id"

// maxContext bounds injected text. Kimi has no limit of its own, but it sends
// the text again with every request of the session.
const maxContext = 9500

// Adapter connects Kimi Code to the pipeline.
func Adapter() *hooks.Adapter {
	logs := newLogs(func() string { return kimiHome(install.Here()) })
	return &hooks.Adapter{
		Host:  Host,
		Title: "Kimi Code",
		Events: map[string]hooks.Kind{
			"session-start":      hooks.SessionStart,
			"user-prompt-submit": hooks.Prompt,
			"stop":               hooks.TurnEnd,
			"stop-failure":       hooks.Interrupt,
			"interrupt":          hooks.Interrupt,
			"pre-compact":        hooks.PreCompact,
			"session-end":        hooks.SessionEnd,
			"pre-tool-use":       hooks.PreToolUse,
		},
		Decode:     decode,
		Encode:     encode,
		Sample:     sample,
		ReadLog:    logs.turns,
		Logs:       logs,
		MaxContext: maxContext,
		Size:       hooks.Bytes,
		Envelopes:  []string{"hook_result", "system-reminder"},
	}
}

func decode(kind hooks.Kind, p hooks.Payload) hooks.Event {
	e := hooks.DecodeJSON(kind, p, turnID)
	switch kind {
	case hooks.PreCompact:
		// Only the user's own messages and a summary remain, and no event that could
		// inject anything follows before the next prompt.
		e.ContextLost, e.TurnLost = true, true
	case hooks.PreToolUse:
		input := p.Object("tool_input")
		for _, key := range []string{"path", "pattern"} {
			if s := input.String(key); s != "" {
				e.Paths = append(e.Paths, s)
			}
		}
	}
	return e
}

// encode says what it has to say to the model in bare text: of JSON, Kimi passes
// on the braces as well.
func encode(e hooks.Event, o hooks.Outcome) []byte {
	switch {
	case e.Kind == hooks.PreToolUse:
		return hooks.EncodeJSON(e, o)
	case e.Kind == hooks.Prompt && o.Context != "":
		return []byte(o.Context + "\n")
	}
	return nil
}

func sample(e hooks.Event) []byte {
	payload := map[string]any{"session_id": e.Session.ID, "cwd": e.Cwd, "client_type": "kimi_code_cli", turnID: e.Turn}
	switch e.Kind {
	case hooks.Prompt:
		payload["hook_event_name"], payload["is_steer"] = "UserPromptSubmit", false
		payload["prompt"] = []any{map[string]string{"type": "text", "text": e.Prompt}}
	case hooks.TurnEnd:
		payload["hook_event_name"], payload["stop_hook_active"] = "Stop", false
		payload["last_assistant_message"] = e.Reply // see selfTest
	}
	b, err := json.Marshal(payload)
	if err != nil {
		return nil
	}
	return b
}
