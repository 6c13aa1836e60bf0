package install

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// JSONPath leads to a member of nested objects in a file, by their names.
type JSONPath []string

// Set gives the member a value if it is not there. Everything else keeps its
// bytes. nil, nothing and null count as {}.
func (p JSONPath) Set(src []byte, v any) ([]byte, error) {
	text, marked := bytes.CutPrefix(src, BOM)
	if blank(text) {
		text = []byte("{}\n")
	}
	d, err := parseObject(text)
	if err != nil {
		return nil, err
	}
	at, found, err := d.follow(p)
	if err != nil || found == len(p) {
		return src, err
	}
	for _, name := range slices.Backward(p[found+1:]) {
		v = map[string]any{name: v}
	}
	if _, ok := at.Value.(*hujson.Object); !ok {
		return nil, p.notAn("object", found)
	}
	return WithBOM(d.insert(at, p[found], v), marked), nil
}

// Add puts a string into the list at the path, if the list is there and has it
// not.
func (p JSONPath) Add(src []byte, s string) ([]byte, error) {
	d, list, err := p.list(src)
	if err != nil || list == nil || stringIn(*list, s) >= 0 {
		return src, err
	}
	_, marked := bytes.CutPrefix(src, BOM)
	return WithBOM(d.insert(*list, "", s), marked), nil
}

// Drop takes a string out of the list at the path.
func (p JSONPath) Drop(src []byte, s string) ([]byte, error) {
	d, list, err := p.list(src)
	if err != nil || list == nil || stringIn(*list, s) < 0 {
		return src, err
	}
	_, marked := bytes.CutPrefix(src, BOM)
	return WithBOM(d.remove(*list, stringIn(*list, s)), marked), nil
}

// Unset takes the member out, and the objects that are empty without it, but for
// those that original (nil: no file) has too.
func (p JSONPath) Unset(src, original []byte) ([]byte, error) {
	text, marked := bytes.CutPrefix(src, BOM)
	if blank(text) {
		return src, nil
	}
	old := &document{}
	if original, _ = bytes.CutPrefix(original, BOM); !blank(original) {
		if d, err := parseObject(original); err == nil {
			old = d
		}
	}
	removed := false
	for n := len(p); n > 0; n-- {
		d, err := parseObject(text)
		if err != nil {
			return nil, err
		}
		at, found, err := d.follow(p[:n])
		if err != nil {
			return nil, err
		}
		if found < n {
			continue
		}
		if n < len(p) {
			o, ok := at.Value.(*hujson.Object)
			if _, had, err := old.follow(p[:n]); !removed || !ok || len(o.Members) > 0 || len(o.AfterExtra) > 0 || err != nil || had == n {
				break
			}
		}
		outer, _, _ := d.follow(p[:n-1])
		text = d.remove(outer, index(outer.Value.(*hujson.Object), p[n-1]))
		removed = true
	}
	if !removed {
		return src, nil
	}
	return WithBOM(text, marked), nil
}

// follow goes along a path as far as there is something: how many names that
// are, and the value there. A name that an object has twice is an error.
func (d *document) follow(p JSONPath) (at hujson.Value, found int, err error) {
	at = d.root
	for found < len(p) {
		o, ok := at.Value.(*hujson.Object)
		if !ok {
			return at, found, nil
		}
		i, err := find(o, p[found])
		if err != nil || i < 0 {
			return at, found, err
		}
		at = o.Members[i].Value
		found++
	}
	return at, found, nil
}

// list is the list at the path, nil if there is none.
func (p JSONPath) list(src []byte) (*document, *hujson.Value, error) {
	text, _ := bytes.CutPrefix(src, BOM)
	if blank(text) {
		return nil, nil, nil
	}
	d, err := parseObject(text)
	if err != nil {
		return nil, nil, err
	}
	at, found, err := d.follow(p)
	if err != nil || found < len(p) {
		return nil, nil, err
	}
	if _, ok := at.Value.(*hujson.Array); !ok {
		return nil, nil, p.notAn("list", found)
	}
	return d, &at, nil
}

func (p JSONPath) notAn(what string, found int) error {
	return fmt.Errorf("%q is no %s; repair it and run the command again", strings.Join(p[:found], "."), what)
}

// stringIn is where a list has a string, -1 if it has not.
func stringIn(list hujson.Value, s string) int {
	return slices.IndexFunc(list.Value.(*hujson.Array).Elements, func(v hujson.Value) bool {
		l, ok := v.Value.(hujson.Literal)
		return ok && l.Kind() == '"' && l.String() == s
	})
}
