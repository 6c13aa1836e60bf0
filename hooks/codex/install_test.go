package codex

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
	"github.com/agentscope-ai/reme-hook/install"
	"github.com/pelletier/go-toml/v2"
)

var (
	testEnv = hosttest.Env
	write   = hosttest.Write
	get     = hosttest.Get
)

func TestEventsMatchTheAdapter(t *testing.T) {
	events := Adapter().Events
	for _, h := range configured.Hooks {
		if _, ok := events[h.Event]; !ok {
			t.Errorf("%s is installed but not understood", h.Event)
		}
		if strings.ReplaceAll(snake(h.HostEvent), "_", "-") != h.Event {
			t.Errorf("%s is not %s", h.Event, h.HostEvent)
		}
	}
	if len(events) != len(configured.Hooks) {
		t.Errorf("%d events are understood, %d are installed", len(events), len(configured.Hooks))
	}
}

// TestHooksFile checks what Codex demands of the file: its top-level keys, whole
// seconds within its limits, and our groups behind those of others.
func TestHooksFile(t *testing.T) {
	env := testEnv(t)
	path := filepath.Join(env.Home, ".codex", "hooks.json")
	const theirs = `{"description": "mine", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}`
	write(t, path, theirs)
	if _, err := install.Install(t.Context(), Target{}, env, install.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := acceptable([]byte(get(t, path))); err != nil {
		t.Error(err)
	}
	placed, err := configured.Placed(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range placed {
		limit := 5
		if p.Event == "SessionEnd" || p.Event == "Interrupt" {
			limit = 3
		}
		if p.Handler.Timeout != limit || p.Handler.CommandWindows == "" || p.Handler.Type != "command" {
			t.Errorf("%+v", p)
		}
		if p.Event == "Stop" && p.GroupIndex != 1 {
			t.Error("ours is not behind theirs")
		}
	}
	if _, err := install.Uninstall(t.Context(), Target{}, env, install.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := get(t, path); got != theirs {
		t.Errorf("got %s", got)
	}
}

func TestFilesThatCodexIgnores(t *testing.T) {
	for name, text := range map[string]string{
		"comment":          "{ // x\n}",
		"trailing comma":   `{"hooks": {},}`,
		"byte order mark":  "\ufeff{}",
		"foreign key":      `{"$schema": "x", "hooks": {}}`,
		"list":             `[]`,
		"description":      `{"description": 1}`,
		"hooks null":       `{"hooks": null}`,
		"hooks list":       `{"hooks": []}`,
		"event":            `{"hooks": {"Stop": {}}}`,
		"event null":       `{"hooks": {"Stop": null}}`,
		"flat handler":     `{"hooks": {"Stop": [{"type": "command", "command": "x"}, 1]}}`,
		"handler":          `{"hooks": {"Stop": [{"hooks": [1]}]}}`,
		"no type":          `{"hooks": {"Stop": [{"hooks": [{"command": "x"}]}]}}`,
		"no command":       `{"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}}`,
		"half seconds":     `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": 2.5}]}]}}`,
		"matcher a number": `{"hooks": {"PreToolUse": [{"matcher": 1, "hooks": []}]}}`,
	} {
		env := testEnv(t)
		path := filepath.Join(env.Home, ".codex", "hooks.json")
		write(t, path, text)
		_, err := install.Install(t.Context(), Target{}, env, install.Options{})
		if err == nil || !strings.Contains(err.Error(), path) || get(t, path) != text {
			t.Errorf("%s: %v", name, err)
		}
		if r := (Target{}).Check(env, install.Options{}); len(r.Problems) != 1 || !r.Problems[0].Off {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for name, text := range map[string]string{
		"unknown event":  `{"hooks": {"Later": [1]}}`,
		"unknown fields": `{"hooks": {"Stop": [{"owner": 1, "hooks": [{"type": "prompt", "x": 1}]}]}}`,
		"empty":          "", "null": "null",
	} {
		env := testEnv(t)
		write(t, filepath.Join(env.Home, ".codex", "hooks.json"), text)
		if _, err := install.Install(t.Context(), Target{}, env, install.Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckConfig(t *testing.T) {
	for text, want := range map[string]struct {
		problems int
		off      bool
	}{
		"":                            {0, false},
		"[features]\nhooks = true\n":  {0, false},
		"[features]\nhooks = false\n": {1, true},
		"features.hooks = false":      {1, true},
		"[hooks.state.\"a:stop:0:0\"]\ntrusted_hash = \"x\"\n":                        {0, false},
		"[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"command\"\ncommand = \"x\"\n": {1, false},
		"x = ": {1, true},
	} {
		env := testEnv(t)
		write(t, configFile(env), text)
		r := Target{}.Check(env, install.Options{ProjectDir: env.Home})
		if len(r.Problems) != want.problems || want.problems > 0 && r.Problems[0].Off != want.off {
			t.Errorf("%q: %+v", text, r.Problems)
		}
	}
}

// TestHash has hashes that Codex 0.171.0 computed.
func TestHash(t *testing.T) {
	for want, g := range map[string]install.Group{
		"sha256:2ba34c7a02841fada06b868a093d041fd3d9de81883c789a321916b0aa118851": {Event: "Stop", Handler: install.Handler{Type: "command", Command: "true", Timeout: 600}},
		"sha256:e92a916c4da1133d472931315d14162c801cd6d6036ef273e7e4c5e47d092245": {Event: "Stop", Handler: install.Handler{Type: "command", Command: `/bin/sh -c 'echo "$0" && é <>'`, CommandWindows: "if exist x", Timeout: 5}},
	} {
		if got := hash(g); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// approve writes what Codex writes when the user approves hooks.
func approve(file string, placed []install.Placed, change func(*install.Placed)) string {
	var b strings.Builder
	b.WriteString("[hooks.state]\n")
	for _, p := range placed {
		at := place(p.Event, p.GroupIndex, p.HandlerIndex)
		if change != nil {
			change(&p)
		}
		b.WriteString("\n[hooks.state.\"" + file + at + "\"]\ntrusted_hash = \"" + hash(p.Group) + "\"\n")
	}
	return b.String()
}

func TestTrustedFromConfig(t *testing.T) {
	env := testEnv(t)
	path := filepath.Join(env.Home, ".codex", "hooks.json")
	if _, err := install.Install(t.Context(), Target{}, env, install.Options{}); err != nil {
		t.Fatal(err)
	}
	placed, err := configured.Placed(path)
	if err != nil {
		t.Fatal(err)
	}
	good := approve(path, placed, nil)
	for name, tc := range map[string]struct {
		config string
		want   install.Trust
	}{
		"none":     {"", install.TrustNo},
		"trusted":  {good, install.TrustYes},
		"disabled": {strings.ReplaceAll(good, "trusted_hash", "enabled = false\ntrusted_hash"), install.TrustDisabled},
		"stale":    {approve(path, placed, func(p *install.Placed) { p.Handler.Timeout++ }), install.TrustModified},
		"others'":  {strings.ReplaceAll(good, path, "/elsewhere/hooks.json"), install.TrustNo},
	} {
		write(t, configFile(env), tc.config)
		state, err := Target{}.Trusted(t.Context(), env, install.Options{})
		if err != nil || len(state.Hooks) != len(placed) || !state.Needed {
			t.Fatalf("%s: %+v, %v", name, state, err)
		}
		for _, h := range state.Hooks {
			if h.State != tc.want {
				t.Errorf("%s: %s is %s", name, h.Event, h.State)
			}
		}
		if state.OK() != (tc.want == install.TrustYes) {
			t.Errorf("%s: OK is %v", name, state.OK())
		}
	}
}

// TestForget: uninstall takes our approvals out of a config.toml that changed
// since, and keeps everybody else's, also where their hooks move up.
func TestForget(t *testing.T) {
	env := testEnv(t)
	path := filepath.Join(env.Home, ".codex", "hooks.json")
	if _, err := install.Install(t.Context(), Target{}, env, install.Options{}); err != nil {
		t.Fatal(err)
	}
	text := get(t, path)
	i := strings.Index(text, `"Stop": [`) + len(`"Stop": [`)
	end := i + strings.Index(text[i:], "\n    ]")
	write(t, path, text[:end]+`, {"hooks": [{"type": "command", "command": "theirs"}]}`+text[end:])
	placed, err := configured.Placed(path)
	if err != nil || len(placed) != len(configured.Hooks) {
		t.Fatal(placed, err)
	}
	const before = "# mine\nmodel = \"x\" # [hooks.state.\"no\"]\ntext = '''\n[hooks.state.\"no\"]\n'''\n\n"
	const theirs = "\n[hooks.state.\"PATH:stop:1:0\"]\ntrusted_hash = \"sha256:theirs\" # ok\n"
	const plugin = "\n[hooks.state.\"p@m:hooks/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:p\"\n\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n"
	config := before + approve(path, placed, nil) + strings.ReplaceAll(theirs, "PATH", path) + plugin
	want := before + "[hooks.state]\n" + strings.ReplaceAll(strings.ReplaceAll(theirs, "PATH", path), "stop:1:0", "stop:0:0") + plugin
	if got := string(forget([]byte(config), nil, path, nil)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	groups, err := configured.Groups(env.BinaryPath())
	if err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(env.Home, "gone.json")
	stale := strings.ReplaceAll(approve(path, placed, nil), path, gone)
	if got := string(forget([]byte(stale), nil, gone, groups)); got != "" {
		t.Errorf("approvals of hooks that were deleted by hand are left:\n%s", got)
	}

	alone := before + approve(path, placed, nil)
	if got := string(forget([]byte(alone), nil, path, nil)); got != strings.TrimSuffix(before, "\n") {
		t.Errorf("got\n%q", got)
	}
	broken := alone + "x = "
	if got := string(forget([]byte(broken), nil, path, nil)); got != broken {
		t.Error("a file that is no TOML was edited")
	}
	edited := strings.ReplaceAll(alone, "trusted_hash", "note = [\n1]\ntrusted_hash")
	if got := string(forget([]byte(edited), nil, path, nil)); got != edited {
		t.Errorf("tables that hold more than Codex writes were removed:\n%s", got)
	}
}

// FuzzForget checks that nothing but approvals of hooks in our file changes.
func FuzzForget(f *testing.F) {
	path := filepath.Join(f.TempDir(), "hooks.json")
	groups, err := configured.Groups("/x/reme-hook")
	if err != nil {
		f.Fatal(err)
	}
	text, err := install.UpsertHooks([]byte(`{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}`), groups, func(c string) bool { return install.Ours(c, Host) })
	if err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		f.Fatal(err)
	}
	const mark = "/H" // stands for the path, which differs from run to run
	f.Add("[hooks.state]\n\n[hooks.state.\"/H:stop:1:0\"]\ntrusted_hash = \"a\"\n\n[hooks.state.\"/H:stop:2:0\"]\ntrusted_hash = \"b\"\n")
	f.Add("a = 1\r\n[hooks.state.'/H:stop:1:0'] # x\r\nenabled = true\r\n# y\r\n[x]\r\nb = '''\r\n[hooks.state.\"/H:stop:1:0\"]'''")
	f.Add("hooks.state.\"/H:stop:1:0\".trusted_hash = \"a\"\n[[x]]\n[[x]]\n[hooks.state.\"/H:interrupt:0:0\".deeper]\na=1")
	f.Add("[ hooks . state . \"/H:stop:5:1\" ]\ntrusted_hash = \"a\"")
	f.Add("[hooks.state.\"/H:stop:1:0\"]\nmine=\"\"\n[hooks.state.\"/H:stop:2:0\"]") // moving the second up would double a table
	f.Add("[hooks.stAte.\"/H\"]\n[hooks.state.\"\"]")                                // a table with an empty name is not the one above all
	f.Fuzz(func(t *testing.T, config string) {
		src := []byte(strings.ReplaceAll(config, mark, path))
		var before, after map[string]any
		if toml.Unmarshal(src, &before) != nil {
			return
		}
		out := forget(src, nil, path, nil)
		if err := toml.Unmarshal(out, &after); err != nil {
			t.Fatalf("%v\n%s\nbecame\n%s", err, src, out)
		}
		for _, config := range []map[string]any{before, after} {
			hooks, _ := config["hooks"].(map[string]any)
			state, _ := hooks["state"].(map[string]any)
			for key := range state {
				if strings.HasPrefix(key, path) {
					delete(state, key)
				}
			}
			if len(state) == 0 {
				delete(hooks, "state")
			}
			if len(hooks) == 0 {
				delete(config, "hooks")
			}
		}
		if fmt.Sprint(before) != fmt.Sprint(after) {
			t.Fatalf("%s\nbecame\n%s", src, out)
		}
	})
}

func TestScopes(t *testing.T) {
	env := testEnv(t)
	if _, err := (Target{}).Files(env, install.Options{Scope: install.ProjectScope}); err == nil {
		t.Error("a project scope without a project passed")
	}
	if _, err := (Target{}).Files(env, install.Options{Scope: "galaxy"}); err == nil {
		t.Error("an unknown scope passed")
	}
	files, err := Target{}.Files(env, install.Options{Scope: install.ProjectScope, ProjectDir: "/p"})
	if err != nil || files[0].Path != filepath.FromSlash("/p/.codex/hooks.json") {
		t.Errorf("%v, %v", files, err)
	}
	env.Environ = []string{"CODEX_HOME=/elsewhere"}
	if files, err = (Target{}).Files(env, install.Options{}); err != nil || files[0].Path != filepath.FromSlash("/elsewhere/hooks.json") {
		t.Errorf("%v, %v", files, err)
	}
}

func TestTrustWithoutCodex(t *testing.T) {
	env := testEnv(t)
	changes, err := install.Install(t.Context(), Target{}, env, install.Options{Trust: true})
	if err == nil || !strings.Contains(err.Error(), "codex") || len(changes) != 2 {
		t.Errorf("%d changes, %v", len(changes), err)
	}
}

// fakeCodex is a Codex whose app server answers hooks/list with the given
// texts, one after the other, and notes what it is asked.
func fakeCodex(t *testing.T, env *install.Env, lists ...string) (asked string) {
	if runtime.GOOS == "windows" {
		t.Skip("a shell script")
	}
	dir := t.TempDir()
	for i, l := range lists {
		write(t, filepath.Join(dir, fmt.Sprintf("list-%d", i+1)), l)
	}
	program := filepath.Join(dir, "codex")
	write(t, program, `#!/bin/sh
cd '`+dir+`'
id=0 lists=0
while IFS= read -r line; do
	printf '%s\n' "$line" >>asked
	case $line in
	*'"id"'*) id=$((id + 1)) ;;
	*) continue ;;
	esac
	echo '{"method":"note","params":{}}'
	case $line in
	*'"hooks/list"'*) lists=$((lists + 1)); printf '{"id":%d,"result":{"data":[%s]}}\n' $id "$(cat list-$lists)" ;;
	*) printf '{"id":%d,"result":{}}\n' $id ;;
	esac
done
`)
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	env.LookPath = func(string) (string, error) { return program, nil }
	return filepath.Join(dir, "asked")
}

// listed is what Codex lists for the hooks in a file, and for one of somebody
// else.
func listed(t *testing.T, path, status string) string {
	t.Helper()
	placed, err := configured.Placed(path)
	if err != nil {
		t.Fatal(err)
	}
	hooks := []any{map[string]any{"key": "theirs", "command": "x", "sourcePath": path, "enabled": true, "currentHash": "sha256:x", "trustStatus": "untrusted"}}
	for _, p := range placed {
		hooks = append(hooks, map[string]any{
			"key": path + place(p.Event, p.GroupIndex, p.HandlerIndex), "command": p.Handler.Command, "sourcePath": path,
			"enabled": true, "currentHash": hash(p.Group), "trustStatus": status,
		})
	}
	b, err := json.Marshal(map[string]any{"hooks": hooks, "warnings": []string{"careful"}})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTrustAsksForOursOnly(t *testing.T) {
	env := testEnv(t)
	path := filepath.Join(env.Home, ".codex", "hooks.json")
	if _, err := install.Install(t.Context(), Target{}, env, install.Options{}); err != nil {
		t.Fatal(err)
	}
	untrusted, trusted := listed(t, path, "untrusted"), listed(t, path, "trusted")

	asked := fakeCodex(t, &env, untrusted, trusted)
	if err := (Target{}).Trust(t.Context(), env, install.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := get(t, asked); strings.Count(got, "trusted_hash") != len(configured.Hooks) || strings.Contains(got, "theirs") {
		t.Errorf("asked\n%s", got)
	}

	fakeCodex(t, &env, untrusted, untrusted)
	if err := (Target{}).Trust(t.Context(), env, install.Options{}); err == nil || !strings.Contains(err.Error(), "untrusted") {
		t.Errorf("an approval without effect: %v", err)
	}
	fakeCodex(t, &env, `{"hooks": [], "warnings": ["failed to parse"]}`)
	if err := (Target{}).Trust(t.Context(), env, install.Options{}); err == nil || !strings.Contains(err.Error(), "failed to parse") {
		t.Errorf("hooks that are not loaded: %v", err)
	}

	fakeCodex(t, &env, strings.ReplaceAll(trusted, `"enabled":true`, `"enabled":false`))
	s, err := Target{}.Trusted(t.Context(), env, install.Options{})
	if err != nil || s.OK() || s.Hooks[0].State != install.TrustDisabled || len(s.Problems) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	fakeCodex(t, &env, `{"hooks": []}`)
	s, err = Target{}.Trusted(t.Context(), env, install.Options{})
	if err != nil || s.OK() || len(s.Problems) != 1 || !s.Problems[0].Off {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestHangingCodex: a Codex that says nothing, and whose child holds the pipe.
func TestHangingCodex(t *testing.T) {
	env := testEnv(t)
	if _, err := install.Install(t.Context(), Target{}, env, install.Options{}); err != nil {
		t.Fatal(err)
	}
	fakeCodex(t, &env)
	program, err := env.LookPath("")
	if err != nil {
		t.Fatal(err)
	}
	write(t, program, "#!/bin/sh\ntail -f /dev/null &\necho $! >\"$0.pid\"\nwait\n")
	t.Cleanup(func() {
		var pid int
		b, _ := os.ReadFile(program + ".pid")
		if _, err := fmt.Sscan(string(b), &pid); err == nil {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	s, err := Target{}.Trusted(ctx, env, install.Options{})
	if err != nil || s.OK() || s.Source != configFile(env) {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestRealCodex runs only where REME_CONTRACT_CODEX names the program of a real
// Codex. It needs no network and no account.
func TestRealCodex(t *testing.T) {
	program := os.Getenv("REME_CONTRACT_CODEX")
	if program == "" {
		t.Skip("REME_CONTRACT_CODEX does not name a codex")
	}
	for name, config := range map[string]string{"no config": "", "config": "# mine\r\nmodel = \"x\" # y", "trusting": "[hooks.state]\n\n[hooks.state.\"a:stop:0:0\"]\ntrusted_hash = \"sha256:x\"\n"} {
		env := testEnv(t)
		env.Home = filepath.Join(env.Home, "it's a home é")
		env.IntegrationsDir = filepath.Join(env.Home, ".reme", "integrations")
		env.Environ = []string{"HOME=" + env.Home, "PATH=" + os.Getenv("PATH"), "HTTPS_PROXY=http://127.0.0.1:9"}
		env.LookPath = exec.LookPath
		o := install.Options{HostBinary: program}
		path := filepath.Join(env.Home, ".codex", "hooks.json")
		const theirs = `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}`
		write(t, path, theirs)
		if config != "" {
			write(t, configFile(env), config)
		}
		if found := (Target{}).Find(t.Context(), env, o); !found.Present || found.Version == "" {
			t.Errorf("%+v", found)
		}
		if _, err := install.Install(t.Context(), Target{}, env, o); err != nil {
			t.Fatal(err)
		}
		ask := func(source string, ctx context.Context, env install.Env) install.TrustState {
			t.Helper()
			s, err := Target{}.Trusted(ctx, env, o)
			if err != nil || len(s.Problems) > 0 || len(s.Hooks) != len(configured.Hooks) || !strings.Contains(s.Source, source) {
				t.Fatalf("%s: %+v, %v", name, s, err)
			}
			return s
		}
		if ask("app-server", t.Context(), env).OK() {
			t.Errorf("%s: trusted before anyone approved", name)
		}
		o.Trust = true
		changes, err := install.Install(t.Context(), Target{}, env, o)
		if err != nil || len(changes) != 1 {
			t.Fatalf("%s: %d changes, %v", name, len(changes), err)
		}
		without := env
		without.LookPath = func(string) (string, error) { return "", exec.ErrNotFound }
		if !ask("app-server", t.Context(), env).OK() || !ask("config.toml", t.Context(), without).OK() {
			t.Errorf("%s: not trusted", name)
		}
		if changes, err := install.Install(t.Context(), Target{}, env, o); err != nil || len(changes) != 0 {
			t.Errorf("%s: a second time: %d changes, %v", name, len(changes), err)
		}
		if _, err := install.Uninstall(t.Context(), Target{}, env, o); err != nil {
			t.Fatal(err)
		}
		after, _ := os.ReadFile(configFile(env))
		if get(t, path) != theirs || string(after) != config {
			t.Errorf("%s: left\n%s\n%s", name, get(t, path), after)
		}
	}
}
