//go:build unix

package contract

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// scratch holds the fake homes and the binary under test. It is not t.TempDir, whose removal fails a test when a detached
// deliverer still writes.
var scratch, binary string

// hosts maps the names that the host programs have on a user's PATH to the variables that say where they are.
var hosts = map[string]string{
	"codex": "REME_CONTRACT_CODEX", "claude": "REME_CONTRACT_CLAUDE_CODE", "node": "REME_CONTRACT_NODE",
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if missing() != "" {
		return m.Run() // each test skips or fails by itself
	}
	var err error
	if scratch, err = os.MkdirTemp("", "contract-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if os.Getenv("REME_CONTRACT_KEEP") != "" {
		fmt.Fprintln(os.Stderr, "fake homes are kept in", scratch)
	} else {
		defer os.RemoveAll(scratch)
	}
	binary = filepath.Join(scratch, "reme-hook")
	build := exec.Command("go", "build", "-o", binary, "github.com/agentscope-ai/reme-hook")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building the binary under test:", err)
		return 1
	}
	if code := m.Run(); code != 0 {
		return code
	}
	return checkCapabilities()
}

// missing names the host variables that are unset or lead nowhere.
func missing() string {
	var out []string
	for _, name := range hosts {
		if _, err := os.Stat(os.Getenv(name)); err != nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// world is one fake machine: a home, a project, both hosts on the PATH and their models.
type world struct {
	*testing.T
	home, project string
	workspace     string // where the memory is
	codex         *Codex
	claude        *Claude
}

// newWorld makes a machine where the product is not installed.
func newWorld(t *testing.T) *world {
	t.Helper()
	if m := missing(); m != "" {
		lacking(t, m, "REME_CONTRACT_*")
	}
	t.Parallel()
	return newBare(t)
}

// further are the hosts that not every machine has: the variable that says where the program is, and what drives it.
var further = map[string]struct {
	variable string
	drive    func(*world, string) Host
}{
	"kimi": {"REME_CONTRACT_KIMI", func(w *world, bin string) Host {
		return &Kimi{Bin: bin, Home: w.home, Project: w.project, Path: w.path(), Model: NewKimiModel()}
	}},
	"dsh": {"REME_CONTRACT_DSH", func(w *world, bin string) Host {
		return &DSH{Bin: bin, Home: w.home, Project: w.project, Path: w.path(), Model: NewDSHModel()}
	}},
	"hermes": {"REME_CONTRACT_HERMES", func(w *world, bin string) Host {
		return &Hermes{Bin: bin, Home: w.home, Project: w.project, Path: w.path(), Model: NewHermesModel()}
	}},
	"openclaw": {"REME_CONTRACT_OPENCLAW", func(w *world, bin string) Host {
		o := &OpenClaw{Bin: bin, Home: w.home, Project: w.project, Path: w.path(), Model: NewOpenClawModel(), cache: filepath.Join(scratch, "node-cache")}
		if err := o.Configure(); err != nil {
			w.Fatal(err)
		}
		return o
	}},
}

// quiet hosts do not say which hooks ran.
var quiet = []string{"dsh", "hermes", "openclaw"}

// with puts a further host on the machine.
func (w *world) with(name string) Host {
	w.Helper()
	f := further[name]
	program := os.Getenv(f.variable)
	if _, err := os.Stat(program); err != nil {
		lacking(w.T, name, f.variable)
	}
	bin := filepath.Join(w.home, "bin", name)
	if err := os.Symlink(program, bin); err != nil {
		w.Fatal(err)
	}
	h := f.drive(w, bin)
	w.Cleanup(h.model().Close)
	return h
}

// lacking ends a test for which real hosts are missing: as failed where they must be there.
func lacking(t *testing.T, names, variables string) {
	t.Helper()
	message := "real hosts are missing (" + names + "): .ci/run installs them and names them in " + variables
	if os.Getenv("REME_CONTRACT_REQUIRED") == "1" {
		t.Fatal(message)
	}
	t.Skip(message)
}

// newBare makes a further machine for a test.
func newBare(t *testing.T) *world {
	t.Helper()
	home, err := os.MkdirTemp(scratch, strings.ReplaceAll(t.Name(), "/", "-")+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { noteCapabilities(t, home) })
	w := &world{T: t, home: home, project: filepath.Join(home, "src", "project"), workspace: filepath.Join(home, ".reme", "workspace")}
	for _, dir := range []string{"bin", "tmp", "src/project"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.upstream("off") // no ReMe of this machine
	for program, name := range hosts {
		if err := os.Symlink(os.Getenv(name), filepath.Join(home, "bin", program)); err != nil {
			t.Fatal(err)
		}
	}
	w.codex = &Codex{Bin: w.home + "/bin/codex", Home: home, Project: w.project, Path: w.path(), Model: NewResponses()}
	t.Cleanup(w.codex.Model.Close)
	w.claude = &Claude{Bin: w.home + "/bin/claude", Home: home, Project: w.project, Path: w.path(), Model: NewMessages()}
	t.Cleanup(w.claude.Model.Close)
	return w
}

// newWired makes a machine with both hosts wired by the product's own command.
func newWired(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.must("install", "codex", "claude-code", "--trust")
	return w
}

// serve has another process keep the memory, at a URL and with a token, and configures the product so.
func (w *world) serve() {
	w.Helper()
	const token = "s3same-0123"
	home := filepath.Join(w.home, "server")
	w.workspace = filepath.Join(home, ".reme", "workspace")
	_, port, _ := strings.Cut(w.server("HOME="+home, "REME_TOKEN="+token), "127.0.0.1:")
	if err := os.MkdirAll(filepath.Join(w.home, ".reme", "integrations"), 0o700); err != nil {
		w.Fatal(err)
	}
	w.put(".config/reme/token", token+"\n", 0o600)
	w.put(".reme/integrations/config.toml", "service = \"http://localhost.:"+port+"\"\ntoken = \"${file:~/.config/reme/token}\"\n", 0o600)
}

// server runs the product's server in an environment until the test ends, and returns its URL.
func (w *world) server(env ...string) string {
	w.Helper()
	c := exec.Command(binary, "serve", "--listen", "127.0.0.1:0")
	c.Env, c.Stderr = env, os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			w.Errorf("serve: %v", err)
		}
	})
	var url string
	line, err := bufio.NewReader(out).ReadString('\n')
	if _, serr := fmt.Sscanf(line, "ready on %s", &url); serr != nil {
		w.Fatalf("%q: %v, %v", line, err, serr)
	}
	return url
}

