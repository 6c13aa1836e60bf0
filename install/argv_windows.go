package install

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// verbatim keeps Go from quoting the arguments of cmd.exe, which takes the rest of
// its line as it is.
func verbatim(c *exec.Cmd) *exec.Cmd {
	if filepath.Base(c.Args[0]) == "cmd.exe" {
		c.SysProcAttr = &syscall.SysProcAttr{CmdLine: strings.Join(c.Args, " ")}
	}
	return c
}
