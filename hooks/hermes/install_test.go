package hermes

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/install"
)

func newEnv(t *testing.T) install.Env {
	t.Helper()
	home := t.TempDir()
	return install.Env{
		Home: home, IntegrationsDir: filepath.Join(home, "integrations"),
		LookPath: func(string) (string, error) { return "", errors.New("not here") },
	}
}

// Whatever a config.yaml is like, an uninstall gives it back byte for byte, and
// leaves nothing in Hermes' folder.
func TestInstallAndBack(t *testing.T) {
	t.Parallel()
	for name, e := range edits {
		if e.before == e.after {
			continue // the user had chosen us before
		}
		env := newEnv(t)
		path := configFile(env)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(e.before), 0o640); err != nil {
			t.Fatal(err)
		}
		target := Target{Version: "1"}
		server := func(o install.Options, want bool) {
			if _, err := install.Install(t.Context(), target, env, o); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if r := target.Check(env, install.Options{}); r.HasServer() != want || want && r.Servers[0].Current != (o.Command == "") {
				t.Errorf("%s: %+v", name, r)
			}
		}
		server(install.Options{Part: install.ServerPart, Command: "/old/reme-hook"}, true)
		server(install.Options{Part: install.ServerPart}, true)
		server(install.Options{}, false) // the provider has the tools
		if r := target.Check(env, install.Options{}); len(r.Problems) > 0 || len(r.Hooks) != len(providerEvents) || !r.Hooks[0].Current || !r.OwnTools {
			t.Errorf("%s: %+v", name, r)
		}
		if _, err := install.Uninstall(t.Context(), target, env, install.Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		now, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(now, []byte(e.before)) {
			t.Errorf("%s: %q, %v, was %q", name, now, err, e.before)
		}
		if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
			t.Errorf("%s: left are %v", name, left)
		}
	}
}

// Where there was no file, none is left.
func TestInstallWithoutConfig(t *testing.T) {
	t.Parallel()
	env := newEnv(t)
	for range 2 {
		if _, err := install.Install(t.Context(), Target{}, env, install.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := install.Uninstall(t.Context(), Target{}, env, install.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(hermesHome(env)); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

func TestProgram(t *testing.T) {
	t.Parallel()
	for _, program := range []string{`/a b/ü"x\y/reme-hook`, `C:\Users\x\reme-hook.exe`, `/it's/reme-hook`} {
		env := newEnv(t)
		o := install.Options{Command: program}
		if _, err := install.Install(t.Context(), Target{}, env, o); err != nil {
			t.Fatal(err)
		}
		if r := (Target{}).Check(env, o); len(r.Hooks) == 0 || !r.Hooks[0].Current || !strings.Contains(r.Hooks[0].Command, filepath.Base(program)) {
			t.Errorf("%s: %+v", program, r)
		}
	}
	if _, err := (Target{}).Files(newEnv(t), install.Options{Command: "/a\nb"}); err == nil {
		t.Error("a path with a line break was taken")
	}
	if _, err := (Target{}).Files(newEnv(t), install.Options{Scope: install.ProjectScope}); err == nil {
		t.Error("a project was taken")
	}
}
