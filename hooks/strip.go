package hooks

import "strings"

// tag is where a frame or an entry opens or closes in a text.
type tag struct {
	start, end int
	name       string // in lower case
	closing    bool
	bare       bool // it has no attributes
}

// maxTag bounds how far from its name a tag may begin and end, in bytes, so that
// no text takes more than one pass.
const maxTag = 1024

// tags finds the frame tags of a text, also escaped ones, in any case, with
// spaces in them, or cut off at the end of the text. It is written by hand
// because a hook pays for it with every message: a regular expression takes
// quadratic time on text that is full of openings.
func tags(s string) []tag {
	if !strings.ContainsAny(s, "<&") {
		return nil
	}
	lower := strings.Map(asciiLower, s)
	if len(lower) != len(s) {
		return nil // s is not valid UTF-8, which Clean sees to
	}
	var out []tag
	next := make([]int, len(framed)) // where each name comes next
	for pos := 0; ; {
		name, i := "", len(lower)
		for n, known := range framed {
			if next[n] < pos || pos == 0 {
				if next[n] = strings.Index(lower[pos:], known); next[n] < 0 {
					next[n] = len(lower)
				} else {
					next[n] += pos
				}
			}
			if next[n] < i {
				name, i = known, next[n]
			}
		}
		if name == "" {
			return out
		}
		pos = i + len(name)
		if wordAt(lower, pos) {
			continue
		}
		t := tag{name: name}
		before := strings.TrimRight(lower[max(0, i-maxTag):i], " \t\r\n")
		before, t.closing = strings.CutSuffix(before, "/")
		if t.closing {
			before = strings.TrimRight(before, " \t\r\n")
		}
		width, ok := left.endOf(before)
		if !ok {
			continue
		}
		t.start = max(0, i-maxTag) + len(before) - width
		if len(out) > 0 && t.start < out[len(out)-1].end {
			continue
		}
		t.end, t.bare = tagEnd(lower, pos)
		out = append(out, t)
		pos = t.end
	}
}

// framed are the elements in which recalled text, and what to do with it, is handed
// to models: ours, which are those of ReMe's own plugins, and those of OpenViking's.
var framed = []string{frameName, entryName, "reme-guidance", "openviking-context", "relevant-memories", "relevant-memory"}

func asciiLower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

func wordAt(s string, i int) bool {
	return i < len(s) && (s[i] == '_' || '0' <= s[i] && s[i] <= '9' || 'a' <= s[i] && s[i] <= 'z')
}

// bracket is one of the two around a tag, in its spellings.
type bracket struct {
	plain              byte
	name, decimal, hex string // as entities
}

var (
	left  = bracket{'<', "lt", "60", "3c"}
	right = bracket{'>', "gt", "62", "3e"}
)

// endOf tells whether s ends with the bracket, plain or escaped any number of
// times, and how many bytes it takes.
func (b bracket) endOf(s string) (width int, ok bool) {
	if strings.HasSuffix(s, string(b.plain)) {
		return 1, true
	}
	amp := strings.LastIndexByte(s, '&')
	return len(s) - amp, amp >= 0 && b.isEntity(s[amp:])
}

// isEntity tells whether s is the escaped form of the bracket: &lt; &amp;lt;
// &#60; &#x3c; and so on.
func (b bracket) isEntity(s string) bool {
	s, ok := strings.CutSuffix(s[1:], ";")
	if !ok {
		return false
	}
	for strings.HasPrefix(s, "amp;") {
		s = s[len("amp;"):]
	}
	code, numeric := strings.CutPrefix(s, "#")
	if !numeric {
		return s == b.name
	}
	if hex, ok := strings.CutPrefix(code, "x"); ok {
		return strings.TrimLeft(hex, "0") == b.hex
	}
	return strings.TrimLeft(code, "0") == b.decimal
}

// tagEnd finds the end of a tag whose name ends at i. A tag that another one
// interrupts, or that never ends, is only its name.
func tagEnd(s string, i int) (end int, bare bool) {
	limit := min(len(s), i+maxTag)
	for j := i; j < limit; j++ {
		switch s[j] {
		case '<':
			return i, true
		case '>':
			return j + 1, strings.TrimSpace(s[i:j]) == ""
		case '&':
			if semi := strings.IndexByte(s[j:min(len(s), j+64)], ';'); semi >= 0 {
				entity := s[j : j+semi+1]
				for strings.HasSuffix(entity, "amp;") && j+len(entity) < len(s) {
					next := strings.IndexByte(s[j+len(entity):min(len(s), j+len(entity)+16)], ';')
					if next < 0 {
						break
					}
					entity = s[j : j+len(entity)+next+1]
				}
				if right.isEntity(entity) {
					return j + len(entity), strings.TrimSpace(s[i:j]) == ""
				}
			}
		}
	}
	if limit == len(s) {
		return limit, strings.TrimSpace(s[i:]) == ""
	}
	return i, true
}

// StripFrames removes every frame from captured text: escaped, nested,
// unclosed, with attributes in any order, in any case. An opening tag without
// its end takes the rest of the text with it if it has attributes, as ours has;
// a bare one is only mentioned and goes alone. The result holds no frame tag.
func StripFrames(s string) string {
	// Removing a frame may join the halves of another tag; a text made of such
	// halves is not worth more passes.
	for range 8 {
		found := tags(s)
		if len(found) == 0 {
			return s
		}
		s = cutFrames(s, found)
	}
	return Defuse(s)
}

// cutFrames removes the frames of s, given where its tags are.
func cutFrames(s string, found []tag) string {
	lastClosing := -1
	for i, t := range found {
		if t.closing {
			lastClosing = i
		}
	}
	var b strings.Builder
	pos, depth := 0, 0
	for i, t := range found {
		if depth == 0 {
			b.WriteString(s[pos:t.start])
		}
		switch {
		case t.closing:
			depth = max(depth-1, 0)
		case !t.bare || i < lastClosing:
			depth++
		}
		pos = t.end
	}
	if depth == 0 {
		b.WriteString(s[pos:])
	}
	return b.String()
}

// Defuse turns each frame tag of a text into a word in square brackets, so that
// recalled text cannot close or imitate a frame.
func Defuse(s string) string {
	var b strings.Builder
	pos := 0
	for _, t := range tags(s) {
		b.WriteString(s[pos:t.start])
		b.WriteString("[" + t.name + "]")
		pos = t.end
	}
	b.WriteString(s[pos:])
	return b.String()
}
