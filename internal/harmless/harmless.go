// Package harmless makes foreign text safe to look at.
package harmless

import (
	"strings"
	"unicode"
)

// Text takes out what can harm a terminal or hide text: control characters, bidi
// controls and byte order marks. Tabs and line ends stay.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\u2028', r == '\u2029':
			return '\n'
		case unicode.IsControl(r), r == '\u061C', r == '\uFEFF', r >= '\u200E' && r <= '\u200F',
			r >= '\u202A' && r <= '\u202E', r >= '\u2066' && r <= '\u206F', r >= 0xE0000 && r <= 0xE007F:
			return -1
		}
		return r
	}, s)
}

// Line is the same on one line.
func Line(s string) string { return strings.Join(strings.Fields(Text(s)), " ") }
