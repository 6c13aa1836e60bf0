package kimi

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/agentscope-ai/reme-hook/install"
	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// Our hooks stand in config.toml as a block between two comments: of tables
// [[hooks]] at its end or, where the user has an array hooks = […], of inline
// tables at the array's end. An edit is by the text, and is checked by what the
// text means: our hooks are there, or gone, and all else is as it was. Kimi
// itself drops all comments when it writes the file, so our hooks are known by
// their commands, not by the comments.

// entry is a hook as Kimi takes it; any other key makes it drop all hooks.
type entry struct {
	Event   string `toml:"event"`
	Matcher string `toml:"matcher,omitempty"`
	Command string `toml:"command"`
	Timeout int    `toml:"timeout,omitempty"`
}

const (
	blockBegin = "# >>> reme-hook >>>"
	blockEnd   = "# <<< reme-hook <<<"
	// joined tells that the line before the block had no end of its own.
	joined  = " joined"
	comment = " made by `reme-hook install kimi`, taken out by `reme-hook uninstall kimi`"
)

// configText is what a config.toml means.
type configText struct {
	top    map[string]any // without hooks
	hooks  []any
	ours   []entry
	theirs []any
}

var errNoTables = errors.New(`"hooks" is no array of tables; make it one ([[hooks]]) and run the command again`)

// parse reads a config.toml. Hooks that are no array of tables are an error, as
// they are for Kimi.
func parse(text []byte) (configText, error) {
	c := configText{top: map[string]any{}}
	if err := toml.Unmarshal(text, &c.top); err != nil {
		if at := new(toml.DecodeError); errors.As(err, &at) {
			line, _ := at.Position()
			return c, fmt.Errorf("not TOML: line %d: %w; repair it and run the command again", line, err)
		}
		return c, fmt.Errorf("not TOML: %w; repair it and run the command again", err)
	}
	hooks, there := c.top["hooks"]
	delete(c.top, "hooks")
	list, ok := hooks.([]any)
	if there && !ok {
		return c, errNoTables
	}
	c.hooks = list
	for _, h := range list {
		table, ok := h.(map[string]any)
		if !ok {
			return c, errNoTables
		}
		command, _ := table["command"].(string)
		if !ours(command) {
			c.theirs = append(c.theirs, h)
			continue
		}
		e := entry{Command: command}
		e.Event, _ = table["event"].(string)
		e.Matcher, _ = table["matcher"].(string)
		timeout, _ := table["timeout"].(int64)
		e.Timeout = int(timeout)
		c.ours = append(c.ours, e)
	}
	return c, nil
}

// leaves tells whether an edit left all that is not ours as it was.
func (c configText) leaves(after configText) bool {
	return install.Same(c.theirs, after.theirs) && install.Same(c.top, after.top)
}

// readEntries reads our hooks in a file, none if there is no file. It tells what
// makes Kimi drop the hooks.
func readEntries(path string) ([]entry, error) {
	b, err := install.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, marked := bytes.CutPrefix(b, install.BOM)
	c, err := parse(text)
	if err != nil {
		return nil, err
	}
	if marked {
		return c.ours, errors.New("it begins with a byte order mark, which Kimi Code takes for a mistake")
	}
	for _, h := range c.hooks {
		if err := acceptable(h.(map[string]any)); err != nil {
			return c.ours, err
		}
	}
	return c.ours, nil
}

// acceptable finds what in a hook makes Kimi 2.1.0 drop all of them, but for the
// events, which differ by release.
func acceptable(hook map[string]any) error {
	for key := range hook {
		if !slices.Contains([]string{"event", "matcher", "command", "timeout"}, key) {
			return fmt.Errorf("a hook has the key %q, which Kimi Code does not know", key)
		}
	}
	command, _ := hook["command"].(string)
	event, _ := hook["event"].(string)
	if command == "" || event == "" {
		return errors.New("a hook has no event or no command")
	}
	if timeout, there := hook["timeout"]; there {
		if n, ok := timeout.(int64); !ok || n < 1 || n > 600 {
			return fmt.Errorf("a hook has the timeout %v; 1 to 600 seconds are allowed", timeout)
		}
	}
	return nil
}

// upsert puts our hooks into a config.toml.
func upsert(old []byte, wanted []entry) ([]byte, error) {
	text, marked := bytes.CutPrefix(old, install.BOM)
	before, err := parse(text)
	if err != nil {
		return nil, err
	}
	if slices.Equal(before.ours, wanted) {
		return old, nil
	}
	text, err = without(text)
	if err != nil {
		return nil, err
	}
	text, err = with(text, wanted)
	if err != nil {
		return nil, err
	}
	if err := check(text, before, wanted); err != nil {
		return nil, err
	}
	return install.WithBOM(text, marked), nil
}

