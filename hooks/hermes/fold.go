package hermes

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
)

// summaries begin the messages by which Hermes stands in for what a compaction has
// cut out of a conversation.
var summaries = []string{
	"[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:", "[PRIOR CONTEXT ",
	"[Your active task list was preserved across context compression]",
}

// stamp bounds, in seconds, how far apart in time messages are that a compaction
// has written at once: it counts them on in millionths. Others take a transaction
// each.
const stamp = 5e-6

// fold makes turns of the messages of a session.
//
// A compaction writes what is left of the conversation once more, behind what was
// there before: messages with the time that they had, or with times that it makes
// up. Where it begins another session, and where a session branches off, that
// begins with such messages. They are passed over.
type fold struct {
	turns []*turn
	head  []hooks.LogMessage // the end of a turn that began in the parent

	before   map[utterance][]float64 // what came before, and when
	repeated []message               // of the parent, that a branch may begin with
	answered bool                    // the last turn was
}

type utterance struct{ role, text string }

type turn struct {
	hooks.LogTurn
	from int64
	anew bool // its prompt came with a compaction, at its end
}

// newFold begins behind the messages of a session's parent, if it has them too.
func newFold(parent []message, branch bool) *fold {
	f := &fold{before: map[utterance][]float64{}, answered: true}
	for _, m := range parent {
		f.note(m)
	}
	if branch {
		f.repeated = parent
	}
	return f
}

func (f *fold) note(m message) {
	u := utterance{m.role, m.text}
	f.before[u] = append(f.before[u], m.at)
}

// take reads all messages of the session.
func (f *fold) take(all []message) {
	if len(all) > 0 {
		f.repeated = slices.DeleteFunc(slices.Clone(f.repeated), func(m message) bool { return m.number > all[0].number })
	}
	for i, m := range all {
		if !f.isCopy(all, i) {
			f.add(all, i)
		}
		f.note(m)
	}
}

// together tells whether a message was written at once with the one after it.
func together(all []message, i int) bool {
	if i < 0 || i+1 >= len(all) {
		return false
	}
	apart := math.Abs(all[i+1].at - all[i].at)
	return apart > 0 && apart <= stamp
}

// isCopy tells whether a message only repeats what was said before, or stands in
// for that.
func (f *fold) isCopy(all []message, i int) bool {
	m := all[i]
	if m.role != "user" && m.role != "assistant" {
		return false
	}
	if f.repeated != nil {
		at := slices.IndexFunc(f.repeated, func(o message) bool { return o.role == m.role && o.text == m.text })
		if at >= 0 {
			f.repeated = f.repeated[at+1:]
			return true
		}
		f.repeated = nil
	}
	if beginsWith(m.text, summaries) {
		return true
	}
	times := f.before[utterance{m.role, m.text}]
	if slices.Contains(times, m.at) {
		return true
	}
	if len(times) == 0 || !together(all, i) && !together(all, i-1) {
		return false
	}
	return !(m.role == "user" && f.answered && !together(all, i)) // else the prompt before which it was compacted
}

// add takes a message that was said.
func (f *fold) add(all []message, i int) {
	m := all[i]
	switch {
	case m.role == "user":
		if n := len(f.turns); n > 0 {
			f.turns[n-1].Ended = true
		}
		t := &turn{from: m.number, anew: together(all, i-1)}
		behind := int64(0)
		if t.anew {
			behind = m.number
		} else if i > 0 {
			behind = all[i-1].number
		}
		t.ID, t.Unnamed = client.TurnID(fmt.Sprintf("after-%d", behind)), true
		if n := len(f.turns); n > 0 && f.turns[n-1].ID == t.ID {
			t.ID += "+" // the last one was nothing but a prompt that came with a compaction
		}
		if text := said(m.text); text != "" {
			t.Messages = append(t.Messages, hooks.LogMessage{Role: client.User, Text: text, At: when(m.at)})
		}
		f.turns = append(f.turns, t)
		f.answered = false
	case m.role == "assistant" && m.stop && strings.TrimSpace(m.text) != "":
		answer := hooks.LogMessage{Role: client.Assistant, Text: m.text, At: when(m.at)}
		if n := len(f.turns); n > 0 {
			f.turns[n-1].end(answer)
		} else {
			f.head = []hooks.LogMessage{answer}
		}
		f.answered = true
	}
}

// end ends a turn with its answer. If the agent stops more than once, the last
// time counts.
func (t *turn) end(answer hooks.LogMessage) {
	if n := len(t.Messages); n > 0 && t.Messages[n-1].Role == client.Assistant {
		t.Messages = t.Messages[:n-1]
	}
	t.Messages = append(t.Messages, answer)
	t.Ended = true
}

// goOn reads the session in which the last turn may go on, after a compaction.
func (f *fold) goOn(all, heir []message) {
	n := len(f.turns)
	if n == 0 || f.turns[n-1].Ended || len(heir) == 0 {
		return
	}
	last := f.turns[n-1]
	next := newFold(all, false)
	next.take(heir)
	if len(next.turns) > 0 && next.turns[0].anew {
		f.turns = f.turns[:n-1] // it began there
		return
	}
	for _, answer := range next.head {
		last.end(answer)
	}
	last.Ended = last.Ended || len(next.turns) > 0
}
