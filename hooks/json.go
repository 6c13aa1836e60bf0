package hooks

import (
	"bytes"
	"encoding/json"
	"unicode/utf16"
)

// EncodeJSON makes the answer of the hosts that read one JSON object:
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
	return marshal(map[string]any{"hookSpecificOutput": out})
}

// marshal writes one line of JSON without escaping HTML.
func marshal(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil
	}
	return b.Bytes()
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
