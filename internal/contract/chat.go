//go:build unix

package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Chat speaks the Chat Completions API, as far as the hosts use it. Its fields are what each host calls its own way.
type Chat struct {
	Shell func(command string) (tool string, args map[string]any) // the call of the shell tool
	Spawn func(task string) (tool string, args map[string]any)    // the call that starts a subagent
	// Compaction is part of the last message of a request for a summary.
	Compaction string
	// Review is how the message begins in which a host asks itself about a session.
	Review string
}

// NewChat starts a fake of the Chat Completions API for a host.
func NewChat(c Chat) *Model { return newModel(c) }

func (Chat) path() string { return "/v1/chat/completions" }

func (c Chat) parse(body map[string]any, tasks []string) Request {
	r := Request{Kind: Main}
	for _, m := range list(body, "messages") {
		if text := textOf(m["content"]); text != "" {
			r.Messages = append(r.Messages, Message{str(m, "role"), text})
		}
		for _, call := range list(m, "tool_calls") {
			f, _ := call["function"].(map[string]any)
			r.Messages = append(r.Messages, Message{"assistant", str(f, "arguments")})
		}
	}
	switch {
	case c.Compaction != "" && strings.Contains(r.Last(), c.Compaction):
		r.Kind = Compaction
	case c.Review != "" && strings.HasPrefix(r.Last(), c.Review):
		r.Kind = Review
	case spawned(r, tasks):
		r.Kind = Subagent
	case len(list(body, "tools")) == 0:
		r.Kind = Aux
	}
	return r
}

// spawned reports whether a request is one of a subagent: its user's words have a task.
func spawned(r Request, tasks []string) bool {
	for _, text := range r.Role("user") {
		for _, task := range tasks {
			if strings.Contains(text, task) {
				return true
			}
		}
	}
	return false
}

func (c Chat) answer(w http.ResponseWriter, _ *http.Request, r Request, step Step, n int) {
	tool, args := step.Tool, step.Args
	switch {
	case step.Shell != "":
		tool, args = c.Shell(step.Shell)
	case step.Spawn != "":
		tool, args = c.Spawn(step.Spawn)
	}
	delta, finish := map[string]any{"role": "assistant", "content": step.Text}, "stop"
	if tool != "" {
		function := map[string]any{"name": tool, "arguments": toJSON(args)}
		call := map[string]any{"index": 0, "id": fmt.Sprintf("call_%d", n), "type": "function", "function": function}
		delta, finish = map[string]any{"role": "assistant", "tool_calls": []any{call}}, "tool_calls"
	}
	in := max(step.Tokens, 100)
	chunk := map[string]any{
		"id": fmt.Sprintf("chatcmpl-%d", n), "object": "chat.completion.chunk", "created": 1, "model": r.Body["model"],
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": nil}},
	}
	usage := map[string]any{"prompt_tokens": in, "completion_tokens": 10, "total_tokens": in + 10}
	if r.Body["stream"] != true {
		chunk["object"], chunk["usage"] = "chat.completion", usage
		chunk["choices"] = []any{map[string]any{"index": 0, "message": delta, "finish_reason": finish}}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(chunk)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Connection", "close")
	data(w, toJSON(chunk))
	if step.Hang {
		return
	}
	chunk["choices"] = []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish}}
	chunk["usage"] = usage
	data(w, toJSON(chunk))
	data(w, "[DONE]")
}

// data writes one server-sent event without a name.
func data(w http.ResponseWriter, text string) {
	_, _ = w.Write([]byte("data: " + text + "\n\n"))
	_ = http.NewResponseController(w).Flush()
}
