package dsh

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentscope-ai/reme-hook/install"
	"gopkg.in/yaml.v3"
)

// patch is the text of a cordis.patch.yml, which is a list of rows in YAML. It
// is edited as text; what an edit has made of it is parsed again and compared.
type patch struct {
	bom   string
	text  string
	items []*yaml.Node // none if the text is blank
	blank bool         // there are only comments
	flow  bool         // the list is written in brackets
}

const byteOrderMark = "\ufeff"

var errNoList = errors.New("the file is not a list of rows, so DSH itself does not start with it; repair it and run the command again")

// parse understands a patch file, or says why it must be left alone.
func parse(src []byte) (*patch, error) {
	p := &patch{text: string(src)}
	if rest, ok := strings.CutPrefix(p.text, byteOrderMark); ok {
		p.bom, p.text = byteOrderMark, rest
	}
	if !utf8.ValidString(p.text) {
		return nil, errors.New("the file is not UTF-8 text")
	}
	if strings.ContainsAny(strings.ReplaceAll(p.text, "\r\n", ""), "\r\u0085\u2028\u2029") {
		return nil, errors.New("the file has line breaks that programs do not agree on; it is not edited")
	}
	dec := yaml.NewDecoder(strings.NewReader(p.text))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if err == io.EOF {
		p.blank = true
		return p, nil
	}
	if err == nil {
		if dec.Decode(&more) != io.EOF {
			err = errors.New("there is more than one document in it")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the file cannot be read as YAML: %w", install.Unquoted(err))
	}
	root := doc.Content[0]
	if root.Kind != yaml.SequenceNode {
		return nil, errNoList
	}
	p.items, p.flow = root.Content, root.Style&yaml.FlowStyle != 0
	for _, item := range p.items {
		if item.Kind != yaml.MappingNode && item.Kind != yaml.AliasNode {
			return nil, errNoList
		}
	}
	return p, nil
}

// bytes is the file.
func (p *patch) bytes() []byte { return []byte(p.bom + p.text) }

// inserted yields the rows that a file adds, with the item that does.
func (p *patch) inserted(yield func(item, row *yaml.Node) bool) {
	for _, item := range p.items {
		list := member(item, "insert")
		if list == nil || list.Kind != yaml.SequenceNode {
			continue
		}
		for _, row := range list.Content {
			if !yield(item, row) {
				return
			}
		}
	}
}

// ours are our rows: those with one of the ids, all of them if none is given.
func (p *patch) ours(ids ...string) []placed {
	var out []placed
	for item, row := range p.inserted {
		id := ourID(row)
		if id == "" || len(ids) > 0 && !slices.Contains(ids, id) {
			continue
		}
		out = append(out, placed{
			item: item, row: row, others: len(member(item, "insert").Content) > 1,
			name: member(row, "name"), disabled: member(row, "disabled"),
			command: member(member(row, "config"), "command"), args: member(member(row, "config"), "args"),
		})
	}
	return out
}

// servers are the rows of MCP servers with the name of ours. Of another's and
// ours, DSH does not start the second one.
func (p *patch) servers() []*yaml.Node {
	var out []*yaml.Node
	for _, row := range p.inserted {
		if ourID(row) == serverID || value(member(row, "name")) == serverModule && value(member(member(row, "config"), "serverName")) == install.ServerName {
			out = append(out, row)
		}
	}
	return out
}

// upsert makes r the one row of ours in a patch file. A row that is there keeps
// its place and whatever the user has added to it. nil is a file that is absent.
func upsert(src []byte, r row) ([]byte, error) {
	p, err := parse(src)
	if err != nil {
		return nil, err
	}
	q, err := p.without(map[string]string{rowID: serverID, serverID: rowID}[r.id])
	if err != nil {
		return nil, err
	}
	ours := q.ours()
	switch {
	case len(ours) == 1 && ours[0].current(r):
		if q == p {
			return src, nil
		}
	case len(ours) == 0 && r.id == serverID && len(q.servers()) > 0:
		return nil, install.ErrForeignServer
	default:
		if q, err = q.put(r, ours); err != nil {
			return nil, err
		}
	}
	if _, err := q.without(); err != nil {
		return nil, fmt.Errorf("our row could not be taken out again: %w", err)
	}
	return q.bytes(), nil
}

// put is the file with r in the place of our rows that have its id.
func (p *patch) put(r row, ours []placed) (*patch, error) {
	if len(ours) == 1 {
		if updated, err := p.update(ours[0], r); err == nil {
			return updated, nil
		}
	}
	p, err := p.without()
	if err != nil {
		return nil, err
	}
	return p.insert(r)
}

// remove takes our rows out of a patch file. It returns nil if nothing of
// anyone else is left in a file of which no original is known.
func remove(src, original []byte, _ bool) ([]byte, error) {
	p, err := parse(src)
	if err != nil {
		return nil, err
	}
	left, err := p.without()
	if err != nil {
		return nil, err
	}
	switch {
	case left.text == p.text, original != nil && bytes.Equal(left.bytes(), original):
	case !left.blank:
	case strings.TrimSpace(left.text) == "" && original == nil:
		return nil, nil
	default:
		// DSH does not start with a file that has only comments.
		if left.text != "" && !strings.HasSuffix(left.text, "\n") {
			left.text += p.newline()
		}
		left.text += "[]" + p.newline()
	}
	return left.bytes(), nil
}

func (p *patch) newline() string {
	if i := strings.IndexByte(p.text, '\n'); i > 0 && p.text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// insert puts r in front of all other rows: there it does not matter how the
// text ends, and rows that change ours come after it. Comments right above the
// first row stay with it.
func (p *patch) insert(r row) (*patch, error) {
	pos, comments := 0, -1 // where the line starts, and the comments right above it
	for line := range strings.Lines(p.text) {
		content := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(content)]
		first, _, _ := strings.Cut(strings.TrimSpace(content), " ")
		switch {
		case first == "", strings.HasPrefix(line, "%"), first == "---" && !strings.Contains(content, "["):
			comments = -1
		case first[0] == '#':
			if comments < 0 {
				comments = pos
			}
		case p.flow && first[0] == '[':
			at := pos + len(indent) + 1
			return p.replaced(at, at, r.flow()+comma(p.items), p.items, r.id)
		case !p.flow && first[0] == '-':
			if comments >= 0 {
				pos = comments
			}
			return p.replaced(pos, pos, r.block(indent, p.newline()), p.items, r.id)
		default:
			return nil, errors.New("the file begins in a way that is not edited; put its list at the start of a line")
		}
		pos += len(line)
	}
	return p.replaced(0, 0, r.block("", p.newline()), p.items, r.id)
}

func comma(items []*yaml.Node) string {
	if len(items) == 0 {
		return ""
	}
	return ","
}

// update writes the values of r over those of a row that has them.
func (p *patch) update(at placed, r row) (*patch, error) {
	type edit struct {
		node *yaml.Node
		text string
	}
	edits := []edit{{at.name, r.nameYAML()}, {at.command, r.commandYAML()}}
	if !at.guarded(r) {
		edits = append(edits, edit{at.disabled, r.disabledYAML()})
	}
	if r.args != nil {
		edits = append(edits, edit{at.args, r.argsYAML()})
	}
	lines := slices.Collect(strings.Lines(p.text))
	for _, e := range edits {
		if e.node == nil || e.node.Kind != yaml.ScalarNode && e.node.Style&yaml.FlowStyle == 0 {
			return nil, errors.New("a value is missing")
		}
		line := lines[e.node.Line-1]
		start := byteColumn(line, e.node.Column)
		lines[e.node.Line-1] = line[:start] + e.text + line[len(strings.TrimRight(line, "\r\n")):]
	}
	q, err := parse([]byte(p.bom + strings.Join(lines, "")))
	if err != nil {
		return nil, err
	}
	ours := q.ours(r.id)
	if len(ours) != 1 || !ours[0].current(r) || !sameNodes(p.except(at), q.except(ours[0])) {
		return nil, errors.New("the row is written in a way of its own")
	}
	return q, nil
}

// without is the file without those of our rows that have one of the ids, all of
// them if none is given. Without any of ours there are no marks.
func (p *patch) without(ids ...string) (*patch, error) {
	for {
		ours := p.ours(ids...)
		if len(ours) == 0 {
			break
		}
		cut := p.cutLines
		if p.flow {
			cut = p.cutFlow
		}
		var err error
		if p, err = cut(ours[0]); err != nil {
			return nil, err
		}
	}
	if len(p.ours()) > 0 {
		return p, nil
	}
	return p.withoutMarks()
}

// cutLines takes a row out of a list in block style: the lines from its dash to
// the next one, with the marks around them. Comments of the user stay.
func (p *patch) cutLines(at placed) (*patch, error) {
	node, siblings := at.item, p.items
	if at.others {
		node, siblings = at.row, member(at.item, "insert").Content
	}
	lines := slices.Collect(strings.Lines(p.text))
	dash := func(n *yaml.Node) int {
		i := n.Line - 1
		for i > 0 && !strings.HasPrefix(strings.TrimLeft(lines[i], " "), "-") {
			i--
		}
		return i
	}
	start, end := dash(node), len(lines)
	if i := slices.Index(siblings, node); i+1 < len(siblings) {
		end = dash(siblings[i+1])
	} else if j := slices.Index(p.items, at.item); at.others && j+1 < len(p.items) {
		end = dash(p.items[j+1])
	}
	for end > start && (isComment(lines[end-1]) || isBlank(lines[end-1]) || isEnd(lines[end-1])) {
		end--
	}
	var kept []string
	for _, line := range lines[start:end] {
		if isComment(line) && strings.TrimSpace(line) != guardNote {
			kept = append(kept, line)
		}
	}
	if !at.others && start > 0 && end < len(lines) && strings.TrimSpace(lines[start-1]) == beginMark && strings.TrimSpace(lines[end]) == endMark {
		start, end = start-1, end+1
	}
	from := len(strings.Join(lines[:start], ""))
	to := from + len(strings.Join(lines[start:end], ""))
	text := strings.Join(kept, "")
	q, err := p.replaced(from, to, text, p.except(at), "")
	if err != nil && len(p.items) == 1 && !at.others {
		// Behind "---" there has to be a list.
		q, err = p.replaced(from, to, text+"[]"+p.newline(), nil, "")
	}
	return q, err
}

func isBlank(line string) bool { return strings.TrimSpace(line) == "" }

func isComment(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "#") }

