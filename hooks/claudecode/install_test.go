package claudecode

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
	"github.com/agentscope-ai/reme-hook/install"
)

var (
	testEnv = hosttest.Env
	write   = hosttest.Write
)

func TestEventsMatchTheAdapter(t *testing.T) {
	events := Adapter().Events
	for _, h := range configured.Hooks {
		if _, ok := events[h.Event]; !ok {
			t.Errorf("%s is installed but not understood", h.Event)
		}
		kebab := strings.ToLower(regexp.MustCompile(`\B[A-Z]`).ReplaceAllString(h.HostEvent, "-$0"))
		if kebab != h.Event {
			t.Errorf("%s is not %s", h.Event, h.HostEvent)
		}
	}
	if len(events) != len(configured.Hooks) {
		t.Errorf("%d events are understood, %d are installed", len(events), len(configured.Hooks))
	}
}

func TestSettings(t *testing.T) {
	env := testEnv(t)
	path := filepath.Join(env.Home, ".claude", "settings.json")
	const theirs = "{\n  // mine\n  \"model\": \"opus\",\n}\n"
	write(t, path, theirs)
	if _, err := install.Install(t.Context(), Target{}, env, install.Options{}); err != nil {
		t.Fatal(err)
	}
	placed, err := configured.Placed(path)
	if err != nil || len(placed) != len(configured.Hooks) {
		t.Fatalf("%+v, %v", placed, err)
	}
	for _, p := range placed {
		want := 5
		if p.Event == "SessionEnd" {
			want = 3
		}
		if p.Handler.Timeout != want || (p.Matcher != "") != (p.Event == "PreToolUse") {
			t.Errorf("%+v", p)
		}
	}
	if r := (Target{}).Check(env, install.Options{}); len(r.Problems) != 1 || !r.Problems[0].Off || len(r.Hooks) != len(configured.Hooks) {
		t.Errorf("comments: %+v", r)
	}
	if _, err := install.Uninstall(t.Context(), Target{}, env, install.Options{}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != theirs {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestCheck(t *testing.T) {
	env := testEnv(t)
	project := filepath.Join(env.Home, "p")
	o := install.Options{ProjectDir: project}
	if r := (Target{}).Check(env, o); len(r.Missing) != len(configured.Hooks) || len(r.Problems) != 0 {
		t.Errorf("nothing installed: %+v", r)
	}
	for _, scope := range []install.Scope{install.UserScope, install.ProjectScope} {
		if _, err := install.Install(t.Context(), Target{}, env, install.Options{Scope: scope, ProjectDir: project}); err != nil {
			t.Fatal(err)
		}
	}
	// The same command in two files runs once.
	if r := (Target{}).Check(env, o); len(r.Hooks) != 2*len(configured.Hooks) || len(r.Missing)+len(r.Problems) != 0 {
		t.Errorf("both scopes: %+v", r)
	}
	// In the home folder, the project's settings are the user's.
	if r := (Target{}).Check(env, install.Options{ProjectDir: env.Home}); len(r.Hooks) != len(configured.Hooks) {
		t.Errorf("at home: %+v", r)
	}
	local := filepath.Join(project, ".claude", "settings.local.json")
	write(t, local, `{"disableAllHooks": true, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "reme-hook claude-code stop"}]}]}}`)
	r := Target{}.Check(env, o)
	if len(r.Problems) != 2 || !strings.Contains(r.Problems[0].What, "stop is configured 2 times") || !r.Problems[1].Off || !strings.Contains(r.Problems[1].What, local) {
		t.Errorf("%+v", r.Problems)
	}
	// Switched off or not, an install puts the hooks in place.
	write(t, filepath.Join(env.Home, ".claude", "settings.json"), `{"disableAllHooks": true}`)
	if c, err := install.Install(t.Context(), Target{}, env, install.Options{}); err != nil || len(c) != 1 {
		t.Errorf("%d changes, %v", len(c), err)
	}
}

func TestScopes(t *testing.T) {
	env := testEnv(t)
	for _, o := range []install.Options{{Scope: install.ProjectScope}, {Scope: "galaxy"}} {
		if _, err := (Target{}).Files(env, o); err == nil {
			t.Errorf("%+v passed", o)
		}
	}
	env.Environ = []string{"CLAUDE_CONFIG_DIR=/elsewhere"}
	if files, err := (Target{}).Files(env, install.Options{}); err != nil || files[0].Path != filepath.FromSlash("/elsewhere/settings.json") {
		t.Errorf("%v, %v", files, err)
	}
}

func TestNoApprovalNeeded(t *testing.T) {
	env := testEnv(t)
	if _, err := install.Install(t.Context(), Target{}, env, install.Options{Trust: true}); err != nil {
		t.Error(err)
	}
	if s, err := (Target{}).Trusted(t.Context(), env, install.Options{}); err != nil || s.Needed || !s.OK() {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestServer: Claude Code rewrites the file that lists the servers all the time.
func TestServer(t *testing.T) {
	const theirs = "{\n  \"numStartups\": 1,\n  \"projects\": {\n    \"/src\": {\n      \"mcpServers\": {}\n    }\n  }\n}"
	for name, place := range map[string]struct{ environ, file string }{
		"home":   {"", ".claude.json"},
		"folder": {"CLAUDE_CONFIG_DIR=", "else/where/.claude.json"},
	} {
		env := testEnv(t)
		path := filepath.Join(env.Home, place.file)
		if place.environ != "" {
			env.Environ = []string{place.environ + filepath.Dir(path)}
		}
		write(t, path, theirs)
		do := func(o install.Options, changes int) {
			t.Helper()
			c, err := install.Install(t.Context(), Target{}, env, o)
			if err != nil || len(c) != changes {
				t.Errorf("%s: %d changes, %v", name, len(c), err)
			}
		}
		left := func(want string) {
			t.Helper()
			if _, err := install.Uninstall(t.Context(), Target{}, env, install.Options{}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if b, err := os.ReadFile(path); string(b) != want {
				t.Errorf("%s: left %s, %v", name, b, err)
			}
		}
		do(install.Options{Part: install.HooksPart}, 1)
		if r := (Target{}).Check(env, install.Options{}); len(r.Servers) != 0 {
			t.Errorf("%s: %+v", name, r)
		}
		do(install.Options{}, 1)
		do(install.Options{Command: "/old/reme-hook"}, 2)
		if r := (Target{}).Check(env, install.Options{}); len(r.Servers) != 1 || r.Servers[0].Current || r.Servers[0].File != path {
			t.Errorf("%s: %+v", name, r)
		}
		left(theirs)

		do(install.Options{Part: install.ServerPart}, 1)
		if r := (Target{}).Check(env, install.Options{}); len(r.Hooks)+len(r.Problems) != 0 || !r.HasServer() || !r.Servers[0].Current {
			t.Errorf("%s: %+v", name, r)
		}
		left(theirs)

		do(install.Options{}, 2)
		installed, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, strings.Replace(string(installed), "Startups\": 1", "Startups\": 2", 1))
		left(strings.Replace(theirs, "Startups\": 1", "Startups\": 2", 1))

		// That of a project has no part in it.
		project := install.Options{Scope: install.ProjectScope, ProjectDir: t.TempDir()}
		do(project, 1)
		left(theirs[:len("{\n  \"numStartups\": ")] + "2" + theirs[len("{\n  \"numStartups\": 1"):])
	}
}
