package cmd

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/workspace"
)

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		GroupID: groupSetup,
		Args:    args(cobra.NoArgs),
		Run: func(*cobra.Command, []string) {
			fmt.Fprintf(a.stdout, "reme-hook %s (agent contract %s, %s/%s)\n", workspace.Version, client.APIVersion, runtime.GOOS, runtime.GOARCH)
		},
	}
}
