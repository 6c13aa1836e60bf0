// Package redact takes secrets out of text before it is written anywhere.
//
// A secret is replaced by a mark that names its type. Only what has the form of
// a credential is replaced, or what stands where a credential stands and is no
// word, name, path or reference; a guess by entropy alone would destroy hashes
// and code. Example keys and placeholders stay.
//
// Everything is found by hand-written scanners in one pass each: a hook is a
// process of its own, and would pay for the compilation of regular expressions
// with every prompt.
package redact

import (
	"cmp"
	"slices"
	"strings"
)

// Private is what is left of a text that the user marked as private as a whole.
const Private = "[redacted private]"

// begin is how every mark begins.
const begin = "[redacted "

// Text returns s with each secret replaced by "[redacted <type>]". Redacting
// again changes nothing.
func Text(s string) string {
	for {
		found := find(s)
		if len(found) == 0 {
			return s
		}
		s = replace(s, found)
	}
}

// span is a secret in a text.
type span struct {
	start, end int
	mark       string
}

// find returns the secrets in s in the order of their beginnings. They may
// overlap.
func find(s string) []span {
	t := newText(s)
	found := slices.Concat(t.private(), t.privateKeys(), t.tokens(), t.webTokens(), t.urls(), t.headers(), t.cookies(), t.options(), t.assignments())
	found = slices.DeleteFunc(found, func(f span) bool { return f.mark != private && strings.Contains(s[f.start:f.end], begin) })
	slices.SortStableFunc(found, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	return found
}

// replace puts marks in the place of spans; of overlapping ones, the first gives
// the mark.
func replace(s string, found []span) string {
	var b strings.Builder
	pos := 0
	for i := 0; i < len(found); {
		f := found[i]
		for i++; i < len(found) && found[i].start < f.end; i++ {
			f.end = max(f.end, found[i].end)
		}
		b.WriteString(s[pos:f.start])
		b.WriteString(begin + f.mark + "]")
		pos = f.end
	}
	b.WriteString(s[pos:])
	return b.String()
}

// text is what is searched, as it is and with its ASCII letters in lower case;
// both have the same length.
type text struct {
	s, lower string
	runs     [charsets]span // the last answers of run
	triples  triples
}

func newText(s string) *text {
	t := &text{s: s, lower: lower(s)}
	t.triples.add(t.lower)
	return t
}

// triples are the neighbouring three bytes that a text has, as bits: most of the
// words that are looked for are told to be in no short text by what was read once.
type triples [1 << 15 / 64]uint64

// add puts in those of s.
func (b *triples) add(s string) {
	h := uint16(0)
	for i := range len(s) {
		h = slide(h, s[i])
		if i >= 2 {
			b[h/64] |= 1 << (h % 64)
		}
	}
}

// mayHave is false if the text cannot have a word.
func (b *triples) mayHave(word string) bool {
	h := uint16(0)
	for i := range len(word) {
		h = slide(h, word[i])
		if i >= 2 && b[h/64]&(1<<(h%64)) == 0 {
			return false
		}
	}
	return true
}

// slide makes of the number of three bytes that of the three that end with c.
func slide(h uint16, c byte) uint16 { return (h<<5 ^ uint16(c)) & (1<<15 - 1) }

func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if isUpper(c) {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// each calls f with every place of a word, given in lower case.
func (t *text) each(word string, f func(start, end int)) {
	if !t.triples.mayHave(word) {
		return
	}
	for pos := 0; ; {
		i := strings.Index(t.lower[pos:], word)
		if i < 0 {
			return
		}
		pos += i + len(word)
		f(pos-len(word), pos)
	}
}

const private = "private"

// private finds <private>…</private>, also nested and never closed. Between
// backticks the tag is only mentioned.
func (t *text) private() []span {
	const opening, closing = "<private>", "</private>"
	var out []span
	depth := 0
	for pos := 0; ; {
		i := strings.Index(t.lower[pos:], "private>")
		if i < 0 {
			break
		}
		end := pos + i + len("private>")
		pos = end
		start := end - len(opening)
		switch {
		case strings.HasSuffix(t.lower[:end], closing) && depth > 0:
			if depth--; depth == 0 {
				out[len(out)-1].end = end
			}
		case strings.HasSuffix(t.lower[:end], opening) && !t.quoted(start, end, "`"):
			if depth++; depth == 1 {
				out = append(out, span{start, len(t.s), private})
			}
		}
	}
	return out
}

// quoted tells whether a part of the text stands between quotes, one of those
// given.
func (t *text) quoted(start, end int, quotes string) bool {
	return start > 0 && end < len(t.s) && t.s[start-1] == t.s[end] && strings.IndexByte(quotes, t.s[end]) >= 0
}
