package workspace

import "math"

// What makes a chance: a logistic regression on the best candidate of each prompt
// of the set, and on the right one. `go run ./internal/eval -part all -fit` prints them.
const (
	chanceBias     = -3.1
	chanceCover    = 4.6
	chanceEvidence = 3.9
	noEvidence     = 0.05 // is taken for none
)

// leastChance is that of what is put before an agent that did not ask for it.
const leastChance = 0.48

// chance is how likely it is that a doc is what was asked for if it covers a share
// of the query, by terms of so much evidence.
func chance(cover, evidence float64) float64 {
	return 1 / (1 + math.Exp(-(chanceBias + chanceCover*cover + chanceEvidence*math.Log(noEvidence+evidence))))
}
