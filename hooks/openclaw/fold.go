package openclaw

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/internal/jsonl"
)

// fold makes turns of the events of a session. A turn has the id of its run, which
// the agent's messages tell. Before the first of them there is only the key of the
// user's message, which has that id if it came through a gateway.
type fold struct {
	begun time.Time // the agent's messages that are older came from another session, with all before them
	turns []*turnLog
	open  *turnLog // the last of turns, while it goes on
}

type turnLog struct {
	hooks.LogTurn
	from   int64
	run    string
	answer hooks.LogMessage // the agent's last words
	going  bool             // the agent has not stopped
}

// position is where to go on from when all before an event was taken.
func (f *fold) position(seq int64) int64 {
	if f.open != nil {
		return f.open.from
	}
	return seq
}

// list are the turns of what was taken, in order.
func (f *fold) list() (out []hooks.LogTurn) {
	for _, t := range f.turns {
		l := t.LogTurn
		if l.Unnamed = t.run != string(t.ID); t.run != "" {
			l.ID = client.TurnID(t.run)
		}
		l.Ended = t != f.open
		if !t.going && t.answer.Text != "" {
			l.Messages = append(l.Messages[:len(l.Messages):len(l.Messages)], t.answer)
		}
		if len(l.Messages) > 0 {
			out = append(out, l)
		}
	}
	return out
}

// isWanted tells whether an event may count, as far as that can be told without
// decoding it: most of a session is tools' results.
func isWanted(text []byte) bool {
	switch string(jsonl.Plain(text, "type")) {
	case "", "message":
	default:
		return false
	}
	switch string(jsonl.Plain(text, "message", "role")) {
	case "", "user", "assistant":
		return true
	}
	return false
}

// take reads the next event. It tells whether it could be read.
func (f *fold) take(text []byte, seq int64) bool {
	if len(text) > 0 && !isWanted(text) {
		return text[len(text)-1] == '}'
	}
	var e hooks.Payload
	if json.Unmarshal(text, &e) != nil {
		return false
	}
	at, err := time.Parse(time.RFC3339Nano, e.String("timestamp"))
	if e.String("type") != "message" {
		return true
	}
	m := e.Object("message")
	switch m.String("role") {
	case "user":
		if isSaid(m) {
			f.user(m, at, seq, e.String("id"))
		} else if f.running() == nil {
			f.open = nil
		}
	case "assistant":
		if err == nil && at.Before(f.begun) {
			f.turns, f.open = nil, nil
			return true
		}
		f.assistant(m, at)
	}
	return true
}

func (f *fold) user(m hooks.Payload, at time.Time, seq int64, id string) {
	if key, ok := strings.CutSuffix(m.String("idempotencyKey"), ":user"); ok {
		id = key
	}
	message := hooks.LogMessage{Role: client.User, Text: said(m.Text("content")), At: at}
	if run := m.Object("__openclaw").String("steerTargetRunId"); run != "" {
		for _, t := range slices.Backward(f.turns) {
			if t.run == run {
				t.say(message)
				return
			}
		}
	}
	if t := f.running(); t != nil {
		seq = t.from // it may be said in the middle of that turn
	}
	f.open = &turnLog{LogTurn: hooks.LogTurn{ID: client.TurnID(id)}, from: seq, going: true}
	f.open.say(message)
	f.turns = append(f.turns, f.open)
}

func (f *fold) assistant(m hooks.Payload, at time.Time) {
	run := m.Object("__openclaw").String("runId")
	if f.open != nil && f.open.run == "" {
		if run == "" && f.open.isCommand() && m.String("idempotencyKey") == string(f.open.ID) {
			// OpenClaw itself has done what the user told it to.
			f.turns = f.turns[:len(f.turns)-1]
			f.open = f.running()
			return
		}
		f.name(run)
	}
	if run == "" {
		return // OpenClaw wrote it itself
	}
	n := len(f.turns)
	if n == 0 || f.turns[n-1].run != run {
		f.open = nil
		return // nobody asked for it
	}
	t := f.turns[n-1]
	if text := m.Text("content"); text != "" {
		t.answer = hooks.LogMessage{Role: client.Assistant, Text: text, At: at}
	}
	why := m.String("stopReason")
	if why == "error" || why == "aborted" {
		t.answer = hooks.LogMessage{}
	}
	if f.open = nil; why == "toolUse" {
		f.open = t
	}
	t.going = f.open != nil
}

// say adds what the user said. What is said once more for another attempt is nothing
// new.
func (t *turnLog) say(messages ...hooks.LogMessage) {
	for _, m := range messages {
		if n := len(t.Messages); m.Text != "" && (n == 0 || t.Messages[n-1].Text != m.Text) {
			t.Messages = append(t.Messages, m)
		}
	}
}

// named is the place of the last turn whose run is known, -1 if there is none.
func (f *fold) named() int {
	n := len(f.turns) - 1
	for n >= 0 && f.turns[n].run == "" {
		n--
	}
	return n
}

// running is the turn of the run that goes on, if there is one.
func (f *fold) running() *turnLog {
	if n := f.named(); n >= 0 && f.turns[n].going {
		return f.turns[n]
	}
	return nil
}

// isCommand tells whether the user's words are for OpenClaw rather than for the model.
func (t *turnLog) isCommand() bool {
	return len(t.Messages) > 0 && strings.HasPrefix(t.Messages[0].Text, "/")
}

// name gives the turn that has begun to the run that goes on. What the user says
// in the middle of a run belongs to the turn that it began with.
func (f *fold) name(run string) {
	n := f.named()
	if n < 0 || run == "" || f.turns[n].run != run {
		f.open.run = run
		return
	}
	t := f.turns[n]
	for _, said := range f.turns[n+1:] {
		t.say(said.Messages...)
	}
	f.turns, f.open = f.turns[:n+1], t
}
