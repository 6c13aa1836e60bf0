package hermes

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// inserts are the ways to make a setting, best first. Each is tried until one
// leaves everything else as it was.
func (c *config) inserts(s setting) []edit {
	entry := s.key + ": " + s.value
	nl := c.Newline()
	key, section := pair(c.Root, s.section)
	name, old := pair(section, s.key)
	switch {
	case name != nil && c.written(old): // ''
		return []edit{c.over(old, s.value)}
	case name != nil: // nothing behind the colon
		at := c.behindColon(name)
		return []edit{{at, at, " " + s.value}}
	case section != nil && isNull(section) && c.written(section): // ~
		return []edit{c.over(section, "{"+entry+"}")}
	case section != nil && isFlow(section):
		return []edit{c.intoFlow(section, entry)}
	case section != nil:
		indent := strings.Repeat(" ", key.Column+1)
		if len(section.Content) > 0 {
			indent = strings.Repeat(" ", section.Content[0].Column-1)
		}
		at := c.LineStart(key.Line + 1)
		return []edit{{at, at, newlineIfMissing(c.Text[:at], nl) + indent + entry + nl}}
	case c.Root != nil && isFlow(c.Root):
		return []edit{c.intoFlow(c.Root, s.section+": {"+entry+"}")}
	}
	indent, end := "", len(c.Text)
	if c.Root != nil {
		indent = strings.Repeat(" ", c.Root.Column-1)
	}
	text := indent + s.section + ":" + nl + indent + "  " + entry + nl
	// A text that ends in a block scalar or with "..." takes nothing behind it.
	front := c.aboveFirst()
	return []edit{{end, end, newlineIfMissing(c.Text, nl) + text}, {front, front, text}}
}

// removals are the ways to take a setting out of a file, best first. before is
// the file as it was.
func (c *config) removals(s setting, before *config) [][]edit {
	key, section := pair(c.Root, s.section)
	name, now := pair(section, s.key)
	if name == nil {
		return nil
	}
	var off [][]edit
	if s.off != "" {
		off = [][]edit{{c.over(now, s.off)}}
	}
	hadSection, had := before.section(s) != nil, value(before.section(s), s.key) != nil
	switch {
	case had && off != nil:
		return off
	case len(section.Content) > 2 || hadSection:
		return append([][]edit{{c.cut(section, name, now)}}, off...)
	case isFlow(section):
		return append([][]edit{{c.cut(c.Root, key, section)}}, off...)
	}
	return append([][]edit{{c.cut(section, name, now), c.cut(c.Root, key, nil)}}, off...)
}

// cut takes a pair out of a mapping: from a block the lines from its key to the
// end of its value, from braces what is in between, with a comma. Without a value
// it is only the line of the key.
func (c *config) cut(mapping, key, value *yaml.Node) edit {
	if !isFlow(mapping) {
		return edit{c.LineStart(key.Line), c.LineStart(max(key.Line, c.lastLine(value)) + 1), ""}
	}
	return c.cutFlow(c.Offset(key), c.end(value))
}

// cutFlow takes an element out of brackets, with a comma.
func (c *config) cutFlow(start, end int) edit {
	if rest := strings.TrimLeft(c.Text[end:], " \t\r\n"); strings.HasPrefix(rest, ",") {
		end = len(c.Text) - len(strings.TrimLeft(rest[1:], " "))
	} else if head := strings.TrimRight(c.Text[:start], " \t\r\n"); strings.HasSuffix(head, ",") {
		start = len(head) - 1
	}
	return edit{start, end, ""}
}

// lastLine is the line where a node ends, 0 for none.
func (c *config) lastLine(n *yaml.Node) int {
	if n == nil {
		return 0
	}
	if isFlow(n) {
		return 1 + strings.Count(c.Text[:c.end(n)], "\n")
	}
	last := n.Line
	for _, child := range n.Content {
		last = max(last, c.lastLine(child))
	}
	return last
}

// over puts text in the place of a scalar.
func (c *config) over(n *yaml.Node, text string) edit { return edit{c.Offset(n), c.end(n), text} }

// intoFlow puts an element first into brackets.
func (c *config) intoFlow(n *yaml.Node, entry string) edit {
	at := c.Offset(n) + 1
	if len(n.Content) > 0 {
		entry += ", "
	}
	return edit{min(at, len(c.Text)), min(at, len(c.Text)), entry}
}

func isFlow(n *yaml.Node) bool { return n.Style&yaml.FlowStyle != 0 }

// written tells a scalar from the nothing that stands for null.
func (c *config) written(n *yaml.Node) bool {
	return n.Value != "" || n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
}

// aboveFirst is in front of the first key and of the comments that belong to it.
func (c *config) aboveFirst() int {
	if c.Root == nil {
		return 0
	}
	line := c.Root.Line
	for line > 1 {
		above := c.Text[c.LineStart(line-1):c.LineStart(line)]
		if !strings.HasPrefix(strings.TrimSpace(above), "#") {
			break
		}
		line--
	}
	return c.LineStart(line)
}

func newlineIfMissing(text, newline string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return ""
	}
	return newline
}

// end is where a scalar ends that is written in one line, or a collection in
// brackets.
func (c *config) end(n *yaml.Node) int {
	at := c.Offset(n)
	if n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode {
		closing := "}"
		if n.Kind == yaml.SequenceNode {
			closing = "]"
		}
		if len(n.Content) > 0 {
			at = c.end(n.Content[len(n.Content)-1])
		}
		if i := strings.Index(c.Text[at:], closing); i >= 0 {
			return at + i + 1
		}
		return at
	}
	length := len(n.Value)
	if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 && at < len(c.Text) {
		length = quotedLength(c.Text[at:])
	}
	return min(at+length, len(c.Text))
}

// quotedLength is the length of the quoted scalar that s begins with.
func quotedLength(s string) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && s[0] == '"', s[i] == '\'' && strings.HasPrefix(s, "'") && strings.HasPrefix(s[i+1:], "'"):
			i++
		case s[i] == s[0]:
			return i + 1
		}
	}
	return len(s)
}

// behindColon is behind the colon of a key.
func (c *config) behindColon(key *yaml.Node) int {
	at := c.end(key)
	if i := strings.IndexByte(c.Text[at:], ':'); i >= 0 {
		return at + i + 1
	}
	return at
}
