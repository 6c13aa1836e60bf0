// Package hermes is all that is known of Hermes Agent: what our memory provider
// in it, and its shell hooks, send and accept, and where its configuration is.
// Observed on release 0.19.0.
package hermes

import (
	"maps"
	"slices"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/install"
)

// Host is Hermes' name on the command line.
const Host client.Host = "hermes"

// maxContext is ours: Hermes passes on whatever it is given, but sends it again
// with every later request.
const maxContext = 10_000

// providerEvents are those of the provider.
var providerEvents = map[string]hooks.Kind{
	"prefetch":        hooks.Prompt,
	"sync-turn":       hooks.TurnEnd,
	"on-pre-compress": hooks.PreCompact,
	// Comes with compactions too, before the running turn is synced; that one is
	// kept all the same.
	"on-session-end": hooks.SessionEnd,
	// Is about the session that is left. Hermes announces no other end of one that
	// /resume or /branch leaves.
	"on-session-switch": hooks.SessionEnd,
	"on-memory-write":   hooks.MemoryWrite,
}

// Adapter connects Hermes to the pipeline. The provider makes the ids of turns,
// as Hermes has none for it. Nothing can be injected but in answer to a prompt.
func Adapter() *hooks.Adapter {
	events := maps.Clone(providerEvents)
	for _, h := range shellHooks {
		events[h.verb()] = h.kind
	}
	return &hooks.Adapter{
		Host:       Host,
		Title:      "Hermes",
		Events:     events,
		Decode:     decode,
		Encode:     encode,
		Sample:     sample,
		MaxContext: maxContext,
		Size:       hooks.Bytes,
		Envelopes:  []string{"memory-context"},
		Logs:       logs{env: install.Here},
	}
}

func decode(kind hooks.Kind, p hooks.Payload) hooks.Event {
	if p["hook_event_name"] != nil {
		return decodeShell(kind, p)
	}
	e := hooks.Event{
		Name:     p.String("event"),
		Session:  client.Session{Scope: scope(p), ID: p.String("session_id")},
		Turn:     client.TurnID(p.String("turn")),
		Cwd:      p.String("cwd"),
		Subagent: !isPrimary(p),
	}
	switch kind {
	case hooks.Prompt:
		e.Prompt = said(p.Text("query"))
	case hooks.TurnEnd:
		e.Answered, e.Reply = []string{said(p.Text("user_content"))}, p.Text("assistant_content")
	case hooks.PreCompact:
		// What is left is a summary and the end of the conversation.
		e.ContextLost, e.TurnLost = true, true
	case hooks.SessionEnd:
		// After /undo the session stays and the end of it has gone.
		e.ContextLost = string(p["rewound"]) == "true"
		e.TurnLost = e.ContextLost
	case hooks.MemoryWrite:
		if action := p.String("action"); action == "add" || action == "replace" {
			e.Note = p.Text("content")
		}
	}
	return e
}

// scope is the profile, or the folder of a configuration that belongs to none.
func scope(p hooks.Payload) string {
	switch name := p.String("agent_identity"); name {
	case "", "custom":
		if home := p.String("hermes_home"); home != "" {
			return home
		}
	default:
		return name
	}
	return "default"
}

// isPrimary tells the user's own conversations from those of subagents, cron jobs,
// the curator and the review of a session. Hermes 0.19.0 loads no provider for
// these.
func isPrimary(p hooks.Payload) bool {
	agent, platform, written := p.String("agent_context"), p.String("platform"), p.Object("metadata").String("execution_context")
	return (agent == "" || agent == "primary") && !isMachine(platform) && (written == "" || written == "foreground")
}

// isMachine tells the platforms on which no user speaks.
func isMachine(platform string) bool {
	return slices.Contains([]string{"cron", "subagent", "curator"}, platform)
}

// encode answers with one JSON object, or with nothing.
func encode(_ hooks.Event, o hooks.Outcome) []byte {
	switch {
	case o.Deny != "":
		return hooks.JSONLine(map[string]string{"decision": "block", "reason": o.Deny})
	case o.Context != "":
		return hooks.JSONLine(map[string]string{"context": o.Context})
	}
	return nil
}

// sample makes a payload as the provider sends it.
func sample(e hooks.Event) []byte {
	payload := map[string]any{"session_id": e.Session.ID, "turn": e.Turn, "cwd": e.Cwd}
	switch e.Kind {
	case hooks.Prompt:
		payload["event"], payload["query"] = "prefetch", e.Prompt
	case hooks.TurnEnd:
		payload["event"], payload["assistant_content"] = "sync_turn", e.Reply
	}
	return hooks.JSONLine(payload)
}
