package dsh

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
	"github.com/agentscope-ai/reme-hook/install"
	"github.com/agentscope-ai/reme-hook/plugins/dsh"
	"gopkg.in/yaml.v3"
)

var (
	testEnv = hosttest.Env
	write   = hosttest.WriteProgram
	get     = hosttest.Get
)

var target = Target{}

func mustInstall(t *testing.T, env install.Env) []install.Change {
	t.Helper()
	changes, err := install.Install(t.Context(), target, env, install.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func mustUninstall(t *testing.T, env install.Env) {
	t.Helper()
	if _, err := install.Uninstall(t.Context(), target, env, install.Options{}); err != nil {
		t.Fatal(err)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	if changes := mustInstall(t, env); len(changes) != 3 {
		t.Errorf("%d changes", len(changes))
	}
	if shim := get(t, filepath.Join(env.IntegrationsDir, "dsh", "reme-hook.mjs")); shim != string(dsh.Files()[dsh.ShimName]) {
		t.Errorf("the plugin is %s", shim)
	}
	if changes := mustInstall(t, env); len(changes) != 0 {
		t.Errorf("a second install changes %v", changes)
	}
	write(t, shimFile(env), "// of another version")
	if changes := mustInstall(t, env); len(changes) != 1 {
		t.Errorf("an upgrade changes %v", changes)
	}
	mustUninstall(t, env)
	for _, path := range []string{filepath.Join(env.IntegrationsDir, "dsh"), filepath.Join(env.Home, ".dsh")} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
}

// TestFilesOfOthers goes through receipts: links, edits in between, a changed
// DSH_HOME, two installs at once.
func TestFilesOfOthers(t *testing.T) {
	t.Parallel()
	const theirs = "# mine\r\n- id: a # x"
	t.Run("link", func(t *testing.T) {
		t.Parallel()
		env := testEnv(t)
		real := filepath.Join(env.Home, "dotfiles", "patch.yml")
		write(t, real, theirs)
		write(t, filepath.Join(env.Home, ".dsh", "x"), "")
		link := filepath.Join(env.Home, ".dsh", "cordis.patch.yml")
		if err := os.Symlink(real, link); err != nil {
			t.Skip(err)
		}
		mustInstall(t, env)
		if !strings.Contains(get(t, real), "id: reme-hook") {
			t.Error("not installed")
		}
		mustUninstall(t, env)
		if to, err := os.Readlink(link); err != nil || to != real || get(t, real) != theirs {
			t.Errorf("link to %s, %v: %q", to, err, get(t, real))
		}
	})
	t.Run("edited in between", func(t *testing.T) {
		t.Parallel()
		env := testEnv(t)
		path := filepath.Join(env.Home, ".dsh", "cordis.patch.yml")
		write(t, path, theirs)
		mustInstall(t, env)
		write(t, path, get(t, path)+"\r\n- id: b\r\n")
		mustInstall(t, env)
		mustUninstall(t, env)
		if got := get(t, path); got != theirs+"\r\n- id: b\r\n" {
			t.Errorf("left %q", got)
		}
	})
	t.Run("DSH_HOME", func(t *testing.T) {
		t.Parallel()
		env := testEnv(t)
		env.Environ = []string{"DSH_HOME=" + filepath.Join(env.Home, "my dsh")}
		mustInstall(t, env)
		if get(t, filepath.Join(env.Home, "my dsh", "cordis.patch.yml")) == "" {
			t.Error("not installed")
		}
	})
	t.Run("two at once", func(t *testing.T) {
		t.Parallel()
		env := testEnv(t)
		path := filepath.Join(env.Home, ".dsh", "cordis.patch.yml")
		write(t, path, theirs)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := install.Install(t.Context(), target, env, install.Options{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		one(t, "two at once", []byte(get(t, path)), pluginRow(shimFile(env), env.BinaryPath()))
		mustUninstall(t, env)
		if got := get(t, path); got != theirs {
			t.Errorf("left %q", got)
		}
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		env := testEnv(t)
		path := filepath.Join(env.Home, ".dsh", "cordis.patch.yml")
		write(t, path, "id: a\n")
		_, err := install.Install(t.Context(), target, env, install.Options{})
		if err == nil || !strings.Contains(err.Error(), "not a list of rows") || !strings.Contains(err.Error(), path) {
			t.Error(err)
		}
		if _, err := os.Stat(env.IntegrationsDir + "/dsh"); err == nil || get(t, path) != "id: a\n" {
			t.Error("something was changed")
		}
	})
	t.Run("other scopes", func(t *testing.T) {
		t.Parallel()
		o := install.Options{Scope: install.ProjectScope, ProjectDir: t.TempDir()}
		if _, err := target.Files(testEnv(t), o); err == nil {
			t.Error("DSH has no configuration in projects")
		}
	})
}

// oddPaths have to be quoted for YAML and for JavaScript.
var oddPaths = []string{
	"plain", "two words", "it's", `"quoted"`, "$HOME ${x}", "`cmd`", "# no comment", "a: b, {c} [d]", "100%", "привет", "e\u0301 🙂👨‍👩‍👧", "\u00a0", "!!js", "&amp;<b>", "*x", "trailing ", "a?b#c%41", "[x];=@",
}

// TestQuoting: what YAML and JavaScript make of the row is what was meant, and
// the guard tests both files.
func TestQuoting(t *testing.T) {
	t.Parallel()
	var scripts []string
	for _, name := range oddPaths {
		if runtime.GOOS == "windows" {
			t.Skip("most of these cannot be names of files")
		}
		dir := filepath.Join(t.TempDir(), name)
		r := pluginRow(filepath.Join(dir, shimDir, dsh.ShimName), filepath.Join(dir, "bin", "reme-hook"))
		if err := validate(r.needs[0], r.program); err != nil {
			t.Error(err)
			continue
		}
		for style, text := range map[string]string{"block": "", "flow": "[]"} {
			out, err := upsert([]byte(text), r)
			if err != nil {
				t.Errorf("%s, %s: %v", name, style, err)
				continue
			}
			one(t, name, out, r)
			var rows []struct {
				Insert []struct {
					Name     string
					Disabled yaml.Node
					Config   struct{ Command string }
				}
			}
			if err := yaml.Unmarshal(out, &rows); err != nil {
				t.Fatalf("%s: %v", out, err)
			}
			if got := rows[0].Insert[0]; got.Name != r.module || got.Config.Command != r.program {
				t.Errorf("%s, %s: %+v", name, style, got)
			}
			scripts = append(scripts, guardTest(r, value(guardOf(t, out))))
		}
	}
	path, err := exec.LookPath(os.Getenv("REME_CONTRACT_NODE"))
	if err != nil {
		if path, err = exec.LookPath("node"); err != nil {
			t.Skip("no node to evaluate the guards: neither REME_CONTRACT_NODE nor one on the PATH")
		}
	}
	cmd := exec.CommandContext(t.Context(), path, "--input-type=commonjs")
	cmd.Stdin = strings.NewReader(strings.Join(scripts, ""))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%.2000s", err, out)
	}
}

func guardOf(t *testing.T, text []byte) *yaml.Node {
	t.Helper()
	p, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	js := p.ours()[0].disabled
	if js.Kind == yaml.MappingNode {
		js = member(js, "__jsExpr")
	} else if js.Tag != "!!js" {
		t.Errorf("the guard has the tag %s", js.Tag)
	}
	return js
}

// guardTest is a script that evaluates a guard as DSH does, with and without the
// files.
func guardTest(r row, guard string) string {
	return `{
	const fs = require('fs'), path = require('path')
	process.getBuiltinModule ??= () => fs
	const off = () => new Function('ctx', 'expr', 'with (ctx) { return eval(expr) }')({}, ` + quoteJS(guard) + `)
	if (require('url').fileURLToPath(` + quoteJS(r.module) + `) !== ` + quoteJS(r.needs[0]) + `) throw new Error(` + quoteJS(r.module) + `)
	const files = [` + quoteJS(r.needs[0]) + `, ` + quoteJS(r.program) + `]
	for (const file of files) { fs.mkdirSync(path.dirname(file), { recursive: true }); fs.writeFileSync(file, '') }
	if (off() !== false) throw new Error('off although both are there: ' + files)
	for (const file of files) {
		fs.rmSync(file)
		if (off() !== true) throw new Error('on without ' + file)
		fs.writeFileSync(file, '')
	}
}
`
}

// TestServer: the MCP server comes alone, or not at all: the plugin has the tools. Another's of our name stays.
func TestServer(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	path := patchFile(env)
	check := func(hooks bool, want ...install.Registered) {
		t.Helper()
		if r := target.Check(env, install.Options{}); len(r.Hooks) > 0 != hooks || !reflect.DeepEqual(r.Servers, want) || len(r.Problems) > 0 {
			t.Errorf("%+v", r)
		}
	}
	ours := install.Registered{Server: env.Server(install.Options{}, Host), File: path, Current: true}
	for _, o := range []struct {
		part    install.Part
		hooks   bool
		servers []install.Registered
	}{{install.ServerPart, false, []install.Registered{ours}}, {install.HooksPart, true, nil}, {"", true, nil}} {
		if _, err := install.Install(t.Context(), target, env, install.Options{Part: o.part}); err != nil {
			t.Fatal(err)
		}
		check(o.hooks, o.servers...)
		mustUninstall(t, env)
		if _, err := os.Stat(dshHome(env)); err == nil {
			t.Errorf("left %s", get(t, path))
		}
	}
	only := install.Options{Part: install.ServerPart}
	if _, err := install.Install(t.Context(), target, env, only); err != nil {
		t.Fatal(err)
	}
	write(t, path, strings.Replace(get(t, path), "disabled: !!js '![\""+env.BinaryPath()+"\"]", "disabled: true # ", 1))
	off := ours
	off.Off = true
	check(false, off)
	mustInstall(t, env) // in the place of the server
	check(true)
	installed := get(t, path)
	if _, err := install.Install(t.Context(), target, env, only); err != nil || get(t, path) != installed {
		t.Errorf("the server beside the plugin: %v\n%s", err, get(t, path))
	}
	const foreign = "- insert:\n    - id: mine\n      name: '@deepseek-ai/dsh-mcp-client'\n      config: {serverName: reme, transport: streamable-http, url: 'http://127.0.0.1:2333/mcp'}\n"
	write(t, path, foreign)
	if _, err := install.Install(t.Context(), target, env, only); !errors.Is(err, install.ErrForeignServer) {
		t.Errorf("%v", err)
	}
	mustInstall(t, env)
	check(true, install.Registered{File: path})
	mustUninstall(t, env)
	if got := get(t, path); got != foreign {
		t.Errorf("left %s", got)
	}
}

func TestPathsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/a\nb", "/a\u2028b", "/a\x7f", "/a\xff", "/\ufeff", "relative"} {
		if validate(path, "/ok") == nil || validate("/ok", path) == nil {
			t.Errorf("%q is accepted", path)
		}
	}
	if runtime.GOOS != "windows" && (validate(`/a\b`, "/ok") == nil || validate("/ok", `/a\b`) != nil) {
		t.Error("Node loads no module from a folder with a backslash, but runs programs there")
	}
}

// fakeDSH is a program in the place of DSH's, found at the path that npm gives
// it.
func fakeDSH(t *testing.T, env *install.Env, script string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	path := filepath.Join(env.Home, "lib", "@deepseek-ai", "dsh", "lib", "bin.js")
	write(t, path, "#!/bin/sh\n"+script+"\n")
	env.LookPath = func(string) (string, error) { return path, nil }
}

func TestFind(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	if target.Find(t.Context(), env, install.Options{}).Present {
		t.Error("found in an empty home")
	}
	fakeDSH(t, &env, "echo 0.1.0-rc.8")
	if f := target.Find(t.Context(), env, install.Options{}); !f.Present || f.Version != "0.1.0-rc.8" {
		t.Errorf("%+v", f)
	}

	env = testEnv(t)
	fakeDSH(t, &env, "echo 'Distributed Shell / Dancer shell version 0.25.10'")
	dancers := filepath.Join(env.Home, "bin", "dsh")
	path, _ := env.LookPath("dsh")
	write(t, dancers, get(t, path))
	write(t, filepath.Join(env.Home, ".dsh", "group", "all"), "host\n")
	env.LookPath = func(string) (string, error) { return dancers, nil }
	if target.Find(t.Context(), env, install.Options{}).Present {
		t.Error("took the dancer's shell for DSH")
	}
	write(t, filepath.Join(env.Home, ".dsh", "profiles", "web", "package.json"), "{}")
	if !target.Find(t.Context(), env, install.Options{}).Present {
		t.Error("did not find a DSH that was used")
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil   func(t *testing.T, env install.Env, patch string)
		problem string // part of it
		off     bool
		hooks   bool
		current bool
	}{
		"as installed": {func(*testing.T, install.Env, string) {}, "", false, true, true},
		"no plugin": {func(t *testing.T, env install.Env, _ string) {
			os.Remove(filepath.Join(env.IntegrationsDir, shimDir, dsh.ShimName))
		}, "the plugin is not in", true, true, false},
		"other plugin": {func(t *testing.T, env install.Env, _ string) {
			write(t, filepath.Join(env.IntegrationsDir, shimDir, dsh.ShimName), "// Made by reme-hook in another version")
		}, "", false, true, false},
		"no guard": {func(t *testing.T, _ install.Env, patch string) {
			write(t, patch, strings.Replace(get(t, patch), "disabled:", "enabled:", 1))
		}, "", false, true, false},
		"doubled": {func(t *testing.T, _ install.Env, patch string) {
			write(t, patch, get(t, patch)+get(t, patch))
		}, "2 times", true, true, true},
		"disabled": {func(t *testing.T, _ install.Env, patch string) {
			write(t, patch, strings.Replace(get(t, patch), "!!js", "true # !!js", 1))
		}, "is disabled", true, true, true},
		"disabled elsewhere": {func(t *testing.T, _ install.Env, patch string) {
			write(t, patch, get(t, patch)+"- id: reme-hook\n  disabled: true\n")
		}, "is disabled", true, true, true},
		"bundle too": {func(t *testing.T, env install.Env, _ string) {
			write(t, filepath.Join(env.Home, ".dsh", "profiles", "web", "package.json"), `{"dsh":{"profile":{"bundles":["x","reme-hook-dsh"]}}}`)
		}, "both run", false, true, true},
		"only the bundle": {func(t *testing.T, env install.Env, patch string) {
			os.Remove(patch)
			write(t, filepath.Join(env.Home, ".dsh", "profiles", "web", "package.json"), `{"dsh":{"profile":{"bundles":["reme-hook-dsh"]}}}`)
		}, "profile web has the bundle", false, false, false},
		"not installed": {func(_ *testing.T, _ install.Env, patch string) { os.Remove(patch) }, "", false, false, false},
		"no list":       {func(t *testing.T, _ install.Env, patch string) { write(t, patch, "a: b") }, "not a list of rows", true, false, false},
		"blank":         {func(t *testing.T, _ install.Env, patch string) { write(t, patch, "# mine\n") }, "does not start", true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := testEnv(t)
			patch := filepath.Join(env.Home, ".dsh", "cordis.patch.yml")
			mustInstall(t, env)
			c.spoil(t, env, patch)
			r := target.Check(env, install.Options{})
			if len(r.Problems) > 1 || (len(r.Problems) == 1) != (c.problem != "") {
				t.Fatalf("problems %+v", r.Problems)
			}
			if c.problem != "" && (!strings.Contains(r.Problems[0].What, c.problem) || r.Problems[0].Off != c.off) {
				t.Errorf("problem %+v", r.Problems[0])
			}
			if len(r.Missing) > 0 || c.hooks != (len(r.Hooks) == len(Adapter().Events)) || !c.hooks && len(r.Hooks) > 0 {
				t.Errorf("hooks %+v, missing %v", r.Hooks, r.Missing)
			}
			for _, h := range r.Hooks {
				want := "'" + env.BinaryPath() + "' dsh " + h.Event
				if h.Current != c.current || h.Command != want && runtime.GOOS != "windows" || h.File != patch {
					t.Errorf("%+v", h)
				}
			}
		})
	}
}

// TestDump: what DSH says about its configuration is asked for if there is a
// profile. An install that DSH does not accept is taken back.
func TestDump(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script  string
		problem string
		refused bool
	}{
		"sees it":           {"cat $HOME/.dsh/cordis.patch.yml | sed 's/^ *- id:/- id:/'", "", false},
		"does not see it":   {"echo '- id: reme-hook-bundle'", "does not see our row", false},
		"other file broken": {"echo 'dsh: failed to parse patches /x.yml' >&2; exit 1", "failed to parse patches /x.yml", false},
		"ours broken":       {"echo \"dsh: failed to parse patches $HOME/.dsh/cordis.patch.yml\" >&2; exit 1", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := testEnv(t)
			env.Environ = []string{"HOME=" + env.Home, "PATH=" + os.Getenv("PATH")}
			fakeDSH(t, &env, `[ "$*" = "--profile web --dump-config" ] || exit 9`+"\n"+c.script)
			write(t, filepath.Join(env.Home, ".dsh", "profiles", "web", "package.json"), "{}")
			_, err := install.Install(t.Context(), target, env, install.Options{})
			if c.refused != (err != nil) {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(env.Home, ".dsh", "cordis.patch.yml")); (err != nil) != c.refused {
				t.Error(err)
			}
			if c.refused {
				return
			}
			st, err := target.Trusted(t.Context(), env, install.Options{})
			if err != nil || st.Needed {
				t.Fatal(st, err)
			}
			if c.problem == "" != (len(st.Problems) == 0) || c.problem != "" && !strings.Contains(st.Problems[0].What, c.problem) {
				t.Errorf("%+v", st.Problems)
			}
		})
	}
	env := testEnv(t)
	fakeDSH(t, &env, "exit 1")
	if st, err := target.Trusted(t.Context(), env, install.Options{}); err != nil || len(st.Problems) > 0 {
		t.Error("asked DSH about a profile that is not there: it would make one")
	}
}

// The events that are installed are those that the plugin sends.
func TestEventsOfThePlugin(t *testing.T) {
	t.Parallel()
	shim := get(t, filepath.Join("..", "..", "plugins", "dsh", "reme-hook.mjs"))
	for event := range Adapter().Events {
		if !strings.Contains(shim, "'"+event+"', ") {
			t.Errorf("the plugin does not send %s", event)
		}
	}
}
