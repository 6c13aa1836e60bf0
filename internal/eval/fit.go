package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
)

// example is a memory that was looked at, and whether it was what was asked for.
type example struct {
	measures [measures]float64
	right    bool
}

// What is measured of an example: 1, the share of the query that it covers if that is
// a question or if it is a task (else 0), and the logarithm of its evidence.
const measures = 4

// model is a logistic regression: the weight of each measure.
type model [measures]float64

// noEvidence is the one of the workspace.
const noEvidence = 0.05

func (m model) chance(e example) float64 {
	sum := 0.0
	for i, x := range e.measures {
		sum += m[i] * x
	}
	return 1 / (1 + math.Exp(-sum))
}

func exampleOf(a answer, c candidate) example {
	cover := c.Factors[0].Value
	e := example{[measures]float64{1, cover, 0, math.Log(noEvidence + c.Evidence)}, a.query.answer != "" && c.id == a.query.answer}
	if a.task {
		e.measures[1], e.measures[2] = 0, cover
	}
	return e
}

// examples are the best candidate of each prompt, and the right one. What corrects
// another takes over its score, and says nothing of the chance.
func examples(answers []answer) []example {
	var list []example
	for _, a := range answers {
		if a.query.running != nil || a.query.category == "corrected" {
			continue
		}
		for i, c := range a.looked {
			if i == 0 || c.id == a.query.answer {
				list = append(list, exampleOf(a, c))
			}
		}
	}
	return list
}

// fit climbs to the model that makes the examples likeliest.
func fit(list []example) (m model) {
	const steps, rate = 6000, 1.0
	for range steps {
		var g model
		for _, e := range list {
			miss := -m.chance(e)
			if e.right {
				miss++
			}
			for i, x := range e.measures {
				g[i] += miss * x
			}
		}
		for i := range m {
			m[i] += rate * g[i] / float64(len(list))
		}
	}
	return m
}

// printFit prints the model of all answers, and how it does on prompts that it was
// not fitted to: five times four fifths are for fitting, one for judging.
func printFit(w io.Writer, answers []answer) {
	m := fit(examples(answers))
	for i, name := range [measures]string{"Bias", "Cover", "TaskCover", "Evidence"} {
		fmt.Fprintf(w, "chance%-9s = %.1f\n", name, m[i])
	}
	fmt.Fprintln(w)
	fmt.Fprintf(w, "cross-validated%13s%15s\n%8s  %6s %6s  %6s %6s\n", "tune", "held", "least", "r@5", "false", "r@5", "false")
	const folds = 5
	var models [folds]model
	for f := range folds {
		models[f] = fit(examples(slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return fold(a, folds) == f })))
	}
	for _, least := range []float64{0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7} {
		fmt.Fprintf(w, "%8.2f", least)
		for _, part := range []string{"tune", "held"} {
			var judged []answer
			for _, a := range ofPart(answers, part) {
				if a.query.running == nil {
					a.items = likely(a, models[fold(a, folds)], least)
					judged = append(judged, a)
				}
			}
			list := tallies(judged)
			fmt.Fprintf(w, "  %6.3f %5.1f%%", find(list, allButTypos).recall5(), 100*find(list, nothing).falseShare())
		}
		fmt.Fprintln(w)
	}
}

func fold(a answer, folds int) int { return int(hash(a.query.id)>>8) % folds }

// likely are the candidates whose chance is not below the least, as the workspace
// would choose among them.
func likely(a answer, m model, least float64) (ids []string) {
	list := slices.DeleteFunc(slices.Clone(a.looked), func(c candidate) bool {
		return c.Verdict == "corrected by a newer one" || m.chance(exampleOf(a, c)) < least
	})
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.Score, a.Score) })
	for _, c := range list {
		if c.Score >= 0.5*list[0].Score {
			ids = append(ids, c.id)
		}
	}
	return ids
}
