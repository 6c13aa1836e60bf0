//go:build unix

package cmd

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/agentscope-ai/reme-hook/install"
)

// TestOddFiles puts what may stand in the place of each file of a host that an install
// edits: no file at all, or one of nothing. Nothing hangs and nothing of it is harmed.
func TestOddFiles(t *testing.T) {
	t.Parallel()
	noFiles := map[string]func(path string) error{
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
	}
	texts := map[string]string{"of 0 bytes": "", "of white space": " \n", "null": "null", "null and a line": "null\n"}
	for _, h := range knownHosts() {
		t.Run(string(h.Adapter.Host), func(t *testing.T) {
			t.Parallel()
			place := func(i int) (env install.Env, path string) {
				t.Helper()
				env = envOf(t.TempDir(), nil)
				files, err := h.Target.Files(env, install.Options{})
				if err != nil {
					t.Fatal(err)
				}
				files = slices.DeleteFunc(files, func(f install.File) bool { return isOurs(f) || bodies[filepath.Ext(f.Path)] == nil })
				if i >= len(files) {
					return env, ""
				}
				if err := os.MkdirAll(filepath.Dir(files[i].Path), 0o700); err != nil {
					t.Fatal(err)
				}
				return env, files[i].Path
			}
			for i := 0; ; i++ {
				if _, path := place(i); path == "" {
					break
				}
				for name, make := range noFiles {
					env, path := place(i)
					if err := make(path); err != nil {
						t.Fatal(err)
					}
					before, err := os.Lstat(path)
					if err != nil {
						t.Fatal(err)
					}
					for _, do := range []func(context.Context, install.Target, install.Env, install.Options) ([]install.Change, error){install.Install, install.Uninstall} {
						if _, err := do(t.Context(), h.Target, env, install.Options{}); err == nil || !strings.Contains(err.Error(), path) {
							t.Errorf("%s at %s: %v", name, path, err)
						}
					}
					h.Target.Check(env, install.Options{})
					if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() {
						t.Errorf("%s at %s is gone: %v", name, path, err)
					}
				}
				for name, text := range texts {
					env, path := place(i)
					if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
						t.Fatal(err)
					}
					_, err := install.Install(t.Context(), h.Target, env, install.Options{})
					if err == nil {
						if bad := h.Target.Check(env, install.Options{}).Missing; len(bad) > 0 {
							t.Errorf("%s, %s: missing is %v", path, name, bad)
						}
						_, err = install.Uninstall(t.Context(), h.Target, env, install.Options{})
						if err != nil {
							t.Errorf("%s, %s: %v", path, name, err)
						}
					}
					if left, rerr := os.ReadFile(path); rerr != nil || string(left) != text {
						t.Errorf("%s, %s: left is %q, %v after %v", path, name, left, rerr, err)
					}
				}
			}
		})
	}
}
