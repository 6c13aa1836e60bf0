package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/install"
)

type installOptions struct {
	all     bool
	dryRun  bool
	json    bool
	scope   string
	trust   bool
	noMCP   bool
	mcpOnly bool
	shell   bool
}

func (o *installOptions) addFlags(c *cobra.Command) {
	c.Flags().BoolVar(&o.all, "all", false, "all hosts that are on this machine")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "print what would change, as a diff, and change nothing")
	c.Flags().BoolVar(&o.json, "json", false, "print the result as JSON")
	c.Flags().StringVar(&o.scope, "scope", string(install.UserScope), "user: all projects; project: the one in the current folder")
}

func newInstallCommand(a *app) *cobra.Command {
	var o installOptions
	c := &cobra.Command{
		Use:     "install <host>...",
		Short:   "Connect hosts to the memory",
		GroupID: groupSetup,
		Long: `Put hooks into the configuration of hosts, so that they recall and capture by
themselves, and beside them 'reme-hook mcp', which gives the model the memory as
tools (not with --scope project). A host whose hooks come with tools has no
'reme-hook mcp'. What others have there stays, also an MCP server of theirs that is
named reme.`,
		ValidArgs: a.hostNames(),
		RunE: func(c *cobra.Command, names []string) error {
			return a.runInstall(c.Context(), o, names)
		},
	}
	o.addFlags(c)
	c.Flags().BoolVar(&o.trust, "trust", false, "also approve the hooks, for hosts that ask for approval")
	c.Flags().BoolVar(&o.shell, "shell-hooks", false, "connect by the host's shell hooks instead of a plugin, for hosts that have both (hermes)")
	c.Flags().BoolVar(&o.noMCP, "no-mcp", false, "hooks only: do not register the MCP server")
	c.Flags().BoolVar(&o.mcpOnly, "mcp-only", false, "tools only: no hooks, so nothing is recalled or captured by itself")
	return c
}

func newUninstallCommand(a *app) *cobra.Command {
	var o installOptions
	c := &cobra.Command{
		Use:       "uninstall <host>...",
		Short:     "Disconnect hosts; their files are as they were before",
		GroupID:   groupSetup,
		ValidArgs: a.hostNames(),
		RunE: func(c *cobra.Command, names []string) error {
			return a.runUninstall(c.Context(), o, names)
		},
	}
	o.addFlags(c)
	return c
}

// change is a changed file in the output of install --json.
type change struct {
	Host string `json:"host"`
	Path string `json:"path"`
	Done bool   `json:"done"` // false: a dry run
}

func (a *app) runInstall(ctx context.Context, o installOptions, names []string) error {
	hosts, opts, err := a.chosen(ctx, o, names)
	if err != nil {
		return err
	}
	if !o.dryRun {
		if err := a.selfCopy(); err != nil {
			return err
		}
	}
	err = a.eachHost(o, hosts, func(h host) ([]install.Change, error) {
		if o.dryRun {
			return install.PlanInstall(h.Target, a.installEnv(), opts)
		}
		return install.Install(ctx, h.Target, a.installEnv(), opts)
	})
	if err == nil && !o.dryRun && !o.json {
		a.printProblems(hosts, opts)
	}
	return err
}

// printProblems tells what keeps hooks that are installed from running, or from
// all that they might do, and what was left alone.
func (a *app) printProblems(hosts []host, opts install.Options) {
	for _, h := range hosts {
		r := h.Check(a.installEnv(), opts)
		for _, p := range r.Problems {
			fmt.Fprintf(a.stdout, "%s: %s\n  → %s\n", h.Adapter.Host, p.What, p.Do)
		}
		for _, note := range r.Notes {
			fmt.Fprintf(a.stdout, "%s: note: %s\n", h.Adapter.Host, note)
		}
		if file := r.Foreign(); file != "" && opts.Server() {
			fmt.Fprintf(a.stdout, "%s: the MCP server named %s in %s is another's; it stays, and ours is not registered\n", h.Adapter.Host, install.ServerName, file)
		}
	}
}

