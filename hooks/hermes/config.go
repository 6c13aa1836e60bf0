package hermes

import (
	"errors"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agentscope-ai/reme-hook/install"
)

// providerName is the value of memory.provider that selects us. Hermes takes it
// for the name of the provider's folder.
const providerName = "reme"

// config is a config.yaml. Its root is a mapping, or nil.
type config struct{ install.YAML }

// setting is what an install sets: a key in a section.
type setting struct {
	section, key string
	value        string // as it is written, in one line
	off          string // what stands for its absence, "" if nothing does
	byHand       string // the way out if the section is not understood well enough to be edited
}

// choice makes us the memory provider.
var choice = setting{
	"memory", "provider", providerName, "''", // as `hermes memory off` writes it
	"run `hermes config set memory.provider " + providerName + "`, which drops all comments, or set it by hand",
}

func (s setting) refused() error {
	return fmt.Errorf("the %s section is written in a way that is not edited; %s", s.section, s.byHand)
}

// parse understands a config.yaml, or says why it must be left alone.
func parse(src []byte) (*config, error) {
	text, err := install.ParseYAML(src)
	if err != nil {
		return nil, err
	}
	c := &config{text}
	switch {
	case c.Root == nil || c.Root.Kind == yaml.MappingNode:
	case isNull(c.Root):
		c.Root = nil
	default:
		return nil, errors.New("the file is not a list of settings, so Hermes itself cannot use it; repair it and run the command again")
	}
	return c, c.once(choice)
}

// section is where a setting stands, nil if it is not there.
func (c *config) section(s setting) *yaml.Node { return value(c.Root, s.section) }

// node is the value of a setting, nil if there is none.
func (c *config) node(s setting) *yaml.Node { return resolved(value(resolved(c.section(s)), s.key)) }

// set makes a setting. It is tried in several ways until one leaves all else as
// it was.
func (c *config) set(s setting, made func(*config) bool) (*config, error) {
	if isShared(c.Root) || isShared(c.section(s)) {
		return nil, s.refused()
	}
	for _, e := range c.inserts(s) {
		if q, err := c.edited(s, e); err == nil && made(q) {
			return q, nil
		}
	}
	return nil, s.refused()
}

// once is an error if a setting is there twice.
func (c *config) once(s setting) error {
	if hasTwice(c.Root, s.section) || hasTwice(c.section(s), s.key) {
		return fmt.Errorf("%s.%s is there twice; remove one", s.section, s.key)
	}
	return nil
}

// provider is the name of the memory provider that is active, "" for none.
func (c *config) provider() string {
	n := c.node(choice)
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
		return nil, fmt.Errorf("the memory provider %q is active, and Hermes has room for one; to have both run `reme-hook install hermes --shell-hooks`, to have this one instead run `hermes memory off` and the command again", p)
	}
	q, err := c.set(choice, func(q *config) bool { return q.provider() == providerName })
	if err != nil {
		return nil, err
	}
	return q.Bytes(), nil
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
	q, err := c.unset(choice, original, known, func(q *config) bool { return q.provider() == "" })
	if err != nil {
		return nil, fmt.Errorf("%w; run `hermes memory off`", err)
	}
	return q.left(original, known), nil
}

// unset takes a setting out, in one of several ways. original is the file as it
// was before the setting was made, if that is known.
func (c *config) unset(s setting, original []byte, known bool, done func(*config) bool) (*config, error) {
	before, err := parse(original)
	if err != nil || !known {
		before = &config{}
	}
	for _, e := range c.removals(s, before) {
		if q, err := c.edited(s, e...); err == nil && done(q) {
			return q, nil
		}
	}
	return nil, fmt.Errorf("the %s section is written in a way that is not edited", s.section)
}

// left is the file from which something was taken: nil if nothing is left of one
// that was not there before.
func (c *config) left(original []byte, known bool) []byte {
	if known && original == nil && strings.TrimSpace(c.Text) == "" {
		return nil
	}
	return c.Bytes()
}

// edit puts other text in the place of some.
type edit struct {
	from, to int
	text     string
}

// edited is the file after some edits, in descending order. It fails if anything
// but the setting is not what it was.
func (c *config) edited(s setting, edits ...edit) (*config, error) {
	text := c.Text
	for _, e := range edits {
		if e.from > e.to || e.to > len(text) {
			return nil, s.refused()
		}
		text = text[:e.from] + e.text + text[e.to:]
	}
	q, err := parse([]byte(c.BOM + text))
	if err != nil {
		return nil, err
	}
	if !install.SameYAML(c.others(s), q.others(s)) {
		return nil, s.refused()
	}
	return q, nil
}

// others is all that the file says but a setting.
func (c *config) others(s setting) []*yaml.Node {
	var out []*yaml.Node
	for k, v := range pairs(c.Root) {
		if k.Value == s.section {
			rest := *v
			rest.Content = nil
			for k, v := range pairs(v) {
				if k.Value != s.key {
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
