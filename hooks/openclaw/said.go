package openclaw

import (
	"regexp"
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

// isSaid tells the messages of a user in a conversation from what is in it under the
// user's name.
func isSaid(message hooks.Payload) bool {
	text := message.Text("content")
	return isUsers(hooks.Payload{"inputProvenance": message["provenance"]}) && (text == "" || said(text) != "")
}

// The marks around what OpenClaw puts before a user's words.
const (
	internalStart = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>"
	internalEnd   = "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"

	skillsStart = "Use the following explicitly referenced skills for this request."
	skillsEnd   = "\n\nUser request:\n"

	queued = "[Queued messages while agent was busy]"
)

// machineMade is how prompts begin that no user wrote.
var machineMade = []string{"[cron:", "[Subagent Context]", "[Inter-session message]"}

// said is what of a prompt the user has said.
func said(prompt string) string {
	text := strings.TrimSpace(prompt)
	for strings.HasPrefix(text, internalStart) {
		_, rest, _ := strings.Cut(text, internalEnd)
		text = strings.TrimSpace(rest)
	}
	if slices.ContainsFunc(machineMade, func(head string) bool { return strings.HasPrefix(text, head) }) {
		return ""
	}
	if strings.HasPrefix(text, skillsStart) {
		if _, request, ok := strings.Cut(text, skillsEnd); ok {
			text = strings.TrimSpace(request)
		}
	}
	if rest, ok := strings.CutPrefix(text, queued+"\n"); ok {
		text = strings.TrimSpace(regexp.MustCompile(`(?m)^---\nQueued #\d+(?: \(from .*\))?\n`).ReplaceAllString(rest, ""))
	}
	return text
}