// isEnd tells the end of a document, which is of no row.
func isEnd(line string) bool { return strings.TrimSpace(line) == "..." }

// cutFlow takes a row out of a list in flow style, with its comma.
func (p *patch) cutFlow(at placed) (*patch, error) {
	node := at.item
	if at.others {
		node = at.row
	}
	lines := slices.Collect(strings.Lines(p.text))
	start := len(strings.Join(lines[:node.Line-1], "")) + byteColumn(lines[node.Line-1], node.Column)
	end := start + flowEnd(p.text[start:])
	if rest := strings.TrimLeft(p.text[end:], " \t\r\n"); strings.HasPrefix(rest, ",") {
		end = len(p.text) - len(rest) + 1
	} else if before := strings.TrimRight(p.text[:start], " \t\r\n"); strings.HasSuffix(before, ",") {
		start = len(before) - 1
	}
	return p.replaced(start, end, "", p.except(at), "")
}

// flowEnd is the length of the mapping in braces that s starts with.
func flowEnd(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
		case '"', '\'':
			for quote := s[i]; i+1 < len(s) && s[i+1] != quote; i++ {
				if s[i+1] == '\\' && quote == '"' {
					i++
				}
			}
			i++
		}
	}
	return len(s)
}

// withoutMarks drops our marks, wherever they were left.
func (p *patch) withoutMarks() (*patch, error) {
	var b strings.Builder
	for line := range strings.Lines(p.text) {
		if mark := strings.TrimSpace(line); mark != beginMark && mark != endMark {
			b.WriteString(line)
		}
	}
	return p.replaced(0, len(p.text), b.String(), p.items, "")
}

