package hooks

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/agentscope-ai/reme-hook/internal/redact"
)

// maxContent bounds the text of one message that is kept, in bytes. What is
// beyond is cut out of the middle, visibly.
const maxContent = 1 << 20

// Clean makes of text what may be kept: without recalled frames, without
// secrets, valid UTF-8, bounded.
func Clean(text string) string {
	text = bounded(strings.ToValidUTF8(text, "\uFFFD"), 2*maxContent)
	return bounded(strings.TrimSpace(redact.Text(StripFrames(text))), maxContent)
}

// clean makes of what a host passes on what was said: what [Clean] leaves
// without the host's own envelopes.
func (a *Adapter) clean(text string) string {
	for _, name := range a.Envelopes {
		text = cutElement(text, name)
	}
	return Clean(text)
}

// machineMade tells whether a prompt is nothing but envelopes that the host
// sends in the user's name.
func (a *Adapter) machineMade(prompt string) bool {
	rest := strings.TrimSpace(prompt)
	for _, name := range a.Machine {
		if strings.HasPrefix(rest, "<"+name+">") {
			rest = strings.TrimSpace(cutElement(rest, name))
			if rest == "" {
				return true
			}
		}
	}
	return false
}

// cutElement removes each closed element of a name.
func cutElement(text, name string) string {
	if !strings.Contains(text, "<"+name) {
		return text
	}
	return regexp.MustCompile(`(?s)<`+regexp.QuoteMeta(name)+`(?:\s[^<>]*)?>.*?</`+regexp.QuoteMeta(name)+`>\s*`).ReplaceAllString(text, "")
}

// bounded cuts the middle out of a text that is longer than max bytes.
func bounded(s string, max int) string {
	if len(s) <= max {
		return s
	}
	head, tail := max/2, len(s)-max/2
	for !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + "\n[… cut …]\n" + s[tail:]
}
