package hooks

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf16"

	"github.com/agentscope-ai/reme-hook/client"
)

// What follows is the dialect that several hosts share, give or take the name of
// the turn id: one JSON object in, one out.

// DecodeJSON reads the members that all events of the dialect have. turnID is
// the name of the member that names the turn.
func DecodeJSON(kind Kind, p Payload, turnID string) Event {
	e := Event{
		Name:    p.String("hook_event_name"),
		Session: client.Session{Scope: "default", ID: p.String("session_id")},
		Turn:    client.TurnID(p.String(turnID)),
		Cwd:     p.String("cwd"),
		// What a subagent says and is told comes under its parent's session id.
		Subagent: p.String("agent_id") != "",
	}
	switch kind {
	case Prompt:
		e.Prompt = p.Text("prompt")
	case TurnEnd:
		e.Reply = p.Text("last_assistant_message")
	case SessionStart:
		e.ContextLost = slices.Contains([]string{"compact", "clear"}, p.String("source"))
		e.TurnLost = e.ContextLost
		e.Compacted = p.String("source") == "compact"
	}
	return e
}

// SampleJSON makes a payload that DecodeJSON reads.
func SampleJSON(e Event, turnID string) []byte {
	payload := map[string]any{
		"session_id": e.Session.ID, turnID: e.Turn, "transcript_path": nil, "cwd": e.Cwd, "permission_mode": "default",
	}
	switch e.Kind {
	case Prompt:
		payload["hook_event_name"], payload["prompt"] = "UserPromptSubmit", e.Prompt
	case TurnEnd:
		payload["hook_event_name"], payload["last_assistant_message"], payload["stop_hook_active"] = "Stop", e.Reply, false
	}
	return JSONLine(payload)
}

// EncodeJSON answers with one JSON object:
// hookSpecificOutput with additionalContext or a permission decision, under the
// event's own name. It is nil if there is nothing to say.
func EncodeJSON(e Event, o Outcome) []byte {
	type specific struct {
		HookEventName            string `json:"hookEventName"`
		AdditionalContext        string `json:"additionalContext,omitempty"`
		PermissionDecision       string `json:"permissionDecision,omitempty"`
		PermissionDecisionReason string `json:"permissionDecisionReason,omitempty"`
	}
	out := specific{HookEventName: e.Name}
	switch {
	case o.Deny != "":
		out.PermissionDecision, out.PermissionDecisionReason = "deny", o.Deny
	case o.Context != "":
		out.AdditionalContext = o.Context
	default:
		return nil
	}
	return JSONLine(map[string]any{"hookSpecificOutput": out})
}

// JSONLine is v as one line of JSON in which < and > are as they are. It is nil
// for what JSON has no form for.
func JSONLine(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil
	}
	return b.Bytes()
}

// MapTexts does f to each text in a value as [json.Unmarshal] makes it, also to the
// names of members.
func MapTexts(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		for i, e := range v {
			v[i] = MapTexts(e, f)
		}
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[f(k)] = MapTexts(e, f)
		}
		return m
	}
	return v
}

// Bytes measures text in bytes of UTF-8.
func Bytes(s string) int { return len(s) }

// UTF16 measures text in UTF-16 code units, as JavaScript does.
func UTF16(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
