package workspace

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/agentscope-ai/reme-hook/client"
)

// Explanation tells how a recall came to its answer.
type Explanation struct {
	// Terms are what the query was taken to ask for, the weightiest first.
	Terms []ExplainedTerm `json:"terms"`
	// Task is whether it was taken to want something done.
	Task bool `json:"task"`
	// Candidates are the memories that were looked at, the best first.
	Candidates []ExplainedCandidate `json:"candidates"`
}

// ExplainedTerm is a search term of a query.
type ExplainedTerm struct {
	Text   string  `json:"text"`
	For    string  `json:"for,omitempty"` // the word of the query that is taken to be misspelt
	Docs   int     `json:"docs"`          // memories that have it, about
	Weight float64 `json:"weight"`        // what a memory gains by having it; 0 if it says too little to be searched for
}

// ExplainedCandidate is a memory that was looked at.
type ExplainedCandidate struct {
	ID        string      `json:"id"`
	Path      string      `json:"path"`
	StartLine int         `json:"start_line"`
	EndLine   int         `json:"end_line"`
	Date      string      `json:"date"`
	Host      client.Host `json:"host,omitempty"`
	SessionID string      `json:"session_id,omitempty"`
	Terms     []string    `json:"terms"`    // those of the query that it has
	Evidence  float64     `json:"evidence"` // how unlikely it is that it has them by chance; 1 for a word that no other memory has
	Chance    float64     `json:"chance"`   // how likely it is that it is what was asked for, by what it covers, the evidence and whether that is a task
	Score     float64     `json:"score"`
	// Factors are what the score is the product of.
	Factors []Factor `json:"factors"`
	// Verdict is "chosen", or the reason why the memory was not.
	Verdict string `json:"verdict"`
}

// Factor is a part of a score.
type Factor struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// maxExplained bounds how many candidates are told of.
const maxExplained = 30

// Explain is [Workspace.Recall] with the reasons for its answer.
func (w *Workspace) Explain(ctx context.Context, req client.RecallRequest) (client.RecallResult, Explanation, error) {
	r := w.newRecall(req)
	res := r.do(ctx)
	return res, r.explain(), ctx.Err()
}

func (r *recall) explain() Explanation {
	e := Explanation{Task: r.q.task, Terms: []ExplainedTerm{}, Candidates: []ExplainedCandidate{}}
	terms := slices.Clone(r.q.terms)
	slices.SortStableFunc(terms, func(a, b queryTerm) int { return cmp.Compare(b.weight, a.weight) })
	for _, t := range terms {
		e.Terms = append(e.Terms, ExplainedTerm{Text: t.text, For: t.meant, Docs: int(t.docs), Weight: round(t.weight)})
	}
	slices.SortStableFunc(r.all, func(a, b *hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.at, a.at))
	})
	for _, h := range r.all[:min(len(r.all), maxExplained)] {
		c := ExplainedCandidate{ID: h.itemID(), Path: h.path, Date: r.w.dayOf(h), Host: h.host, SessionID: cmp.Or(h.sess, h.key), Terms: r.q.names(h.mask), Evidence: round(r.q.evidence(in(h.mask))), Chance: round(h.chance), Score: round(h.score), Factors: []Factor{}, Verdict: h.verdict}
		if len(h.spans) > 0 {
			c.StartLine, c.EndLine = h.spans[0].line, h.spans[len(h.spans)-1].line
		}
		for _, f := range h.factors {
			c.Factors = append(c.Factors, Factor{f.Name, round(f.Value)})
		}
		e.Candidates = append(e.Candidates, c)
	}
	return e
}

func round(x float64) float64 { return math.Round(x*1000) / 1000 }
