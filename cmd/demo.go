package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/internal/doctor"
)

func newDemoCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "demo",
		Short:   "Show what an agent gets to know of what another one was told",
		GroupID: groupSetup,
		Long: `Tell the hooks of one agent something, ask those of another for it, and print what
its model would get. It needs no agent, and takes a scratch memory: nothing of
yours is read or changed.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return a.runDemo(c.Context()) },
	}
}

// saying is what somebody says to an agent, and what that answers.
type saying struct{ prompt, reply string }

func (a *app) runDemo(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	scratch, err := doctor.NewScratch(os.Environ())
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch.Dir)
	teacher, asker := a.hosts[0], a.hosts[1]
	turns := 0
	turn := func(h host, s saying) (string, error) {
		fmt.Fprintf(a.stdout, "\n%s> %s\n", h.Adapter.Title, s.prompt)
		turns++
		e := hooks.Event{Kind: hooks.Prompt, Prompt: s.prompt, Turn: client.TurnID(fmt.Sprint("turn-", turns)), Cwd: scratch.Dir}
		e.Session.ID = "demo-" + string(h.Adapter.Host)
		begin := a.now()
		out, err := side(program, h).Run(ctx, scratch.Env, e)
		if err != nil {
			return "", err
		}
		said := contextIn(out)
		fmt.Fprintf(a.stdout, "  [%d characters for its model, %d ms]\n", len([]rune(said)), a.now().Sub(begin)/time.Millisecond)
		if s.reply == "" {
			return said, nil
		}
		fmt.Fprintln(a.stdout, "  "+s.reply)
		e.Kind, e.Reply = hooks.TurnEnd, s.reply
		_, err = side(program, h).Run(ctx, scratch.Env, e)
		return said, err
	}
	if _, err := turn(teacher, saying{"the login test fails, find out why", "It needs the fixture server on port 8931, which only starts with FIXTURES=full. With that set, it passes."}); err != nil {
		return err
	}
	said, err := turn(asker, saying{"which port does the fixture server need?", ""})
	if err != nil {
		return err
	}
	if said == "" {
		return fmt.Errorf("%s was told nothing; see 'reme-hook doctor'", asker.Adapter.Title)
	}
	fmt.Fprintln(a.stdout, "\n"+strings.TrimSpace(said))
	if _, err := turn(asker, saying{"thanks", ""}); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, "\nNext: reme-hook setup connects the agents on this machine.")
	return nil
}

// contextIn is the text for the model in what a hook prints: a string somewhere in
// JSON, or all of it.
func contextIn(out []byte) string {
	var v any
	if json.Unmarshal(out, &v) != nil {
		return string(out)
	}
	var longest string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			if len(v) > len(longest) {
				longest = v
			}
		case map[string]any:
			for _, member := range v {
				walk(member)
			}
		}
	}
	walk(v)
	return longest
}
