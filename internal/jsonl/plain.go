package jsonl

import "bytes"

// Plain returns the string that a line's object has at the end of a path of keys,
// without decoding what stands before it and without looking at what comes after.
// It is nil if there is no string there, or one that must be decoded to be known;
// the line may not even be JSON then.
func Plain(line []byte, path ...string) []byte {
	b := line
	for _, key := range path {
		if b = member(b, key); b == nil {
			return nil
		}
	}
	end := endOfString(b)
	if end < 0 || bytes.IndexByte(b[:end], '\\') >= 0 {
		return nil
	}
	return b[1 : end-1]
}

// Has tells whether a line's object has a key that is written without escapes.
func Has(line []byte, key string) bool { return member(line, key) != nil }

// member returns what follows a key of the object that b begins with: its value, and
// what comes after. It is nil if the object has no such key, or is none.
func member(b []byte, key string) []byte {
	b = blanks(b)
	if len(b) == 0 || b[0] != '{' {
		return nil
	}
	for {
		b = blanks(b[1:]) // after { or ,
		end := endOfString(b)
		if end < 0 {
			return nil
		}
		found := string(b[1:end-1]) == key
		if b = blanks(b[end:]); len(b) == 0 || b[0] != ':' {
			return nil
		}
		if b = blanks(b[1:]); found {
			return b
		}
		end = endOfValue(b)
		if end < 0 {
			return nil
		}
		if b = blanks(b[end:]); len(b) == 0 || b[0] != ',' {
			return nil
		}
	}
}

func blanks(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\r' || b[0] == '\n') {
		b = b[1:]
	}
	return b
}

// endOfString returns the length of the string that b begins with; -1 if it begins
// with none, or it has no end.
func endOfString(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return -1
	}
	for i := 1; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		escapes := 0
		for b[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

// endOfValue returns the length of the value that b begins with, as far as brackets
// and strings tell it; -1 if it has no end.
func endOfValue(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			n := endOfString(b[i:])
			if n < 0 {
				return -1
			}
			i += n - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i // of a number or a word
			}
		case ',':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return -1
}
