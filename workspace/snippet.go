package workspace

import (
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/harmless"
)

const (
	maxSnippet = 800 // characters of one item: the session pays for them with each turn
	minSnippet = 200 // less says too little
)

// docText is the text of a doc, read from its file.
type docText struct {
	parts       []docPart
	first, last int // lines
}

type docPart struct {
	role client.Role // "" in a note
	text string
}

func (d docText) String() string {
	var b strings.Builder
	for _, p := range d.parts {
		b.WriteString(p.text)
		b.WriteByte('\n')
	}
	return b.String()
}

// terms returns the terms of what the user said, nil of a note, and all terms.
func (d docText) terms() (asked, all map[string]struct{}) {
	all = map[string]struct{}{}
	for _, p := range d.parts {
		if p.role == client.User && asked == nil {
			asked = map[string]struct{}{}
		}
		eachTerm(p.text, func(term string, _ termKind) {
			all[term] = struct{}{}
			if p.role == client.User {
				asked[term] = struct{}{}
			}
		})
	}
	return asked, all
}

// readDoc reads what a hit refers to; it reports false if that is gone.
func (w *Workspace) readDoc(h *hit) (docText, bool) {
	f, err := os.Open(w.abs(h.path))
	if err != nil || len(h.spans) == 0 {
		return docText{}, false
	}
	defer f.Close()
	d := docText{first: h.spans[0].line, last: h.spans[len(h.spans)-1].line}
	if !h.kind.isDialog() {
		text := string(readSpan(f, h.spans[0]))
		d.last = d.first + strings.Count(strings.TrimRight(text, "\n"), "\n")
		d.parts = []docPart{{text: stripMark(harmless.Text(text))}}
		return d, !isBlank(text)
	}
	size := 0
	for _, s := range h.spans {
		m, ok := parseRow(readSpan(f, s), w.loc)
		if !ok || m.Turn != "" && string(m.Turn) != h.turn {
			return docText{}, false
		}
		text := strings.TrimSpace(harmless.Text(cutBytes(m.Text, maxIndexed)))
		if n := len(d.parts); n > 0 && d.parts[n-1].role == m.Role {
			d.parts[n-1].text += "\n" + text
		} else {
			d.parts = append(d.parts, docPart{m.Role, text})
		}
		if size += len(text); size >= maxIndexed {
			break
		}
	}
	return d, true
}

// snippet renders a doc in at most n characters and reports whether it left
// something out.
func snippet(d docText, q *query, n int) (text string, cut bool) {
	if n <= 0 || len(d.parts) == 0 {
		return "", false
	}
	labels, chars := make([]string, len(d.parts)), make([]int, len(d.parts))
	total := len(d.parts) - 1
	for i, p := range d.parts {
		if p.role != "" {
			labels[i] = string(p.role) + ": "
		}
		chars[i] = len(labels[i]) + countChars(p.text)
		total += chars[i]
	}
	weights := q.weights()
	var out []string
	left := n
	for i, p := range d.parts {
		room := left
		if i > 0 {
			room--
		}
		if rest := len(d.parts) - 1 - i; total > n && rest > 0 {
			// What was asked may take a third when there is more to come, and
			// what the rest does not need.
			later := rest
			for _, c := range chars[i+1:] {
				later += c
			}
			room = max(room/(min(rest, 2)+1), room-later)
		}
		room -= len(labels[i])
		body, short := excerpt(p.text, weights, room)
		cut = cut || short
		if body == "" {
			continue
		}
		piece := labels[i] + body
		if len(out) > 0 {
			left--
		}
		left -= countChars(piece)
		out = append(out, piece)
	}
	return strings.Join(out, "\n"), cut
}

func countChars(s string) int { return utf8.RuneCountInString(s) }

// excerpt returns at most n characters around the sentence that has most of the
// query, cut between sentences if possible and never inside a word; of a block of
// code, whole lines between its fences.
func excerpt(text string, weights map[string]float64, n int) (string, bool) {
	text = strings.TrimSpace(text)
	if countChars(text) <= n {
		return text, false
	}
	if n < 4 {
		return "", true
	}
	n -= 4 // for an ellipsis on both sides, and a newline where it is beside a fence
	sentences := splitUnits(text)
	best := heaviest(sentences, weights)
	from, to := best, best
	left := n - countChars(sentences[best])
	for grown := left >= 0; grown; {
		grown = false
		if to+1 < len(sentences) && countChars(sentences[to+1]) <= left {
			to++
			left -= countChars(sentences[to])
			grown = true
		}
		if from > 0 && countChars(sentences[from-1]) <= left {
			from--
			left -= countChars(sentences[from])
			grown = true
		}
	}
	out := strings.Join(sentences[from:to+1], "")
	before, after := from > 0, to+1 < len(sentences)
	block := beginsBlock(sentences, from)
	if countChars(strings.TrimSpace(out)) > n {
		if block {
			out = cutCode(sentences[best], weights, n)
		} else {
			var late, early bool
			out, late, early = cutAround(strings.TrimSpace(out), weights, n)
			before, after = before || late, after || early
		}
	}
	if out = strings.TrimSpace(out); out == "" {
		return "", true
	}
	if before && block {
		out = "…\n" + out
	} else if before {
		out = "…" + out
	}
	if after && strings.HasSuffix(out, fence) {
		out += "\n"
	}
	if after {
		out += "…"
	}
	return out, true
}

