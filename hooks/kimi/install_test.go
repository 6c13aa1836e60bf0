package kimi

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
	"github.com/agentscope-ai/reme-hook/install"
)

var (
	write = hosttest.WriteProgram
	get   = hosttest.Get
)

func testEnv(t *testing.T) install.Env {
	t.Helper()
	env := hosttest.Env(t)
	env.Environ = []string{"HOME=" + env.Home, "PATH=" + os.Getenv("PATH")}
	return env
}

// fakeKimi makes a program that says a version, and of the configuration what a
// script says. As the real one, it helps with commands that it does not have.
func fakeKimi(t *testing.T, env *install.Env, version, doctor string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kimi")
	write(t, program, "#!/bin/sh\ncase \"$1 $2\" in\n'--version ') echo "+version+" ;;\n'doctor config') "+doctor+" ;;\n*) echo Usage: kimi; exit 0 ;;\nesac\n")
	env.LookPath = func(string) (string, error) { return program, nil }
}

const theirHook = "[[hooks]]\nevent = \"Stop\"\ncommand = \"notify-send done\" # mine\n"

// nasty are configurations that users have.
var nasty = map[string]string{
	"empty":                   "",
	"only space":              " \n\t\n",
	"only a comment":          "# my settings",
	"plain":                   "default_model = \"k2\"\n\n[models.k2]\nprovider = \"kimi\"\n",
	"no final newline":        "default_model = \"k2\"",
	"ends in space":           "a = 1\n   ",
	"ends in a comment":       "a = 1\n# the end",
	"blank lines at the end":  "a = 1\n\n\n",
	"crlf":                    "# mine\r\na = 1\r\n\r\n[tui]\r\nx = 2\r\n",
	"crlf, no final newline":  "a = 1\r\n[tui]\r\nx = 2",
	"mixed ends":              "a = 1\r\nb = 2\n",
	"bom":                     "\ufeffa = 1\n",
	"bom, crlf, no end":       "\ufeff# x\r\na = 1",
	"only a bom":              "\ufeff",
	"foreign hooks":           "# mine\n" + theirHook + "\n" + strings.Replace(theirHook, "Stop", "PreToolUse", 1),
	"hooks at the end":        theirHook + "timeout = 5",
	"hooks, then a table":     theirHook + "\n[tui]\nx = 1 # y\n",
	"empty array":             "a = 1\nhooks = [] # none yet\nb = 2\n",
	"empty array at the end":  "hooks = []",
	"empty array with space":  "hooks = [  \n]\n",
	"array with a comment":    "hooks = [ # ] not the end\n  # none ]\n]\n[tui]\nx = 1\n",
	"array":                   "hooks = [{event = \"Stop\", command = \"a ] # b\"}]\n",
	"array with commas":       "hooks = [\n    {event = \"Stop\", command = 'a', timeout = 3},\n    { event = \"Stop\", command = \"\"\"b\"]\"\"\"\" } , # c\n]\nz = 1",
	"array, crlf":             "hooks = [\r\n  {event = \"Stop\", command = \"a\"} # last\r\n  ]\r\n",
	"quoted key":              "\"hooks\" = []\n",
	"array behind others":     "x = [[1], ['hooks = []']]\ny.hooks = [1]\n'hooks'=[]\n",
	"another's block":         "# >>> conda >>>\na = 1\n# <<< conda <<<\n",
	"words like ours":         "a = \"reme-hook kimi stop\"\nb = '''\n# >>> conda >>>\n'''\n",
	"a hook that mentions us": "[[hooks]]\nevent = \"Stop\"\ncommand = \"echo reme-hook was here\"\n",
	"hashes in strings":       "a = \"# [[hooks]]\"\nb = \"\"\"\n[[hooks]]\n\"\"\"\n",
	"other arrays of tables":  "[[agents]]\nname = \"a\"\n[[agents.hooks]]\nx = 1\n",
	"no number":               "n = nan\ni = [-inf, {n = nan}]\n",
	"dates and unicode":       "d = 2026-11-30T09:00:00Z\n\"né\" = 'x'\n\"ключ\" = \"日本\"\nf = 1e3\n",
}

// unknownRelease are the hooks for a release that does not say its version.
func unknownRelease(t *testing.T, env install.Env) []entry {
	t.Helper()
	entries, err := entriesFor(env.BinaryPath())
	if err != nil {
		t.Fatal(err)
	}
	return known(entries, "")
}

