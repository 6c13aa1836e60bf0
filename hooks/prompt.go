package hooks

import (
	"slices"
	"strings"
	"unicode"
)

// WorthRecalling tells whether a prompt can be about anything that was said
// before: not a command to the host, not a mere acknowledgement.
func WorthRecalling(prompt string) bool {
	prompt = strings.TrimSpace(prompt)
	if prompt == "" || isCommand(prompt) {
		return false
	}
	return !isAcknowledgement(prompt)
}

// isCommand tells prompts that the host runs itself: "/clear", "!ls", "#note".
// A path ("/etc/hosts is wrong") is none.
func isCommand(prompt string) bool {
	switch prompt[0] {
	case '!', '#':
		return true
	case '/':
		name, _, _ := strings.Cut(strings.Fields(prompt)[0][1:], ":")
		return name != "" && !strings.ContainsAny(name, "/.")
	}
	return false
}

// acknowledgements are prompts that carry no subject, without punctuation.
var acknowledgements = []string{
	"ok", "okay", "k", "yes", "y", "yep", "yeah", "yes please", "sure", "no", "nope", "no thanks", "n", "thanks", "thank you", "thx", "ty",
	"great", "good", "nice", "cool", "perfect", "awesome", "done", "fine", "right", "correct", "exactly", "agreed", "lgtm", "sounds good", "looks good",
	"go", "go on", "go ahead", "continue", "please continue", "proceed", "keep going", "carry on", "next", "do it", "stop", "wait",
	"hi", "hello", "hey", "good morning", "bye", "again", "try again", "retry",
	"好", "好的", "是", "是的", "对", "可以", "继续", "谢谢", "不", "不用", "行", "嗯", "你好", "停",
	"はい", "いいえ", "ありがとう", "続けて", "お願いします", "了解", "네", "예", "아니요", "감사합니다", "계속", "계속해",
}

func isAcknowledgement(prompt string) bool {
	words := strings.FieldsFunc(strings.ToLower(prompt), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsPunct(r) || unicode.IsSymbol(r)
	})
	return len(words) == 0 || slices.Contains(acknowledgements, strings.Join(words, " "))
}