// heaviest returns the index of the piece that has most of the query.
func heaviest(pieces []string, weights map[string]float64) int {
	best, bestWeight := 0, -1.0
	for i, s := range pieces {
		var sum float64
		seen := map[string]bool{}
		eachTerm(s, func(term string, _ termKind) {
			if w := weights[term]; w > 0 && !seen[term] {
				seen[term] = true
				sum += w
			}
		})
		if sum > bestWeight {
			best, bestWeight = i, sum
		}
	}
	return best
}

const fence = "```"

func isCode(unit string) bool { return strings.HasPrefix(strings.TrimLeft(unit, " \t"), fence) }

// beginsBlock tells whether a unit is a block of code: a fence within a line is none.
func beginsBlock(units []string, i int) bool {
	return isCode(units[i]) && (i == 0 || strings.HasSuffix(units[i-1], "\n"))
}

// splitUnits cuts a text into blocks of code, with their fences, and the sentences
// between them; joined, the pieces are the text. A block that is not closed goes to
// the end.
func splitUnits(text string) []string {
	var units []string
	prose := func(s string) {
		if s != "" {
			units = append(units, splitSentences(s)...)
		}
	}
	start, block := 0, -1
	for off := 0; off < len(text); {
		next := len(text)
		if i := strings.IndexByte(text[off:], '\n'); i >= 0 {
			next = off + i + 1
		}
		switch {
		case !isCode(text[off:next]):
		case block < 0:
			prose(text[start:off])
			block = off
		default:
			units = append(units, text[block:next])
			start, block = next, -1
		}
		off = next
	}
	if block >= 0 {
		return append(units, strings.TrimRight(text[block:], "\n")+"\n"+fence)
	}
	prose(text[start:])
	return units
}

// cutCode returns the fences of a block of code and as many of its lines around
// the one that has most of the query as make at most n characters; "" if that is
// none.
func cutCode(block string, weights map[string]float64, n int) string {
	lines := strings.Split(strings.TrimSpace(block), "\n")
	if len(lines) < 3 {
		return ""
	}
	first, last := lines[0], lines[len(lines)-1]
	lines = lines[1 : len(lines)-1]
	left := n - countChars(first) - countChars(last) - len("\n\n") - 2*countChars("…\n")
	from := heaviest(lines, weights)
	to := from
	for to < len(lines) && countChars(lines[to])+1 <= left {
		left -= countChars(lines[to]) + 1
		to++
	}
	if to == from {
		return ""
	}
	out := []string{first}
	if from > 0 {
		out = append(out, "…")
	}
	out = append(out, lines[from:to]...)
	if to < len(lines) {
		out = append(out, "…")
	}
	return strings.Join(append(out, last), "\n")
}

// splitSentences cuts after sentence ends and newlines; joined, the pieces are
// the text.
func splitSentences(text string) []string {
	var out []string
	start := 0
	var prev rune
	for i, r := range text {
		if i > start && (prev == '\n' && r != '\n' || strings.ContainsRune("。！？", prev) && !strings.ContainsRune("。！？”」』）", r) ||
			unicode.IsSpace(prev) && !unicode.IsSpace(r) && i-start > 1 && endsSentence(text[start:i])) {
			out = append(out, text[start:i])
			start = i
		}
		prev = r
	}
	return append(out, text[start:])
}

func endsSentence(s string) bool {
	s = strings.TrimRight(strings.TrimRightFunc(s, unicode.IsSpace), `"')]`)
	return s != "" && strings.ContainsRune(".!?", rune(s[len(s)-1]))
}

// cutAround returns at most n characters of a long sentence from a little before
// the first term of the query on.
func cutAround(s string, weights map[string]float64, n int) (out string, before, after bool) {
	words := splitWords(s)
	match := 0
	for i, w := range words {
		hit := false
		eachTerm(w, func(term string, _ termKind) { hit = hit || weights[term] > 0 })
		if hit {
			match = i
			break
		}
	}
	from, lead := match, 0
	for from > 0 && lead+countChars(words[from-1]) <= n/4 {
		from--
		lead += countChars(words[from])
	}
	to, left := from, n
	for to < len(words) && countChars(words[to]) <= left {
		left -= countChars(words[to])
		to++
	}
	return strings.Join(words[from:to], ""), from > 0, to < len(words)
}

// splitWords cuts where a text may be cut: not inside a word of an alphabet, and
// not inside what is shown as one character.
func splitWords(s string) []string {
	var out []string
	start := 0
	var prev rune
	for i, r := range s {
		if i > 0 && !sticks(prev, r) {
			out = append(out, s[start:i])
			start = i
		}
		prev = r
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

func sticks(a, b rune) bool {
	const joinerRune, flagA, flagZ = '\u200D', 0x1F1E6, 0x1F1FF
	switch {
	case a == joinerRune, b == joinerRune, unicode.IsMark(b), b >= 0x1F3FB && b <= 0x1F3FF:
		return true
	case a >= flagA && a <= flagZ && b >= flagA && b <= flagZ:
		return true
	}
	return spelled(a) && spelled(b)
}

// spelled tells characters of which several make a word.
func spelled(r rune) bool {
	switch classOf(r) {
	case inWord, joiner, mark, hangulSyllable:
		return true
	}
	return r == '\'' || r == '’'
}
