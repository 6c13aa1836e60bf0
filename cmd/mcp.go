package cmd

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/mattn/go-isatty"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/gateway"
	"github.com/agentscope-ai/reme-hook/internal/remote"
	"github.com/agentscope-ai/reme-hook/workspace"
)

func newMCPCommand(a *app) *cobra.Command {
	var host hostFlag
	c := &cobra.Command{
		Use:     "mcp",
		Short:   "Give the memory to an agent as tools (MCP server on stdin and stdout)",
		GroupID: groupHosts,
		Long: `Serve the Model Context Protocol on stdin and stdout, with the tools search, read,
traverse, daily_list and remember. An agent starts it by itself once it is in its
configuration. 'reme-hook install <host>' puts it there beside the hooks, with
--mcp-only alone. For other agents, for example:

  {"mcpServers": {"reme": {"command": "reme-hook", "args": ["mcp"]}}}

Several may run at once, and beside hooks. With a service at a URL, the tools are
those of the service.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if isatty.IsTerminal(a.stdin.Fd()) {
				return usageError{fmt.Errorf("an agent starts this by itself; see '%s --help'", c.CommandPath())}
			}
			if url := a.config.URL(); url != "" {
				m, err := remote.New(url, a.config.Token, caller(host))
				if err != nil {
					return err
				}
				return a.serveMCP(m.Bridge)
			}
			return a.withWorkspace(func(ws *workspace.Workspace) error {
				server, err := gateway.New(ws, caller(host)).MCP(a.log())
				if err != nil {
					return err
				}
				return a.serveMCP(server.Run)
			})
		},
	}
	host.add(c)
	return c
}

// serveMCP ends without an error when the agent closes stdin or ends the process.
func (a *app) serveMCP(run func(context.Context, mcp.Transport) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // who asks again need not wait for what is being answered
	defer stop()
	a.pokeIfDue()
	err := run(ctx, gateway.Answering(&mcp.StdioTransport{}))
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		a.log().Error("mcp ended", "err", err)
	}
	return err
}
