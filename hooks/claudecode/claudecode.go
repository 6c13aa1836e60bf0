// Package claudecode is all that is known of Anthropic's Claude Code: what its
// hooks send and accept, and where its configuration is. Observed on releases
// 2.1.197 and 2.1.332.
package claudecode

import (
	"path/filepath"
	"strings"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/install"
)

// Host is Claude Code's name on the command line.
const Host client.Host = "claude-code"

const turnID = "prompt_id"

// maxContext is below the 10,000 characters at which Claude Code replaces
// injected text by a preview.
const maxContext = 9800

// Adapter connects Claude Code to the pipeline.
func Adapter() *hooks.Adapter {
	return &hooks.Adapter{
		Host:  Host,
		Title: "Claude Code",
		Events: map[string]hooks.Kind{
			"session-start":      hooks.SessionStart,
			"user-prompt-submit": hooks.Prompt,
			"stop":               hooks.TurnEnd,
			"stop-failure":       hooks.Interrupt,
			"pre-compact":        hooks.PreCompact,
			"post-compact":       hooks.PostCompact,
			"session-end":        hooks.SessionEnd,
			"pre-tool-use":       hooks.PreToolUse,
		},
		Decode:       decode,
		Encode:       encode,
		Sample:       func(e hooks.Event) []byte { return hooks.SampleJSON(e, turnID) },
		Logs:         newLogs(func() string { return configDir(install.Here()) }),
		MaxContext:   maxContext,
		Size:         hooks.UTF16,
		Envelopes:    []string{"system-reminder", "local-command-stdout", "local-command-stderr", "local-command-caveat"},
		Machine:      []string{"task-notification"},
		StartContext: true,
	}
}

func decode(kind hooks.Kind, p hooks.Payload) hooks.Event {
	e := hooks.DecodeJSON(kind, p, turnID)
	switch kind {
	case hooks.PostCompact:
		e.Summary = summary(p.Text("compact_summary"))
	case hooks.PreToolUse:
		input := p.Object("tool_input")
		for _, key := range []string{"file_path", "path", "notebook_path", "pattern"} {
			if s := input.String(key); s != "" {
				e.Paths = append(e.Paths, address(s))
			}
		}
	case hooks.SessionStart:
		// A compaction at the start of a turn keeps what was injected with its prompt.
		e.TurnLost = e.TurnLost && answering(p.String("transcript_path"), e.Turn)
	}
	return e
}

// summary is what stands in the summary element; the summariser thinks aloud
// before it.
func summary(text string) string {
	if _, after, ok := strings.Cut(text, "<summary>"); ok {
		text, _, _ = strings.Cut(after, "</summary>")
	}
	return text
}

// address restores a reme:// address that was made into an absolute path, as
// Claude Code does before it tells a hook: /cwd/reme:/daily/x.md.
func address(path string) string {
	if _, rest, ok := strings.Cut(filepath.ToSlash(path), "/reme:/"); ok {
		return "reme://" + strings.TrimLeft(rest, "/")
	}
	return path
}

// encode says nothing before a compaction: whatever stands on stdout then, even
// {}, becomes part of the summariser's instructions.
func encode(e hooks.Event, o hooks.Outcome) []byte {
	if e.Kind == hooks.PreCompact {
		return nil
	}
	return hooks.EncodeJSON(e, o)
}
