package install

import (
	"bytes"
	"fmt"
)

// BOM is the byte order mark that some editors put in front of a text.
var BOM = []byte("\ufeff")

// WithBOM puts a byte order mark back in front of a text that was marked. It is
// never nil, which would mean that there is no file.
func WithBOM(text []byte, marked bool) []byte {
	if marked {
		return append(BOM[:len(BOM):len(BOM)], text...)
	}
	return append([]byte{}, text...)
}

// Same tells whether two values that were decoded are the same. Other than for
// [reflect.DeepEqual], no number is another one than itself.
func Same(a, b any) bool { return fmt.Sprintf("%#v", a) == fmt.Sprintf("%#v", b) }

// ContentEnd is the offset behind the last line of TOML that is neither empty nor
// a comment.
func ContentEnd(text []byte) int {
	end, at := 0, 0
	for line := range bytes.Lines(text) {
		at += len(line)
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 && trimmed[0] != '#' {
			end = at
		}
	}
	return end
}
