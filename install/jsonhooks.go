package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// Group is a hook of ours as hosts of the Claude Code family write it:
//
//	{"hooks": {"<Event>": [{"matcher": "<Matcher>", "hooks": [<Handler>]}]}}
type Group struct {
	Event   string // in the host's spelling
	Matcher string // "" leaves it out
	Handler Handler
}

// Handler is the command of a [Group].
type Handler struct {
	Type           string `json:"type"`
	Command        string `json:"command"`
	CommandWindows string `json:"commandWindows,omitempty"`
	Timeout        int    `json:"timeout,omitempty"` // seconds
}

// Placed is a handler found in a file, with its position.
type Placed struct {
	Group
	GroupIndex, HandlerIndex int
	Alone                    bool // nothing else is in its group
}

// value is the group as it is written.
func (g Group) value() any {
	type group struct {
		Matcher string    `json:"matcher,omitempty"`
		Hooks   []Handler `json:"hooks"`
	}
	return group{g.Matcher, []Handler{g.Handler}}
}

// blank tells whether a file counts as {}.
func blank(text []byte) bool {
	t := bytes.TrimSpace(text)
	return len(t) == 0 || string(t) == "null"
}

// UpsertHooks makes want the only handlers in src that are ours: what is there
// already stays where it is, what differs is replaced in place, what is doubled
// or no longer wanted goes, what is missing comes last in the list of its
// event. Everything else keeps its bytes. nil, nothing and null count as {}.
func UpsertHooks(src []byte, want []Group, ours func(command string) bool) ([]byte, error) {
	text, marked := bytes.CutPrefix(src, BOM)
	if blank(text) {
		text = []byte("{}\n")
	}
	for {
		d, err := parseDocument(text)
		if err != nil {
			return nil, err
		}
		next := d.step(want, ours)
		if next == nil {
			break
		}
		text = next
	}
	return WithBOM(text, marked), nil
}

// RemoveHooks takes our handlers out of src, and the containers that are empty
// without them, but for those that original (the content before the first
// install, if known) had too. It returns nil if known says that there was no
// file and nothing of anyone else is left in it.
func RemoveHooks(src, original []byte, known bool, ours func(command string) bool) ([]byte, error) {
	text, marked := bytes.CutPrefix(src, BOM)
	if blank(text) {
		return src, nil
	}
	had := func(...string) bool { return false }
	if known {
		original, _ := bytes.CutPrefix(original, BOM)
		if o, err := parseDocument(original); err == nil {
			had = o.has
		}
	}
	touched := map[string]bool{}
	for {
		d, err := parseDocument(text)
		if err != nil {
			return nil, err
		}
		next, event := d.removeOne(ours, touched, had)
		if next == nil {
			if root, ok := d.root.Value.(*hujson.Object); known && original == nil && ok && len(root.Members) == 0 && len(touched) > 0 && d.root.IsStandard() {
				return nil, nil
			}
			break
		}
		touched[event] = true
		text = next
	}
	if len(touched) == 0 {
		return src, nil
	}
	return WithBOM(text, marked), nil
}

// ListHooks returns the handlers in src that are ours.
func ListHooks(src []byte, ours func(command string) bool) ([]Placed, error) {
	src, _ = bytes.CutPrefix(src, BOM)
	if blank(src) {
		return nil, nil
	}
	d, err := parseDocument(src)
	if err != nil {
		return nil, err
	}
	var out []Placed
	for _, m := range d.events() {
		groups, ok := m.Value.Value.(*hujson.Array)
		if !ok {
			continue
		}
		out = append(out, placed(m.Name.Value.(hujson.Literal).String(), groups, ours)...)
	}
	return out, nil
}

