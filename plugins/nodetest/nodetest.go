// Package nodetest plays a host for plugins in JavaScript. It is for their tests.
package nodetest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Node finds a Node that hosts would run on, or skips.
func Node(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the programs to call are shell scripts")
	}
	for _, name := range []string{os.Getenv("REME_CONTRACT_NODE"), "node"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if exec.Command(path, "-e", "process.exit(process.getBuiltinModule ? 0 : 1)").Run() == nil {
			return path
		}
	}
	t.Skip("no node of 20.16 or newer: neither REME_CONTRACT_NODE nor one on the PATH")
	return ""
}

// Played is what came of some steps.
type Played struct {
	Lines  []string // what the stand-in for the host printed
	Calls  []string // what the program was called with: its second argument, and what it was given
	Orphan bool     // the group of a child is still there
}

// Play runs testdata/host.mjs, which stands for the host, with arguments that
// are made for a scratch folder and the program that the plugin is to call. The
// program is a shell script: it logs the call before the given lines run, in
// which $1 is the second argument. Without lines there is no program.
func Play(t *testing.T, script string, arguments func(dir, program string) []string) Played {
	t.Helper()
	path := Node(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "no", "such", "program")
	if script != "" {
		program = filepath.Join(dir, "a program")
		text := "#!/bin/sh\nshift\nread -r payload\necho \"$1 $payload\" >>'" + dir + "/calls'\necho $$ >>'" + dir + "/pids'\n" + script + "\n"
		if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	host, err := filepath.Abs(filepath.Join("testdata", "host.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{host}, arguments(dir, program)...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%v: %s%s", err, out, stderr.String())
	}
	read := func(name string) []string {
		b, _ := os.ReadFile(filepath.Join(dir, name))
		return strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' })
	}
	p := Played{Lines: strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })}
	// A child may be there for a moment more.
	p.Orphan = true
	for deadline := time.Now().Add(10 * time.Second); p.Orphan && time.Now().Before(deadline); {
		p.Orphan = alive(t, read("pids"))
	}
	p.Calls = read("calls")
	return p
}

// alive tells whether a process of one of the groups is there.
func alive(t *testing.T, groups []string) bool {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "pgid=,stat=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		// A zombie is one that nobody has asked about yet.
		if f := strings.Fields(line); slices.Contains(groups, f[0]) && f[1][0] != 'Z' {
			return true
		}
	}
	return false
}

// Want compares. A script reads the separators of JSON as they are, so they are
// written out here.
func (p Played) Want(t *testing.T, lines, calls []string) {
	t.Helper()
	plain := strings.NewReplacer(`\u2028`, "\u2028")
	for _, c := range []struct {
		what      string
		got, want []string
	}{{"came of it", p.Lines, lines}, {"was called", p.Calls, calls}} {
		if got, want := strings.Join(c.got, "\n"), plain.Replace(strings.Join(c.want, "\n")); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", c.what, got, want)
		}
	}
	if p.Orphan {
		t.Error("a child is still there")
	}
}
