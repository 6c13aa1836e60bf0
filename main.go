// Command reme-hook gives the coding agents of a machine one shared memory.
package main

import (
	"os"

	"github.com/agentscope-ai/reme-hook/cmd"
)

func main() { os.Exit(cmd.Main()) }