// placed returns our handlers in the groups of an event.
func placed(event string, groups *hujson.Array, ours func(string) bool) []Placed {
	var out []Placed
	for i, g := range groups.Elements {
		handlers, ok := member(g, "hooks").(*hujson.Array)
		if !ok {
			continue
		}
		for j, h := range handlers.Elements {
			command, ok := member(h, "command").(hujson.Literal)
			if !ok || !ours(command.String()) {
				continue
			}
			p := Placed{Group: Group{Event: event}, GroupIndex: i, HandlerIndex: j, Alone: len(handlers.Elements) == 1}
			if m, ok := member(g, "matcher").(hujson.Literal); ok {
				p.Matcher = m.String()
			}
			p.Handler.Command = command.String()
			if t, ok := member(h, "type").(hujson.Literal); ok {
				p.Handler.Type = t.String()
			}
			if w, ok := member(h, "commandWindows").(hujson.Literal); ok {
				p.Handler.CommandWindows = w.String()
			}
			if t, ok := member(h, "timeout").(hujson.Literal); ok {
				p.Handler.Timeout = int(t.Int())
			}
			out = append(out, p)
		}
	}
	return out
}

// member is the value of an object's member, nil if v is no object or has none.
func member(v hujson.Value, name string) hujson.ValueTrimmed {
	if o, ok := v.Value.(*hujson.Object); ok {
		if i := index(o, name); i >= 0 {
			return o.Members[i].Value.Value
		}
	}
	return nil
}

// parseObject parses a file that holds an object.
func parseObject(text []byte) (*document, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("the file is not UTF-8; convert it and run the command again")
	}
	root, err := hujson.Parse(append(text[:len(text):len(text)], '\n')) // it wants a line end behind a last comment
	if err != nil {
		return nil, fmt.Errorf("the file cannot be read as JSON (%w); repair it and run the command again", Unquoted(err))
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		return nil, errors.New("the file does not hold a JSON object; repair it and run the command again")
	}
	return &document{text: text, root: root}, nil
}

// parseDocument parses and checks the shape that our edits of hooks rely on.
func parseDocument(text []byte) (*document, error) {
	d, err := parseObject(text)
	if err != nil {
		return nil, err
	}
	top := d.root.Value.(*hujson.Object)
	i, err := find(top, "hooks")
	if err != nil {
		return nil, err
	}
	if i < 0 {
		return d, nil
	}
	var ok bool
	if d.hooks, ok = top.Members[i].Value.Value.(*hujson.Object); !ok {
		return nil, errors.New(`"hooks" is not an object; repair it and run the command again`)
	}
	if name := doubled(d.hooks); name != "" {
		return nil, fmt.Errorf("%q is there twice in \"hooks\"; make one of the two and run the command again", name)
	}
	for _, m := range d.hooks.Members {
		if _, ok := m.Value.Value.(*hujson.Array); !ok {
			return nil, fmt.Errorf("%s in \"hooks\" is not a list; repair it and run the command again", m.Name.Value)
		}
	}
	return d, nil
}

// doubled is a name that an object has twice, "" if there is none.
func doubled(o *hujson.Object) string {
	seen := map[string]bool{}
	for _, m := range o.Members {
		name := m.Name.Value.(hujson.Literal).String()
		if seen[name] {
			return name
		}
		seen[name] = true
	}
	return ""
}

// find is [index] for a member that is to be edited: there must not be two of
// them.
func find(o *hujson.Object, name string) (int, error) {
	i := index(o, name)
	for j := range max(i, 0) {
		if o.Members[j].Name.Value.(hujson.Literal).String() == name {
			return i, fmt.Errorf("%q is there twice; make one of the two and run the command again", name)
		}
	}
	return i, nil
}

// index is where an object has a member, -1 if it has none. Of two with one
// name the last counts, as for JSON.parse.
func index(o *hujson.Object, name string) int {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if o.Members[i].Name.Value.(hujson.Literal).String() == name {
			return i
		}
	}
	return -1
}

// document is a parsed file.
type document struct {
	text  []byte
	root  hujson.Value
	hooks *hujson.Object // nil if there is none
}

func (d *document) events() []hujson.ObjectMember {
	if d.hooks == nil {
		return nil
	}
	return d.hooks.Members
}

// has tells whether the document has "hooks", or an event in it.
func (d *document) has(event ...string) bool {
	if d.hooks == nil {
		return false
	}
	return len(event) == 0 || index(d.hooks, event[0]) >= 0
}

