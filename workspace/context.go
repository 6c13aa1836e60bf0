package workspace

import (
	"context"
	"slices"
	"strings"

	"github.com/agentscope-ai/reme-hook/client"
)

const (
	recentTurns   = 2       // turns of a conversation that a question can go on with
	maxContext    = 2 << 10 // bytes of one
	contextPrior  = 0.6     // what a word of theirs weighs beside one of the question
	shortQuestion = 2.5     // priors of all terms of a question that needs its conversation
)

// followUp makes a query of a question that says too little alone, like "why?" or
// "and in production?", and of what its conversation said last. It reports false
// if there is nothing to be made.
func (r *recall) followUp(ctx context.Context, x *index) (*query, bool) {
	if r.req.Session == "" || r.req.Purpose != client.ForPrompt || !isQuestion(r.req.Query) || newQuery(r.req.Query).priors() > shortQuestion {
		return nil, false
	}
	path := dialogPath(client.Session{Host: r.req.Host, Scope: r.req.ScopeID, ID: r.req.Session})
	rows, err := x.db.QueryContext(ctx, "SELECT d.id, d.turn, d.spans FROM docs d JOIN files f ON f.id = d.file WHERE f.path = ? ORDER BY d.at DESC, d.id DESC LIMIT ?", path, recentTurns)
	if err != nil {
		return nil, false
	}
	defer rows.Close()
	q := newQuery(r.req.Query)
	for rows.Next() {
		h := hit{path: path, kind: dialog}
		var spans string
		if rows.Scan(&h.id, &h.turn, &spans) != nil {
			return nil, false
		}
		h.spans = parseSpans(spans)
		if doc, ok := r.w.readDoc(&h); ok {
			q.own = append(q.own, h.id)
			q.addContext(doc.String())
		}
	}
	return q, rows.Err() == nil && len(q.own) > 0
}

func (q *query) priors() (sum float64) {
	for _, t := range q.asked {
		sum += t.prior
	}
	return sum
}

func (q *query) addContext(text string) {
	c := newQuery(cutBytes(text, maxContext))
	for _, t := range c.asked {
		if !has(q.asked, t.text) {
			t.prior *= contextPrior
			t.context = true
			q.asked = append(q.asked, t)
		}
	}
	q.asked = q.asked[:min(len(q.asked), maxAsked)]
}

// isQuestion tells prompts that want to be answered rather than obeyed.
func isQuestion(prompt string) bool {
	prompt = strings.ToLower(strings.TrimSpace(prompt))
	if strings.ContainsAny(prompt, "?？") {
		return true
	}
	first, _, _ := strings.Cut(prompt, " ")
	if slices.Contains([]string{"why", "what", "when", "where", "which", "who", "whose", "how", "is", "are", "was", "were", "does", "do", "did", "has", "have", "and"}, first) {
		return true
	}
	prompt = strings.TrimRight(prompt, "。.!！")
	return hasAnySuffix(prompt, "吗", "呢", "か", "까", "나요", "죠")
}
