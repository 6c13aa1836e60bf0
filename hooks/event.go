// Package hooks is the pipeline behind every hook call, whatever the host: an
// [Event] goes in, an [Outcome] comes out.
//
// It promises that a finished turn is on disk before anything else is done with
// it, that a failure of any part leaves the agent as if the hook were not
// there, and that recalled text is marked as data. What a host sends and what
// it accepts is the business of its [Adapter], one folder below.
package hooks

import (
	"github.com/agentscope-ai/reme-hook/client"
)

// Kind is what an event means to the pipeline.
type Kind int

// The kinds of events.
const (
	SessionStart Kind = iota + 1
	Prompt            // the user has sent a message
	TurnEnd           // the agent has answered
	Interrupt         // the turn ended without an answer
	PreCompact        // the host is about to shorten the conversation
	PostCompact       // the host has shortened it
	SessionEnd        //
	PreToolUse        // the agent is about to call a tool
	MemoryWrite       // the agent has written something into a memory of its own
)

// Event is one call of a hook, in the pipeline's terms.
type Event struct {
	Kind    Kind
	Name    string // the host's name of the event, as its payload spells it
	Session client.Session
	Turn    client.TurnID // "" if the host has no turn ids
	Cwd     string

	Prompt string // Prompt: what the user wrote
	Reply  string // TurnEnd: the agent's last message
	// Answered (TurnEnd) is all that the user said in the turn once more, from hosts
	// that do not announce all of it. What is behind the announced is kept.
	Answered []string

	Summary string // PostCompact: what the host made of the conversation
	Note    string // MemoryWrite: what the agent wrote

	// Subagent marks what happens inside an agent that the main one started.
	Subagent bool
	// ContextLost (SessionStart, Prompt, PreCompact, SessionEnd) tells that what was injected before the
	// running turn is gone, TurnLost that what was injected in it is gone as well.
	ContextLost, TurnLost bool
	// Compacted (SessionStart) tells that the host has shortened the conversation.
	Compacted bool
	// Paths (PreToolUse) are what a file tool is asked to open; empty for other
	// tools.
	Paths []string
}

// Outcome is what a hook has to say. The zero value says nothing.
type Outcome struct {
	Context string // text for the model
	Deny    string // why the tool call must not happen
}

// Adapter is everything the pipeline must know of a host.
type Adapter struct {
	Host  client.Host
	Title string
	// Events maps the host's event names in kebab-case to what they mean.
	Events map[string]Kind
	// Decode reads a payload. A missing session id makes the event useless; all
	// else may be absent.
	Decode func(Kind, Payload) Event
	// Encode makes the exact bytes that the host accepts for an event, nil for
	// nothing.
	Encode func(Event, Outcome) []byte
	// Sample makes a payload that Decode turns into e, for self-tests.
	Sample func(e Event) []byte
	// ReadLog reads the turns of an event's session from the host's own log, from a
	// cursor on, for hosts whose payloads do not have them; nil for all others. It
	// does not wait.
	ReadLog func(e Event, cursor string) (LogPage, error)
	// Logs are the host's sessions on disk.
	Logs Logs
	// MaxContext is the largest context the host passes on whole, in Size's unit.
	MaxContext int
	Size       func(string) int
	// StartContext tells that what the start of a session says reaches the model.
	StartContext bool
	// Transient tells that what is injected with a prompt goes to the model with
	// that turn only. The host announces the prompt again for each attempt at it.
	Transient bool
	// Envelopes name the elements that the host wraps its own additions to a
	// message in. They are no part of the conversation.
	Envelopes []string
	// Machine names the elements that make up prompts which no human wrote.
	Machine []string
}
