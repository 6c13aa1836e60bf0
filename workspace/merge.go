package workspace

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/client/reme"
	"github.com/agentscope-ai/reme-hook/internal/harmless"
)

const (
	// elsewhereTime is how long a recall waits for the other memory, less if its own
	// time is shorter: over 5,000 notes ReMe takes 20 to 140 ms.
	elsewhereTime = 500 * time.Millisecond
	// answerTime is left for the answer itself.
	answerTime = 100 * time.Millisecond
	// maxAskedElsewhere bounds the query, in bytes.
	maxAskedElsewhere = 2 << 10
	// maxCompared is how many sessions are asked for their notes.
	maxCompared = 24
)

// askElsewhere asks the other memory, if there is one, while this one is looked
// into. The channel yields one answer in time.
func (r *recall) askElsewhere(ctx context.Context) <-chan []reme.Passage {
	answer := make(chan []reme.Passage, 1)
	if r.w.elsewhere == nil || len(r.q.asked) == 0 || !r.w.elsewhere.Searches() {
		close(answer)
		return answer
	}
	r.elsewhere = true
	wait := elsewhereTime
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)-answerTime)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	search, query, limit := r.w.elsewhere.Search, cutBytes(r.req.Query, maxAskedElsewhere), cmp.Or(r.req.Limit, defaultLimit) // r changes meanwhile
	go func() {
		defer close(answer)
		defer cancel()
		defer func() { _ = recover() }() // what it says is not worth the agent's prompt
		answer <- search(ctx, query, limit)
	}()
	return answer
}

// merge takes in what the other memory has found, by the same measure as our own:
// the share of the query's weight, with the rarity that a term has here. ReMe's
// own scores are of another scale for each query.
func (r *recall) merge(passages []reme.Passage) {
	if r.q.total == 0 || len(passages) == 0 {
		return
	}
	var running []string
	if r.req.Session != "" && r.req.Purpose != client.ForCompact {
		running = r.w.elsewhere.Notes(r.running().Key())
	}
	var more []*hit
	for _, p := range passages {
		if isDayIndex(p.Path) {
			continue
		}
		h := &hit{
			path: elsewhereDir + p.Path, kind: note, turn: strconv.Itoa(p.Start),
			doc: docText{parts: []docPart{{text: strings.TrimSpace(harmless.Text(cutBytes(strings.ToValidUTF8(p.Text, "\uFFFD"), maxIndexed)))}}, first: p.Start, last: p.End},
		}
		if day, err := time.ParseInLocation(time.DateOnly, path.Base(path.Dir(p.Path)), r.w.loc); err == nil {
			h.at = day.Add(12 * time.Hour).UnixMilli()
		}
		h.terms = termSet(h.doc.String())
		has := func(t queryTerm) bool { _, ok := h.terms[t.text]; return ok }
		h.score = r.q.share(has)
		if r.q.chance(has) < r.chance {
			continue
		}
		if !slices.Contains(running, p.Path) && !slices.Contains(r.req.Exclude, h.itemID()) && !r.echo(h, p.Path) {
			more = append(more, h)
		}
	}
	r.rank(more)
	for _, h := range more {
		if h.score >= r.floor && !slices.ContainsFunc(r.hits, func(o *hit) bool { return nearCopies(h.terms, o.terms) }) {
			r.hits = append(r.hits, h)
		}
	}
	slices.SortStableFunc(r.hits, func(a, b *hit) int { return cmp.Compare(b.score, a.score) })
	if limit := cmp.Or(r.req.Limit, defaultLimit); len(r.hits) > limit {
		r.more += len(r.hits) - limit
		r.hits = r.hits[:limit]
	}
}

// echo tells whether a note of the other memory says no more of what was asked
// than a turn that it was made from.
func (r *recall) echo(h *hit, notePath string) bool {
	asked := map[string]bool{} // the sessions, and whether the note was made of them
	for _, t := range r.told {
		of, known := asked[t.key]
		if !known && len(asked) < maxCompared {
			of = slices.Contains(r.w.elsewhere.Notes(client.SessionKey(t.key)), notePath)
			asked[t.key] = of
		}
		if of && !slices.ContainsFunc(r.q.terms, func(q queryTerm) bool {
			_, has := h.terms[q.text]
			return has && q.mask&t.mask == 0
		}) {
			return true
		}
	}
	return false
}

// withoutEchoes leaves out ReMe's notes that say no more of what was asked than a
// turn that they were made from, and generated notes beside one of ReMe's.
func (r *recall) withoutEchoes(hits []*hit) []*hit {
	byNote := map[string]bool{}
	for _, h := range hits {
		if h.kind == note {
			byNote[path.Dir(h.path)+"/"+conversation(h.key)] = true
		}
	}
	return slices.DeleteFunc(hits, func(h *hit) bool {
		c := conversation(h.key)
		switch {
		case c == "":
			return false
		case h.kind == generated:
			return byNote[path.Dir(h.path)+"/"+c]
		}
		return h.kind == note && slices.ContainsFunc(r.told, func(t *hit) bool { return conversation(t.key) == c && h.mask&^t.mask == 0 })
	})
}

// conversation is what the names of a session have in common, here and at a ReMe:
// the first digits of its hash. It is "" for other names.
func conversation(key string) string {
	hash := key[strings.LastIndexByte(key, '-')+1:]
	if len(hash) != 12 && len(hash) != 32 || strings.Trim(hash, "0123456789abcdef") != "" {
		return ""
	}
	return hash[:12]
}
