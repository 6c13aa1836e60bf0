package install

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"

	"github.com/agentscope-ai/reme-hook/client"
)

// Shell is what a host runs a command string with.
type Shell string

// The shells of hosts.
const (
	LoginShell Shell = "login" // the user's login shell, whatever that is, with -c
	PosixShell Shell = "sh"    // /bin/sh -c; on Windows the bash of Git
	CmdShell   Shell = "cmd"   // %COMSPEC% /C
)

// OnPath is our program for those who do not know where it lies: plugins.
const OnPath = "reme-hook"

// Command is the command string by which a shell runs our program for one
// event. Whatever becomes of the program, the string exits with status 0; its
// stderr is dropped, and a missing program is silence. Braces are around it as
// bash itself writes a line when the program is killed. A program without a
// folder is the one on the PATH.
func Command(shell Shell, program string, host client.Host, event string) (string, error) {
	return commandOn(runtime.GOOS, shell, program, host, event)
}

// commandOn is Command on a system.
func commandOn(goos string, shell Shell, program string, host client.Host, event string) (string, error) {
	if strings.ContainsAny(program, "\r\n\x00") {
		return "", fmt.Errorf("the path %q cannot be put into a command", program)
	}
	args := string(host) + " " + event
	onPath := !strings.ContainsAny(program, `/\`)
	there := func(test string) string {
		if onPath {
			return "" // the shell looks for it
		}
		return test
	}
	switch shell {
	case LoginShell:
		// The outer words are plain enough for bash, zsh, fish, tcsh and dash alike;
		// all logic is in the script, which /bin/sh runs.
		return `/bin/sh -c '{ ` + there(`[ -x "$0" ] && `) + `"$0" ` + args + `; } 2>/dev/null; exit 0' ` + quoteAny(program), nil
	case PosixShell:
		if goos == "windows" {
			program = strings.ReplaceAll(program, `\`, "/") // bash takes it as it is; not tried on a real Windows
		}
		q := quotePosix(program)
		return "{ " + there("[ -x "+q+" ] && ") + q + " " + args + "; } 2>/dev/null || true", nil
	case CmdShell:
		// Not tried on a real Windows. Quotes only if they are needed, as the host may
		// escape them on the way to cmd.exe.
		q := quoteCmd(program)
		return there("if exist "+q+" ") + q + " " + args + " 2>nul & exit /b 0", nil
	}
	return "", fmt.Errorf("unknown shell %q", shell)
}

// quotePosix makes one word of s for sh.
func quotePosix(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// quoteAny makes one word of s for sh, zsh, fish and tcsh. Inside single quotes
// fish takes a backslash, and tcsh an exclamation mark, for something special;
// outside, behind a backslash, all of them take both for themselves.
func quoteAny(s string) string {
	return "'" + strings.NewReplacer(`'`, `'\''`, `\`, `'\\'`, `!`, `'\!'`).Replace(s) + "'"
}

// quoteCmd makes one word of s for cmd.exe.
func quoteCmd(s string) string {
	if strings.ContainsAny(s, " \t&()[]{}^=;!'+,`~%@") {
		return `"` + s + `"`
	}
	return s
}

// ourProgram finds the name of our program as the last element of a path.
var ourProgram = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[/\\\s'"])reme-hook(?:\.exe)?(?:$|[\s'"])`)
})

// Ours tells whether a command string runs our program for a host, from
// wherever it was installed and in whatever form.
func Ours(command string, host client.Host) bool {
	return ourProgram().MatchString(command) && EventOf(command, host) != ""
}

// EventOf is the event that a command string of ours names, "" if there is none.
func EventOf(command string, host client.Host) string {
	m := regexp.MustCompile(`(?:^|\s)` + regexp.QuoteMeta(string(host)) + `\s+([a-z][a-z-]*)(?:$|[\s'";])`).FindStringSubmatch(command)
	if m == nil {
		return ""
	}
	return m[1]
}
