package workspace

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxQuery    = 4 << 10 // bytes of a query that are looked at
	maxAsked    = 48      // terms whose frequency is asked for: 4 ms at 100,000 docs
	maxSearched = 16      // terms that docs are searched for
	fullWeight  = 8       // so many terms make a perfect doc
	firstPosted = 64      // ids that are read to learn a frequency
	maxPosted   = 1000    // ids that are read of a term that is searched for
	corpus      = 200     // docs that a smaller workspace is taken to have
)

// query is what is looked for.
type query struct {
	asked   []queryTerm // what the text asks for, by its looks
	terms   []queryTerm // what is looked for
	spelled []string    // the words as they were spelt
	own     []int64     // docs of the conversation that context is of
	total   float64     // the weight that a perfect doc covers
	docs    float64     // how many docs there are, about
	task    bool        // it wants something done
}

type queryTerm struct {
	text    string
	kind    termKind
	meant   string  // the word of the query that it stands for, if that is another
	prior   float64 // what it says by its looks
	docs    float64 // how many docs have it, about
	weight  float64 // prior and rarity
	mask    uint32  // 0 if docs are not searched for it
	context bool    // it was not asked for, the conversation speaks of it
	also    bool    // another form of what other terms ask for: a doc need not have it
	exact   bool    // an identifier so rare that it is an answer alone
}

func newQuery(text string) *query {
	text = cutBytes(text, maxQuery)
	q := &query{task: isTask(text)}
	known := map[string]bool{}
	s := segmenter{
		yield: func(term string, kind termKind) {
			if known[term] {
				return
			}
			known[term] = true
			if p := prior(term, kind); p > 0 {
				q.asked = append(q.asked, queryTerm{text: term, kind: kind, prior: p})
			}
		},
		spelled: func(w string) { q.spelled = append(q.spelled, w) },
	}
	s.segment(text)
	slices.SortStableFunc(q.asked, func(a, b queryTerm) int {
		return cmp.Or(cmp.Compare(b.prior, a.prior), cmp.Compare(len(b.text), len(a.text)))
	})
	q.asked = q.asked[:min(len(q.asked), maxAsked)]
	return q
}

// prior is what a term says by its looks.
func prior(term string, kind termKind) float64 {
	switch kind {
	case whole:
		return 1.5
	case part:
		return 0.5 * priorOfWord(term)
	case word:
		return priorOfWord(term)
	case kana:
		if strings.ContainsFunc(term, isHiragana) {
			return 0.05 // mostly grammar
		}
		return 0.7 // a piece of a longer word
	case han:
		grammar, runes := 0, 0
		for _, r := range term {
			runes++
			if isFunctionHan(r) || isHiragana(r) {
				grammar++
			}
		}
		switch {
		case grammar == runes:
			return 0
		case grammar > 0 || isEverydayHan(term):
			return 0.3
		}
	case hangul:
		if isEndingHangul(term) || utf8.RuneCountInString(term) == 1 {
			return 0.2
		}
	case hangulPart:
		if isEndingHangul(term) {
			return 0.1
		}
		return 0.5
	}
	return 1
}

func priorOfWord(w string) float64 {
	switch {
	case isWeakWord(w), len(w) == 1:
		return 0.3
	case isEverydayWord(w):
		return 0.4
	}
	return 1
}

func isHiragana(r rune) bool { return r >= 0x3041 && r <= 0x309F }

// match is a doc that covers enough of a query to be looked at.
type match struct {
	id    int64
	mask  uint32 // of the terms that it has
	cover float64
}

// match finds the docs that cover enough of the query, those that cover most first.
func (q *query) match(r *reader) ([]match, error) {
	q.terms = slices.Clone(q.asked)
	newest, err := r.newest()
	if err != nil {
		return nil, err
	}
	// Terms that are all searched for are looked up once.
	limit := firstPosted
	if len(q.terms) <= maxSearched {
		limit = maxPosted
	}
	pairs := q.pairs()
	lists, err := r.postings(slices.Concat(q.terms, pairs), limit)
	if err != nil {
		return nil, err
	}
	if lists, err = q.repair(r, lists[:len(q.terms):len(q.terms)], pairs, lists[len(q.terms):], limit); err != nil {
		return nil, err
	}
	q.docs = float64(max(newest, corpus))
	meets := meeting(q.terms, lists)
	order := make([]int, len(q.terms))
	for i := range q.terms {
		if len(q.own) > 0 {
			lists[i] = slices.DeleteFunc(lists[i], func(id int64) bool { return slices.Contains(q.own, id) })
		}
		t, ids := &q.terms[i], lists[i][:min(len(lists[i]), firstPosted)]
		df := float64(len(ids))
		if len(ids) == firstPosted {
			// Ids grow with time, so how far back the newest holders reach
			// tells how many there are.
			df *= max(1, float64(newest)/float64(newest-ids[len(ids)-1]+1))
		}
		t.docs = df
		t.weight = t.prior * math.Log(1+(q.docs-df+0.5)/(df+0.5))
		if df == 0 && t.context {
			t.weight = 0 // only this conversation speaks of it
		}
		if df == 0 && t.kind >= han {
			t.weight /= 2 // often just two words that met
			if meets(t) {
				t.weight = 0
			}
		}
		t.exact = t.kind == whole && len(t.text) >= 4 && df <= max(3, q.docs/1000)
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(q.terms[b].weight, q.terms[a].weight) })
	q.total = 0
	counted := 0
	for _, i := range order {
		if t := &q.terms[i]; !t.also && counted < fullWeight {
			counted++
			q.total += t.weight
		}
	}

	var searched, common []int
	var more []queryTerm
	for _, i := range order {
		t := &q.terms[i]
		t.mask = 0
		if len(lists[i]) > 0 && len(searched) < maxSearched {
			t.mask = 1 << len(searched)
			searched = append(searched, i)
			if len(lists[i]) == limit && limit < maxPosted {
				common = append(common, i)
				more = append(more, *t)
			}
		}
	}
	longer, err := r.postings(more, maxPosted)
	if err != nil {
		return nil, err
	}
	for n, i := range common {
		lists[i] = longer[n]
	}
	wanted := make([][]int64, len(searched))
	for n, i := range searched {
		wanted[n] = lists[i]
	}
	return q.gather(wanted), nil
}

