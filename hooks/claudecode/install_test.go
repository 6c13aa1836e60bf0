package claudecode

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/install"
)

func testEnv(t *testing.T) install.Env {
	home := t.TempDir()
	return install.Env{
		Home: home, IntegrationsDir: filepath.Join(home, ".reme", "integrations"),
		LookPath: func(string) (string, error) { return "", exec.ErrNotFound },
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

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
