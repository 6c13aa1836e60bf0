// Package detach starts a process that outlives its parent, the agent above it,
// and whatever kills the agent's process tree.
package detach

import (
	"os"
	"os/exec"
)

// twiceEnv marks the process in between.
const twiceEnv = "REME_HOOK_DETACH"

// Self starts this program again with args, in a session of its own, without
// any descriptor of ours, and under another parent: the program starts itself
// twice and the one in between ends at once. It returns as soon as that has
// happened. extraEnv is added to the environment.
func Self(extraEnv []string, args ...string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	closeOnExec()
	c := command(exe, args)
	c.Env = append(os.Environ(), append(extraEnv, twiceEnv+"=1")...)
	return c.Run()
}

// Between runs the process in between: if this is one, it starts the last one
// and tells the caller to end.
func Between(args []string) bool {
	if os.Getenv(twiceEnv) == "" {
		return false
	}
	os.Unsetenv(twiceEnv)
	if exe, err := os.Executable(); err == nil {
		command(exe, args).Start()
	}
	return true
}

func command(exe string, args []string) *exec.Cmd {
	c := exec.Command(exe, args...)
	c.Dir = os.TempDir() // do not keep the agent's folder busy
	c.SysProcAttr = ownSession()
	return c
}
