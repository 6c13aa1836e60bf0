//go:build unix

package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// messages speaks the Messages API, as far as Claude Code uses it.
type messages struct{}

func (messages) path() string { return "/v1/messages" }

func (messages) parse(body map[string]any, tasks []string) Request {
	r := Request{Kind: Main}
	if s := textOf(body["system"]); s != "" {
		r.Messages = append(r.Messages, Message{"system", s})
	}
	var first, last string // what the user says at first, and all that the last message has
	for _, m := range list(body, "messages") {
		text := textOf(m["content"])
		last = text
		if first == "" && str(m, "role") == "user" {
			first = text
		}
		for _, block := range list(m, "content") {
			switch str(block, "type") {
			case "tool_use":
				r.Messages = append(r.Messages, Message{"assistant", toJSON(block["input"])})
			case "tool_result":
				out, ok := block["content"].(string)
				if !ok {
					out = textOf(block["content"])
				}
				r.Messages = append(r.Messages, Message{"tool", out})
			}
		}
		if text != "" {
			r.Messages = append(r.Messages, Message{str(m, "role"), text})
		}
	}
	for _, task := range tasks {
		if strings.Contains(first, task) {
			r.Kind = Subagent
		}
	}
	switch {
	case strings.Contains(last, "create a detailed summary of") && strings.Contains(last, "TEXT ONLY"):
		r.Kind = Compaction
	case len(list(body, "tools")) == 0:
		r.Kind = Aux
	}
	return r
}

func (messages) answer(w http.ResponseWriter, _ *http.Request, r Request, step Step, n int) {
	block, delta := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": step.Text}
	if r.Kind == Compaction {
		delta["text"] = "<analysis>short</analysis>\n<summary>" + step.Text + "</summary>"
	}
	stop := "end_turn"
	tool, args := step.Tool, step.Args
	switch {
	case step.Shell != "":
		tool, args = "Bash", map[string]any{"command": step.Shell, "description": "scripted"}
	case step.Spawn != "":
		tool = "Agent"
		args = map[string]any{"description": "scripted", "prompt": step.Spawn, "subagent_type": "general-purpose"}
	}
	if tool != "" {
		stop = "tool_use"
		block = map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", n), "name": tool, "input": map[string]any{}}
		delta = map[string]any{"type": "input_json_delta", "partial_json": toJSON(args)}
	}
	usage := map[string]any{
		"input_tokens": max(step.Tokens, 10), "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
	}
	msg := map[string]any{
		"id": fmt.Sprintf("msg_%d", n), "type": "message", "role": "assistant", "model": r.Body["model"], "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}
	if r.Body["stream"] != true {
		msg["content"] = []any{map[string]any{"type": "text", "text": delta["text"]}}
		msg["stop_reason"] = stop
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(msg)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Connection", "close")
	event(w, "message_start", map[string]any{"message": msg})
	event(w, "content_block_start", map[string]any{"index": 0, "content_block": block})
	event(w, "content_block_delta", map[string]any{"index": 0, "delta": delta})
	if step.Hang {
		return
	}
	event(w, "content_block_stop", map[string]any{"index": 0})
	event(w, "message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 5},
	})
	event(w, "message_stop", map[string]any{})
}
