// Package openclaw is all that is known of OpenClaw: what our plugin in it sends
// and accepts, and where its configuration is. Observed on release 2026.9.6.
package openclaw

import (
	"cmp"
	"encoding/json"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/install"
)

// Host is OpenClaw's name on the command line.
const Host client.Host = "openclaw"

// maxContext is ours: OpenClaw passes on whatever it is given.
const maxContext = 10_000

// Adapter connects OpenClaw to the pipeline. A turn's id is that of its run,
// which several attempts at an answer share.
func Adapter() *hooks.Adapter {
	return &hooks.Adapter{
		Host:  Host,
		Title: "OpenClaw",
		Events: map[string]hooks.Kind{
			"before-prompt-build": hooks.Prompt,
			"agent-end":           hooks.TurnEnd,
			"before-compaction":   hooks.PreCompact,
			"after-compaction":    hooks.PostCompact,
			// /new and /reset keep the session's id.
			"before-reset": hooks.SessionEnd,
			// Comes from a gateway only.
			"session-end": hooks.SessionEnd,
		},
		Decode:     decode,
		Encode:     encode,
		Sample:     sample,
		MaxContext: maxContext,
		Size:       hooks.UTF16,
		Transient:  true,
		Logs:       logs{env: install.Here},
	}
}

// decode reads an event as OpenClaw's hooks are given it: {hook, event, ctx}.
func decode(kind hooks.Kind, p hooks.Payload) hooks.Event {
	event, ctx := p.Object("event"), p.Object("ctx")
	e := hooks.Event{
		Name:     p.String("hook"),
		Session:  client.Session{Scope: scope(ctx), ID: cmp.Or(ctx.String("sessionId"), event.String("sessionId"))},
		Turn:     client.TurnID(cmp.Or(ctx.String("runId"), event.String("runId"))),
		Cwd:      ctx.String("workspaceDir"),
		Subagent: isMachineSession(ctx.String("sessionKey")),
	}
	switch kind {
	case hooks.Prompt:
		e.Subagent = e.Subagent || !isUsers(ctx)
		e.Prompt = event.Text("prompt")
		if _, ok := event["currentUserMessage"]; ok { // without what a channel puts around it
			e.Prompt = event.Text("currentUserMessage")
		}
		e.Prompt = said(e.Prompt)
	case hooks.TurnEnd:
		var users bool
		e.Answered, e.Reply, users = turn(event)
		e.Subagent = e.Subagent || !users || !isUsers(ctx)
	case hooks.PostCompact:
		e.Summary = event.Text("summary")
	}
	return e
}

// scope is what session ids are unique in: an agent, in a profile or a state
// folder if it is not the default one.
func scope(ctx hooks.Payload) string {
	if s := ctx.String("scope"); s != "" {
		return s
	}
	agent := cmp.Or(ctx.String("agentId"), "main")
	if profile := ctx.String("profile"); profile != "" && profile != "default" {
		return profile + "/" + agent
	}
	return agent
}

// turn is what the user said in a turn, and the agent's last words: none if the
// model failed or was stopped, which OpenClaw may call a success. It tells whether
// the turn is a user's.
func turn(event hooks.Payload) (prompts []string, reply string, users bool) {
	var messages []hooks.Payload
	if json.Unmarshal(event["messages"], &messages) != nil {
		return nil, "", true
	}
	users = len(messages) == 0 || isSaid(messages[0])
	for _, m := range messages {
		switch m.String("role") {
		case "user":
			// For another attempt it is said once more.
			text := said(m.Text("content"))
			if n := len(prompts); text != "" && isSaid(m) && (n == 0 || prompts[n-1] != text) {
				prompts = append(prompts, text)
			}
		case "assistant":
			reply = cmp.Or(m.Text("content"), reply)
			if why := m.String("stopReason"); why == "error" || why == "aborted" {
				reply = ""
			}
		}
	}
	if string(event["success"]) == "false" {
		reply = ""
	}
	return prompts, reply, users
}

// encode answers as OpenClaw's hooks do, or with nothing.
func encode(_ hooks.Event, o hooks.Outcome) []byte {
	if o.Context == "" {
		return nil
	}
	return hooks.JSONLine(map[string]string{"prependContext": o.Context})
}

// sample makes a payload as the plugin sends it.
func sample(e hooks.Event) []byte {
	hook, event := "", map[string]any{}
	switch e.Kind {
	case hooks.Prompt:
		hook, event["prompt"] = "before_prompt_build", e.Prompt
	case hooks.TurnEnd:
		hook, event["success"] = "agent_end", true
		event["messages"] = []map[string]string{{"role": "user", "content": e.Prompt}, {"role": "assistant", "content": e.Reply, "stopReason": "stop"}}
	}
	ctx := map[string]any{"sessionId": e.Session.ID, "runId": e.Turn, "workspaceDir": e.Cwd, "trigger": "user"}
	return hooks.JSONLine(map[string]any{"hook": hook, "event": event, "ctx": ctx})
}
