package hermes

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
)

// Hermes' shell hooks are the other way to connect it, for users whose one memory
// provider is another.

// shellHook is an event of Hermes that has a shell hook of ours.
type shellHook struct {
	event   string // as Hermes names it
	matcher string // the tools that it is about, "" for no tool
	kind    hooks.Kind
}

// shellHooks are those that are worth a process on the agent's time.
var shellHooks = []shellHook{
	{"pre_llm_call", "", hooks.Prompt}, // once a turn
	{"pre_tool_call", "read_file|write_file|patch|search_files", hooks.PreToolUse},
	{"post_llm_call", "", hooks.TurnEnd},
	{"on_session_finalize", "", hooks.SessionEnd}, // on_session_end comes with each turn
}

// shellTime is what Hermes allows a shell hook.
const shellTime = 5 * time.Second

// verb is the event on our command line.
func (h shellHook) verb() string { return strings.ReplaceAll(h.event, "_", "-") }

// entry is the hook in a config.yaml.
func (h shellHook) entry(program string) string {
	text := "{"
	if h.matcher != "" {
		text += "matcher: " + quote(h.matcher) + ", "
	}
	return text + "command: " + quote(command(program, h.verb())) + ", timeout: " + strconv.Itoa(int(shellTime.Seconds())) + "}"
}

// setting puts the hook into a config.yaml that has none for the event.
func (h shellHook) setting(program string) setting {
	return setting{section: "hooks", key: h.event, value: "[" + h.entry(program) + "]", byHand: "put " + h.entry(program) + " into the list hooks." + h.event + " by hand"}
}

// shellLimits is what cannot be mended, for users to know.
var shellLimits = []string{
	"Hermes tells shell hooks of its own review of a session as if the user had asked for it; it is known by the words that Hermes 0.19.0 has for it, and in a release with others it would be remembered",
	"shell hooks do not learn what Hermes' own memory is told",
}

// decodeShell reads what Hermes writes to a shell hook.
func decodeShell(kind hooks.Kind, p hooks.Payload) hooks.Event {
	extra := p.Object("extra")
	asked := extra.Text("user_message")
	e := hooks.Event{
		Name:    p.String("hook_event_name"),
		Session: client.Session{Scope: scope(p), ID: p.String("session_id")},
		Turn:    client.TurnID(extra.String("turn_id")),
		Cwd:     p.String("cwd"),
		// `hermes hooks test` and `hermes hooks doctor` make something up.
		Subagent: !isPrimary(extra) || beginsWith(asked, reviews) || p.String("session_id") == "test-session",
	}
	switch kind {
	case hooks.Prompt:
		e.Prompt = said(asked)
		// There is no word of a compaction or of /undo, but what was injected is in the
		// conversation as long as it is in the model's context.
		e.ContextLost = !bytes.Contains(extra["conversation_history"], []byte("<reme-context"))
	case hooks.TurnEnd:
		e.Answered, e.Reply = []string{said(asked)}, extra.Text("assistant_response")
	case hooks.PreToolUse:
		if path := p.Object("tool_input").String("path"); path != "" {
			e.Paths = []string{path}
		}
	}
	return e
}
