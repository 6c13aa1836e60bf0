//go:build unix

package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// newHermes makes a machine that has Hermes too, where the product is not installed.
func newHermes(t *testing.T) (*world, *Hermes) {
	t.Helper()
	w := newWorld(t)
	return w, w.with("hermes").(*Hermes)
}

// newWiredHermes makes a machine with all three hosts wired; config is the user's of Hermes.
func newWiredHermes(t *testing.T, config string) (*world, *Hermes) {
	t.Helper()
	w, h := newHermes(t)
	w.put(hermesConfig, config, 0o600)
	w.must("install", "codex", "claude-code", "hermes", "--trust")
	return w, h
}

const hermesConfig = ".hermes/config.yaml"

// What is told to Hermes, Codex or Claude Code is known to the others, and afterwards nothing of the product is left.
func TestHermesLoop(t *testing.T) {
	w, h := newHermes(t)
	w.joins(h, hermesConfig, "# mine\r\ndisplay: {compact: true} # less\r\nmemory:\r\n  # two kinds\r\n  nudge_interval: 7")
	if _, err := os.Stat(filepath.Join(w.home, ".hermes/plugins/reme")); !os.IsNotExist(err) {
		w.Errorf("the provider's folder is still there: %v", err)
	}
	brought := w.watch(h)
	w.run(h, Turn{Prompt: askBilling})
	// Hermes may end a turn some time after it has begun.
	for n := 7; n < 8; n = len(w.rows(h)) {
		brought()
	}
}

// A memory is shown once in a session and stays, over a resume too. Tools find, read and write memories; what the host's
// own memory is told is a note, and no output of a tool is captured.
func TestHermesSession(t *testing.T) {
	w, h := newWiredHermes(t, "")
	w.say(w.codex, "", billing)
	w.say(w.codex, "", server)
	s := w.say(h, "", askBilling, Step{Shell: "echo tool''ran"}, Step{Text: "One."}).Session
	w.shown(w.last(h, Main), 1, billing)
	w.say(h, s, askBilling,
		Step{Tool: "reme_search", Args: map[string]any{"query": "staging database port"}},
		Step{Tool: "reme_remember", Args: map[string]any{"content": "Tulips go into the window box.", "title": "-Tulips"}},
		Step{Tool: "memory", Args: map[string]any{"action": "add", "target": "memory", "content": "The cellar door squeaks on Mondays."}},
		Step{Text: "Two."})
	got := w.last(h, Main).Role("tool")
	if len(got) != 4 || !strings.Contains(got[0], "toolran") || !strings.Contains(got[1], server) || !strings.Contains(got[2], "daily/") {
		w.Errorf("tool results %q", got)
	}
	if frames := w.last(h, Main).Frames(); len(frames) != 1 {
		w.Errorf("%d frames, want 1", len(frames))
	}
	w.dialog(h, s, "user: "+askBilling, "assistant: One.", "user: "+askBilling, "assistant: Two.")

	w.say(w.claude, "", "When does the cellar door squeak?")
	w.shown(w.last(w.claude, Main), 1, "squeaks on Mondays")
	frame := w.last(w.claude, Main).Frames()[0]
	_, path, _ := strings.Cut(frame, `path="`)
	path, _, _ = strings.Cut(path, `"`)
	w.say(h, "", "Open it.", Step{Tool: "reme_read", Args: map[string]any{"path": path}}, Step{Text: "Opened."})
	if got := w.last(h, Main).Role("tool"); len(got) != 1 || !strings.Contains(got[0], "squeaks on Mondays") {
		w.Errorf("tool results %q", got)
	}
}

