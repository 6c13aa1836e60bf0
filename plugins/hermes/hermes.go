// Package hermes holds the memory provider for Hermes: a shim that calls
// reme-hook for each hook of Hermes.
package hermes

import (
	_ "embed"
	"strings"
)

var (
	//go:embed reme/__init__.py
	provider string
	//go:embed reme/cli.py
	commands string
	//go:embed reme/plugin.yaml
	manifest string
	//go:embed reme/tools.json
	tools []byte
)

// Version is the one that the files bear where Hermes fetches them from the
// repository itself.
const Version = "0.1.0-dev"

// The line of the provider that says what it runs, and how it is found there.
const (
	commandName = "COMMAND = "
	commandLine = commandName + `"reme-hook"`
)

// Files are the files of the provider, by name, as the given version of
// reme-hook makes them. program is what they run, as a string literal of Python.
func Files(version, program string) map[string][]byte {
	versioned := func(text string) string { return strings.Replace(text, Version, version, 1) }
	return map[string][]byte{
		"__init__.py": []byte(versioned(provider)),
		"cli.py":      []byte(strings.Replace(versioned(commands), commandLine, commandName+program, 1)),
		"plugin.yaml": []byte(versioned(manifest)),
		"tools.json":  tools,
	}
}

// Program is the literal that a cli.py has for what it runs, "" if there is none.
func Program(cli []byte) string {
	for line := range strings.Lines(string(cli)) {
		if literal, ok := strings.CutPrefix(line, commandName); ok {
			return strings.TrimSpace(literal)
		}
	}
	return ""
}