func (w *world) path() string { return w.home + "/bin:/usr/local/bin:/usr/bin:/bin" }

// hook runs the product's command line in the fake home.
func (w *world) hook(args ...string) Result {
	w.Helper()
	env := hostEnv(w.home, w.path(), w.codex.Model.URL())
	r, err := start(w.Context(), w.project, env, nil, nil, append([]string{binary}, args...)...)
	if err != nil {
		w.Fatalf("reme-hook %s: %v\n%s%s", strings.Join(args, " "), err, r.Stdout, r.Stderr)
	}
	return r
}

// must runs a command that has to succeed.
func (w *world) must(args ...string) Result {
	w.Helper()
	r := w.hook(args...)
	if r.Code != 0 {
		w.Fatalf("reme-hook %s: exit status %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r
}

// run makes one call of a host, whatever comes of it.
func (w *world) run(h Host, turn Turn, steps ...Step) Result {
	w.Helper()
	w.model(h).Script(steps...)
	r, err := h.Run(w.Context(), turn)
	if err != nil {
		w.Fatalf("%s: %v\n%s\n%s", h.Name(), err, r.Stdout, r.Stderr)
	}
	return r
}

// say is a turn that has to go well: exit status 0, the last step's text as the answer, hooks ran and none was blamed.
func (w *world) say(h Host, session, prompt string, steps ...Step) Result {
	w.Helper()
	r := w.run(h, Turn{Prompt: prompt, Session: session}, steps...)
	want := "ok"
	if len(steps) > 0 {
		want = steps[len(steps)-1].Text
	}
	w.well(h, r, want)
	return r
}

// well checks what say promises.
func (w *world) well(h Host, r Result, reply string) {
	w.Helper()
	if r.Code != 0 || r.Reply != reply {
		w.Logf("%s wrote\n%s\n%s", h.Name(), r.Stdout, r.Stderr)
		w.Fatalf("%s: exit status %d, reply %q, want 0 and %q", h.Name(), r.Code, r.Reply, reply)
	}
	if len(r.Complaints) > 0 {
		w.Errorf("%s complains about hooks:\n%s", h.Name(), strings.Join(r.Complaints, "\n"))
	}
	if slices.Contains(quiet, h.Name()) {
		return
	}
	for _, event := range []string{"SessionStart", "UserPromptSubmit", "Stop"} {
		if !slices.Contains(r.Hooks, event) {
			w.Errorf("%s ran no %s hook, only %v", h.Name(), event, r.Hooks)
		}
	}
}

func (w *world) model(h Host) *Model { return h.model() }

// last is the newest request of a kind that a host made.
func (w *world) last(h Host, kind Kind) Request {
	w.Helper()
	rs := w.model(h).Requests(kind)
	if len(rs) == 0 {
		w.Fatalf("%s made no %s request", h.Name(), kind)
	}
	return rs[len(rs)-1]
}

// shown checks that a request holds n frames, and the fact once, inside one of them.
func (w *world) shown(r Request, n int, fact string) {
	w.Helper()
	frames := r.Frames()
	if len(frames) != n {
		w.Errorf("%d frames in the request, want %d", len(frames), n)
	}
	if got := strings.Count(r.Text(), fact); got != 1 {
		w.Errorf("%q is %d times in the request, want once", fact, got)
	}
	if !slices.ContainsFunc(frames, func(f string) bool { return strings.Contains(f, fact) }) {
		w.Errorf("%q is in no frame", fact)
	}
	if w.Failed() {
		w.Logf("frames:\n%s", strings.Join(frames, "\n"))
	}
}

// row is a line of a dialog file.
type row struct {
	ID, Role string
	Content  []struct{ Text string }
	Metadata struct {
		Session string `json:"session_id"`
	}
}

// delivered delivers what waits, after those that are at it.
func (w *world) delivered() {
	w.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	limit := time.After(turnLimit)
	for {
		r := w.hook("spool", "replay")
		if r.Code == 0 {
			return
		}
		if !strings.Contains(r.Stderr, "another delivery is running") {
			w.Fatalf("spool replay: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
		}
		select {
		case <-again.C:
		case <-limit:
			w.Fatalf("spool replay: %s", r.Stderr)
		}
	}
}

// dialog checks that the workspace holds exactly these messages of a session, each given as "role: text", in order.
func (w *world) dialog(h Host, session string, want ...string) {
	w.Helper()
	w.delivered()
	var got []string
	for _, r := range w.rows(h) {
		if r.Metadata.Session == session {
			text := r.Role + ": "
			for _, c := range r.Content {
				text += c.Text
			}
			got = append(got, text)
		}
	}
	if !slices.Equal(got, want) {
		w.Errorf("captured of %s:\n%s\nwant:\n%s", h.Name(), strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// rows reads all that was captured of a host.
func (w *world) rows(h Host) []row {
	w.Helper()
	files, err := filepath.Glob(filepath.Join(w.workspace, "session/dialog", h.Name(), "*.jsonl"))
	if err != nil {
		w.Fatal(err)
	}
	var rows []row
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			w.Fatal(err)
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var r row
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				w.Fatalf("%s: %v: %s", file, err, lines.Bytes())
			}
			if strings.Contains(strings.ToLower(lines.Text()), "reme-context") {
				w.Errorf("a frame was captured: %s", lines.Text())
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// configs are the files of the hosts that the product may edit.
var configs = []string{".codex/hooks.json", ".codex/config.toml", ".claude/settings.json"}

// snapshot reads the config files; a missing one is not in the map.
func (w *world) snapshot() map[string]string {
	w.Helper()
	out := map[string]string{}
	for _, name := range configs {
		raw, err := os.ReadFile(filepath.Join(w.home, name))
		switch {
		case err == nil:
			out[name] = string(raw)
		case !os.IsNotExist(err):
			w.Fatal(err)
		}
	}
	return out
}

// upstream configures which ReMe takes part.
func (w *world) upstream(target string) {
	w.Helper()
	w.put(".reme/integrations/config.toml", fmt.Sprintf("upstream = %q\n", target), 0o600)
	if err := os.Chmod(filepath.Join(w.home, ".reme/integrations"), 0o700); err != nil {
		w.Fatal(err)
	}
}

// put writes a file of the fake home.
func (w *world) put(name, content string, mode fs.FileMode) {
	w.Helper()
	path := filepath.Join(w.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.Fatal(err)
	}
	// Removed first: a running program cannot be written to.
	if err := os.RemoveAll(path); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		w.Fatal(err)
	}
}

// sameButHome compares two texts of different fake homes and processes.
func sameButHome(a, b string) bool {
	varying := regexp.MustCompile(regexp.QuoteMeta(scratch) + `/[^/\s"]+|[0-9a-f]{8}-[0-9a-f-]{27}`)
	return varying.ReplaceAllString(a, "~") == varying.ReplaceAllString(b, "~")
}