// replaced is the file with other text from one offset to another. It fails if
// any row but ours is not what it was: rows are those that are to be left, and
// more is the id of a row of ours that comes in front of them.
func (p *patch) replaced(from, to int, text string, rows []*yaml.Node, more string) (*patch, error) {
	q, err := parse([]byte(p.bom + p.text[:from] + text + p.text[to:]))
	if err != nil {
		return nil, fmt.Errorf("the file is not edited, as the result would be broken: %w", err)
	}
	got := q.items
	if ours := q.ours(more); more != "" && len(ours) == 1 && ours[0].item == got[0] {
		got = got[1:]
	}
	if !sameNodes(got, rows) {
		return nil, errors.New("the file is not edited, as rows of others would change")
	}
	return q, nil
}

// except are the items without a row of ours.
func (p *patch) except(ours placed) []*yaml.Node {
	var out []*yaml.Node
	for _, item := range p.items {
		if item != ours.item {
			out = append(out, item)
			continue
		}
		if !ours.others {
			continue
		}
		rest := *item
		rest.Content = slices.Clone(item.Content)
		for i, n := range rest.Content {
			if n == member(item, "insert") {
				list := *n
				list.Content = slices.DeleteFunc(slices.Clone(n.Content), func(row *yaml.Node) bool { return row == ours.row })
				rest.Content[i] = &list
			}
		}
		out = append(out, &rest)
	}
	return out
}

// sameNodes compares what nodes mean, not how they are written.
func sameNodes(a, b []*yaml.Node) bool {
	return slices.EqualFunc(a, b, func(x, y *yaml.Node) bool {
		return x.Kind == y.Kind && x.ShortTag() == y.ShortTag() && x.Value == y.Value && x.Anchor == y.Anchor && sameNodes(x.Content, y.Content)
	})
}

// byteColumn turns the column of a node, in characters from 1, into an offset.
func byteColumn(line string, column int) int {
	at := 0
	for range column - 1 {
		_, size := utf8.DecodeRuneInString(line[at:])
		at += size
	}
	return at
}