// step makes the first edit that brings the document nearer to want; nil if it
// is there.
func (d *document) step(want []Group, ours func(string) bool) []byte {
	wanted := map[string]Group{}
	for _, g := range want {
		wanted[g.Event] = g
	}
	for _, m := range d.events() {
		event := m.Name.Value.(hujson.Literal).String()
		g, ok := wanted[event]
		found := placed(event, m.Value.Value.(*hujson.Array), ours)
		keep := -1
		if ok {
			keep = keeper(found, g)
		}
		for i := len(found) - 1; i >= 0; i-- {
			if i != keep {
				return d.removeHandler(event, found[i])
			}
		}
		if len(found) == 0 {
			continue
		}
		groups := m.Value.Value.(*hujson.Array)
		group := groups.Elements[found[0].GroupIndex]
		v := g.value()
		if !found[0].Alone {
			group = member(group, "hooks").(*hujson.Array).Elements[found[0].HandlerIndex]
			v = g.Handler
		}
		if !d.holds(group, v) {
			return d.replace(group, v)
		}
	}
	for _, g := range want {
		top := d.root
		if d.hooks == nil {
			return d.insert(top, "hooks", hooksOf(g))
		}
		hooks := top.Value.(*hujson.Object).Members[index(top.Value.(*hujson.Object), "hooks")].Value
		i := index(d.hooks, g.Event)
		if i < 0 {
			return d.insert(hooks, g.Event, []any{g.value()})
		}
		groups := d.hooks.Members[i].Value
		if len(placed(g.Event, groups.Value.(*hujson.Array), ours)) == 0 {
			return d.insert(groups, "", g.value())
		}
	}
	return nil
}

func hooksOf(g Group) any { return map[string]any{g.Event: []any{g.value()}} }

// keeper is which of our handlers of an event stays: the first that is alone in
// its group, or shares one that matches the same. -1: none can be used.
func keeper(found []Placed, g Group) int {
	for i, p := range found {
		if p.Alone || p.Matcher == g.Matcher {
			return i
		}
	}
	return -1
}

// holds tells whether a value is v, whatever its formatting.
func (d *document) holds(have hujson.Value, v any) bool {
	std, err := hujson.Standardize(bytes.Clone(d.text[have.StartOffset:have.EndOffset]))
	if err != nil {
		return false
	}
	var a, b any
	return json.Unmarshal(std, &a) == nil && json.Unmarshal([]byte(d.render("", v, "", true)), &b) == nil && reflect.DeepEqual(a, b)
}

// removeHandler takes a handler out, with its group if nothing else is in that.
func (d *document) removeHandler(event string, p Placed) []byte {
	groups := d.hooks.Members[index(d.hooks, event)].Value
	if p.Alone {
		return d.remove(groups, p.GroupIndex)
	}
	group := groups.Value.(*hujson.Array).Elements[p.GroupIndex].Value.(*hujson.Object)
	return d.remove(group.Members[index(group, "hooks")].Value, p.HandlerIndex)
}

// removeOne takes out one handler of ours, or one container that a former call
// emptied. It returns nil if there is nothing left to do.
func (d *document) removeOne(ours func(string) bool, touched map[string]bool, had func(...string) bool) (text []byte, event string) {
	for i, m := range d.events() {
		event := m.Name.Value.(hujson.Literal).String()
		groups := m.Value.Value.(*hujson.Array)
		if found := placed(event, groups, ours); len(found) > 0 {
			return d.removeHandler(event, found[0]), event
		}
		if len(groups.Elements) == 0 && len(groups.AfterExtra) == 0 && touched[event] && !had(event) {
			top := d.root.Value.(*hujson.Object)
			return d.remove(top.Members[index(top, "hooks")].Value, i), event
		}
	}
	if d.hooks != nil && len(d.hooks.Members) == 0 && len(d.hooks.AfterExtra) == 0 && len(touched) > 0 && !had() {
		return d.remove(d.root, index(d.root.Value.(*hujson.Object), "hooks")), ""
	}
	return nil, ""
}
