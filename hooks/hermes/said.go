package hermes

import "strings"

// reports begin prompts that Hermes writes itself, in the user's name, when
// something ends that ran in the background.
var reports = []string{"[ASYNC DELEGATION ", "[IMPORTANT: Background process "}

// notes begin what Hermes puts before a user's words, up to a bracket.
var notes = []string{"[System note: ", "[System: "}

// said is what of a prompt the user has said.
func said(prompt string) string {
	text := strings.TrimSpace(prompt)
	if beginsWith(text, reports) {
		return ""
	}
	for beginsWith(text, notes) {
		_, rest, _ := strings.Cut(text, "]")
		text = strings.TrimSpace(rest)
	}
	return text
}

func beginsWith(text string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}
