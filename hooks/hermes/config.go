package hermes

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// providerName is the value of memory.provider that selects us. Hermes takes it
// for the name of the provider's folder.
const providerName = "reme"

// config is the text of a config.yaml. It is edited as text; what an edit has
// made of it is parsed again and compared.
type config struct {
	bom, text string
	root      *yaml.Node // a mapping; nil if there is nothing but comments
}

const byteOrderMark = "\ufeff"

// errByHand is for what is not understood well enough to be edited.
var errByHand = errors.New("the memory section is written in a way that is not edited; run `hermes config set memory.provider " + providerName + "`, which drops all comments, or set it by hand")

// parse understands a config.yaml, or says why it must be left alone.
func parse(src []byte) (*config, error) {
	c := &config{text: string(src)}
	if rest, ok := strings.CutPrefix(c.text, byteOrderMark); ok {
		c.bom, c.text = byteOrderMark, rest
	}
	if !utf8.ValidString(c.text) {
		return nil, errors.New("the file is not UTF-8 text")
	}
	if strings.ContainsAny(strings.ReplaceAll(c.text, "\r\n", ""), "\r\u0085\u2028\u2029") {
		return nil, errors.New("the file has line breaks that programs do not agree on; it is not edited")
	}
	dec := yaml.NewDecoder(strings.NewReader(c.text))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if err == io.EOF {
		return c, nil
	}
	if err == nil && dec.Decode(&more) != io.EOF {
		err = errors.New("there is more than one document in it")
	}
	if err != nil {
		return nil, fmt.Errorf("the file cannot be read as YAML: %w", err)
	}
	switch root := doc.Content[0]; {
	case root.Kind == yaml.MappingNode:
		c.root = root
	case !isNull(root):
		return nil, errors.New("the file is not a list of settings, so Hermes itself cannot use it; repair it and run the command again")
	}
	if hasTwice(c.root, "memory") || hasTwice(c.memory(), "provider") {
		return nil, errors.New("memory.provider is there twice; remove one")
	}
	return c, nil
}

// bytes is the file.
func (c *config) bytes() []byte { return []byte(c.bom + c.text) }

// memory is the section of the memory, nil if there is none.
func (c *config) memory() *yaml.Node { return value(c.root, "memory") }

// provider is the name of the memory provider that is active, "" for none.
func (c *config) provider() string {
	n := resolved(value(resolved(c.memory()), "provider"))
	switch {
	case n == nil, isNull(n):
		return ""
	case n.Kind != yaml.ScalarNode:
		return "?"
	}
	return strings.TrimSpace(n.Value)
}

// upsert makes us the memory provider. nil is a file that is absent.
func upsert(src []byte) ([]byte, error) {
	c, err := parse(src)
	if err != nil {
		return nil, err
	}
	switch p := c.provider(); p {
	case "":
	case providerName:
		return src, nil
	default:
		return nil, fmt.Errorf("the memory provider %q is active, and Hermes has room for one; to have this one instead run `hermes memory off` and the command again", p)
	}
	if isShared(c.root) || isShared(c.memory()) {
		return nil, errByHand
	}
	for _, e := range c.inserts() {
		if q, err := c.edited(e); err == nil && q.provider() == providerName {
			return q.bytes(), nil
		}
	}
	return nil, errByHand
}

// remove takes us out again. It returns nil if nothing is left in a file that was
// not there before.
func remove(now, original []byte, known bool) ([]byte, error) {
	c, err := parse(now)
	if err != nil {
		return nil, err
	}
	if c.provider() != providerName {
		return now, nil
	}
	before, err := parse(original)
	if err != nil || !known {
		before = &config{}
	}
	for _, e := range c.removals(before) {
		q, err := c.edited(e...)
		switch {
		case err != nil || q.provider() != "":
		case original == nil && strings.TrimSpace(q.text) == "":
			return nil, nil
		default:
			return q.bytes(), nil
		}
	}
	return nil, errors.New("the memory section is written in a way that is not edited; run `hermes memory off`")
}

// edit puts other text in the place of some.
type edit struct {
	from, to int
	text     string
}

// edited is the file after some edits, in descending order. It fails if anything
// but the provider is not what it was.
func (c *config) edited(edits ...edit) (*config, error) {
	text := c.text
	for _, e := range edits {
		if e.from > e.to || e.to > len(text) {
			return nil, errByHand
		}
		text = text[:e.from] + e.text + text[e.to:]
	}
	q, err := parse([]byte(c.bom + text))
	if err != nil {
		return nil, err
	}
	if !sameNodes(c.others(), q.others()) {
		return nil, errByHand
	}
	return q, nil
}

// others is all that the file says but the provider.
func (c *config) others() []*yaml.Node {
	var out []*yaml.Node
	for k, v := range pairs(c.root) {
		if k.Value == "memory" {
			rest := *v
			rest.Content = nil
			for k, v := range pairs(v) {
				if k.Value != "provider" {
					rest.Content = append(rest.Content, k, v)
				}
			}
			if isNull(v) || v.Kind == yaml.MappingNode && len(rest.Content) == 0 {
				continue
			}
			v = &rest
		}
		out = append(out, k, v)
	}
	return out
}

// sameNodes compares what nodes mean, not how they are written.
func sameNodes(a, b []*yaml.Node) bool {
	return slices.EqualFunc(a, b, func(x, y *yaml.Node) bool {
		return x.Kind == y.Kind && x.ShortTag() == y.ShortTag() && x.Value == y.Value && x.Anchor == y.Anchor && sameNodes(x.Content, y.Content)
	})
}

// pairs yields the keys and values of a mapping; nothing if n is none.
func pairs(n *yaml.Node) func(func(k, v *yaml.Node) bool) {
	return func(yield func(k, v *yaml.Node) bool) {
		for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// pair is a key of a mapping and its value, nil if there is none.
func pair(n *yaml.Node, key string) (k, v *yaml.Node) {
	for k, v := range pairs(n) {
		if k.Value == key {
			return k, v
		}
	}
	return nil, nil
}

func value(n *yaml.Node, key string) *yaml.Node {
	_, v := pair(n, key)
	return v
}

func hasTwice(n *yaml.Node, key string) bool {
	count := 0
	for k := range pairs(n) {
		if k.Value == key {
			count++
		}
	}
	return count > 1
}

// isShared tells a mapping that has settings of another one, or lends it its own:
// these may name a provider, or would get one.
func isShared(n *yaml.Node) bool {
	merge, _ := pair(n, "<<")
	return merge != nil || n != nil && (n.Kind == yaml.AliasNode || n.Anchor != "")
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!null" || n.Value == "")
}

func resolved(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