func TestEventsMatchTheAdapter(t *testing.T) {
	t.Parallel()
	events := Adapter().Events
	for _, h := range configured {
		if _, ok := events[h.Event]; !ok {
			t.Errorf("%s is installed but not understood", h.Event)
		}
		if h.Timeout < 1 || h.Timeout > 600 {
			t.Errorf("%s has a timeout of %d s, which switches all hooks off", h.Event, h.Timeout)
		}
	}
	if len(events) != len(configured) {
		t.Errorf("%d events are understood, %d are installed", len(events), len(configured))
	}
}

func TestInstallAndUninstall(t *testing.T) {
	t.Parallel()
	for name, text := range nasty {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, way := range []string{"receipt", "no receipt", "edited"} {
				env := testEnv(t)
				path := configFile(env)
				write(t, path, text)
				if _, err := install.Install(t.Context(), Target{}, env, install.Options{}); err != nil {
					t.Fatal(err)
				}
				installed := get(t, path)
				body := strings.TrimPrefix(installed, "\ufeff")
				c, err := parse([]byte(body))
				if err != nil || !slices.Equal(c.ours, unknownRelease(t, env)) {
					t.Fatalf("installed\n%s\n%v", installed, err)
				}
				if crlf := strings.Count(body, "\r\n"); strings.HasPrefix(name, "crlf") && crlf != strings.Count(body, "\n") {
					t.Errorf("%d of %d lines end in CR LF\n%q", crlf, strings.Count(body, "\n"), body)
				}
				if marked := strings.HasPrefix(installed, "\ufeff"); marked != strings.HasPrefix(text, "\ufeff") || strings.Contains(body, "\ufeff") {
					t.Errorf("byte order mark: %q", installed)
				}
				changes, err := install.Install(t.Context(), Target{}, env, install.Options{})
				if err != nil || len(changes) > 0 {
					t.Errorf("a second install: %d changes, %v", len(changes), err)
				}
				want := text
				switch way {
				case "no receipt":
					if err := os.RemoveAll(filepath.Join(env.IntegrationsDir, "install")); err != nil {
						t.Fatal(err)
					}
				case "edited":
					if strings.HasPrefix(text, "\ufeff") {
						continue
					}
					// The user adds a line; the block must still be found.
					write(t, path, "# new\n"+installed)
					want = "# new\n" + text
				}
				if _, err := install.Uninstall(t.Context(), Target{}, env, install.Options{}); err != nil {
					t.Fatalf("%s: %v\n%s", way, err, installed)
				}
				if got := get(t, path); got != want {
					t.Errorf("%s: left\n%q\nwant\n%q\ninstalled was\n%s", way, got, want, installed)
				}
			}
		})
	}
}

