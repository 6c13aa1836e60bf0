package cmd

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/hooks"
)

// usualLifetime bounds a hook. The contracts of all hosts leave more.
const usualLifetime = 2900 * time.Millisecond

// lifetime is that of this process. Tests have hooks live longer, as a test machine may
// have nothing to spare.
var lifetime = usualLifetime

// noting is what of that is for noting what failed.
const noting = 300 * time.Millisecond

// memoryLimit is where the garbage collector begins to work harder, in bytes. The whole
// process should stay below 40 MB whatever the payload.
const memoryLimit = 24 << 20

// calledByHost tells a hook call from a person who looks for help.
func (a *app) calledByHost(args []string) bool {
	return len(args) == 2 && args[1] != "" && args[1][0] != '-' && !isatty.IsTerminal(a.stdin.Fd())
}

// calledByStranger tells the hook call of a host that this version does not
// know, which must not fail either.
func (a *app) calledByStranger(args []string) bool {
	if !a.calledByHost(args) {
		return false
	}
	if _, known := a.host(args[0]); known {
		return false
	}
	return slices.ContainsFunc(a.hosts, func(h host) bool {
		_, ok := h.Events[args[1]]
		return ok
	})
}

// runHook handles one hook call. Whatever happens, it returns exitOK, writes
// nothing to stderr and only whole answers to stdout.
func (a *app) runHook(h *hooks.Adapter, event string) int {
	time.AfterFunc(lifetime, func() { os.Exit(exitOK) })
	signal.Ignore(syscall.SIGPIPE)
	private()
	debug.SetMemoryLimit(memoryLimit)
	ctx, cancel := context.WithTimeout(context.Background(), lifetime-noting)
	defer cancel()
	if out := a.runner().Run(ctx, h, event, a.stdin); len(out) > 0 {
		a.stdout.Write(out)
	}
	return exitOK
}

func newHostCommand(a *app, h host) *cobra.Command {
	name := string(h.Adapter.Host)
	c := &cobra.Command{
		Use:     name + " <event>",
		Short:   "Hooks of " + h.Adapter.Title,
		GroupID: groupHosts,
		Long: fmt.Sprintf(`Called by %s for each event, with a JSON object on stdin. It always exits with
status 0 and writes nothing to stderr. To use it, run 'reme-hook install %s'.`, h.Adapter.Title, name),
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && (args[0] == "-h" || args[0] == "--help") {
				return c.Help()
			}
			if !isatty.IsTerminal(a.stdin.Fd()) {
				a.log().Warn("unknown hook call", "host", name, "args", len(args))
				return nil
			}
			return usageError{fmt.Errorf("%s calls this by itself, with a JSON object on stdin; to connect it run 'reme-hook install %s'", h.Adapter.Title, name)}
		},
	}
	return c
}
