package hermes

import "strings"

// reports begin prompts that Hermes writes itself, in the user's name, when
// something ends that ran in the background.
var reports = []string{"[ASYNC DELEGATION ", "[IMPORTANT: Background process "}

// notes begin what Hermes puts before a user's words, up to a bracket.
var notes = []string{"[System note: ", "[System: "}

// reviews begin what Hermes asks itself about a session that has gone on for a
// while, under the name of the session and of the user.
var reviews = []string{
	"Review the conversation above and consider saving to memory if appropriate.",
	"Review the conversation above and update the skill library.",
	"Review the conversation above and update two things:\n\n**Memory**",
}

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