func (a *app) runUninstall(ctx context.Context, o installOptions, names []string) error {
	if o.all && len(names) == 0 {
		// Also hosts that are gone may have left their files.
		names = a.hostNames()
		o.all = false
	}
	hosts, opts, err := a.chosen(ctx, o, names)
	if err != nil {
		return err
	}
	return a.eachHost(o, hosts, func(h host) ([]install.Change, error) {
		if o.dryRun {
			return install.PlanUninstall(h.Target, a.installEnv(), opts)
		}
		return install.Uninstall(ctx, h.Target, a.installEnv(), opts)
	})
}

// eachHost does one thing for each host and prints what changed. One host's
// failure does not keep the others from their turn.
func (a *app) eachHost(o installOptions, hosts []host, do func(host) ([]install.Change, error)) error {
	out := []change{}
	var failed []error
	for _, h := range hosts {
		name := string(h.Adapter.Host)
		changes, err := do(h)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		}
		for _, c := range changes {
			out = append(out, change{name, c.Path, !o.dryRun})
		}
		switch {
		case o.json:
		case o.dryRun:
			if err := install.Diff(a.stdout, changes); err != nil {
				return err
			}
		case len(changes) > 0:
			for _, c := range changes {
				fmt.Fprintf(a.stdout, "%s: changed %s\n", name, c.Path)
			}
		case err == nil:
			fmt.Fprintf(a.stdout, "%s: nothing to change\n", name)
		}
	}
	if o.json {
		if err := a.printJSON(map[string]any{"version": 1, "changes": out}); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// chosen resolves the hosts that a command line names.
func (a *app) chosen(ctx context.Context, o installOptions, names []string) ([]host, install.Options, error) {
	opts := install.Options{Scope: install.Scope(o.scope), Trust: o.trust, ShellHooks: o.shell}
	switch {
	case o.mcpOnly && (o.noMCP || o.trust):
		return nil, opts, usageError{errors.New("--mcp-only goes without --no-mcp and --trust: there are no hooks")}
	case o.mcpOnly:
		opts.Part = install.ServerPart
	case o.noMCP:
		opts.Part = install.HooksPart
	}
	switch opts.Scope {
	case install.UserScope:
	case install.ProjectScope:
		if o.mcpOnly {
			return nil, opts, usageError{errors.New("--mcp-only is for all projects; leave out --scope")}
		}
		dir, err := os.Getwd()
		if err != nil {
			return nil, opts, err
		}
		opts.ProjectDir = dir
	default:
		return nil, opts, usageError{fmt.Errorf("--scope is user or project, not %q", o.scope)}
	}
	if o.all == (len(names) > 0) {
		return nil, opts, usageError{fmt.Errorf("name the hosts (%s) or say --all", strings.Join(a.hostNames(), ", "))}
	}
	var hosts []host
	for _, name := range slices.Compact(names) {
		h, ok := a.host(name)
		if !ok {
			return nil, opts, usageError{fmt.Errorf("unknown host %q; known: %s", name, strings.Join(a.hostNames(), ", "))}
		}
		hosts = append(hosts, h)
	}
	if o.all {
		for _, h := range a.hosts {
			if h.Find(ctx, a.installEnv(), a.installOptions()).Present {
				hosts = append(hosts, h)
			}
		}
		if len(hosts) == 0 {
			return nil, opts, fmt.Errorf("no host found; known: %s", strings.Join(a.hostNames(), ", "))
		}
	}
	return hosts, opts, nil
}

func (a *app) hostNames() []string {
	var out []string
	for _, h := range a.hosts {
		out = append(out, string(h.Adapter.Host))
	}
	return out
}

// selfCopy puts this program where hosts call it.
func (a *app) selfCopy() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	return install.SelfCopy(exe, a.installEnv().BinaryPath())
}

func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
