package ingest

import (
	"slices"
	"strings"

	"github.com/agentscope-ai/reme-hook/client"
)

// known is a turn, in the memory or in a log, by what was said in it.
type known struct {
	id              client.TurnID
	prompts, answer string
	unnamed         bool // see [hooks.LogTurn]
}

// mayBe tells whether two turns can be the same one. One of them may lack the end.
func (k known) mayBe(o known) bool {
	return k.prompts == o.prompts && (k.answer == o.answer || k.prompts != "" && (k.answer == "" || o.answer == ""))
}

// knownTurns are the turns of messages, in the order in which they begin.
func knownTurns(events []client.Event) (turns []known) {
	at := map[client.TurnID]int{}
	for _, e := range events {
		id := e.ID.Turn()
		i, ok := at[id]
		if !ok {
			i = len(turns)
			at[id] = i
			turns = append(turns, known{id: id})
		}
		if e.Role == client.User {
			turns[i].prompts += e.Content + "\x00"
		} else {
			turns[i].answer += e.Content + "\x00"
		}
	}
	return turns
}

// match finds the names that the memory has for the unnamed turns of a log: by their
// order and their text. As many as possible are matched. Turns that are in both by
// name are none of them.
func match(log, memory []known) map[client.TurnID]client.TurnID {
	has := func(turns []known) func(known) bool {
		ids := map[client.TurnID]bool{}
		for _, t := range turns {
			ids[t.id] = true
		}
		return func(t known) bool { return ids[t.id] }
	}
	inLog, inMemory := has(log), has(memory)
	log = slices.DeleteFunc(slices.Clone(log), func(t known) bool { return !t.unnamed || inMemory(t) })
	memory = slices.DeleteFunc(slices.Clone(memory), inLog)
	places := map[string][]int{} // of the memory, by prompt
	for i, t := range memory {
		places[t.prompts] = append(places[t.prompts], i)
	}
	// The longest series of pairs that is in order in both. Of each length, the one
	// whose last pair is earliest in the memory.
	type pair struct {
		log, memory int
		before      *pair
	}
	var best []*pair
	for l, t := range log {
		for _, m := range slices.Backward(places[t.prompts]) {
			if !t.mayBe(memory[m]) {
				continue
			}
			n, _ := slices.BinarySearchFunc(best, m, func(p *pair, m int) int { return p.memory - m })
			p := &pair{log: l, memory: m}
			if n > 0 {
				p.before = best[n-1]
			}
			if n == len(best) {
				best = append(best, p)
			} else {
				best[n] = p
			}
		}
	}
	names := map[client.TurnID]client.TurnID{}
	if len(best) > 0 {
		for p := best[len(best)-1]; p != nil; p = p.before {
			names[log[p.log].id] = memory[p.memory].id
		}
	}
	return names
}

// rename gives a turn's messages the name of another turn.
func rename(events []client.Event, turn, name client.TurnID) {
	for i, e := range events {
		events[i].ID = client.EventID(string(name) + strings.TrimPrefix(string(e.ID), string(turn)))
	}
}
