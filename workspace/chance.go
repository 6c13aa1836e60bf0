package workspace

import "math"

// What makes a chance: a logistic regression on the best candidate of each prompt
// of the set, and on the right one. `go run ./internal/eval -fit` prints them.
const (
	chanceBias      = -2.4
	chanceCover     = 4.0
	chanceTaskCover = 0.7 // in the place of chanceCover if the prompt is a task
	chanceEvidence  = 4.0
	chanceNear      = 0.4
	noEvidence      = 0.05 // is taken for none
)

// leastChance is that of what is put before an agent that did not ask for it.
const leastChance = 0.5

// chance is how likely it is that a doc is what was asked for if it has some of the
// terms, and two of them so near to each other.
func (q *query) chance(has func(queryTerm) bool, near float64) float64 {
	cover := chanceCover
	if q.task {
		cover = chanceTaskCover
	}
	return 1 / (1 + math.Exp(-(chanceBias + cover*q.share(has) + chanceEvidence*math.Log(noEvidence+q.evidence(has)) + chanceNear*near)))
}

// nearWords is how many words apart two of a query are that have to do with each other
// in a text.
const nearWords = 3

// words are the words of the query with what they weigh, 1 for a word that no other
// doc has. Pairs of characters overlap, and are near to each other anyway.
func (q *query) words() map[string]float64 {
	m := map[string]float64{}
	for _, t := range q.terms {
		if t.kind < han {
			m[t.text] = t.weight / q.rarest()
		}
	}
	return m
}

// pairFinder finds the two words of a query that are near to each other in a text. Of
// several pairs it takes the one whose lighter word weighs most.
type pairFinder struct {
	words  map[string]float64
	recent [nearWords]string
	next   int
	near   float64 // the weight of the lighter word
}

func (f *pairFinder) see(term string) {
	if w := f.words[term]; w > f.near {
		for _, other := range f.recent {
			if other != term {
				f.near = max(f.near, min(w, f.words[other]))
			}
		}
	}
	f.recent[f.next%nearWords] = term
	f.next++
}
