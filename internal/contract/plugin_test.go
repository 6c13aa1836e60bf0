//go:build unix

package contract

import (
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// checkout copies what hosts look at of the repository, and puts the program on the PATH.
func (w *world) checkout() string {
	w.Helper()
	dir := filepath.Join(w.home, "src", "reme-hook")
	for _, name := range []string{".agents", ".claude-plugin", "plugins"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join("../..", name))); err != nil {
			w.Fatal(err)
		}
	}
	if err := os.Symlink(binary, filepath.Join(w.home, "bin", "reme-hook")); err != nil {
		w.Fatal(err)
	}
	return dir
}

// bundled checks what a plugin of a marketplace does: hooks recall and capture, the model has the skill and calls the tools.
// Beside an install nothing is shown or kept twice, and doctor says which of them to take out. more are arguments of the host.
func (w *world) bundled(h Host, search string, more ...string) {
	w.Helper()
	name := h.Name()
	turn := func(prompt string, steps ...Step) Result {
		w.Helper()
		r := w.run(h, Turn{Prompt: prompt, Args: more}, steps...)
		w.well(h, r, steps[len(steps)-1].Text)
		return r
	}
	first := turn(billing, Step{Text: "Noted."}).Session
	w.dialog(h, first, "user: "+billing, "assistant: Noted.")
	r := turn(askBilling, Step{Tool: search, Args: map[string]any{"query": "billing"}}, Step{Text: "In spring."})
	w.dialog(h, r.Session, "user: "+askBilling, "assistant: In spring.")
	if frames := w.last(h, Main).Frames(); len(frames) != 1 || !strings.Contains(frames[0], billing) {
		w.Errorf("%s: frames %q", name, frames)
	}
	if got := w.results(h, 1); !strings.Contains(got[0], billing) {
		w.Errorf("%s: tool results %q", name, got)
	}
	if text := w.last(h, Main).Text(); !strings.Contains(text, "reme-memory") {
		w.Errorf("%s: the model has no skill", name)
	}

	w.must("install", name)
	r = turn(askBilling, Step{Text: "In spring, I said."})
	if runs := strings.Count(strings.Join(r.Hooks, " "), "UserPromptSubmit"); runs != 2 {
		w.Errorf("%s: the hook ran %d times, not twice", name, runs)
	}
	w.dialog(h, r.Session, "user: "+askBilling, "assistant: In spring, I said.")
	w.shown(w.last(h, Main), 1, billing)
	if d := w.hook("doctor", name); d.Code != 3 || !strings.Contains(d.Stdout, "each hook runs twice") || !strings.Contains(d.Stdout, "plugin") {
		w.Errorf("doctor of both: exit status %d\n%s%s", d.Code, d.Stdout, d.Stderr)
	}
	w.must("uninstall", name)
}

// Claude Code takes the checkout for a marketplace, and the plugin out of it for good.
func TestClaudeMarketplace(t *testing.T) {
	w := newWorld(t)
	dir := w.checkout()
	for _, target := range []string{dir, filepath.Join(dir, "plugins/claude-code")} {
		w.host(w.claude.Bin, "plugin", "validate", "--strict", target)
	}
	w.host(w.claude.Bin, "plugin", "marketplace", "add", dir)
	w.host(w.claude.Bin, "plugin", "install", "reme@reme-hook")
	if r := w.hook("doctor", "claude-code"); r.Code != 0 || !strings.Contains(r.Stdout, "connected") || !strings.Contains(r.Stdout, "the model has the tools") {
		t.Errorf("doctor: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	w.bundled(w.claude, "mcp__plugin_reme_reme__search", "--allowedTools", "mcp__plugin_reme_reme")
	if r := w.hook("doctor", "claude-code"); r.Code != 0 {
		t.Errorf("doctor: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	w.host(w.claude.Bin, "plugin", "uninstall", "reme@reme-hook")
	if r := w.hook("doctor", "claude-code"); r.Code != 0 || !strings.Contains(r.Stdout, "not connected") {
		t.Errorf("doctor: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// Codex takes the checkout for a marketplace. Its hooks are to be approved in Codex, which is done for one run here.
func TestCodexMarketplace(t *testing.T) {
	w := newWorld(t)
	w.host(w.codex.Bin, "plugin", "marketplace", "add", w.checkout())
	w.host(w.codex.Bin, "plugin", "add", "reme@reme-hook")
	if r := w.host(w.codex.Bin, "plugin", "list", "--json"); !strings.Contains(r.Stdout, `"enabled": true`) {
		t.Errorf("codex plugin list: %s", r.Stdout)
	}
	if r := w.hook("doctor", "codex"); r.Code != 3 || !strings.Contains(r.Stdout, "configured, not trusted") || !strings.Contains(r.Stdout, "→ approve them in Codex") {
		t.Errorf("doctor: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	w.bundled(w.codex, "search", "--dangerously-bypass-hook-trust")
	w.host(w.codex.Bin, "plugin", "remove", "reme@reme-hook")
	if r := w.hook("doctor", "codex"); r.Code != 0 || !strings.Contains(r.Stdout, "not connected") {
		t.Errorf("doctor: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// Both take the repository by its address too.
func TestMarketplaceFromGit(t *testing.T) {
	w := newWorld(t)
	dir := w.checkout()
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "-m", "x"}} {
		w.host(append([]string{"git", "-C", dir}, args...)...)
	}
	exec := strings.TrimSpace(w.host("git", "--exec-path").Stdout)
	server := httptest.NewServer(&cgi.Handler{
		Path: filepath.Join(exec, "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1"},
	})
	t.Cleanup(server.Close)
	address := server.URL + "/" + filepath.Base(dir) + "/.git"
	w.host(w.claude.Bin, "plugin", "marketplace", "add", address)
	w.host(w.claude.Bin, "plugin", "install", "reme@reme-hook")
	w.host(w.codex.Bin, "plugin", "marketplace", "add", address)
	w.host(w.codex.Bin, "plugin", "add", "reme@reme-hook")
	for _, name := range []string{"claude-code", "codex"} {
		if r := w.hook("doctor", name); !strings.Contains(r.Stdout, "connected") || !strings.Contains(r.Stdout, "the model has the tools") {
			t.Errorf("doctor %s: exit status %d\n%s%s", name, r.Code, r.Stdout, r.Stderr)
		}
	}
	w.say(w.claude, "", billing, Step{Text: "Noted."})
}

// Kimi Code's own server takes the plugin out of the checkout, and its answer names nothing that is wrong with it.
func TestKimiPlugin(t *testing.T) {
	w, k := newKimi(t)
	answer, err := k.Plugins(w.Context(), "", map[string]string{"source": filepath.Join(w.checkout(), "plugins/kimi")})
	if err != nil || strings.Contains(answer, `"severity"`) || !strings.Contains(answer, `"reme"`) {
		t.Fatalf("%v: %s", err, answer)
	}
	if r := w.hook("doctor", "kimi"); r.Code != 0 || !strings.Contains(r.Stdout, "the model has the tools") {
		t.Errorf("doctor: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	w.bundled(k, "mcp__plugin-reme_reme__search")
}
