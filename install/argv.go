package install

import (
	"bytes"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strings"
)

// Argv is how a host runs a command string with the shell, so that a check can
// run it the same way.
func (s Shell) Argv(command string) []string {
	switch {
	case runtime.GOOS == "windows":
		return []string{"cmd.exe", "/C", command}
	case s == LoginShell:
		return []string{loginShell(), "-c", command}
	}
	return []string{"/bin/sh", "-c", command}
}

// loginShell is the current user's shell as the user database has it, whatever
// $SHELL says.
func loginShell() string {
	u, err := user.Current()
	if err != nil {
		return "/bin/sh"
	}
	passwd, _ := os.ReadFile("/etc/passwd")
	if line, err := exec.Command("getent", "passwd", u.Uid).Output(); err == nil {
		passwd = line
	}
	for line := range bytes.Lines(passwd) {
		fields := strings.Split(strings.TrimSpace(string(line)), ":")
		if len(fields) == 7 && fields[2] == u.Uid && fields[6] != "" {
			return fields[6]
		}
	}
	return "/bin/sh"
}

// SameProgram tells whether two files hold the same program.
func SameProgram(a, b string) bool {
	data, err := os.ReadFile(a)
	return err == nil && hasContent(b, data)
}
