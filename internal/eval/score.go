package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/agentscope-ai/reme-hook/workspace"
)

// depth is how many items of an answer count.
const depth = 5

// answer is what a memory said to a query.
type answer struct {
	query  query
	items  []string // ids of memories, best first
	chars  int      // of all snippets
	looked []candidate
	task   bool // the workspace took the query for one
}

// candidate is a memory that the workspace looked at.
type candidate struct {
	id string
	workspace.ExplainedCandidate
}

// rank is the place of the right item, from 1; 0 if it is not there.
func (a answer) rank() int {
	return 1 + slices.Index(a.items[:min(depth, len(a.items))], a.query.answer)
}

// tally sums up the answers of a category.
type tally struct {
	name        string
	queries     int
	at1, at5    int
	mrr, ndcg   float64
	falseRecall int     // queries without an answer that got items
	items       int     // items in all
	chars       float64 // characters in all
}

func (t *tally) add(a answer) {
	t.queries++
	t.items += len(a.items)
	t.chars += float64(a.chars)
	if a.query.answer == "" {
		if len(a.items) > 0 {
			t.falseRecall++
		}
		return
	}
	rank := a.rank()
	if rank == 0 {
		return
	}
	if rank == 1 {
		t.at1++
	}
	t.at5++
	t.mrr += 1 / float64(rank)
	t.ndcg += 1 / math.Log2(float64(1+rank))
}

func (t *tally) share(n float64) float64 { return n / float64(max(1, t.queries)) }

func (t *tally) recall1() float64 { return t.share(float64(t.at1)) }

func (t *tally) recall5() float64 { return t.share(float64(t.at5)) }

func (t *tally) falseShare() float64 { return t.share(float64(t.falseRecall)) }

// The sums that goals are set for.
const (
	allButTypos = "all but typos"
	nothing     = "nothing to recall"
)

// tallies sums up by category, and over all.
func tallies(answers []answer) []*tally {
	var list []*tally
	add := func(name string, a answer) {
		i := slices.IndexFunc(list, func(t *tally) bool { return t.name == name })
		if i < 0 {
			i = len(list)
			list = append(list, &tally{name: name})
		}
		list[i].add(a)
	}
	for _, a := range answers {
		add(a.query.category, a)
	}
	slices.SortStableFunc(list, func(a, b *tally) int {
		if x, y := strings.HasPrefix(a.name, "nothing"), strings.HasPrefix(b.name, "nothing"); x != y {
			if x {
				return 1
			}
			return -1
		}
		return strings.Compare(a.name, b.name)
	})
	for _, a := range answers {
		switch {
		case a.query.answer == "":
			add(nothing, a)
		case a.query.category != "typo":
			add(allButTypos, a)
		}
	}
	return list
}

func find(list []*tally, name string) *tally {
	for _, t := range list {
		if t.name == name {
			return t
		}
	}
	return &tally{name: name}
}

func printTable(w io.Writer, list []*tally) {
	fmt.Fprintf(w, "%-20s %7s %6s %6s %6s %6s %6s %6s %6s\n", "", "queries", "r@1", "r@5", "MRR", "nDCG", "false", "items", "chars")
	for _, t := range list {
		n := float64(max(1, t.queries))
		if strings.HasPrefix(t.name, "nothing") {
			fmt.Fprintf(w, "%-20s %7d %6s %6s %6s %6s %5.1f%% %6.2f %6.0f\n", t.name, t.queries, "", "", "", "", 100*t.falseShare(), float64(t.items)/n, t.chars/n)
			continue
		}
		fmt.Fprintf(w, "%-20s %7d %6.3f %6.3f %6.3f %6.3f %6s %6.2f %6.0f\n", t.name, t.queries, t.recall1(), t.recall5(), t.mrr/n, t.ndcg/n, "", float64(t.items)/n, t.chars/n)
	}
}
