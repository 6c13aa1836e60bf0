package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agentscope-ai/reme-hook/client"
)

// made is what the first lines of every file that we make for hosts say.
const made = "Made by reme-hook"

// Folder is a folder that a host loads, and in which all files are ours.
type Folder struct {
	Dir   string
	Main  string            // the file that says who made it
	Files map[string][]byte // by name, as they should be
}

// Literal is a program's path as a string literal of languages that have those
// of JSON.
func Literal(program string) (string, error) {
	literal, err := json.Marshal(program)
	if err != nil || !utf8.ValidString(program) || strings.ContainsFunc(program, unicode.IsControl) {
		return "", fmt.Errorf("the path %q cannot be put into a program", program)
	}
	return string(literal), nil
}

// Foreign is an error if the folder is somebody else's.
func (f Folder) Foreign() error {
	if text, err := ReadFile(filepath.Join(f.Dir, f.Main)); err == nil && !bytes.Contains(text, []byte(made)) {
		return fmt.Errorf("%s holds another plugin; move it away and run the command again", f.Dir)
	}
	return nil
}

// InstallFiles are the plugin's files for [Target].Files, in the order of their
// names.
func (f Folder) InstallFiles() []File {
	var files []File
	for _, name := range slices.Sorted(maps.Keys(f.Files)) {
		files = append(files, File{
			Path: filepath.Join(f.Dir, name),
			Upsert: func(old []byte) ([]byte, error) {
				if bytes.Equal(old, f.Files[name]) {
					return old, nil
				}
				return f.Files[name], nil
			},
			Remove: func([]byte, []byte, bool) ([]byte, error) { return nil, nil },
		})
	}
	return files
}

// Placed tells whether the folder is there and ours.
func (f Folder) Placed() bool {
	text, err := ReadFile(filepath.Join(f.Dir, f.Main))
	return err == nil && bytes.Contains(text, []byte(made))
}

// Current tells whether all files are as they should be.
func (f Folder) Current() bool {
	for name, text := range f.Files {
		now, err := ReadFile(filepath.Join(f.Dir, name))
		if err != nil || !bytes.Equal(now, text) {
			return false
		}
	}
	return true
}

// PluginHooks are the hooks that a plugin in file, or its row there, calls: one for
// each event.
func PluginHooks[K any](host client.Host, events map[string]K, program, file string, timeout time.Duration, current bool) []Configured {
	quoted, shell := quotePosix(program), PosixShell // as a shell would be told
	if runtime.GOOS == "windows" {
		quoted, shell = `"`+program+`"`, CmdShell
	}
	var out []Configured
	for event := range events {
		out = append(out, Configured{
			Event: event, Command: quoted + " " + string(host) + " " + event, Shell: shell,
			File: file, Timeout: timeout, Current: current,
		})
	}
	slices.SortFunc(out, func(a, b Configured) int { return strings.Compare(a.Event, b.Event) })
	return out
}
