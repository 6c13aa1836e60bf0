package hermes

import (
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// inserts are the ways to name us as the provider, best first. Each is tried until
// one leaves everything else as it was.
func (c *config) inserts() []edit {
	const entry = "provider: " + providerName
	nl := c.newline()
	key, memory := pair(c.root, "memory")
	provider, old := pair(memory, "provider")
	switch {
	case provider != nil && c.written(old): // ''
		return []edit{c.over(old, providerName)}
	case provider != nil: // nothing behind the colon
		at := c.behindColon(provider)
		return []edit{{at, at, " " + providerName}}
	case memory != nil && isNull(memory) && c.written(memory): // ~
		return []edit{c.over(memory, "{"+entry+"}")}
	case memory != nil && isFlow(memory):
		return []edit{c.intoFlow(memory, entry)}
	case memory != nil:
		indent := strings.Repeat(" ", key.Column+1)
		if len(memory.Content) > 0 {
			indent = strings.Repeat(" ", memory.Content[0].Column-1)
		}
		at := c.lineStart(key.Line + 1)
		return []edit{{at, at, newlineIfMissing(c.text[:at], nl) + indent + entry + nl}}
	case c.root != nil && isFlow(c.root):
		return []edit{c.intoFlow(c.root, "memory: {"+entry+"}")}
	}
	indent, end := "", len(c.text)
	if c.root != nil {
		indent = strings.Repeat(" ", c.root.Column-1)
	}
	section := indent + "memory:" + nl + indent + "  " + entry + nl
	// A text that ends in a block scalar or with "..." takes nothing behind it.
	front := c.aboveFirst()
	return []edit{{end, end, newlineIfMissing(c.text, nl) + section}, {front, front, section}}
}

// removals are the ways to take us out of a file, best first. before is the file
// as it was.
func (c *config) removals(before *config) [][]edit {
	key, memory := pair(c.root, "memory")
	provider, name := pair(memory, "provider")
	if provider == nil {
		return nil
	}
	off := []edit{c.over(name, "''")} // what `hermes memory off` writes
	hadMemory, hadProvider := before.memory() != nil, value(before.memory(), "provider") != nil
	switch {
	case hadProvider:
		return [][]edit{off}
	case len(memory.Content) > 2 || hadMemory:
		return [][]edit{{c.cut(memory, provider, c.end(name))}, off}
	case isFlow(memory):
		return [][]edit{{c.cut(c.root, key, c.flowEnd(memory))}, off}
	}
	return [][]edit{{c.cut(memory, provider, 0), c.cut(c.root, key, 0)}, off}
}

// cut takes a pair out of a mapping: from a block the line of its key, from
// braces what is between the key and the end, with a comma.
func (c *config) cut(mapping, key *yaml.Node, end int) edit {
	if !isFlow(mapping) {
		return edit{c.lineStart(key.Line), c.lineStart(key.Line + 1), ""}
	}
	start := c.offset(key)
	if rest := strings.TrimLeft(c.text[end:], " \t\r\n"); strings.HasPrefix(rest, ",") {
		end = len(c.text) - len(strings.TrimLeft(rest[1:], " "))
	} else if head := strings.TrimRight(c.text[:start], " \t\r\n"); strings.HasSuffix(head, ",") {
		start = len(head) - 1
	}
	return edit{start, end, ""}
}

// over puts text in the place of a scalar.
func (c *config) over(n *yaml.Node, text string) edit { return edit{c.offset(n), c.end(n), text} }

// intoFlow puts a pair first into a mapping in braces.
func (c *config) intoFlow(n *yaml.Node, entry string) edit {
	at := c.offset(n) + 1
	if len(n.Content) > 0 {
		entry += ", "
	}
	return edit{min(at, len(c.text)), min(at, len(c.text)), entry}
}

func isFlow(n *yaml.Node) bool { return n.Style&yaml.FlowStyle != 0 }

// written tells a scalar from the nothing that stands for null.
func (c *config) written(n *yaml.Node) bool {
	return n.Value != "" || n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
}

// aboveFirst is in front of the first key and of the comments that belong to it.
func (c *config) aboveFirst() int {
	if c.root == nil {
		return 0
	}
	line := c.root.Line
	for line > 1 {
		above := c.text[c.lineStart(line-1):c.lineStart(line)]
		if !strings.HasPrefix(strings.TrimSpace(above), "#") {
			break
		}
		line--
	}
	return c.lineStart(line)
}

func (c *config) newline() string {
	if i := strings.IndexByte(c.text, '\n'); i > 0 && c.text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

func newlineIfMissing(text, newline string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return ""
	}
	return newline
}

// lineStart is the offset of a line, counted from 1.
func (c *config) lineStart(line int) int {
	at := 0
	for range line - 1 {
		i := strings.IndexByte(c.text[at:], '\n')
		if i < 0 {
			return len(c.text)
		}
		at += i + 1
	}
	return at
}

// offset is where a node begins. Its column counts characters from 1.
func (c *config) offset(n *yaml.Node) int {
	at := c.lineStart(n.Line)
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(c.text[at:])
		at += size
	}
	return at
}

// end is where a scalar ends that is written in one line.
func (c *config) end(n *yaml.Node) int {
	at := c.offset(n)
	length := len(n.Value)
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 && at < len(c.text) {
		length = strings.IndexByte(c.text[at+1:], c.text[at]) + 2
	}
	return min(at+length, len(c.text))
}

// behindColon is behind the colon of a key.
func (c *config) behindColon(key *yaml.Node) int {
	at := c.end(key)
	if i := strings.IndexByte(c.text[at:], ':'); i >= 0 {
		return at + i + 1
	}
	return at
}

// flowEnd is where a mapping in braces ends whose last value is a scalar.
func (c *config) flowEnd(n *yaml.Node) int {
	at := c.end(n.Content[len(n.Content)-1])
	if i := strings.IndexByte(c.text[at:], '}'); i >= 0 {
		return at + i + 1
	}
	return at
}
