// Package cmd is the command line of reme-hook: it reads arguments, calls the
// package that does the work, and prints what comes back.
package cmd

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
)

// The exit statuses of all commands but those that hosts call, which exit with
// exitOK whatever happens.
const (
	exitOK        = 0
	exitFailed    = 1
	exitUsage     = 2
	exitNeedsUser = 3
)

// errNeedsUser ends a command that has said what the user must do.
var errNeedsUser = errors.New("something needs the user")

// usageError is a command line that makes no sense.
type usageError struct{ error }

// Main runs the program and returns its exit status.
func Main() int { return run(time.Now) }

func run(now func() time.Time) int {
	a := newApp(now)
	if args := os.Args[1:]; len(args) > 0 {
		if h, ok := a.host(args[0]); ok && a.calledByHost(args) {
			return a.runHook(h.Adapter, args[1])
		}
		if a.calledByStranger(args) {
			a.log().Warn("unknown host")
			return exitOK
		}
	}
	root := newRootCommand(a)
	err := root.Execute()
	if err != nil && !errors.Is(err, errNeedsUser) && !errors.Is(err, errTold) {
		fmt.Fprintln(a.stderr, "reme-hook:", err)
	}
	return exitCode(err)
}

func exitCode(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errNeedsUser):
		return exitNeedsUser
	}
	return exitFailed
}

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "reme-hook",
		Short: "One shared, lasting memory for every coding agent on this machine",
		Long: `reme-hook gives the coding agents on this machine one shared, lasting memory.

Start with 'reme-hook setup'. Exit status: 0 ok, 1 failed, 2 wrong usage,
3 something needs you. The commands that agents call always exit with 0.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			return usageError{fmt.Errorf("unknown command %q; see 'reme-hook --help'", args[0])}
		},
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see '%s --help'", err, c.CommandPath())}
	})
	root.AddGroup(
		&cobra.Group{ID: groupSetup, Title: "Set up and look after:"},
		&cobra.Group{ID: groupMemory, Title: "Use the memory:"},
		&cobra.Group{ID: groupHosts, Title: "Called by hosts:"},
	)
	root.AddCommand(
		newSetupCommand(a), newDemoCommand(a), newInstallCommand(a), newUninstallCommand(a), newDoctorCommand(a), newStatusCommand(a),
		newConfigCommand(a), newSpoolCommand(a), newUpstreamCommand(a), newVersionCommand(a),
		newRecallCommand(a), newRememberCommand(a), newSessionsCommand(a), newShowCommand(a), newIngestCommand(a),
		newServeCommand(a), newServiceCommand(a), newMCPCommand(a), newJobCommand(a), newDeliverCommand(a),
	)
	for _, h := range a.hosts {
		root.AddCommand(newHostCommand(a, h))
	}
	return root
}

const (
	groupSetup  = "setup"
	groupMemory = "memory"
	groupHosts  = "hosts"
)

// args wraps a cobra argument check so that its error counts as wrong usage.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usageError{fmt.Errorf("%w; see '%s --help'", err, c.CommandPath())}
		}
		return nil
	}
}