// gather finds the docs that are in enough of the lists, each of which has the ids of
// the docs with the term whose mask is its bit, the greatest first. There are some
// thousand docs, and much fewer masks.
func (q *query) gather(lists [][]int64) []match {
	var found []match
	covers := map[uint32]float64{}
	for {
		id := int64(0)
		for _, ids := range lists {
			if len(ids) > 0 {
				id = max(id, ids[0])
			}
		}
		if id == 0 {
			break
		}
		mask := uint32(0)
		for n, ids := range lists {
			if len(ids) > 0 && ids[0] == id {
				mask |= 1 << n
				lists[n] = ids[1:]
			}
		}
		cover, known := covers[mask]
		if !known {
			cover = q.cover(mask)
			covers[mask] = cover
		}
		if cover >= leastCover {
			found = append(found, match{id, mask, cover})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return cmp.Compare(b.cover, a.cover) })
	return found
}

// meeting tells the pairs of characters that are the end of one pair that was said
// and the beginning of another: two words met there.
func meeting(terms []queryTerm, lists [][]int64) func(*queryTerm) bool {
	begins, ends := map[rune]bool{}, map[rune]bool{}
	for i, t := range terms {
		if len(lists[i]) > 0 && (t.kind == han || t.kind == kana) {
			first, _ := utf8.DecodeRuneInString(t.text)
			last, _ := utf8.DecodeLastRuneInString(t.text)
			begins[first], ends[last] = true, true
		}
	}
	return func(t *queryTerm) bool {
		first, _ := utf8.DecodeRuneInString(t.text)
		last, _ := utf8.DecodeLastRuneInString(t.text)
		return ends[first] && begins[last]
	}
}

// cover is the share of the query's weight that a doc with the terms of mask has.
func (q *query) cover(mask uint32) float64 {
	return q.share(in(mask))
}

// share is the cover of what has some of the terms.
func (q *query) share(has func(queryTerm) bool) float64 {
	share := min(1, q.sum(has)/q.total)
	if slices.ContainsFunc(q.terms, func(t queryTerm) bool { return t.exact && has(t) }) {
		share = max(share, exactFloor)
	}
	return share
}

func (q *query) weight(mask uint32) float64 { return q.sum(in(mask)) }

// in tells the terms of a mask.
func in(mask uint32) func(queryTerm) bool {
	return func(t queryTerm) bool { return t.mask&mask != 0 }
}

func (q *query) sum(has func(queryTerm) bool) (sum float64) {
	for _, t := range q.terms {
		if has(t) {
			sum += t.weight
		}
	}
	return sum
}

// evidence tells how unlikely it is that a doc has some terms by accident: 1 for a
// word that no other doc has. Pairs of characters that overlap say less than pairs
// that do not: the three of a word of four characters as much as two.
func (q *query) evidence(has func(queryTerm) bool) float64 {
	words, pairs, number := 0.0, 0.0, 0
	characters := map[rune]bool{}
	for _, t := range q.terms {
		switch {
		case !has(t):
		case t.kind < han:
			words += t.weight
		default:
			pairs += t.weight
			number++
			for _, r := range t.text {
				characters[r] = true
			}
		}
	}
	if number > 0 {
		pairs *= min(1, float64(len(characters))/float64(2*number))
	}
	return (words + pairs) / math.Log(1+q.docs)
}

// names lists the terms of a mask.
func (q *query) names(mask uint32) []string {
	list := []string{}
	for _, t := range q.terms {
		if t.mask&mask != 0 {
			list = append(list, t.text)
		}
	}
	return list
}

// weights is for finding the best place in a text.
func (q *query) weights() map[string]float64 {
	m := make(map[string]float64, len(q.terms))
	for _, t := range q.terms {
		m[t.text] = t.weight
	}
	return m
}
