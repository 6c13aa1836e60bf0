package install

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// YAML is a file that is edited as text. What an edit has made of it is parsed
// again and compared.
type YAML struct {
	BOM  string     // a byte order mark, or nothing
	Text string     // what follows it
	Root *yaml.Node // of its one document; nil if there is nothing but comments
}

// ParseYAML understands a file, or says why it must be left alone.
func ParseYAML(src []byte) (YAML, error) {
	y := YAML{Text: string(src)}
	if rest, ok := strings.CutPrefix(y.Text, string(BOM)); ok {
		y.BOM, y.Text = string(BOM), rest
	}
	if !utf8.ValidString(y.Text) {
		return y, errors.New("the file is not UTF-8; convert it and run the command again")
	}
	if strings.ContainsAny(strings.ReplaceAll(y.Text, "\r\n", ""), "\r\u0085\u2028\u2029") {
		return y, errors.New("the file has line breaks that programs do not agree on; make them \\n and run the command again")
	}
	dec := yaml.NewDecoder(strings.NewReader(y.Text))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if err == io.EOF {
		return y, nil
	}
	if err == nil && dec.Decode(&more) != io.EOF {
		err = errors.New("there is more than one document in it")
	}
	if err != nil {
		return y, fmt.Errorf("the file cannot be read as YAML: %w; repair it and run the command again", Unquoted(err))
	}
	y.Root = doc.Content[0]
	return y, nil
}

// Bytes is the file.
func (y YAML) Bytes() []byte { return []byte(y.BOM + y.Text) }

// Newline is what its first line ends with.
func (y YAML) Newline() string {
	if i := strings.IndexByte(y.Text, '\n'); i > 0 && y.Text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// LineStart is the offset of a line, counted from 1, in the text.
func (y YAML) LineStart(line int) int {
	at := 0
	for range line - 1 {
		i := strings.IndexByte(y.Text[at:], '\n')
		if i < 0 {
			return len(y.Text)
		}
		at += i + 1
	}
	return at
}

// Offset is where a node begins in the text. Its column counts characters from 1.
func (y YAML) Offset(n *yaml.Node) int {
	at := y.LineStart(n.Line)
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(y.Text[at:])
		at += size
	}
	return at
}

// SameYAML compares what nodes mean, not how they are written.
func SameYAML(a, b []*yaml.Node) bool {
	return slices.EqualFunc(a, b, func(x, y *yaml.Node) bool {
		return x.Kind == y.Kind && x.ShortTag() == y.ShortTag() && x.Value == y.Value && x.Anchor == y.Anchor && SameYAML(x.Content, y.Content)
	})
}
