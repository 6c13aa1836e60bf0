package install

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tailscale/hujson"
)

// child is one element of an array, or one member of an object, as offsets.
type child struct {
	start, end int // from the first byte of the element, or of the name, to behind the value
	comma      int // offset of the comma behind it, -1 if there is none
}

// children lists what a container holds.
func children(container hujson.Value) []child {
	var out []child
	add := func(start int, v hujson.Value) {
		comma := v.EndOffset + len(v.AfterExtra)
		if v.AfterExtra == nil { // the parser's sign for a last value without a comma, or for no space before it
			comma = -1
		}
		out = append(out, child{start, v.EndOffset, comma})
	}
	switch c := container.Value.(type) {
	case *hujson.Object:
		for _, m := range c.Members {
			add(m.Name.StartOffset, m.Value)
		}
	case *hujson.Array:
		for _, e := range c.Elements {
			add(e.StartOffset, e)
		}
	}
	for i := range len(out) - 1 {
		if out[i].comma < 0 {
			out[i].comma = out[i].end
		}
	}
	return out
}

// insert adds a value as the last of a container, under a name if that is an
// object, in the style of its neighbours.
func (d *document) insert(container hujson.Value, name string, v any) []byte {
	kids := children(container)
	open, end := container.StartOffset+1, container.EndOffset-1
	from := open
	if len(kids) > 0 {
		last := kids[len(kids)-1]
		from = max(last.end, last.comma+1)
	}
	// Behind what is there, comments included, and before the space that leads to
	// the closing bracket.
	at := from + len(bytes.TrimRight(d.text[from:end], " \t\r\n"))
	broken := endsInLineComment(d.text[from:at])

	if len(kids) == 0 {
		outer := d.indentAt(container.StartOffset)
		inner, flat := outer+d.unit(), d.flat()
		value := d.render(name, v, inner, flat)
		switch {
		case !flat:
			return splice(d.text, edit{at, end, d.newline() + inner + value + d.newline() + outer})
		case broken:
			return splice(d.text, edit{at, at, d.newline() + value})
		case at > from:
			return splice(d.text, edit{at, at, " " + value})
		}
		return splice(d.text, edit{from, end, value})
	}

	first, last := kids[0], kids[len(kids)-1]
	flat := !bytes.ContainsRune(d.text[open:first.start], '\n')
	indent := ""
	sep := ""
	switch {
	case !flat:
		indent = d.indentAt(first.start)
		sep = d.newline() + indent
	case broken:
		sep = d.newline()
	case d.spaced():
		sep = " "
	}
	value := sep + d.render(name, v, indent, flat)
	if last.comma >= 0 {
		return splice(d.text, edit{at, at, value + ","})
	}
	return splice(d.text, edit{last.end, last.end, ","}, edit{at, at, value})
}

// remove takes the i-th child out of a container. Comments stay.
func (d *document) remove(container hujson.Value, i int) []byte {
	kids := children(container)
	k := kids[i]
	open, end := container.StartOffset+1, container.EndOffset-1
	from := open
	if i > 0 {
		from = kids[i-1].comma + 1
	}
	at := from + len(bytes.TrimRight(d.text[from:k.start], " \t\r\n"))
	var edits []edit
	stop := k.end
	switch {
	case k.comma >= 0 && len(bytes.TrimSpace(d.text[k.end:k.comma])) == 0:
		stop = k.comma + 1
	case k.comma >= 0:
		edits = append(edits, edit{k.comma, k.comma + 1, ""})
	case i > 0:
		edits = append(edits, edit{kids[i-1].comma, kids[i-1].comma + 1, ""})
	}
	if len(kids) == 1 && len(bytes.TrimSpace(d.text[open:k.start])) == 0 && len(bytes.TrimSpace(d.text[stop:end])) == 0 {
		return splice(d.text, edit{open, end, ""})
	}
	if i == 0 && len(kids) > 1 && len(bytes.TrimSpace(d.text[stop:kids[1].start])) == 0 && len(edits) == 0 {
		return splice(d.text, edit{k.start, kids[1].start, ""})
	}
	keep := ""
	rest := bytes.TrimLeft(d.text[stop:], " \t\r")
	if endsInLineComment(d.text[from:at]) && !bytes.HasPrefix(rest, []byte("\n")) {
		keep = d.newline()
	}
	return splice(d.text, append(edits, edit{at, stop, keep})...)
}

// replace puts v in the place of a value.
func (d *document) replace(old hujson.Value, v any) []byte {
	return splice(d.text, d.replacing(old, v))
}

// replacing is the edit that does.
func (d *document) replacing(old hujson.Value, v any) edit {
	indent := d.indentAt(old.StartOffset)
	flat := d.lineStart(old.StartOffset)+len(indent) != old.StartOffset
	return edit{old.StartOffset, old.EndOffset, d.render("", v, indent, flat)}
}

// edit replaces the bytes from start to end.
type edit struct {
	start, end int
	text       string
}

// splice makes edits that do not overlap.
func splice(text []byte, edits ...edit) []byte {
	if len(edits) == 2 && edits[0].start > edits[1].start {
		edits[0], edits[1] = edits[1], edits[0]
	}
	var out []byte
	done := 0
	for _, e := range edits {
		out = append(append(out, text[done:e.start]...), e.text...)
		done = e.end
	}
	return append(out, text[done:]...)
}

// render writes v, as the member of that name if there is one.
func (d *document) render(name string, v any, indent string, flat bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // && stays readable
	if !flat {
		enc.SetIndent(indent, d.unit())
	}
	if enc.Encode(v) != nil {
		panic("install: a hook group cannot fail to encode")
	}
	text := strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\n", d.newline())
	if name == "" {
		return text
	}
	colon := ":"
	if !flat || d.spaced() {
		colon = ": "
	}
	return string(hujson.String(name)) + colon + text
}

// The style of a document is that of its outermost object.

// newline is how lines end.
func (d *document) newline() string {
	if i := bytes.IndexByte(d.text, '\n'); i > 0 && d.text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// unit is one step of indentation; two spaces where nothing shows it.
func (d *document) unit() string {
	kids := children(d.root)
	if len(kids) == 0 || d.flat() {
		return "  "
	}
	return strings.TrimPrefix(d.indentAt(kids[0].start), d.indentAt(d.root.StartOffset))
}

// flat tells whether members stand on one line.
func (d *document) flat() bool {
	kids := children(d.root)
	return len(kids) > 0 && !bytes.ContainsRune(d.text[d.root.StartOffset:kids[0].start], '\n')
}

// spaced tells whether a space follows a colon.
func (d *document) spaced() bool {
	o, ok := d.root.Value.(*hujson.Object)
	return !ok || len(o.Members) == 0 || len(o.Members[0].Value.BeforeExtra) > 0
}

func (d *document) lineStart(offset int) int {
	return bytes.LastIndexByte(d.text[:offset], '\n') + 1
}

// indentAt is the space at the start of the line of an offset.
func (d *document) indentAt(offset int) string {
	line := d.text[d.lineStart(offset):offset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// endsInLineComment tells whether space and comments end in a // comment whose
// line is not over.
func endsInLineComment(extra []byte) bool {
	for {
		extra = bytes.TrimLeft(extra, " \t\r\n")
		mark, end := "//", "\n"
		if bytes.HasPrefix(extra, []byte("/*")) {
			mark, end = "/*", "*/"
		} else if !bytes.HasPrefix(extra, []byte(mark)) {
			return false
		}
		_, after, found := bytes.Cut(extra[len(mark):], []byte(end))
		if !found {
			return true
		}
		extra = after
	}
}
