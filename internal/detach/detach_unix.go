//go:build unix

package detach

import (
	"os"
	"strconv"
	"syscall"
)

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// closeOnExec keeps descriptors that the agent left open from reaching the
// child; Go marks only those that it opened itself.
func closeOnExec() {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