// Turns that Hermes never syncs are known to other hosts all the same, and once.
func TestHermesUnfinished(t *testing.T) {
	ends := map[string]func(w *world, h *Hermes){
		"kill -9": func(w *world, h *Hermes) {
			ctx, kill := context.WithCancel(w.Context())
			go func() {
				<-h.Model.Hanging()
				kill()
			}()
			h.Model.Script(Step{Hang: true})
			_, _ = h.Run(ctx, Turn{Prompt: billing})
		},
		"interrupt": func(w *world, h *Hermes) {
			w.run(h, Turn{Prompt: billing, Interrupt: h.Model.Hanging()}, Step{Hang: true})
		},
		"error": func(w *world, h *Hermes) {
			w.run(h, Turn{Prompt: billing}, Step{Status: 400})
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			w, h := newWiredHermes(t, "")
			end(w, h)
			if name != "kill -9" { // of which the memory learns with the session's next event
				w.say(w.claude, "", askBilling)
				w.shown(w.last(w.claude, Main), 1, billing)
			}
			s := w.sessionOf(h)
			w.say(h, s, "Go on, please.", Step{Text: "Well."})
			w.dialog(h, s, "user: "+billing, "user: Go on, please.", "assistant: Well.")
			w.ingested(h, 2, named)
			w.say(w.codex, "", askBilling)
			w.shown(w.last(w.codex, Main), 1, billing)
		})
	}
}

// sessionOf is the one session of a host that the product has seen.
func (w *world) sessionOf(h Host) string {
	w.Helper()
	files, _ := filepath.Glob(filepath.Join(w.home, ".reme/integrations/state", h.Name(), "*.json"))
	if len(files) != 1 {
		w.Fatalf("sessions: %q", files)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		w.Fatal(err)
	}
	var state struct {
		ID string `json:"session_id"`
	}
	if err := json.Unmarshal(raw, &state); err != nil {
		w.Fatal(err)
	}
	return state.ID
}

// `hermes -z` ends without waiting for the memory. Nothing of the turn is lost.
func TestHermesOneShot(t *testing.T) {
	w, h := newWiredHermes(t, "")
	w.say(w.codex, "", billing)
	h.Model.Script(Step{Text: "In spring."})
	r, err := h.OneShot(w.Context(), Turn{Prompt: askBilling})
	if err != nil || r.Code != 0 || r.Reply != "In spring." {
		w.Fatalf("exit status %d, reply %q, %v\n%s", r.Code, r.Reply, err, r.Stderr)
	}
	w.shown(w.last(h, Main), 1, billing)
	rows := w.rows(h)
	if len(rows) != 2 || rows[0].Content[0].Text != askBilling || rows[1].Content[0].Text != "In spring." {
		w.Errorf("captured: %+v", rows)
	}
}

// A compaction, here in the middle of a turn, neither loses nor doubles a turn, and no word of ours is in what the
// summariser is asked but what was in the conversation. What was shown before is shown again.
func TestHermesCompaction(t *testing.T) {
	for name, config := range map[string]string{"in place": "", "rotating": "compression: {in_place: false}\n", "shell hooks": ""} {
		t.Run(name, func(t *testing.T) {
			w, h := newWiredHermes(t, config)
			if name == "shell hooks" {
				w.must("uninstall", "hermes")
				w.must("install", "hermes", "--shell-hooks", "--trust")
			}
			w.say(w.codex, "", billing)
			// The first messages are kept as they are.
			s := w.say(h, "", "Good morning, here we are.", Step{Text: "One."}).Session
			w.say(h, s, "Nice weather for a walk.", Step{Text: "Two."})
			w.say(h, s, askBilling, Step{Text: "Three."})
			w.shown(w.last(h, Main), 1, billing)
			steps := slices.Repeat([]Step{{Shell: "echo tool"}}, 30)
			steps[29].Tokens = tooMany
			r := w.say(h, s, "Run it often.", append(steps, Step{Text: "Done."})...)
			w.last(h, Compaction)
			if n := len(w.last(h, Main).Frames()); n != 0 {
				w.Errorf("%d frames after the compaction: this release keeps them", n)
			}
			if rotated := r.Session != s; rotated != (name == "rotating") {
				w.Errorf("the session is %s after the compaction, was %s", r.Session, s)
			}
			w.say(h, r.Session, askBilling, Step{Text: "Four."})
			w.shown(w.last(h, Main), 1, billing)
			before := []string{"user: Good morning, here we are.", "assistant: One.", "user: Nice weather for a walk.", "assistant: Two.",
				"user: " + askBilling, "assistant: Three.", "user: Run it often.", "assistant: Done."}
			after := []string{"user: " + askBilling, "assistant: Four."}
			if r.Session == s {
				w.dialog(h, s, append(before, after...)...)
			} else {
				w.dialog(h, s, before...)
				w.dialog(h, r.Session, after...)
			}
			w.ingested(h, 5, name != "shell hooks")
		})
	}
}

