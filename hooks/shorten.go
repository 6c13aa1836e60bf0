package hooks

import (
	"bytes"
	"io"
)

// What of a payload's strings is kept, in bytes as they are written in JSON. The first
// long one has half of what is left, the next one half of the rest, and so on.
const (
	maxStrings = 4 << 20
	minString  = 16 << 10
)

// cutMark stands in a JSON string for what was cut out of its middle.
const cutMark = `\n[… cut …]\n`

// wordSize is how far from its place a cut may be moved so that it does not come
// within a word, which may be a secret.
const wordSize = 4 << 10

// shortener passes a JSON text on and cuts the middle out of long strings, so that
// what has to be in memory does not grow with the payload.
type shortener struct {
	r    io.Reader
	in   []byte // what is read into
	out  []byte // what is to be passed on
	gone int    // bytes of out that are
	err  error  // of r
	kept int    // bytes of all strings

	quoted  bool // in a string
	escape  int  // bytes that are left of an escape in it
	length  int  // of what was passed on of it
	limit   int
	cutting bool
	tail    []byte // while cutting: the end of the string
	dropped bool   // something of it
}

func newShortener(r io.Reader) *shortener { return &shortener{r: r, in: make([]byte, 64<<10)} }

func (s *shortener) Read(buf []byte) (int, error) {
	for s.gone == len(s.out) {
		if s.err != nil {
			return 0, s.err
		}
		var n int
		n, s.err = s.r.Read(s.in)
		s.out, s.gone = s.out[:0], 0
		for in := s.in[:n]; len(in) > 0; {
			if n := s.plain(in); n > 0 {
				in = in[n:]
				continue
			}
			s.next(in[0])
			in = in[1:]
		}
	}
	n := copy(buf, s.out[s.gone:])
	s.gone += n
	return n, nil
}

// plain takes what is nothing but text of a string, and tells how many bytes that were.
func (s *shortener) plain(in []byte) int {
	if !s.quoted || s.escape > 0 {
		return 0
	}
	n := s.limit/2 - s.length
	if s.cutting {
		n = s.limit - 1 - len(s.tail)
	}
	n = max(0, min(n, len(in)))
	for _, special := range []byte{'"', '\\'} {
		if i := bytes.IndexByte(in[:n], special); i >= 0 {
			n = i
		}
	}
	if s.cutting {
		s.tail = append(s.tail, in[:n]...)
	} else {
		s.out = append(s.out, in[:n]...)
		s.length += n
	}
	return n
}

func (s *shortener) next(c byte) {
	if !s.quoted {
		s.out = append(s.out, c)
		if c == '"' {
			s.quoted, s.length, s.limit = true, 0, max(minString, (maxStrings-s.kept)/2)
		}
		return
	}
	if s.escape == 0 && c == '"' {
		s.end()
		return
	}
	if !s.cutting && s.length >= s.limit/2 && s.escape == 0 {
		s.cutting = c == ' ' || c == '\\' || s.length >= s.limit/2+wordSize && c&0xC0 != 0x80
	}
	switch {
	case s.escape == 1 && c == 'u':
		s.escape = 4
	case s.escape > 0:
		s.escape--
	case c == '\\':
		s.escape = 1
	}
	if !s.cutting {
		s.out = append(s.out, c)
		s.length++
		return
	}
	if s.tail = append(s.tail, c); len(s.tail) >= s.limit {
		s.shorten()
	}
}

// end ends a string.
func (s *shortener) end() {
	if s.cutting {
		if len(s.tail) > s.limit/2 {
			s.shorten()
		}
		if s.dropped {
			s.out = append(s.out, cutMark...)
		}
		s.out = append(s.out, s.tail...)
	}
	s.out = append(s.out, '"')
	s.kept = min(maxStrings, s.kept+s.length+len(s.tail))
	s.quoted, s.cutting, s.dropped, s.tail = false, false, false, s.tail[:0]
}

// shorten leaves half of the limit of the tail, if possible from the beginning of a
// word.
func (s *shortener) shorten() {
	from, after := 0, len(s.tail)-s.limit/2
	for from < after {
		from += unit(s.tail[from:])
	}
	for i := from; i < min(from+wordSize, len(s.tail)); i += unit(s.tail[i:]) {
		if s.tail[i] == ' ' {
			from = i
			break
		}
	}
	s.dropped = true
	s.tail = append(s.tail[:0], s.tail[from:]...)
}

// unit is the length of the escape or the rune that a piece of a JSON string begins
// with.
func unit(s []byte) int {
	n := 1
	switch {
	case s[0] == '\\' && len(s) > 1 && s[1] == 'u':
		n = 6
	case s[0] == '\\':
		n = 2
	default:
		for n < min(len(s), 4) && s[n]&0xC0 == 0x80 {
			n++
		}
	}
	return min(n, len(s))
}
