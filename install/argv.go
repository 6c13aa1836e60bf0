package install

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strings"
)

// Argv is how a host runs a command string with the shell on this system.
func (s Shell) Argv(command string) []string { return s.argvOn(runtime.GOOS, command, exec.LookPath) }

// argvOn is Argv on a system, where look finds programs.
func (s Shell) argvOn(goos, command string, look func(string) (string, error)) []string {
	switch {
	case goos == "windows" && s == PosixShell:
		return []string{gitBash(look), "-c", command}
	case goos == "windows":
		return []string{"cmd.exe", "/d", "/s", "/c", `"` + command + `"`}
	case s == LoginShell:
		return []string{loginShell(), "-c", command}
	}
	return []string{"/bin/sh", "-c", command}
}

// gitBash is the bash that comes with Git for Windows. The one on the PATH may be
// that of another system, which sees other files.
func gitBash(look func(string) (string, error)) string {
	git, err := look("git")
	if err != nil {
		return "bash.exe"
	}
	git = strings.ReplaceAll(git, "/", `\`)
	for range 2 { // …\Git\cmd\git.exe
		if i := strings.LastIndexByte(git, '\\'); i > 0 {
			git = git[:i]
		}
	}
	return git + `\bin\bash.exe`
}

// Cmd is a process that runs a command string as a host does.
func (s Shell) Cmd(ctx context.Context, command string) *exec.Cmd {
	argv := s.Argv(command)
	return verbatim(exec.CommandContext(ctx, argv[0], argv[1:]...))
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
