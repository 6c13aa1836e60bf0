package workspace

import "math"

// What makes a chance: a logistic regression on the best candidate of each prompt
// of the set, and on the right one. `go run ./internal/eval -fit` prints them.
const (
	chanceBias      = -2.4
	chanceCover     = 4.1
	chanceTaskCover = 0.8 // in the place of chanceCover if the prompt is a task
	chanceEvidence  = 4.1
	noEvidence      = 0.05 // is taken for none
)

// leastChance is that of what is put before an agent that did not ask for it.
const leastChance = 0.5

// chance is how likely it is that a doc is what was asked for if it has some of the
// terms.
func (q *query) chance(has func(queryTerm) bool) float64 {
	cover := chanceCover
	if q.task {
		cover = chanceTaskCover
	}
	return 1 / (1 + math.Exp(-(chanceBias + cover*q.share(has) + chanceEvidence*math.Log(noEvidence+q.evidence(has)))))
}