// remove takes our hooks out of a config.toml.
func remove(now, original []byte, known bool) ([]byte, error) {
	text, marked := bytes.CutPrefix(now, install.BOM)
	before, err := parse(text)
	if err != nil {
		return nil, err
	}
	if len(before.ours) == 0 && !hasMark(text) {
		return now, nil
	}
	text, err = without(text)
	if err != nil {
		return nil, err
	}
	if err := check(text, before, nil); err != nil {
		return nil, err
	}
	if known && original == nil && len(text) == 0 {
		return nil, nil
	}
	return install.WithBOM(text, marked), nil
}

// check makes sure that an edited text means what it should.
func check(text []byte, before configText, wanted []entry) error {
	c, err := parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("the edited file would not be readable: %w", err)
	case !slices.Equal(c.ours, wanted):
		return errors.New("our hooks are mixed with other things in a way that cannot be edited; take them out by hand")
	case !before.leaves(c):
		return errors.New("the edit would change something that is not ours")
	}
	return nil
}

// with adds the block to a text that has none.
func with(text []byte, wanted []entry) ([]byte, error) {
	nl := newline(text)
	at, comma, inArray, err := place(text)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(blockBegin)
	if at > 0 && text[at-1] != '\n' && (!inArray || len(bytes.TrimSpace(lineUpTo(text, at))) > 0) {
		b.Reset()
		b.WriteString(nl + blockBegin + joined)
	}
	b.WriteString(comment + nl)
	for i, e := range wanted {
		body, err := e.render(inArray)
		if err != nil {
			return nil, err
		}
		switch {
		case !inArray:
			if i > 0 {
				b.WriteString(nl)
			}
			b.WriteString("[[hooks]]" + nl)
		case i > 0 || comma:
			b.WriteString(", ")
		}
		b.WriteString(strings.ReplaceAll(body, "\n", nl))
	}
	b.WriteString(blockEnd + nl)
	return slices.Concat(text[:at], b.Bytes(), text[at:]), nil
}

// render writes a hook, as lines or as an inline table.
func (e entry) render(inline bool) (string, error) {
	if !inline {
		b, err := toml.Marshal(e)
		return string(b), err
	}
	b, err := toml.Marshal(struct {
		X entry `toml:"x,inline"`
	}{e})
	return strings.TrimPrefix(string(b), "x = "), err
}

// place finds where the block goes: the end of the array hooks = […] if there is
// one, and then whether a comma has to come first; else the end of the text.
func place(text []byte) (at int, comma, inArray bool, err error) {
	open, ok := staticArray(text)
	if !ok {
		return len(text), false, false, nil
	}
	items, end := arrayItems(text, open)
	if end < 0 {
		return 0, false, false, errors.New("the array of hooks cannot be read")
	}
	comma = len(items) > 0 && items[len(items)-1].comma < 0
	return end, comma, true, nil
}

// without takes the block out, or what is left of it: our hooks wherever they
// stand, and its first and last line.
func without(text []byte) ([]byte, error) {
	cut := text
	for {
		begin, end, ok := wholeBlock(cut)
		if !ok {
			break
		}
		cut = slices.Concat(cut[:begin], cut[end:])
	}
	if c, err := parse(cut); err == nil && len(c.ours) == 0 && !hasMark(cut) {
		before, err := parse(text)
		if err == nil && before.leaves(c) {
			return cut, nil
		}
	}
	return piecemeal(text)
}

// wholeBlock finds a block as we write it, without a comment of the user's in it.
func wholeBlock(text []byte) (begin, end int, ok bool) {
	begin = -1
	at := 0
	for line := range bytes.Lines(text) {
		trimmed := bytes.TrimSpace(line)
		switch {
		case bytes.HasPrefix(trimmed, []byte(blockBegin)):
			begin = at + bytes.IndexByte(line, '#')
			if bytes.HasPrefix(trimmed, []byte(blockBegin+joined)) {
				begin = len(bytes.TrimSuffix(bytes.TrimSuffix(text[:at], []byte("\n")), []byte("\r")))
			}
		case begin >= 0 && bytes.HasPrefix(trimmed, []byte(blockEnd)):
			return begin, at + len(line), true
		case bytes.HasPrefix(trimmed, []byte("#")):
			begin = -1
		}
		at += len(line)
	}
	return 0, 0, false
}

func hasMark(text []byte) bool {
	for line := range bytes.Lines(text) {
		if isMark(line) {
			return true
		}
	}
	return false
}

func isMark(line []byte) bool {
	line = bytes.TrimSpace(line)
	return bytes.HasPrefix(line, []byte(blockBegin)) || bytes.HasPrefix(line, []byte(blockEnd))
}