// In an interactive session, /new begins another one, and /undo takes back what was shown.
func TestHermesInteractive(t *testing.T) {
	w, h := newWiredHermes(t, "approvals: {destructive_slash_confirm: false}\n")
	w.say(w.codex, "", billing)
	h.Model.Script(Step{Text: "Reply-1"}, Step{Text: "Reply-2"}, Step{Text: "Reply-3"})
	r, err := h.Type(w.Context(), Turn{},
		[2]string{askBilling, "Reply-1"}, [2]string{"/undo", "remaining in history"},
		[2]string{"", "Reply-2"}, // what was undone is there to be sent again
		[2]string{"/new", "session started"}, [2]string{askBilling, "Reply-3"}, [2]string{"/exit", ""})
	if err != nil || r.Code != 0 {
		w.Fatalf("exit status %d, %v\n%s\n%s", r.Code, err, r.Stdout, r.Stderr)
	}
	requests := h.Model.Requests(Main)
	for _, request := range requests[:2] {
		w.shown(request, 1, billing)
	}
	// Hermes announces a new session on a thread of its own: a prompt typed at once may come before it, and counts as the
	// old session's, which has seen the memory.
	var texts, sessions []string
	for _, row := range w.rows(h) {
		texts = append(texts, row.Content[0].Text)
		sessions = append(sessions, row.Metadata.Session)
	}
	if !slices.Equal(texts, []string{askBilling, "Reply-1", askBilling, "Reply-2", askBilling, "Reply-3"}) {
		w.Errorf("captured: %q of %q", texts, sessions)
	}
	if sessions = slices.Compact(sessions); len(sessions) == 2 {
		w.shown(requests[2], 1, billing)
		// If the database was too busy to name it, it has a name of no other turn.
		w.ingested(h, 3, naming(strings.HasPrefix(w.rows(h)[4].ID, "after-")))
	}
}

// Subagents and the review of a session have no provider. Nothing of them is captured.
func TestHermesSubagent(t *testing.T) {
	w, h := newWiredHermes(t, "")
	w.say(w.codex, "", billing)
	r := w.run(h, Turn{Prompt: "Let somebody look into it."}, Step{Spawn: askBilling}, Step{Text: "They found out."})
	if r.Code != 0 || !strings.Contains(r.Stdout, "They found out.\n") {
		w.Fatalf("exit status %d\n%s\n%s", r.Code, r.Stdout, r.Stderr)
	}
	for _, request := range h.Model.Requests(Subagent) {
		if n := len(request.Frames()); n != 0 {
			w.Errorf("%d frames in the subagent's request", n)
		}
	}
	w.dialog(h, r.Session, "user: Let somebody look into it.", "assistant: They found out.")
	if rows := w.rows(h); len(rows) != 2 {
		w.Errorf("captured: %+v", rows)
	}
	w.ingested(h, 1, named)
}

// Hermes' own commands know the provider, and doctor finds what Hermes is silent about.
func TestHermesCommands(t *testing.T) {
	w, h := newWiredHermes(t, "display: {compact: true}\n")
	hermes := func(want string, args ...string) {
		w.Helper()
		r, err := h.Command(w.Context(), args...)
		if err != nil || r.Code != 0 || !strings.Contains(r.Stdout, want) {
			w.Errorf("hermes %s: exit status %d, %v, want %q\n%s%s", strings.Join(args, " "), r.Code, err, want, r.Stdout, r.Stderr)
		}
	}
	doctor := func(code int, want string) {
		w.Helper()
		if r := w.hook("doctor", "hermes"); r.Code != code || !strings.Contains(r.Stdout, want) {
			w.Errorf("doctor: exit status %d, want %d and %q\n%s%s", r.Code, code, want, r.Stdout, r.Stderr)
		}
	}
	hermes("available", "memory", "status")
	hermes("hermes       connected", "reme", "status")
	hermes("recall works", "reme", "doctor")
	hermes("nothing to change", "reme", "setup")
	hermes("", "memory", "off")
	doctor(3, "no memory provider is chosen")
	hermes("config.yaml", "memory", "setup", "reme")
	doctor(0, "recall works")
	hermes("", "config", "set", "memory.provider", "honcho")
	doctor(3, `another memory provider, "honcho"`)
	hermes("config.yaml", "memory", "setup", "reme")

	provider := ".hermes/plugins/reme/__init__.py"
	text, err := os.ReadFile(filepath.Join(w.home, provider))
	if err != nil {
		w.Fatal(err)
	}
	w.put(provider, string(text)+"\nimport no_such_module\n", 0o600)
	doctor(3, "Hermes cannot load the memory provider")
	w.must("install", "hermes")
	doctor(0, "recall works")

	w.must("uninstall", "hermes")
	raw, err := os.ReadFile(filepath.Join(w.home, hermesConfig))
	if err != nil || strings.Contains(string(raw), "reme") || !strings.Contains(string(raw), "compact") {
		w.Errorf("after uninstall %q, %v", raw, err)
	}
	hermes("built-in only", "memory", "status")
}

