//go:build unix

package contract

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

var frameRE = regexp.MustCompile(`(?is)<reme-context.*?</reme-context\s*>`)

// Text is every string of the request's body, whatever field it is in.
func (r Request) Text() string {
	var b strings.Builder
	walk(r.Body, &b)
	return b.String()
}

// Frames returns the memory frames of a request. An opening tag without an end counts as a frame of its own.
func (r Request) Frames() []string {
	text := r.Text()
	frames := frameRE.FindAllString(text, -1)
	for range strings.Count(strings.ToLower(frameRE.ReplaceAllString(text, "")), "<reme-context") {
		frames = append(frames, "<reme-context")
	}
	return frames
}

// Role returns the texts of the messages of one role.
func (r Request) Role(role string) []string {
	var out []string
	for _, m := range r.Messages {
		if m.Role == role {
			out = append(out, m.Text)
		}
	}
	return out
}

// Last is the text of the last message.
func (r Request) Last() string {
	if len(r.Messages) == 0 {
		return ""
	}
	return r.Messages[len(r.Messages)-1].Text
}

func walk(v any, b *strings.Builder) {
	switch x := v.(type) {
	case string:
		b.WriteString(x)
		b.WriteByte('\n')
	case []any:
		for _, e := range x {
			walk(e, b)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			walk(x[key], b)
		}
	}
}