// piecemeal takes our hooks out one by one.
func piecemeal(text []byte) ([]byte, error) {
	c, err := parse(text)
	if err != nil {
		return nil, err
	}
	mine := make([]bool, len(c.hooks))
	for i, h := range c.hooks {
		command, _ := h.(map[string]any)["command"].(string)
		mine[i] = ours(command)
	}
	gone := make([]bool, len(text)) // which bytes go
	drop := func(from, to int) {
		for i := from; i < to; i++ {
			gone[i] = true
		}
	}
	at := 0
	for line := range bytes.Lines(text) {
		if isMark(line) {
			drop(at, at+len(line))
		}
		at += len(line)
	}
	if open, ok := staticArray(text); ok {
		items, _ := arrayItems(text, open)
		for i, item := range items {
			if i >= len(mine) || !mine[i] {
				continue
			}
			drop(item.start, item.end)
			switch {
			case item.comma >= 0:
				drop(item.comma, item.comma+1)
			case i > 0 && !gone[items[i-1].comma]:
				drop(items[i-1].comma, items[i-1].comma+1)
			}
		}
	} else {
		for i, t := range hookTables(text) {
			if i >= len(mine) || !mine[i] {
				continue
			}
			from := t.start
			if from > 0 && blankBefore(text[:from]) {
				from = bytes.LastIndexByte(text[:from-1], '\n') + 1
			}
			drop(from, t.end)
		}
	}
	var out []byte
	for i, b := range text {
		if !gone[i] {
			out = append(out, b)
		}
	}
	return out, nil
}

// blankBefore tells whether text ends in an empty line.
func blankBefore(text []byte) bool {
	line := lineUpTo(text, len(text)-1)
	return text[len(text)-1] == '\n' && len(text) > 1 && len(bytes.TrimSpace(line)) == 0
}

// lineUpTo is the part of a line before an offset.
func lineUpTo(text []byte, at int) []byte { return text[bytes.LastIndexByte(text[:at], '\n')+1 : at] }

// newline is how lines end.
func newline(text []byte) string {
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

type span struct {
	start, end int
	comma      int // offset of the comma behind it, -1 if there is none
}

// hookTables are the tables [[hooks]], from the line of the header to behind the
// last line that is neither empty nor a comment.
func hookTables(text []byte) []span {
	var out []span
	inside := false
	close := func(at int) {
		if inside {
			last := &out[len(out)-1]
			last.end = last.start + install.ContentEnd(text[last.start:at])
		}
		inside = false
	}
	p := unstable.Parser{}
	p.Reset(text)
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.Table && e.Kind != unstable.ArrayTable {
			continue
		}
		var names []string
		start := -1
		for it := e.Key(); it.Next(); {
			names = append(names, string(it.Node().Data))
			if start < 0 {
				start = bytes.LastIndexByte(text[:it.Node().Raw.Offset], '\n') + 1
			}
		}
		close(start)
		if e.Kind == unstable.ArrayTable && len(names) == 1 && names[0] == "hooks" {
			out = append(out, span{start: start, comma: -1})
			inside = true
		}
	}
	close(len(text))
	return out
}

// staticArray finds the bracket of hooks = […].
func staticArray(text []byte) (open int, ok bool) {
	p := unstable.Parser{}
	p.Reset(text)
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind == unstable.Table || e.Kind == unstable.ArrayTable {
			return 0, false
		}
		if e.Kind != unstable.KeyValue || e.Value().Kind != unstable.Array {
			continue
		}
		it := e.Key()
		it.Next()
		key := it.Node()
		if string(key.Data) == "hooks" && !it.Next() {
			after := int(key.Raw.Offset + key.Raw.Length)
			return after + bytes.IndexByte(text[after:], '['), true
		}
	}
	return 0, false
}

// arrayItems finds the items of an array by its opening bracket, and its closing
// one; -1 if that is missing.
func arrayItems(text []byte, open int) (items []span, end int) {
	depth, start, last := 0, -1, -1
	item := func(comma int) {
		if start >= 0 {
			items = append(items, span{start, last, comma})
		}
		start = -1
	}
	for i := open; i < len(text); {
		switch c := text[i]; {
		case c == '#':
			i += len(bytes.SplitAfterN(text[i:], []byte("\n"), 2)[0])
			continue
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			i++
			continue
		case c == ',' && depth == 1:
			item(i)
			i++
			continue
		case c == ']' && depth == 1:
			item(-1)
			return items, i
		}
		if start < 0 && depth == 1 {
			start = i
		}
		n := 1
		switch text[i] {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '"', '\'':
			n = stringLength(text[i:])
		}
		i += n
		last = i
	}
	return items, -1
}

// stringLength is the length of the TOML string that a text begins with.
func stringLength(text []byte) int {
	quote := text[:1]
	if long := bytes.Repeat(quote, 3); bytes.HasPrefix(text, long) {
		quote = long
	}
	for i := len(quote); i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote[0] == '"':
			i++
		case bytes.HasPrefix(text[i:], quote):
			i += len(quote)
			for len(quote) == 3 && i < len(text) && text[i] == quote[0] { // """a"" " may end in up to five
				i++
			}
			return i
		}
	}
	return len(text)
}
