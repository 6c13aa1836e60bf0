// Package dsh is all that is known of DSH, the DeepSeek Harness: what our
// plugin in it sends and accepts, and where its configuration is. Observed on
// release 0.1.0-rc.8.
package dsh

import (
	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/install"
)

// Host is DSH's name on the command line.
const Host client.Host = "dsh"

// maxContext is ours: DSH passes on whatever it is given, but sends it again
// with every later request.
const maxContext = 10_000

// Adapter connects DSH to the pipeline. A turn's id is its number in the
// session, which goes on after a resume and is in DSH's log too.
func Adapter() *hooks.Adapter {
	return &hooks.Adapter{
		Host:  Host,
		Title: "DSH",
		Events: map[string]hooks.Kind{
			"session-start": hooks.SessionStart,
			"pre-step":      hooks.Prompt,
			"turn-end":      hooks.TurnEnd,
			"pre-compact":   hooks.PreCompact,
			"post-compact":  hooks.PostCompact,
			"session-end":   hooks.SessionEnd,
			"pre-execute":   hooks.PreToolUse,
		},
		Decode:     decode,
		Encode:     encode,
		Sample:     sample,
		Logs:       newLogs(func() string { return dshHome(install.Here()) }),
		MaxContext: maxContext,
		Size:       hooks.Bytes,
	}
}

func decode(kind hooks.Kind, p hooks.Payload) hooks.Event {
	e := hooks.Event{
		Name:     p.String("event"),
		Session:  client.Session{Scope: "default", ID: p.String("session_id")},
		Turn:     client.TurnID(p.String("turn")),
		Cwd:      p.String("cwd"),
		Subagent: p.String("origin") == "subagent",
	}
	switch kind {
	case hooks.Prompt:
		e.Prompt = p.Text("prompt")
	case hooks.TurnEnd:
		e.Reply = p.Text("reply")
	case hooks.PostCompact:
		e.Summary = p.Text("summary")
	case hooks.SessionStart:
		e.ContextLost = p.String("source") == "compact"
		e.TurnLost = e.ContextLost && string(p["kept"]) != "true"
	case hooks.PreToolUse:
		e.Paths = paths(p.Object("arguments"))
	}
	return e
}

// paths are the files and folders that DSH's tools are asked to open.
func paths(arguments hooks.Payload) []string {
	var out []string
	for _, key := range []string{"file_path", "path"} {
		if s := arguments.String(key); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// encode answers with one JSON object, or with nothing.
func encode(_ hooks.Event, o hooks.Outcome) []byte {
	if o == (hooks.Outcome{}) {
		return nil
	}
	return append(encodeJSON(struct {
		Context string `json:"context,omitempty"`
		Deny    string `json:"deny,omitempty"`
	}{o.Context, o.Deny}), '\n')
}

// sample makes a payload as the plugin sends it.
func sample(e hooks.Event) []byte {
	payload := map[string]any{"session_id": e.Session.ID, "turn": e.Turn, "cwd": e.Cwd}
	switch e.Kind {
	case hooks.Prompt:
		payload["event"], payload["prompt"] = "pre-step", content(e.Prompt)
	case hooks.TurnEnd:
		payload["event"], payload["reply"] = "turn-end", content(e.Reply)
	}
	return encodeJSON(payload)
}

func content(text string) any { return []map[string]string{{"type": "text", "text": text}} }