// Without the product, or with something else in its place, Hermes works as if it were not there.
func TestHermesUnharmed(t *testing.T) {
	const installed = ".reme/integrations/bin/reme-hook"
	for name, script := range map[string]string{
		"missing": "",
		"hangs":   "exec sleep 600",
		"garbage": "echo garbage; echo '{'; head -c 100000 /dev/zero | tr '\\0' '\\377'; echo garbage >&2",
		"exit-2":  "echo '{\"context\":\"fatal\"}'; exit 2",
		"crash":   "kill -SEGV $$",
	} {
		t.Run(name, func(t *testing.T) {
			w, h := newWiredHermes(t, "")
			if err := os.Remove(filepath.Join(w.home, installed)); err != nil {
				w.Fatal(err)
			}
			if script != "" {
				w.put(installed, "#!/bin/sh\n"+script+"\n", 0o755)
			}
			w.say(h, "", "Hello?", Step{Text: "Here I am."})
			rs := h.Model.Requests(Main)
			if len(rs) != 1 || rs[0].Last() != "Hello?" {
				w.Errorf("%d model requests, the last one ends with %q", len(rs), rs[len(rs)-1].Last())
			}
		})
	}
}

// While another memory provider is active, shell hooks do: once approved, what is told is known and kept, once, and
// Hermes' own review of the session is not.
func TestHermesShellHooks(t *testing.T) {
	const mine = "# mine\nmemory:\n  provider: holographic # theirs\n  nudge_interval: 1\n"
	w, h := newHermes(t)
	w.put(hermesConfig, mine, 0o600)
	w.must("install", "codex", "--trust")
	if r := w.hook("install", "hermes"); r.Code != 1 || !strings.Contains(r.Stderr, "reme-hook install hermes --shell-hooks") {
		w.Fatalf("exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	if r := w.must("install", "hermes", "--shell-hooks"); !strings.Contains(r.Stdout, "review of a session") {
		w.Errorf("nothing is said of what is not filtered:\n%s", r.Stdout)
	}
	w.say(w.codex, "", billing)
	w.say(h, "", askBilling, Step{Text: "Nobody told me."})
	if n := len(w.last(h, Main).Frames()); n != 0 || len(w.rows(h)) != 0 {
		w.Errorf("hooks ran that nobody approved: %d frames, %v", n, w.rows(h))
	}
	if r := w.hook("doctor", "hermes"); r.Code != 3 || !strings.Contains(r.Stdout, "reme-hook install hermes --trust") {
		w.Errorf("doctor: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	w.must("install", "hermes", "--trust")
	if r := w.hook("doctor", "hermes"); r.Code != 0 || !strings.Contains(r.Stdout, "recall works") {
		w.Errorf("doctor: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	noteBudgets(w)
	if r, err := h.Command(w.Context(), "hooks", "doctor"); err != nil || !strings.Contains(r.Stdout, "All shell hooks look healthy") {
		w.Errorf("hermes hooks doctor: %v\n%s%s", err, r.Stdout, r.Stderr)
	}
	if r, err := h.Command(w.Context(), "memory", "status"); err != nil || !strings.Contains(r.Stdout, "holographic") {
		w.Errorf("hermes memory status: %v\n%s", err, r.Stdout)
	}

	s := w.say(h, "", askBilling, Step{Text: "In spring."}).Session
	w.shown(w.last(h, Main), 1, billing)
	w.say(h, s, askBilling, Step{Tool: "read_file", Args: map[string]any{"path": "reme://daily/x.md"}}, Step{Text: "In spring, as I said."})
	if n := len(w.last(h, Main).Frames()); n != 1 {
		w.Errorf("%d frames, want 1", n)
	}
	if got := w.last(h, Main).Role("tool"); len(got) != 1 || !strings.Contains(got[0], "memories, not files") {
		w.Errorf("tool results %q", got)
	}
	w.dialog(h, s, "user: "+askBilling, "assistant: In spring.", "user: "+askBilling, "assistant: In spring, as I said.")
	w.say(h, "", server, Step{Text: "Understood."})
	w.say(w.codex, "", askServer)
	w.shown(w.last(w.codex, Main), 1, server)

	before := len(w.rows(h))
	const unkept = `"event":"post-llm-call".*"kept":0`
	log := filepath.Join(w.home, ".reme/integrations/log/hook.jsonl")
	text, err := os.ReadFile(log)
	if err != nil {
		w.Fatal(err)
	}
	tried := len(regexp.MustCompile(unkept).FindAll(text, -1)) // by `hermes hooks doctor`
	reviewed := fmt.Sprintf(`until [ $(grep -c '%s' %s) -gt %d ]; do sleep 0.1; done`, unkept, log, tried)
	h.Model.Script(Step{Text: "Reply-1"}, Step{Shell: reviewed}, Step{Text: "Reply-2"})
	if r, err := h.Type(w.Context(), Turn{}, [2]string{"The lamp is green.", "Reply-1"}, [2]string{"The mat is grey.", "Reply-2"}, [2]string{"/exit", ""}); err != nil || r.Code != 0 {
		w.Fatalf("exit status %d, %v\n%s\n%s", r.Code, err, r.Stdout, r.Stderr)
	}
	if n := len(h.Model.Requests(Review)); n == 0 {
		w.Error("Hermes reviewed nothing")
	}
	w.must("spool", "replay")
	var texts []string
	for _, row := range w.rows(h) {
		texts = append(texts, row.Content[0].Text)
	}
	for _, want := range []string{"The lamp is green.", "Reply-1", "The mat is grey.", "Reply-2"} {
		if !slices.Contains(texts, want) {
			w.Errorf("%q is not captured", want)
		}
	}
	if len(texts) != before+4 {
		w.Errorf("captured: %q", texts)
	}

	w.must("uninstall", "--all")
	if raw, err := os.ReadFile(filepath.Join(w.home, hermesConfig)); string(raw) != mine {
		w.Errorf("after uninstall %q, %v", raw, err)
	}
	if _, err := os.Stat(filepath.Join(w.home, ".hermes/shell-hooks-allowlist.json")); !os.IsNotExist(err) {
		w.Errorf("approvals are left: %v", err)
	}
	w.run(h, Turn{Prompt: askBilling})
	if n := len(w.last(h, Main).Frames()); n != 0 {
		w.Errorf("%d frames after uninstall", n)
	}
}

// The provider can come from a repository, as Hermes fetches plugins. It says what it lacks, and sets itself up.
func TestHermesPluginRepository(t *testing.T) {
	w, h := newHermes(t)
	const bundle = "plugins/hermes/reme"
	repo := filepath.Join(w.home, "src", "repository")
	if err := os.CopyFS(filepath.Join(repo, bundle), os.DirFS("../../"+bundle)); err != nil {
		w.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=x", "-c", "user.email=x@localhost", "commit", "-qm", "x"}} {
		git := exec.Command("git", args...)
		git.Dir, git.Env = repo, []string{"HOME=" + w.home, "PATH=" + w.path()}
		if out, err := git.CombinedOutput(); err != nil {
			w.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	hermes := func(want string, args ...string) {
		w.Helper()
		if r, err := h.Command(w.Context(), args...); err != nil || r.Code != 0 || !strings.Contains(r.Stdout, want) {
			w.Fatalf("hermes %s: exit status %d, %v, want %q\n%s%s", strings.Join(args, " "), r.Code, err, want, r.Stdout, r.Stderr)
		}
	}
	hermes("Plugin installed", "plugins", "install", "file://"+repo+"#"+bundle, "--no-enable")
	hermes("reme", "plugins", "list")
	hermes("reme-hook is not on this machine", "memory", "setup", "reme")

	w.must("install", "codex", "--trust")
	w.say(w.codex, "", billing)
	if r := w.hook("doctor", "hermes"); r.Code != 3 || !strings.Contains(r.Stdout, "no memory provider is chosen") {
		w.Errorf("doctor: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	hermes("config.yaml", "memory", "setup", "reme")
	hermes("available", "memory", "status")
	if r := w.hook("doctor", "hermes"); r.Code != 0 {
		w.Errorf("doctor: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	w.say(h, "", askBilling, Step{Text: "In spring."})
	w.shown(w.last(h, Main), 1, billing)

	// It goes, wherever it came from; what Python has made of it Python leaves.
	w.must("uninstall", "hermes")
	hermes("built-in only", "memory", "status")
	if left, err := filepath.Glob(filepath.Join(w.home, ".hermes/plugins/reme/*.*")); err != nil || len(left) != 0 {
		w.Errorf("after uninstall there are %v, %v", left, err)
	}
}

// A memory that takes nothing keeps Hermes from nothing, and its turns arrive afterwards, once. What is there is recalled
// all the same. It hangs here until Hermes has ended, which outlasts all that waits for it: 0.4 s of a delivery, 2.9 s of
// a hook, 3 s of the provider, 8 s of Hermes. Hanging for longer changes nothing.
func TestHermesHangingMemory(t *testing.T) {
	w, h := newWiredHermes(t, "")
	w.say(w.codex, "", billing)
	release := w.hang()
	s := w.say(h, "", askBilling, Step{Text: "I do not know."}).Session
	w.say(h, s, "Nice weather for a walk.", Step{Shell: "echo tool"}, Step{Text: "Two."})
	h.Model.Script(Step{Text: "Three."})
	if r, err := h.OneShot(w.Context(), Turn{Prompt: server}); err != nil || r.Code != 0 || r.Reply != "Three." {
		w.Fatalf("exit status %d, reply %q, %v\n%s", r.Code, r.Reply, err, r.Stderr)
	}
	w.shown(h.Model.Requests(Main)[0], 1, billing)
	if rows := w.rows(h); len(rows) != 0 {
		w.Errorf("the memory does not hang: %+v", rows)
	}
	release()
	w.dialog(h, s, "user: "+askBilling, "assistant: I do not know.", "user: Nice weather for a walk.", "assistant: Two.")
	if rows := w.rows(h); len(rows) != 6 || rows[4].Content[0].Text != server || rows[5].Content[0].Text != "Three." {
		w.Errorf("captured: %+v", rows)
	}
	w.say(h, s, askBilling, Step{Text: "In spring."})
	w.shown(w.last(h, Main), 1, billing)
}

// hang makes the memory take nothing: its locks are held by somebody who does nothing, and its index is gone.
func (w *world) hang() (release func()) {
	w.Helper()
	private := filepath.Join(w.home, ".reme/workspace/metadata/reme-hook")
	var unlocks []func()
	release = sync.OnceFunc(func() {
		for _, unlock := range unlocks {
			unlock()
		}
	})
	w.Cleanup(release)
	names := []string{"index", "daily"}
	for i := range 64 {
		names = append(names, fmt.Sprintf("%02x", i))
	}
	for _, name := range names {
		unlock, err := durable.Lock(w.Context(), filepath.Join(private, "locks", name+".lock"))
		if err != nil {
			w.Fatal(err)
		}
		unlocks = append(unlocks, unlock)
	}
	index, err := filepath.Glob(filepath.Join(private, "*.sqlite*"))
	if err != nil || len(index) == 0 {
		w.Fatalf("index: %v, %v", index, err)
	}
	for _, file := range index {
		if err := os.Remove(file); err != nil {
			w.Fatal(err)
		}
	}
	return release
}
