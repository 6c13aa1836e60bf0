package hermes

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/agentscope-ai/reme-hook/install"
)

// placedHook is a shell hook of ours as a config.yaml has it.
type placedHook struct {
	event   string // as Hermes names it
	command string
	item    *yaml.Node
}

// hooks lists our shell hooks.
func (c *config) hooks() []placedHook {
	var out []placedHook
	for event, list := range pairs(resolved(value(c.Root, "hooks"))) {
		for _, item := range items(list) {
			if command := value(item, "command"); isOurHook(item) {
				out = append(out, placedHook{event.Value, command.Value, item})
			}
		}
	}
	return out
}

// hooksOf lists those of an event.
func (c *config) hooksOf(event string) []placedHook {
	return slices.DeleteFunc(c.hooks(), func(h placedHook) bool { return h.event != event })
}

// others of an event's list are not ours.
func (c *config) othersOf(s setting) []*yaml.Node {
	return slices.DeleteFunc(slices.Clone(items(c.node(s))), isOurHook)
}

func items(list *yaml.Node) []*yaml.Node {
	if list = resolved(list); list == nil || list.Kind != yaml.SequenceNode {
		return nil
	}
	return list.Content
}

func isOurHook(item *yaml.Node) bool {
	command := value(item, "command")
	return command != nil && command.Kind == yaml.ScalarNode && install.Ours(command.Value, Host)
}

// upsertHooks puts our shell hooks into a config.yaml. Those that are there of
// ours keep all but their command.
func upsertHooks(src []byte, program string) ([]byte, error) {
	if strings.Contains(program, "${") {
		return nil, fmt.Errorf("in the path %q Hermes would look for a variable", program)
	}
	c, err := parse(src)
	if err != nil {
		return nil, err
	}
	if c.provider() == providerName {
		return nil, errors.New("reme is the memory provider already, and shell hooks would remember everything twice; to have shell hooks instead run `reme-hook uninstall hermes` and the command again")
	}
	for _, h := range slices.Backward(shellHooks) { // each is put in front of the others
		if c, err = c.withHook(h, program); err != nil {
			return nil, err
		}
	}
	return c.Bytes(), nil
}

func (c *config) withHook(h shellHook, program string) (*config, error) {
	s, want := h.setting(program), command(program, h.verb())
	if err := c.once(s); err != nil {
		return nil, err
	}
	done := func(q *config) bool {
		have := q.hooksOf(h.event)
		return len(have) > 0 && install.SameYAML(c.othersOf(s), q.othersOf(s)) && !slices.ContainsFunc(have, func(p placedHook) bool { return p.command != want })
	}
	list := c.node(s)
	if done(c) {
		return c, nil
	}
	if list == nil || isNull(list) {
		return c.set(s, done)
	}
	if list.Kind != yaml.SequenceNode || isShared(c.Root) || isShared(c.section(s)) || list.Anchor != "" {
		return nil, s.refused()
	}
	tries := c.appends(list, h.entry(program))
	if have := c.hooksOf(h.event); len(have) > 0 {
		var moved []edit
		for _, p := range slices.Backward(have) {
			moved = append(moved, c.over(value(p.item, "command"), quote(want)))
		}
		tries = [][]edit{moved}
	}
	for _, e := range tries {
		if q, err := c.edited(s, e...); err == nil && done(q) {
			return q, nil
		}
	}
	return nil, s.refused()
}

// appends are the ways to put an element into a list, best first.
func (c *config) appends(list *yaml.Node, element string) [][]edit {
	if isFlow(list) {
		return [][]edit{{c.intoFlow(list, element)}}
	}
	nl := c.Newline()
	line := strings.Repeat(" ", list.Column-1) + "- " + element + nl
	// A text that ends in a block scalar takes nothing behind it.
	end, front := c.LineStart(c.lastLine(list)+1), c.LineStart(list.Line)
	return [][]edit{{{end, end, newlineIfMissing(c.Text[:end], nl) + line}}, {{front, front, line}}}
}

// removeHooks takes our shell hooks out again. It returns nil if nothing is left
// in a file that was not there before.
func removeHooks(now, original []byte, known bool) ([]byte, error) {
	c, err := parse(now)
	if err != nil || len(c.hooks()) == 0 {
		return now, err
	}
	for have := c.hooks(); len(have) > 0; have = c.hooks() {
		if c, err = c.withoutHook(have[len(have)-1], original, known); err != nil {
			return nil, err
		}
	}
	return c.left(original, known), nil
}

func (c *config) withoutHook(p placedHook, original []byte, known bool) (*config, error) {
	s := setting{section: "hooks", key: p.event, byHand: "take the hook of reme-hook out of hooks." + p.event + " by hand"}
	done := func(q *config) bool {
		return len(q.hooks()) == len(c.hooks())-1 && install.SameYAML(c.othersOf(s), q.othersOf(s))
	}
	list := c.node(s)
	if len(list.Content) == 1 {
		if q, err := c.unset(s, original, known, done); err == nil {
			return q, nil
		}
		return nil, s.refused()
	}
	out := edit{c.LineStart(p.item.Line), c.LineStart(c.lastLine(p.item) + 1), ""}
	if isFlow(list) {
		out = c.cutFlow(c.Offset(p.item), c.end(p.item))
	}
	if q, err := c.edited(s, out); err == nil && done(q) {
		return q, nil
	}
	return nil, s.refused()
}
