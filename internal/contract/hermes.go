//go:build unix

package contract

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Hermes drives `hermes chat -q`.
type Hermes struct {
	Bin, Home, Project, Path string
	Model                    *Model
}

// NewHermesModel starts a fake model that calls Hermes' tools.
func NewHermesModel() *Model {
	return NewChat(Chat{
		Shell: func(command string) (string, map[string]any) {
			return "terminal", map[string]any{"command": command}
		},
		Spawn: func(task string) (string, map[string]any) {
			return "delegate_task", map[string]any{"goal": task, "context": "none"}
		},
		Compaction: "You are a summarization agent creating a context checkpoint.",
		Review:     "Review the conversation above",
	})
}

// Name implements Host.
func (h *Hermes) Name() string { return "hermes" }

func (h *Hermes) model() *Model { return h.Model }

var hermesSession = regexp.MustCompile(`(?m)^session_id: (\S+)`)

// Run implements Host.
func (h *Hermes) Run(ctx context.Context, turn Turn) (Result, error) {
	argv := []string{"chat", "-Q"}
	if turn.Session != "" {
		argv = append(argv, "--resume", turn.Session)
	}
	r, err := h.start(ctx, turn, append(argv, "-q", turn.Prompt)...)
	if m := hermesSession.FindStringSubmatch(r.Stderr); m != nil {
		r.Session = m[1]
	}
	return r, err
}

// OneShot gives a prompt to `hermes -z`, which does not wait for its memory, and does not name its session.
func (h *Hermes) OneShot(ctx context.Context, turn Turn) (Result, error) {
	return h.start(ctx, turn, "-z", turn.Prompt)
}

// Command runs a command of the host that asks no model.
func (h *Hermes) Command(ctx context.Context, args ...string) (Result, error) {
	return start(ctx, h.Project, h.env(), nil, nil, append([]string{h.Bin}, args...)...)
}

//go:embed hermes_driver.py
var hermesDriver []byte

// Type types lines into an interactive session on a terminal, each followed by what must appear before the next one.
func (h *Hermes) Type(ctx context.Context, turn Turn, lines ...[2]string) (Result, error) {
	driver := filepath.Join(h.Home, "tmp", "driver.py")
	if err := os.WriteFile(driver, hermesDriver, 0o600); err != nil {
		return Result{}, err
	}
	real, err := filepath.EvalSymlinks(h.Bin)
	if err != nil {
		return Result{}, err
	}
	argv := []string{filepath.Join(filepath.Dir(real), "python3"), driver, toJSON(lines), h.Bin, "chat", "--cli"}
	return start(ctx, h.Project, h.env(), nil, turn.Interrupt, append(argv, hermesModel...)...)
}

var hermesModel = []string{"--provider", "custom", "--model", "fake-model"}

func (h *Hermes) start(ctx context.Context, turn Turn, argv ...string) (Result, error) {
	// The flags of a command come behind its name, those of -z in front of it.
	head := 0
	if argv[0] == "chat" {
		head = 1
	}
	all := append([]string{h.Bin}, argv[:head]...)
	all = append(append(all, hermesModel...), turn.Args...)
	r, err := start(ctx, h.Project, h.env(), nil, turn.Interrupt, append(all, argv[head:]...)...)
	lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
	r.Reply = strings.TrimSpace(lines[len(lines)-1]) // behind the host's own remarks
	return r, err
}

func (h *Hermes) env() []string {
	return hostEnv(h.Home, h.Path, h.Model.URL(),
		"CUSTOM_BASE_URL="+h.Model.URL()+"/v1", "CUSTOM_API_KEY=sk-test", "OPENAI_API_KEY=sk-test",
		"HERMES_INFERENCE_PROVIDER=custom", "HERMES_INFERENCE_MODEL=fake-model", "HERMES_DISABLE_LAZY_INSTALLS=1", "PYTHONUNBUFFERED=1")
}
