package install

import (
	"errors"
	"strings"
)

// Unquoted is a parser's error without what it quotes of the file: users keep keys and
// passwords in theirs, and what is wrong with a file goes into reports.
func Unquoted(err error) error {
	said := err.Error()
	for _, before := range []string{"invalid literal", "anchor '"} { // of JSON and of YAML
		if i := strings.Index(said, before); i >= 0 {
			said = strings.TrimSuffix(said[:i+len(before)], " '")
		}
	}
	return errors.New(said)
}
