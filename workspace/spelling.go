package workspace

import (
	"encoding/json"
	"slices"
	"strings"
)

const (
	minMisspelt = 5  // letters; shorter words are all one letter apart
	maxMisspelt = 20 // letters of a word that is corrected
	maxRepaired = 8  // words of a query that are looked at
	minHalf     = 3  // letters of a half of a compound
)

// isLongAsMisspelt tells words that a misspelt one is compared with by their length;
// everyday words are none of them.
func isLongAsMisspelt(w string) bool {
	return len(w) >= minMisspelt-1 && len(w) <= maxMisspelt+1
}

// repair replaces terms that no doc has: one that is one edit away from a word that
// was said by that word, and one that is two such words in one by the two. lists
// are the postings of the terms, each up to a limit; pairs are words that two of the
// query make together, with their postings.
func (q *query) repair(r *reader, lists [][]int64, pairs []queryTerm, said [][]int64, limit int) ([][]int64, error) {
	var repaired []queryTerm
	tried := 0
	for _, w := range q.spelled {
		i := slices.IndexFunc(q.terms, func(t queryTerm) bool { return t.kind == word && t.text == stem(w) })
		if i < 0 || len(lists[i]) > 0 || len(w) < minMisspelt || len(w) > maxMisspelt || priorOfWord(stem(w)) < 1 {
			continue
		}
		if tried++; tried > maxRepaired {
			break
		}
		terms, err := r.otherSpellings(w)
		if err != nil {
			return nil, err
		}
		if len(terms) == 0 {
			continue
		}
		q.terms = slices.Delete(q.terms, i, i+1)
		lists = slices.Delete(lists, i, i+1)
		for _, t := range terms {
			if !has(q.terms, t.text) {
				repaired = append(repaired, t)
			}
		}
	}
	more, err := r.postings(repaired, limit)
	if err != nil {
		return nil, err
	}
	for n, j := range pairs {
		if len(said[n]) == 0 {
			continue
		}
		// The parts were not meant if nobody ever said them.
		a, b, _ := strings.Cut(j.meant, " ")
		for i := range q.terms {
			if t := &q.terms[i]; len(lists[i]) == 0 && (t.text == stem(a) || t.text == stem(b)) {
				t.also, j.also = true, false
			}
		}
		repaired, more = append(repaired, j), append(more, said[n])
	}
	q.terms = append(q.terms, repaired...)
	return append(lists, more...), nil
}

func has(terms []queryTerm, term string) bool {
	return slices.ContainsFunc(terms, func(t queryTerm) bool { return t.text == term })
}

// otherSpellings finds what a word that was never said stands for.
func (r *reader) otherSpellings(w string) ([]queryTerm, error) {
	near, err := r.said(edits(w))
	if err != nil {
		return nil, err
	}
	near = slices.DeleteFunc(near, func(v string) bool {
		// Of short words the first letter is seldom wrong.
		return priorOfWord(stem(v)) < 1 || len(w) <= minMisspelt && v[0] != w[0]
	})
	if len(near) > 0 {
		// The commonest is the likeliest.
		terms := make([]queryTerm, len(near))
		for i, v := range near {
			terms[i] = queryTerm{text: stem(v), kind: word, meant: w, prior: misspeltPrior}
		}
		lists, err := r.postings(terms, firstPosted)
		if err != nil {
			return nil, err
		}
		best := 0
		for i := range terms {
			if len(lists[i]) > len(lists[best]) {
				best = i
			}
		}
		return terms[best : best+1], nil
	}
	var halves []string
	for i := minHalf; i <= len(w)-minHalf; i++ {
		halves = append(halves, stem(w[:i]), stem(w[i:]))
	}
	terms := make([]queryTerm, len(halves))
	for i, h := range halves {
		terms[i] = queryTerm{text: h, kind: word, meant: w, prior: min(halfPrior, priorOfWord(h))}
	}
	lists, err := r.postings(terms, 1)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(terms); i += 2 {
		if len(lists[i]) > 0 && len(lists[i+1]) > 0 {
			return terms[i : i+2], nil
		}
	}
	return nil, nil
}

const (
	misspeltPrior = 0.8
	halfPrior     = 0.7
)

// pairs lists the words that two neighbours of the query make together: web hook
// finds webhook.
func (q *query) pairs() []queryTerm {
	var terms []queryTerm
	for i := 1; i < min(len(q.spelled), 2*maxRepaired); i++ {
		a, b := q.spelled[i-1], q.spelled[i]
		if t := stem(a + b); len(a)+len(b) >= minMisspelt && !(isStopWord(a) && isStopWord(b)) && !has(q.terms, t) {
			terms = append(terms, queryTerm{text: t, kind: word, meant: a + " " + b, prior: 1, also: true})
		}
	}
	return terms
}

// said returns those of the words that the index has.
func (r *reader) said(words []string) ([]string, error) {
	list, err := json.Marshal(words)
	if err != nil {
		return nil, err
	}
	rows, err := r.query("SELECT w.word FROM json_each(?) j JOIN words w ON w.word = j.value", string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var w string
		if err := rows.Scan(&w); err != nil {
			return nil, err
		}
		found = append(found, w)
	}
	return found, rows.Err()
}

// edits lists what is one edit away from a word of small ASCII letters.
func edits(w string) []string {
	list := make([]string, 0, 54*len(w)+25)
	for i := range len(w) + 1 {
		head, tail := w[:i], w[i:]
		for c := 'a'; c <= 'z'; c++ {
			list = append(list, head+string(c)+tail)
			if tail != "" && byte(c) != tail[0] {
				list = append(list, head+string(c)+tail[1:])
			}
		}
		if tail != "" {
			list = append(list, head+tail[1:])
		}
		if len(tail) > 1 && tail[0] != tail[1] {
			list = append(list, head+tail[1:2]+tail[:1]+tail[2:])
		}
	}
	return list
}
