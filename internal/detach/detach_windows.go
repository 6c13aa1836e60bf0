package detach

import "syscall"

// Flags of CreateProcess that package syscall does not name.
const (
	detachedProcess = 0x00000008
	breakAwayOfJob  = 0x01000000
)

func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | detachedProcess | breakAwayOfJob}
}

// closeOnExec does nothing: handles are not inherited unless asked for.
func closeOnExec() {}