func TestNoFile(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	if _, err := install.Install(t.Context(), Target{}, env, install.Options{}); err != nil {
		t.Fatal(err)
	}
	r := Target{}.Check(env, install.Options{})
	if len(r.Hooks) != len(configured)-1 || len(r.Missing) > 0 || len(r.Problems) > 0 || !r.Hooks[0].Current || r.Hooks[0].Timeout.Seconds() != 5 {
		t.Errorf("%+v", r)
	}
	if _, err := install.Uninstall(t.Context(), Target{}, env, install.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kimiHome(env)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Kimi's folder: %v", err)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	path := configFile(env)
	target := filepath.Join(env.Home, "dotfiles", "kimi.toml")
	write(t, target, "a = 1\n")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../dotfiles/kimi.toml", path); err != nil {
		t.Fatal(err)
	}
	if _, err := install.Install(t.Context(), Target{}, env, install.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := get(t, target); !strings.Contains(got, "[[hooks]]") {
		t.Errorf("the link's target is\n%s", got)
	}
	if _, err := install.Uninstall(t.Context(), Target{}, env, install.Options{}); err != nil {
		t.Fatal(err)
	}
	if link, err := os.Readlink(path); err != nil || link != "../dotfiles/kimi.toml" || get(t, target) != "a = 1\n" {
		t.Errorf("%s, %v: %s", link, err, get(t, target))
	}
}

// TestTwoAtOnce: two installs and then two uninstalls at the same time.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	write(t, configFile(env), theirHook)
	atOnce := func(do func() error) {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := do(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	atOnce(func() error {
		_, err := install.Install(context.Background(), Target{}, env, install.Options{})
		return err
	})
	if n := strings.Count(get(t, configFile(env)), blockBegin); n != 1 {
		t.Errorf("%d blocks", n)
	}
	atOnce(func() error {
		_, err := install.Uninstall(context.Background(), Target{}, env, install.Options{})
		return err
	})
	if got := get(t, configFile(env)); got != theirHook {
		t.Errorf("left %q", got)
	}
}

// TestDamagedBlock: what others made of our block is found again, replaced by a
// second install and taken out by an uninstall, and nothing else is.
func TestDamagedBlock(t *testing.T) {
	t.Parallel()
	const head = "a = 1 # one\n" + theirHook
	env := testEnv(t)
	wanted := unknownRelease(t, env)
	whole, err := upsert([]byte(head), wanted)
	if err != nil {
		t.Fatal(err)
	}
	block := strings.TrimPrefix(string(whole), head)
	line := func(prefix string) string {
		for l := range strings.Lines(block) {
			if strings.HasPrefix(l, prefix) {
				return l
			}
		}
		t.Fatalf("no line %q", prefix)
		return ""
	}
	rewritten := strings.NewReplacer(line(blockBegin), "", line(blockEnd), "").Replace(block)
	for name, c := range map[string]struct{ text, want string }{
		"no begin":           {head + strings.Replace(block, line(blockBegin), "", 1), head},
		"no end":             {head + strings.Replace(block, line(blockEnd), "", 1), head},
		"no end, more":       {head + strings.Replace(block, line(blockEnd), "", 1) + "\n# theirs\n[tui]\nx = 1\n", head + "\n# theirs\n[tui]\nx = 1\n"},
		"no marks":           {head + rewritten, head},
		"marks alone":        {head + line(blockBegin) + line(blockEnd), head},
		"one mark alone":     {head + line(blockEnd), head},
		"twice":              {head + block + "\n" + block, head + "\n"},
		"nested":             {head + line(blockBegin) + block + line(blockEnd), head},
		"moved to the front": {block + head[strings.Index(head, "[[hooks]]"):], head[strings.Index(head, "[[hooks]]"):]},
		"in the middle":      {head + block + "\n[tui]\nx = 1\n", head + "\n[tui]\nx = 1\n"},
		"their hook in it":   {"a = 1\n" + strings.Replace(block, line(blockEnd), theirHook+line(blockEnd), 1), "a = 1\n" + theirHook},
		"their table in it":  {head + strings.Replace(block, line(blockEnd), "[tui]\nx = 1\n"+line(blockEnd), 1), head + "[tui]\nx = 1\n"},
		"their comment":      {head + strings.Replace(block, "[[hooks]]\n", "# keep me\n[[hooks]]\n", 1), head + "# keep me\n"},
		"another timeout":    {head + strings.ReplaceAll(block, "timeout = 5", "timeout = 60"), head},
		"a comment in ours":  {head + strings.Replace(block, "timeout = 5", "# slow machine\ntimeout = 60", 1), head},
		"one hook left":      {head + block[:strings.Index(block, "\n\n")+1], head},
		"one hook away":      {head + strings.Replace(block, block[strings.Index(block, "\n\n")+1:strings.LastIndex(block, "\n\n")+1], "", 1), head},
		"commented out":      {head + "# [[hooks]]\n# event = 'Stop'\n# command = \"~/bin/reme-hook kimi stop\"\n", head + "# [[hooks]]\n# event = 'Stop'\n# command = \"~/bin/reme-hook kimi stop\"\n"},
		"by hand":            {head + "\n[[hooks]]\nevent = \"Stop\"\ncommand = \"reme-hook kimi stop\"\n", head},
		"crlf":               {strings.ReplaceAll(head+block, "\n", "\r\n"), strings.ReplaceAll(head, "\n", "\r\n")},
		"re-indented":        {head + "  " + strings.TrimSuffix(strings.ReplaceAll(block, "\n", "\n  "), "  "), head + "  "},
		"as Kimi writes it":  {"a = 1\n\n" + strings.ReplaceAll(theirHook, " # mine", "") + "\n" + rewritten, "a = 1\n\n" + strings.ReplaceAll(theirHook, " # mine", "")},
		"inline": {"hooks = [ {event = \"Stop\", command = \"reme-hook kimi stop\"}, {event = \"Stop\", command = \"x\"}, {event = \"Stop\", command = \"reme-hook kimi stop\"} ]\n",
			"hooks = [  {event = \"Stop\", command = \"x\"}  ]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := remove([]byte(c.text), nil, false)
			if err != nil || string(got) != c.want {
				t.Errorf("uninstalled: %v\n%s\nwant\n%s", err, got, c.want)
			}
			again, err := upsert([]byte(c.text), wanted)
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := parse(again)
			if err != nil || !slices.Equal(parsed.ours, wanted) {
				t.Errorf("installed again: %v\n%s", err, again)
			}
			if twice, err := upsert(again, wanted); err != nil || !bytes.Equal(twice, again) {
				t.Errorf("and again: %v\n%s\nafter\n%s", err, twice, again)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no TOML":         "a = \n",
		"a duplicate":     "a = 1\na = 2\n",
		"hooks as words":  "hooks = \"x\"\n",
		"hooks as table":  "[hooks]\nx = 1\n",
		"hooks of words":  "hooks = [\"x\"]\n",
		"not UTF-8":       "a = \"\xff\"\n",
		"an open comment": "hooks = [ # ]",
	} {
		env := testEnv(t)
		write(t, configFile(env), text)
		if _, err := install.Install(t.Context(), Target{}, env, install.Options{}); err == nil || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("%s: %v", name, err)
		}
		if get(t, configFile(env)) != text {
			t.Errorf("%s: changed", name)
		}
		if r := (Target{}).Check(env, install.Options{}); len(r.Problems) == 0 || !r.Problems[0].Off {
			t.Errorf("%s: %+v", name, r.Problems)
		}
	}
	if _, err := (Target{}).Files(testEnv(t), install.Options{Scope: install.ProjectScope}); err == nil {
		t.Error("a project's hooks, which Kimi does not read")
	}
	if _, err := entriesFor("/home/\xff/reme-hook"); err == nil {
		t.Error("a path that TOML cannot hold")
	}
}

// TestVersionsOfKimi: one event that a release does not know switches all hooks
// off.
func TestVersionsOfKimi(t *testing.T) {
	t.Parallel()
	for version, interrupt := range map[string]bool{"0.9.2": false, "0.13.10": false, "0.14.0": true, "0.32.1": true, "2.1.0": true, "10.0.0-rc.1": true, "what": false, "": false} {
		env := testEnv(t)
		fakeKimi(t, &env, version, "true")
		if _, err := install.Install(t.Context(), Target{}, env, install.Options{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(get(t, configFile(env)), "Interrupt"); got != interrupt {
			t.Errorf("%q: Interrupt configured: %v", version, got)
		}
		if r := (Target{}).Check(env, install.Options{}); len(r.Missing)+len(r.Problems) > 0 {
			t.Errorf("%q: %+v", version, r)
		}
	}
}

// TestKimiDoctor: what Kimi does not accept is taken back.
func TestKimiDoctor(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"", theirHook} {
		env := testEnv(t)
		if before != "" {
			write(t, configFile(env), before)
		}
		fakeKimi(t, &env, "2.1.0", `grep -q reme-hook "$3" && { echo 'hooks[1].event: Invalid'; exit 1; }`)
		changes, err := install.Install(t.Context(), Target{}, env, install.Options{})
		if err == nil || !strings.Contains(err.Error(), "hooks[1].event: Invalid") || len(changes) > 0 {
			t.Errorf("%d changes, %v", len(changes), err)
		}
		if before != "" && get(t, configFile(env)) != before {
			t.Errorf("left\n%s", get(t, configFile(env)))
		}
		if _, err := os.Stat(kimiHome(env)); before == "" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Kimi's folder: %v", err)
		}
		if files, err := filepath.Glob(filepath.Join(env.IntegrationsDir, "install", "*.json")); err != nil || len(files) > 0 {
			t.Errorf("receipts: %v, %v", files, err)
		}
		// One that cannot be asked has no say.
		fakeKimi(t, &env, "2.1.0", "kill -9 $$")
		write(t, configFile(env), before)
		if _, err := install.Install(t.Context(), Target{}, env, install.Options{}); err != nil {
			t.Error(err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	if r := (Target{}).Check(env, install.Options{}); len(r.Hooks)+len(r.Missing)+len(r.Problems) > 0 {
		t.Errorf("nothing there: %+v", r)
	}
	manifest := get(t, filepath.Join("..", "..", "plugins", "kimi", "kimi.plugin.json"))
	root := filepath.Join(kimiHome(env), "plugins", "managed", "reme")
	write(t, filepath.Join(root, "kimi.plugin.json"), manifest)
	enable := func(enabled string) {
		write(t, filepath.Join(kimiHome(env), "plugins", "installed.json"), `{"version":1,"plugins":[{"id":"other","root":"/x"},{"id":"reme","root":"`+root+`","enabled":`+enabled+`}]}`)
	}
	enable("true")
	r := Target{}.Check(env, install.Options{})
	if len(r.Hooks) != len(configured) || len(r.Missing)+len(r.Problems) > 0 {
		t.Errorf("the plugin alone: %+v", r)
	}
	if _, err := install.Install(t.Context(), Target{}, env, install.Options{}); err != nil {
		t.Fatal(err)
	}
	if r := (Target{}).Check(env, install.Options{}); len(r.Problems) != 1 || !strings.Contains(r.Problems[0].What, "twice") {
		t.Errorf("both: %+v", r.Problems)
	}
	enable("false")
	if r := (Target{}).Check(env, install.Options{}); len(r.Problems) != 0 || len(r.Hooks) != len(configured)-1 {
		t.Errorf("switched off: %+v", r)
	}

	installed := get(t, configFile(env))
	for add, what := range map[string]string{
		"\n[[hooks]]\nevent = \"Stop\"\ncommand = \"x\"\nasync = true\n":        "async",
		"\n[[hooks]]\nevent = \"Stop\"\ncommand = \"x\"\ntimeout = 601\n":       "601",
		"\n[[hooks]]\nevent = \"Stop\"\n":                                       "no command",
		"\n[[hooks]]\nevent = \"Stop\"\ncommand = \"/x/reme-hook kimi stop\"\n": "2 times",
	} {
		write(t, configFile(env), installed+add)
		if r := (Target{}).Check(env, install.Options{}); len(r.Problems) != 1 || !strings.Contains(r.Problems[0].What, what) {
			t.Errorf("%s: %+v", what, r.Problems)
		}
	}
	write(t, configFile(env), "\ufeff"+installed)
	if r := (Target{}).Check(env, install.Options{}); len(r.Problems) != 1 || !r.Problems[0].Off {
		t.Errorf("byte order mark: %+v", r.Problems)
	}
	half := installed[:strings.Index(installed, "\n\n")+1]
	write(t, configFile(env), half)
	if r := (Target{}).Check(env, install.Options{}); !slices.Equal(r.Missing, []string{"user-prompt-submit", "stop", "stop-failure", "pre-compact", "session-end", "pre-tool-use"}) {
		t.Errorf("missing: %q", r.Missing)
	}
}

// TestManifest: the plugin has the same hooks, in a form that does not depend on
// a machine.
func TestManifest(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "root", "kimi.plugin.json"), get(t, filepath.Join("..", "..", "plugins", "kimi", "kimi.plugin.json")))
	write(t, filepath.Join(root, "plugins", "installed.json"), `{"plugins":[{"id":"reme","root":"`+filepath.Join(root, "root")+`"}]}`)
	var entries []entry
	for _, manifest := range manifests(root) {
		entries = append(entries, pluginEntries(manifest)...)
	}
	if want, err := entriesFor(install.OnPath); err != nil || !slices.Equal(entries, want) {
		t.Fatalf("%+v, want %+v, %v", entries, want, err)
	}
	for _, e := range entries {
		// It runs, and is silent, without the program.
		cmd := exec.Command("/bin/sh", "-c", e.Command)
		cmd.Env = []string{"PATH=" + root}
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v, %q", e.Command, err, out)
		}
	}
	write(t, filepath.Join(root, "bin", "reme-hook"), "#!/bin/sh\necho $1 $2; exit 2\n")
	cmd := exec.Command("/bin/sh", "-c", entries[2].Command)
	cmd.Env = []string{"PATH=" + filepath.Join(root, "bin")}
	if out, err := cmd.Output(); err != nil || string(out) != "kimi stop\n" {
		t.Errorf("%v, %q", err, out)
	}
}

func FuzzEdit(f *testing.F) {
	for _, text := range nasty {
		f.Add([]byte(text))
	}
	entries, err := entriesFor("/home/it's/reme-hook")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.Contains(text, []byte("reme-hook")) {
			t.Skip() // what is ours goes, of course
		}
		installed, err := upsert(text, entries)
		if err != nil {
			return
		}
		again, err := upsert(installed, entries)
		if err != nil || !bytes.Equal(again, installed) {
			t.Fatalf("%q: a second install: %v\n%s", text, err, again)
		}
		if back, err := remove(installed, nil, false); err != nil || !bytes.Equal(back, text) {
			t.Fatalf("%q: %v, left %q of\n%s", text, err, back, installed)
		}
	})
}

func TestServer(t *testing.T) {
	t.Parallel()
	env := testEnv(t)
	const config, theirs = "# mine\n", "{\r\n\t\"mcpServers\": {\r\n\t\t\"git\": {\"command\": \"uvx\"} // theirs\r\n\t}\r\n}"
	path := serversFile(env)
	write(t, configFile(env), config)
	write(t, path, theirs)
	do := func(o install.Options, changes int) {
		t.Helper()
		c, err := install.Install(t.Context(), Target{}, env, o)
		if err != nil || len(c) != changes {
			t.Errorf("%d changes, %v", len(c), err)
		}
	}
	server := func(current bool) {
		t.Helper()
		if r := (Target{}).Check(env, install.Options{}); len(r.Problems) > 0 || len(r.Servers) != 1 || r.Servers[0].Current != current || r.Servers[0].File != path {
			t.Errorf("%+v", r)
		}
	}
	do(install.Options{Part: install.HooksPart}, 1)
	if got := get(t, path); got != theirs {
		t.Errorf("registered without being asked: %s", got)
	}
	do(install.Options{Command: "/old/reme-hook"}, 2)
	server(false)
	do(install.Options{}, 2)
	do(install.Options{}, 0)
	do(install.Options{Part: install.HooksPart}, 0)
	server(true)
	if _, err := install.Uninstall(t.Context(), Target{}, env, install.Options{}); err != nil || get(t, path) != theirs || get(t, configFile(env)) != config {
		t.Errorf("%v, left\n%s\n%s", err, get(t, path), get(t, configFile(env)))
	}

	// A broken list of servers stops an install of ours, and no uninstall of hooks.
	write(t, path, "{")
	if _, err := install.Install(t.Context(), Target{}, env, install.Options{}); err == nil || get(t, configFile(env)) != config {
		t.Errorf("%v, left\n%s", err, get(t, configFile(env)))
	}
	do(install.Options{Part: install.HooksPart}, 1)
	if _, err := install.Uninstall(t.Context(), Target{}, env, install.Options{}); err != nil || get(t, configFile(env)) != config {
		t.Errorf("%v, left\n%s", err, get(t, configFile(env)))
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	// Alone, it asks Kimi for nothing, and there need not be a config.toml.
	if err := os.Remove(configFile(env)); err != nil {
		t.Fatal(err)
	}
	fakeKimi(t, &env, "2.1.0", "exit 1")
	do(install.Options{Part: install.ServerPart}, 1)
	if _, err := install.Uninstall(t.Context(), Target{}, env, install.Options{}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Errorf("left %s", get(t, path))
	}

	// Another's server of our name stays, and keeps nobody from the hooks.
	const foreign = `{"mcpServers": {"reme": {"url": "http://127.0.0.1:2333/mcp"}}}`
	write(t, path, foreign)
	if _, err := install.Install(t.Context(), Target{}, env, install.Options{Part: install.ServerPart}); !errors.Is(err, install.ErrForeignServer) {
		t.Errorf("%v", err)
	}
	env.LookPath = func(string) (string, error) { return "", os.ErrNotExist }
	do(install.Options{}, 1)
	if r := (Target{}).Check(env, install.Options{}); r.Foreign() != path || r.HasServer() || len(r.Hooks) == 0 {
		t.Errorf("%+v", r)
	}
	if _, err := install.Uninstall(t.Context(), Target{}, env, install.Options{}); err != nil || get(t, path) != foreign {
		t.Errorf("%v, left %s", err, get(t, path))
	}
}
