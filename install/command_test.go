package install

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// folders are names that a command has to survive.
var folders = []string{
	"plain", "with space", "it's", `a"b`, "$HOME", "`id`", "$(id)", `back\slash`, `two\\of`, `end\`, "wow!", "!!", "!$", "é中文🙂", "a;b", "a&b", "a|b",
	"(x)", "{a,b}", "[ab]", "*", "?", "~", "#x", "%d", "a=b", "-n", "<x>", "^", "codex stop", "\ttab", `\'`, `'\`,
}

// TestCommandInShells runs the commands in the shells that are here, with a
// program that is there, missing, failing, killed, or no program at all.
func TestCommandInShells(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("POSIX shells")
	}
	programs := []struct{ what, script, stdout string }{
		{"runs", "#!/bin/sh\ncat; echo \"|$#|$1|$2\"; echo noise >&2", "payload|2|codex|stop\n"},
		{"fails", "#!/bin/sh\necho noise >&2; exit 2", ""},
		{"killed", "#!/bin/sh\nkill -9 $$", ""},
		{"no-format", "\x7fELF nonsense", ""},
		{"missing", "", ""},
	}
	dir := t.TempDir()
	path := func(folder, what string) string { return filepath.Join(dir, folder, what, "bin", "reme-hook") }
	for _, folder := range folders { // all before the first fork: a file open for writing cannot be run
		for _, p := range programs {
			if err := os.MkdirAll(filepath.Dir(path(folder, p.what)), 0o700); err != nil {
				t.Fatal(err)
			}
			if p.script == "" {
				continue
			}
			if err := os.WriteFile(path(folder, p.what), []byte(p.script), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	shells := map[Shell][]string{
		PosixShell: {"sh", "dash", "bash"},
		LoginShell: {"sh", "dash", "bash", "zsh", "fish", "tcsh", "csh", "ksh", "mksh"},
	}
	for kind, names := range shells {
		for _, name := range names {
			t.Run(string(kind)+"/"+name, func(t *testing.T) {
				t.Parallel()
				shell, err := exec.LookPath(name)
				if err != nil {
					t.Skip(name + " is not installed")
				}
				for _, folder := range folders {
					for _, p := range programs {
						command, err := Command(kind, path(folder, p.what), "codex", "stop")
						if err != nil {
							t.Fatal(err)
						}
						cmd := exec.Command(shell, "-c", command)
						cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
						cmd.Stdin = strings.NewReader("payload")
						var stdout, stderr bytes.Buffer
						cmd.Stdout, cmd.Stderr = &stdout, &stderr
						if err := cmd.Run(); err != nil {
							t.Errorf("%q %s: %v\n%s", folder, p.what, err, command)
						}
						if stdout.String() != p.stdout || stderr.Len() > 0 {
							t.Errorf("%q %s: stdout %q, stderr %q\n%s", folder, p.what, stdout.String(), stderr.String(), command)
						}
					}
				}
			})
		}
	}
}

func TestCommandForms(t *testing.T) {
	for _, tc := range []struct {
		shell         Shell
		program, want string
	}{
		{LoginShell, "/h/reme-hook", `/bin/sh -c '{ [ -x "$0" ] && "$0" codex stop; } 2>/dev/null; exit 0' '/h/reme-hook'`},
		{PosixShell, "/h/it's/reme-hook", `{ [ -x '/h/it'\''s/reme-hook' ] && '/h/it'\''s/reme-hook' codex stop; } 2>/dev/null || true`},
		{CmdShell, `C:\h\reme-hook.exe`, `if exist C:\h\reme-hook.exe C:\h\reme-hook.exe codex stop 2>nul & exit /b 0`},
		{CmdShell, `C:\a b\reme-hook.exe`, `if exist "C:\a b\reme-hook.exe" "C:\a b\reme-hook.exe" codex stop 2>nul & exit /b 0`},
	} {
		got, err := Command(tc.shell, tc.program, "codex", "stop")
		if err != nil || got != tc.want {
			t.Errorf("%s %s:\n got %s, %v\nwant %s", tc.shell, tc.program, got, err, tc.want)
		}
		if !Ours(got, "codex") || EventOf(got, "codex") != "stop" || Ours(got, "claude-code") {
			t.Errorf("not recognised: %s", got)
		}
	}
	if _, err := Command(LoginShell, "/a\nb/reme-hook", "codex", "stop"); err == nil {
		t.Error("a line break in a path passed")
	}
}

// windowsPaths are paths of programs there, and as cmd.exe and the bash of Git are
// told of them.
var windowsPaths = []struct{ path, cmd, bash string }{
	{`C:\h\reme-hook.exe`, `C:\h\reme-hook.exe`, `'C:/h/reme-hook.exe'`},
	{`C:\Users\Jo Ann\.reme\reme-hook.exe`, `"C:\Users\Jo Ann\.reme\reme-hook.exe"`, `'C:/Users/Jo Ann/.reme/reme-hook.exe'`},
	{`C:\R&D (x86)\reme-hook.exe`, `"C:\R&D (x86)\reme-hook.exe"`, `'C:/R&D (x86)/reme-hook.exe'`},
	{`C:\it's\reme-hook.exe`, `"C:\it's\reme-hook.exe"`, `'C:/it'\''s/reme-hook.exe'`},
	{`C:\50%\reme-hook.exe`, `"C:\50%\reme-hook.exe"`, `'C:/50%/reme-hook.exe'`},
	{`C:\a^b!c\reme-hook.exe`, `"C:\a^b!c\reme-hook.exe"`, `'C:/a^b!c/reme-hook.exe'`},
	{`C:\a;b,c=d\reme-hook.exe`, `"C:\a;b,c=d\reme-hook.exe"`, `'C:/a;b,c=d/reme-hook.exe'`},
	{`C:\用户\ü🙂\reme-hook.exe`, `C:\用户\ü🙂\reme-hook.exe`, `'C:/用户/ü🙂/reme-hook.exe'`},
	{`\\server\share\reme-hook.exe`, `\\server\share\reme-hook.exe`, `'//server/share/reme-hook.exe'`},
	{`D:\$HOME\reme-hook.exe`, `D:\$HOME\reme-hook.exe`, `'D:/$HOME/reme-hook.exe'`},
}

// TestCommandsOfWindows has forms alone: none of them was run there. PowerShell
// gets none.
func TestCommandsOfWindows(t *testing.T) {
	t.Parallel()
	for _, c := range windowsPaths {
		for shell, want := range map[Shell]string{
			CmdShell:   "if exist " + c.cmd + " " + c.cmd + " codex stop 2>nul & exit /b 0",
			PosixShell: "{ [ -x " + c.bash + " ] && " + c.bash + " codex stop; } 2>/dev/null || true",
		} {
			got, err := commandOn("windows", shell, c.path, "codex", "stop")
			if err != nil || got != want || !Ours(got, "codex") || EventOf(got, "codex") != "stop" {
				t.Errorf("%s of %s:\n got %s, %v\nwant %s", shell, c.path, got, err, want)
			}
		}
		if s := (Server{c.path, []string{"mcp"}}); !s.Ours() || s.Valid() != nil {
			t.Errorf("%s is not recognised as ours", c.path)
		}
	}
	git := func(path string) func(string) (string, error) {
		return func(name string) (string, error) {
			if name != "git" || path == "" {
				return "", exec.ErrNotFound
			}
			return path, nil
		}
	}
	for _, c := range []struct {
		shell Shell
		git   string
		want  []string
	}{
		{CmdShell, "", []string{"cmd.exe", "/d", "/s", "/c", `"a & b"`}},
		{LoginShell, "", []string{"cmd.exe", "/d", "/s", "/c", `"a & b"`}},
		{PosixShell, `C:\Program Files\Git\cmd\git.exe`, []string{`C:\Program Files\Git\bin\bash.exe`, "-c", "a & b"}},
		{PosixShell, `C:/Git/bin/git.exe`, []string{`C:\Git\bin\bash.exe`, "-c", "a & b"}},
		{PosixShell, "", []string{"bash.exe", "-c", "a & b"}},
	} {
		if got := c.shell.argvOn("windows", "a & b", git(c.git)); !slices.Equal(got, c.want) {
			t.Errorf("%s, git at %q: %q, want %q", c.shell, c.git, got, c.want)
		}
	}
	for _, goos := range []string{"linux", "darwin"} {
		if got := PosixShell.argvOn(goos, "a & b", nil); !slices.Equal(got, []string{"/bin/sh", "-c", "a & b"}) {
			t.Errorf("%s: %q", goos, got)
		}
	}
}

func TestOurs(t *testing.T) {
	for command, want := range map[string]bool{
		"reme-hook codex stop":                         true,
		"/old/place/reme-hook codex session-start":     true,
		`"C:\x\reme-hook.exe" codex stop`:              true,
		"FOO=1 reme-hook codex stop || true":           true,
		"reme-hook claude-code stop":                   false,
		"reme-hook doctor":                             false,
		"my-reme-hook codex stop":                      false,
		"reme-hook-next codex stop":                    false,
		"python3 /x/reme/hooks/auto_memory.py codex s": false,
		"echo codex stop":                              false,
	} {
		if got := Ours(command, "codex"); got != want {
			t.Errorf("Ours(%q) = %v", command, got)
		}
	}
}
