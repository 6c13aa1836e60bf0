// Package openclaw holds the plugin for OpenClaw: a shim that calls reme-hook for
// each event.
package openclaw

import (
	_ "embed"
	"strings"
)

var (
	//go:embed index.js
	shim string
	//go:embed openclaw.plugin.json
	manifest string
	//go:embed package.json
	pkg []byte
	//go:embed tools.json
	tools []byte
)

// The line of the shim that says what it runs, and how it is found there.
const (
	commandName = "const command = "
	commandLine = commandName + "'reme-hook'"
)

// Files are the files of the plugin, by name, as the given version of reme-hook
// makes them. program is what they run, as a string literal of JavaScript.
func Files(version, program string) map[string][]byte {
	versioned := func(text string) string { return strings.Replace(text, "0.0.0-source", version, 1) }
	return map[string][]byte{
		"index.js":             []byte(strings.Replace(versioned(shim), commandLine, commandName+program, 1)),
		"openclaw.plugin.json": []byte(versioned(manifest)),
		"package.json":         pkg,
		"tools.json":           tools,
	}
}

// Program is the literal that an index.js has for what it runs, "" if there is
// none.
func Program(index []byte) string {
	for line := range strings.Lines(string(index)) {
		if literal, ok := strings.CutPrefix(line, commandName); ok {
			return strings.TrimSpace(literal)
		}
	}
	return ""
}
