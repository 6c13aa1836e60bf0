// Package redact takes secrets out of text before it is written anywhere.
//
// A secret is replaced by a mark that names its type. Only what has the form of
// a credential is replaced; a guess by entropy would destroy hashes and code.
package redact

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Private is what is left of a text that the user marked as private as a whole.
const Private = "[redacted private]"

// rule is one form of secret. What the pattern's groups "keep" and "after" match
// stays; with a group "mixed", only a match in which it holds both a letter and
// a digit counts.
type rule struct {
	mark    string
	hints   []string // one of these is in every text that matches, in lower case
	pattern func() *regexp.Regexp
}

func pattern(s string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s) })
}

var rules = []rule{
	{"private", []string{"<private>"}, pattern(`(?is)<private>.*?(?:</private>|\z)`)},
	{"private-key", []string{"-----begin"}, pattern(`(?s)-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\z)`)},
	{"api-key", []string{"sk-"}, pattern(`\bsk-(?:ant-|proj-|or-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}`)},
	{"api-key", []string{"sk_live_", "rk_live_", "sk_test_", "whsec_"}, pattern(`\b(?:[rs]k_(?:live|test)_|whsec_)[A-Za-z0-9]{16,}`)},
	{"github-token", []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}, pattern(`\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})`)},
	{"gitlab-token", []string{"glpat-"}, pattern(`\bglpat-[A-Za-z0-9_-]{20,}`)},
	{"slack-token", []string{"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xapp-"}, pattern(`\b(?:xox[abprs]|xapp)-[A-Za-z0-9-]{10,}`)},
	{"aws-key", []string{"akia", "asia"}, pattern(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`)},
	{"google-key", []string{"aiza"}, pattern(`\bAIza[A-Za-z0-9_-]{35}`)},
	{"npm-token", []string{"npm_"}, pattern(`\bnpm_[A-Za-z0-9]{36}`)},
	{"pypi-token", []string{"pypi-"}, pattern(`\bpypi-[A-Za-z0-9_-]{50,}`)},
	{"jwt", []string{"eyj"}, pattern(`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`)},
	{"bearer", []string{"bearer"}, pattern(`(?i)(?P<keep>\bbearer\s+)[A-Za-z0-9._~+/-]{20,}=*`)},
	{"password", []string{"://"}, pattern(`(?P<keep>\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@"'<>]*:)[^\s/@"'<>$\{\}]{3,}(?P<after>@)`)},
	{"password", []string{"password", "passwd", "secret", "token", "api_key", "apikey", "api-key", "access_key", "access-key"},
		pattern(`(?i)(?P<keep>\b[a-z0-9_-]*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key)["']?\s*(?:=|:)\s*["']?)(?P<mixed>[^\s"'<>$\{\}()\[\],;]{8,})`)},
}

// Text returns s with each secret replaced by "[redacted <type>]".
func Text(s string) string {
	lower := strings.ToLower(s)
	for _, r := range rules {
		if containsAny(lower, r.hints) {
			s = r.replace(s)
		}
	}
	return s
}

func (r rule) replace(s string) string {
	re := r.pattern()
	mixed := re.SubexpIndex("mixed")
	var b strings.Builder
	pos := 0
	for _, m := range re.FindAllStringSubmatchIndex(s, -1) {
		if mixed > 0 && !isMixed(s[m[2*mixed]:m[2*mixed+1]]) {
			continue
		}
		b.WriteString(s[pos:m[0]])
		b.Write(re.ExpandString(nil, "${keep}[redacted "+r.mark+"]${after}", s, m))
		pos = m[1]
	}
	b.WriteString(s[pos:])
	return b.String()
}

func isMixed(s string) bool {
	return strings.ContainsAny(s, "0123456789") && strings.ContainsFunc(s, unicode.IsLetter)
}

func containsAny(s string, subs []string) bool {
	return slices.ContainsFunc(subs, func(sub string) bool { return strings.Contains(s, sub) })
}
