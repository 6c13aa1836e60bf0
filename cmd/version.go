package cmd

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/client"
)

// version is set by the linker in a release.
var version = "0.1.0-dev"

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		GroupID: groupSetup,
		Args:    args(cobra.NoArgs),
		Run: func(*cobra.Command, []string) {
			fmt.Fprintf(a.stdout, "reme-hook %s (agent contract %s, %s/%s)\n", version, client.APIVersion, runtime.GOOS, runtime.GOARCH)
		},
	}
}
