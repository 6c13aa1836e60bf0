package redact

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample is a case of the labelled set.
type sample struct {
	where   string // file and label
	secret  bool
	in      string
	want    string
	secrets []string
}

// corpus reads a file of the labelled set. A case begins with a line
//
//	== secret <type> <context>
//	== harmless <what> <context>
//
// and goes on to the next one. A secret stands between ⟦ and ⟧. The sign ¦ is in
// no secret: it is taken out, and keeps those who look for leaked keys from
// taking these made up ones for real.
func corpus(t testing.TB, name string) []sample {
	data, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	var out []sample
	for _, stanza := range strings.Split("\n"+string(data), "\n== ")[1:] {
		label, body, _ := strings.Cut(stanza, "\n")
		words := strings.Fields(label)
		if len(words) != 3 {
			t.Fatalf("%s: bad label %q", name, label)
		}
		body = strings.ReplaceAll(strings.Trim(body, "\n"), "¦", "")
		s := sample{where: name + ": " + label, secret: words[0] == "secret"}
		for rest := body; ; {
			before, after, marked := strings.Cut(rest, "⟦")
			s.in += before
			s.want += before
			if !marked {
				break
			}
			hidden, after, closed := strings.Cut(after, "⟧")
			if !closed || !s.secret {
				t.Fatalf("%s: bad brackets", s.where)
			}
			s.in += hidden
			s.want += begin + words[1] + "]"
			s.secrets = append(s.secrets, hidden)
			rest = after
		}
		if s.secret != (len(s.secrets) > 0) {
			t.Fatalf("%s: no secret is marked", s.where)
		}
		out = append(out, s)
	}
	return out
}

// TestCorpus holds what is reached on the labelled set: docs/secrets.md has the
// same numbers.
func TestCorpus(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]struct{ missed, inexact, destroyed int }{
		"tuning":  {0, 0, 0},
		"heldout": {0, 0, 0},
		"fresh":   {3, 0, 0},
	} {
		var secrets, harmless, missed, inexact, destroyed int
		for _, s := range corpus(t, name) {
			got := Text(s.in)
			if Text(got) != got {
				t.Errorf("%s: not idempotent", s.where)
			}
			if !s.secret {
				harmless++
				if got != s.in {
					destroyed++
					t.Logf("%s: destroyed\n%s\nbecame\n%s", s.where, s.in, got)
				}
				continue
			}
			secrets++
			switch {
			case leaks(got, s.secrets):
				missed++
				t.Logf("%s: missed\n%s\nbecame\n%s", s.where, s.in, got)
			case got != s.want:
				inexact++
				t.Logf("%s: inexact\n%s\nwant\n%s", s.where, got, s.want)
			}
		}
		t.Logf("%s: %d of %d secrets missed, %d inexact; %d of %d harmless texts destroyed", name, missed, secrets, inexact, destroyed, harmless)
		if missed > most.missed || inexact > most.inexact || destroyed > most.destroyed {
			t.Errorf("%s: worse than before", name)
		}
	}
}

// leaks tells whether a half of any secret is left.
func leaks(got string, secrets []string) bool {
	for _, s := range secrets {
		if strings.Contains(got, s[:(len(s)+1)/2]) || strings.Contains(got, s[len(s)/2:]) {
			return true
		}
	}
	return false
}
