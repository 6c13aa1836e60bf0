package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/install"
	"github.com/agentscope-ai/reme-hook/internal/doctor"
)

type setupOptions struct {
	dryRun bool
	yes    bool
	noMCP  bool
}

func newSetupCommand(a *app) *cobra.Command {
	var o setupOptions
	c := &cobra.Command{
		Use:     "setup",
		Short:   "Connect every host on this machine, prove that it works, say what to do next",
		GroupID: groupSetup,
		Long: `Find the hosts on this machine, copy this program to a stable place, connect and
approve all hosts found, and prove the loop: tell something to the hooks of one
host and get it back from those of another, in a scratch memory. On a terminal it
asks before it changes a file.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.runSetup(c.Context(), o)
		},
	}
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "print what would change, as a diff, and change nothing")
	c.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&o.noMCP, "no-mcp", false, "hooks only: do not register the MCP server")
	return c
}

func (a *app) runSetup(ctx context.Context, o setupOptions) error {
	var found []host
	for _, h := range a.hosts {
		f := h.Find(ctx, a.installEnv(), a.installOptions())
		switch {
		case f.Present && f.Version != "":
			fmt.Fprintf(a.stdout, "found      %s (%s)\n", h.Adapter.Title, f.Version)
		case f.Present:
			fmt.Fprintf(a.stdout, "found      %s\n", h.Adapter.Title)
		default:
			fmt.Fprintf(a.stdout, "not found  %s\n", h.Adapter.Title)
			continue
		}
		found = append(found, h)
	}
	opts := install.Options{Trust: true}
	if o.noMCP {
		opts.Part = install.HooksPart
	}
	var changes []install.Change
	var failed []error
	found = slices.DeleteFunc(found, func(h host) bool {
		c, err := install.PlanInstall(h.Target, a.installEnv(), opts)
		if err != nil { // the others go on
			failed = append(failed, fmt.Errorf("%s: %w", h.Adapter.Host, err))
		}
		changes = append(changes, c...)
		return err != nil
	})
	if o.dryRun {
		return errors.Join(append(failed, install.Diff(a.stdout, changes))...)
	}
	if len(changes) > 0 && !o.yes && a.asked() {
		if err := a.confirm(changes); err != nil {
			return err
		}
	}
	if err := a.selfCopy(); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "program    %s\n", a.installEnv().BinaryPath())
	for _, h := range found {
		if _, err := install.Install(ctx, h.Target, a.installEnv(), opts); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", h.Adapter.Host, err))
			continue
		}
		fmt.Fprintf(a.stdout, "connected  %s\n", h.Adapter.Title)
	}
	if err := a.selfTest(ctx); err != nil {
		return errors.Join(append(failed, fmt.Errorf("self-test: %w", err))...)
	}
	d, list, err := a.doctor(found)
	if err != nil {
		return err
	}
	findings := d.Examine(ctx, list)
	fmt.Fprintln(a.stdout)
	a.printFindings(findings)
	fmt.Fprintln(a.stdout)
	if len(found) > 0 {
		fmt.Fprintln(a.stdout, "Next: start a new session in one of them, tell it something, and ask another one for it.")
		fmt.Fprintln(a.stdout, "To see what is remembered: reme-hook status. To leave: reme-hook uninstall --all.")
	} else {
		fmt.Fprintf(a.stdout, "Next: install one of %s, then run this again.\n", strings.Join(a.hostTitles(), ", "))
	}
	if len(failed) == 0 && !doctor.Healthy(findings) {
		return errNeedsUser
	}
	return errors.Join(failed...)
}

func (a *app) confirm(changes []install.Change) error {
	fmt.Fprintln(a.stdout, "These files will be changed ('reme-hook setup --dry-run' shows how), and the hooks approved:")
	for _, c := range changes {
		fmt.Fprintln(a.stdout, "  ", c.Path)
	}
	return a.goOn("Go on?")
}

// goOn asks a question whose answer is yes unless the user says something else.
func (a *app) goOn(question string) error {
	fmt.Fprint(a.stdout, question+" [Y/n] ")
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "", "y", "yes":
		return nil
	}
	return errors.New("nothing was changed")
}

// selfTest proves the loop through the hook commands of the installed program,
// from each host to the next one.
func (a *app) selfTest(ctx context.Context) error {
	program := a.installEnv().BinaryPath()
	for i, h := range a.hosts {
		to := a.hosts[(i+1)%len(a.hosts)]
		if err := doctor.Probe(ctx, a.installEnv().Environ, side(program, h), side(program, to)).Err(); err != nil {
			return fmt.Errorf("from %s to %s: %w", h.Adapter.Title, to.Adapter.Title, err)
		}
		fmt.Fprintf(a.stdout, "self-test  told the hooks of %s, recalled by the hooks of %s (scratch memory)\n", h.Adapter.Title, to.Adapter.Title)
	}
	return nil
}

// side is a host whose hooks are those of a program.
func side(program string, h host) doctor.Side {
	return doctor.Side{Adapter: h.Adapter, Call: func(ctx context.Context, env []string, kind hooks.Kind, payload []byte) ([]byte, error) {
		for name, k := range h.Events {
			if k == kind {
				return doctor.Exec(exec.CommandContext(ctx, program, string(h.Adapter.Host), name), env, payload)
			}
		}
		return nil, fmt.Errorf("%s has no such event", h.Adapter.Title)
	}}
}

func (a *app) hostTitles() []string {
	var out []string
	for _, h := range a.hosts {
		out = append(out, h.Adapter.Title)
	}
	return out
}
