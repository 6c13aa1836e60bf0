package claudecode

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentscope-ai/reme-hook/install"
)

// managedFile is where an organization puts settings that no user can change, as
// Claude Code 2.1.332 has it in its program.
func managedFile(goos string) string {
	switch goos {
	case "darwin":
		return "/Library/Application Support/ClaudeCode/managed-settings.json"
	case "windows":
		return `C:\Program Files\ClaudeCode\managed-settings.json`
	}
	return "/etc/claude-code/managed-settings.json"
}

// bare are the options with which Claude Code starts without hooks, and the
// variables that stand for them.
var bare = []struct{ option, env string }{{"--bare", "CLAUDE_CODE_SIMPLE"}, {"--safe-mode", "CLAUDE_CODE_SAFE_MODE"}}

// silenced finds what makes Claude Code run no hooks: settings, its environment,
// and an alias that starts it so.
func silenced(env install.Env, settings []string, managed string) []install.Problem {
	var out []install.Problem
	off := func(what, do string) {
		out = append(out, install.Problem{Code: install.Off, What: what, Do: do, Off: true})
	}
	for _, path := range append(slices.Clone(settings), managed) {
		// What cannot be read is reported elsewhere.
		var s struct {
			DisableAllHooks       any `json:"disableAllHooks"`
			AllowManagedHooksOnly any `json:"allowManagedHooksOnly"`
		}
		readJSON(path, &s)
		if s.DisableAllHooks == true {
			off(`"disableAllHooks" is set in `+path+": Claude Code runs no hooks", "remove it there")
		}
		if s.AllowManagedHooksOnly == true && path == managed {
			off(`"allowManagedHooksOnly" is set in `+path+": Claude Code runs the hooks of your organization only", "ask whoever manages this machine")
		}
	}
	for _, b := range bare {
		if isTrue(env.Getenv(b.env)) {
			off(b.env+" is set here: Claude Code starts as with "+b.option+", without hooks", "unset "+b.env)
		}
		for _, file := range startFiles {
			if aliased(filepath.Join(env.Home, filepath.FromSlash(file)), b.option) {
				off("~/"+file+" starts Claude Code with "+b.option+", without hooks", "take "+b.option+" out of the alias there")
			}
		}
	}
	return out
}

// isTrue reads a switch of the environment as Claude Code does.
func isTrue(s string) bool {
	return slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(strings.TrimSpace(s)))
}

// startFiles are where users keep aliases.
var startFiles = []string{".bashrc", ".bash_aliases", ".bash_profile", ".profile", ".zshrc", ".zprofile", ".config/fish/config.fish"}

// maxStartFile bounds what is read of one of them.
const maxStartFile = 1 << 20

// aliased tells whether a file for a shell has an alias for claude with an
// option.
func aliased(path, option string) bool {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxStartFile))
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		words := strings.FieldsFunc(lines.Text(), func(r rune) bool { return strings.ContainsRune(" \t='\"", r) })
		if len(words) > 2 && words[0] == "alias" && words[1] == "claude" && slices.Contains(words, option) {
			return true
		}
	}
	return false
}
