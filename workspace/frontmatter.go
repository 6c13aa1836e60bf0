package workspace

import (
	"strings"
	"unicode"

	"github.com/agentscope-ai/reme-hook/internal/harmless"
)

// parseFrontMatter reads the scalar keys of a note's front matter, as ReMe and
// people write it, and returns the text below it. Lists and nested values are
// passed over; a note without front matter is all body.
func parseFrontMatter(text string) (keys map[string]string, body string) {
	keys = map[string]string{}
	rest, ok := cutLine(text, "---")
	if !ok {
		return keys, text
	}
	key := ""
	for rest != "" {
		line := rest
		next := ""
		if i := strings.IndexByte(rest, '\n'); i >= 0 {
			line, next = rest[:i], rest[i+1:]
		}
		rest = next
		line = strings.TrimRight(line, "\r \t")
		if line == "---" {
			for k, v := range keys {
				keys[k] = unquoteYAML(v)
			}
			return keys, rest
		}
		k, v, isKey := strings.Cut(line, ":")
		switch {
		case isKey && line[0] != ' ' && line[0] != '\t' && line[0] != '-' && line[0] != '#' && (v == "" || v[0] == ' '):
			key = k
			keys[key] = strings.TrimSpace(v)
		case key != "" && line != "" && line[0] == ' ' && keys[key] != "":
			keys[key] += " " + strings.TrimSpace(line) // a long value goes on
		}
	}
	return map[string]string{}, text // never closed: not a front matter
}

func cutLine(text, line string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(text, line+"\n"); ok {
		return rest, true
	}
	return strings.CutPrefix(text, line+"\r\n")
}

func unquoteYAML(v string) string {
	if len(v) < 2 || v[0] != v[len(v)-1] {
		return v
	}
	switch v[0] {
	case '\'':
		return strings.ReplaceAll(v[1:len(v)-1], "''", "'")
	case '"':
		return strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\n`, " ", `\t`, " ").Replace(v[1 : len(v)-1])
	}
	return v
}

// withFrontMatter puts front matter before a text: the pairs that have a value.
func withFrontMatter(pairs [][2]string, text string) string {
	var b strings.Builder
	b.WriteString("---\n")
	for _, kv := range pairs {
		if kv[1] != "" {
			b.WriteString(kv[0] + ": " + yamlScalar(kv[1]) + "\n")
		}
	}
	b.WriteString("---\n\n" + text)
	return b.String()
}

// yamlScalar renders a value on one line so that any YAML reader gets the same
// string back.
func yamlScalar(v string) string {
	v = harmless.Line(v)
	plain := v != ""
	for i, r := range v {
		switch {
		case unicode.IsLetter(r), i > 0 && unicode.IsDigit(r):
		case i > 0 && strings.ContainsRune(" -_./,()", r):
		default:
			plain = false
		}
	}
	switch strings.ToLower(v) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		plain = false
	}
	if plain {
		return v
	}
	return "'" + strings.ReplaceAll(v, "'", "''") + "'"
}

// firstWords is the start of a text on one line, at most n characters, cut
// between words.
func firstWords(s string, n int) string {
	s = harmless.Line(cutBytes(s, 8*n))
	if countChars(s) <= n {
		return s
	}
	var b strings.Builder
	left := n - 1
	for _, w := range splitWords(s) {
		if left -= countChars(w); left < 0 {
			break
		}
		b.WriteString(w)
	}
	if b.Len() == 0 {
		return ""
	}
	return strings.TrimRight(b.String(), " ,;:-") + "…"
}

// slug makes a file name of a title: letters and digits of any script in lower
// case, at most 60 characters.
func slug(title string) string {
	var b strings.Builder
	n, dash := 0, false
	for _, r := range title {
		r = unicode.ToLower(fold(r))
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r):
			if dash && n > 0 {
				b.WriteByte('-')
				n++
			}
			if n >= 60 {
				return strings.TrimRight(b.String(), "-")
			}
			b.WriteRune(r)
			n++
			dash = false
		default:
			dash = true
		}
	}
	if b.Len() == 0 {
		return "note"
	}
	return b.String()
}
