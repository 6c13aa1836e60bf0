package workspace

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

// SearchRequest asks for what is found by words. Someone who searches reads what
// comes, so it gets more and longer texts than a recall that nobody asked for.
type SearchRequest struct {
	Query    string
	Limit    int      // items; 0 means 5
	MinScore float64  // 0 to 1; items below are left out
	Tags     []string // if any: only notes that have one of them in their front matter
	From, To string   // if not empty: only what is of this day (YYYY-MM-DD) or a later, an earlier one
	Cwd      string   // memories of the same project rank higher
}

// SearchResult is what was found, best first.
type SearchResult struct {
	Items     []client.Item
	Found     int  // relevant items, also those that the limit left out
	Truncated bool // a text was cut
}

const (
	searchFloor = 0.2   // a recall's is higher: it must not disturb
	maxText     = 2000  // characters of one item
	maxTexts    = 12000 // of all; hosts cut longer answers of tools in their own way
)

// Search finds what is relevant to a query. Unlike Recall it fails if the index
// cannot be used at all.
func (w *Workspace) Search(ctx context.Context, req SearchRequest) (SearchResult, error) {
	req.Limit = cmp.Or(req.Limit, defaultLimit)
	res := SearchResult{Items: []client.Item{}}
	r := recall{w: w, req: client.RecallRequest{Limit: req.Limit, Cwd: req.Cwd}, q: newQuery(req.Query), floor: max(req.MinScore, searchFloor)}
	err := w.read(ctx, nil, func(x *index) (err error) {
		res.Found, err = r.search(ctx, x, req)
		return err
	})
	if err != nil {
		return res, err
	}
	left := maxTexts
	for i, h := range r.hits {
		text, cut := snippet(h.doc, r.q, min(maxText, left/(len(r.hits)-i)))
		left -= countChars(text)
		res.Truncated = res.Truncated || cut
		res.Items = append(res.Items, client.Item{
			ID: h.itemID(), Path: h.path, StartLine: h.doc.first, EndLine: h.doc.last, Snippet: text,
			Score: math.Round(h.score*1000) / 1000, Date: w.dayOf(h), Host: h.host, Project: projectName(h.cwd), SessionID: cmp.Or(h.sess, h.key),
		})
	}
	return res, nil
}

// search leaves the best hits in r and returns the number of all.
func (r *recall) search(ctx context.Context, x *index, req SearchRequest) (found int, err error) {
	r.hits, r.more = nil, 0
	if len(r.q.asked) == 0 {
		return 0, nil
	}
	var kept []*hit
	if err := x.reading(ctx, func(index *reader) error {
		matches, err := r.q.match(index)
		if err != nil {
			return err
		}
		for len(matches) > 0 && len(kept) < maxCandidates {
			hits := hitsOf(matches[:min(len(matches), maxCandidates)])
			matches = matches[len(hits):]
			if err := index.describe(hits); err != nil {
				return err
			}
			for _, h := range hits {
				if r.wanted(h) && r.w.within(h, req) {
					kept = append(kept, h)
				}
			}
		}
		return nil
	}); err != nil {
		return 0, err
	}
	r.rank(kept)
	kept = slices.DeleteFunc(kept, func(h *hit) bool { return h.score < r.floor })
	r.choose(r.weigh(r.readTexts(ctx, kept)))
	return len(kept), ctx.Err()
}

func (w *Workspace) dayOf(h *hit) string { return w.day(time.UnixMilli(h.at)) }

// within tells whether a hit is what the filters of a search leave.
func (w *Workspace) within(h *hit, req SearchRequest) bool {
	if day := w.dayOf(h); req.From != "" && day < req.From || req.To != "" && day > req.To {
		return false
	}
	if len(req.Tags) == 0 {
		return true
	}
	if h.kind.isDialog() {
		return false
	}
	text, err := w.readNote(h.path)
	if err != nil {
		return false
	}
	tags, _ := noteKeys(text)["memory_tags"].([]any)
	return slices.ContainsFunc(tags, func(t any) bool {
		s, ok := t.(string)
		return ok && slices.Contains(req.Tags, s)
	})
}
