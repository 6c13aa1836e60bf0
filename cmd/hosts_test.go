package cmd

import (
	"bytes"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks"
)

func TestHosts(t *testing.T) {
	t.Parallel()
	for _, h := range knownHosts() {
		name := h.Adapter.Host
		if h.Target.Host() != name || h.Target.Title() != h.Adapter.Title {
			t.Errorf("%s: the adapter is %q, the target is %q", name, h.Adapter.Title, h.Target.Title())
		}
		for _, e := range []hooks.Event{{Kind: hooks.Prompt, Prompt: "hello"}, {Kind: hooks.TurnEnd, Reply: "hello"}} {
			e.Session.ID, e.Turn, e.Cwd = "s", "t", "/p"
			p, err := hooks.ReadPayload(bytes.NewReader(h.Sample(e)))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got := h.Decode(e.Kind, p)
			if got.Session.ID != "s" || got.Turn != "t" || got.Cwd != "/p" || got.Prompt != e.Prompt || got.Reply != e.Reply || got.Name == "" {
				t.Errorf("%s: the sample of %+v reads as %+v", name, e, got)
			}
			if out := h.Encode(got, hooks.Outcome{}); len(out) > 0 {
				t.Errorf("%s: says %q for nothing", name, out)
			}
		}
	}
}
