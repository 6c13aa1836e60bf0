//go:build unix

package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// responses speaks the Responses API, as far as Codex uses it.
type responses struct{}

func (responses) path() string { return "/v1/responses" }

func (responses) parse(body map[string]any, tasks []string) Request {
	r := Request{Kind: Main}
	if s := str(body, "instructions"); s != "" {
		r.Messages = append(r.Messages, Message{"system", s})
	}
	for _, item := range list(body, "input") {
		switch str(item, "type") {
		case "function_call":
			r.Messages = append(r.Messages, Message{"assistant", str(item, "arguments")})
		case "function_call_output":
			out, ok := item["output"].(string)
			if !ok {
				out = textOf(item["output"])
			}
			r.Messages = append(r.Messages, Message{"tool", out})
		default:
			r.Messages = append(r.Messages, Message{str(item, "role"), textOf(item["content"])})
		}
	}
	for _, m := range r.Messages {
		if m.Role == "user" && slices.Contains(tasks, strings.TrimSpace(m.Text)) {
			r.Kind = Subagent
		}
	}
	if n := len(r.Messages); n > 0 && strings.Contains(r.Messages[n-1].Text, "CONTEXT CHECKPOINT COMPACTION") {
		r.Kind = Compaction
	}
	return r
}

func (responses) answer(w http.ResponseWriter, _ *http.Request, r Request, step Step, n int) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Connection", "close")
	id := fmt.Sprintf("resp_%d", n)
	event(w, "response.created", map[string]any{"response": map[string]any{"id": id}})
	if item := call(r, step); item != nil {
		item["type"], item["id"], item["call_id"] = "function_call", fmt.Sprintf("fc_%d", n), fmt.Sprintf("call_%d", n)
		event(w, "response.output_item.done", map[string]any{"output_index": 0, "item": item})
	} else {
		msg := map[string]any{"type": "message", "role": "assistant", "id": fmt.Sprintf("msg_%d", n), "content": []any{}}
		event(w, "response.output_item.added", map[string]any{"output_index": 0, "item": msg})
		event(w, "response.output_text.delta", map[string]any{
			"item_id": msg["id"], "output_index": 0, "content_index": 0, "delta": step.Text,
		})
		if step.Hang {
			return
		}
		msg["content"] = []any{map[string]any{"type": "output_text", "text": step.Text, "annotations": []any{}}}
		event(w, "response.output_item.done", map[string]any{"output_index": 0, "item": msg})
	}
	in := max(step.Tokens, 100)
	event(w, "response.completed", map[string]any{"response": map[string]any{"id": id, "usage": map[string]any{
		"input_tokens": in, "input_tokens_details": map[string]any{"cached_tokens": 0},
		"output_tokens": 10, "output_tokens_details": map[string]any{"reasoning_tokens": 0}, "total_tokens": in + 10,
	}}})
}

// call is the function call of a step, or nil if the step is a text.
func call(r Request, step Step) map[string]any {
	switch {
	case step.Shell != "":
		return map[string]any{"name": "exec_command", "arguments": toJSON(map[string]any{"cmd": step.Shell})}
	case step.Spawn != "":
		return map[string]any{
			"namespace": namespaceOf(r.Body, "spawn_agent"), "name": "spawn_agent",
			"arguments": toJSON(map[string]any{"message": step.Spawn}),
		}
	case step.Await:
		var spawned struct {
			Agent string `json:"agent_id"`
		}
		_ = json.Unmarshal([]byte(r.Last()), &spawned)
		return map[string]any{
			"namespace": namespaceOf(r.Body, "wait_agent"), "name": "wait_agent",
			"arguments": toJSON(map[string]any{"targets": []string{spawned.Agent}, "timeout_ms": 20000}),
		}
	case step.Tool != "":
		item := map[string]any{"name": step.Tool, "arguments": toJSON(step.Args)}
		if ns := namespaceOf(r.Body, step.Tool); ns != "" {
			item["namespace"] = ns
		}
		return item
	}
	return nil
}

// namespaceOf finds the tool namespace that offers a tool, "" if it is offered at the top.
func namespaceOf(body map[string]any, tool string) string {
	for _, t := range list(body, "tools") {
		for _, f := range list(t, "tools") {
			if str(f, "name") == tool {
				return str(t, "name")
			}
		}
	}
	return ""
}
