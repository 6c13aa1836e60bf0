package openclaw

import (
	"slices"
	"strings"

	"github.com/agentscope-ai/reme-hook/hooks"
)

// isUsers tells the runs of a user's message from those that OpenClaw or another
// session starts. What is not told counts as the user's.
func isUsers(ctx hooks.Payload) bool {
	trigger, kind := ctx.String("trigger"), ctx.Object("inputProvenance").String("kind")
	return (trigger == "" || trigger == "user") && (kind == "" || kind == "external_user")
}

// isMachineSession tells sessions in which no user writes by their key,
// agent:<id>:<kind>:…
func isMachineSession(key string) bool {
	if rest, ok := strings.CutPrefix(key, "agent:"); ok {
		_, key, _ = strings.Cut(rest, ":")
	}
	kind, _, _ := strings.Cut(key, ":")
	return slices.Contains([]string{"subagent", "cron", "heartbeat", "hook"}, kind) || strings.HasSuffix(key, ":heartbeat") && kind != "explicit"
}

// The marks around what OpenClaw puts before a user's words.
const (
	internalStart = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>"
	internalEnd   = "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"
)

// said is what of a prompt the user has said.
func said(prompt string) string {
	text := strings.TrimSpace(prompt)
	for strings.HasPrefix(text, internalStart) {
		_, rest, _ := strings.Cut(text, internalEnd)
		text = strings.TrimSpace(rest)
	}
	if strings.HasPrefix(text, "[cron:") {
		return ""
	}
	return text
}
