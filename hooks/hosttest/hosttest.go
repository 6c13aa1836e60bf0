// Package hosttest has what the tests of all hosts need: payloads, and a fake
// home to install in.
package hosttest

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/gateway"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/install"
)

// Payload reads a payload that a real host sent: <name>.json of its folder in
// testdata/payloads. It is for the packages hooks/<host>.
func Payload(t *testing.T, host client.Host, name string) hooks.Payload {
	t.Helper()
	return Parse(t, Get(t, filepath.Join("..", "..", "testdata", "payloads", string(host), name+".json")))
}

// Parse reads a payload that must be whole.
func Parse(t *testing.T, text string) hooks.Payload {
	t.Helper()
	p, err := hooks.ReadPayload(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Env is a machine with an empty home and no program of any host.
func Env(t *testing.T) install.Env {
	home := t.TempDir()
	return install.Env{
		Home: home, IntegrationsDir: filepath.Join(home, ".reme", "integrations"),
		LookPath: func(string) (string, error) { return "", exec.ErrNotFound },
	}
}

// Write writes a private file and makes the folders above it.
func Write(t *testing.T, path, text string) {
	t.Helper()
	write(t, path, text, 0o600)
}

// WriteProgram writes a private file that may be run.
func WriteProgram(t *testing.T, path, text string) {
	t.Helper()
	write(t, path, text, 0o700)
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// Get reads a file that must be there.
func Get(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var update = flag.Bool("update", false, "write the declarations of the tools")

// Tools checks that a plugin's file declares the tools of the memory, with that
// before their names.
func Tools(t *testing.T, prefix, path string) {
	t.Helper()
	functions, err := gateway.Functions(prefix)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(functions); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if Get(t, path) != want.String() {
		t.Errorf("%s is not what this test with -update makes of the memory's tools", path)
	}
}
