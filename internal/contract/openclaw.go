//go:build unix

package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// OpenClaw drives `openclaw agent`: each turn in a process of its own, or through a gateway if there is one.
type OpenClaw struct {
	Bin, Home, Project, Path string
	Model                    *Model
	cache                    string // of compiled scripts: starting takes half the time with it
	gateway                  *exec.Cmd
	ended                    chan error // how the gateway did
}

// NewOpenClawModel starts a fake model that calls OpenClaw's tools.
func NewOpenClawModel() *Model {
	return NewChat(Chat{
		Shell: func(command string) (string, map[string]any) {
			return "exec", map[string]any{"command": command}
		},
		Compaction: "</conversation>",
	})
}

// Name implements Host.
func (o *OpenClaw) Name() string { return "openclaw" }

func (o *OpenClaw) model() *Model { return o.Model }

// Configure writes the configuration that names the model.
func (o *OpenClaw) Configure() error {
	port, err := freePort()
	if err != nil {
		return err
	}
	model := map[string]any{
		"id": "fake-model", "name": "Fake", "reasoning": false, "input": []string{"text"}, "contextWindow": 120000, "maxTokens": 4096,
		"cost": map[string]int{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
	}
	config := map[string]any{
		"models": map[string]any{"providers": map[string]any{"fake": map[string]any{
			"baseUrl": o.Model.URL() + "/v1", "apiKey": "sk-test", "api": "openai-completions", "models": []any{model},
		}}},
		"agents": map[string]any{"defaults": map[string]any{
			"model": map[string]any{"primary": "fake/fake-model"}, "workspace": o.Project, "skipBootstrap": true,
			// The other mode refuses summaries without its headings.
			"compaction": map[string]any{"mode": "default", "keepRecentTokens": 200},
			// Its turns would come at a time that OpenClaw draws.
			"heartbeat": map[string]any{"every": "0m"},
		}},
		"gateway":   map[string]any{"mode": "local", "bind": "loopback", "port": port, "auth": map[string]any{"mode": "token", "token": "fake-token"}},
		"telemetry": map[string]any{"enabled": false}, "update": map[string]any{"checkOnStart": false},
	}
	dir := filepath.Join(o.Home, ".openclaw")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "openclaw.json"), append(text, '\n'), 0o600)
}

// freePort is a port of loopback that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Start starts a gateway and waits until it takes turns. A gateway gives up on a machine so busy that a thread of its own
// takes 5 s to begin; then it is started again.
func (o *OpenClaw) Start(ctx context.Context) (err error) {
	for range 3 {
		if err = o.start(ctx); !errors.As(err, new(*exec.ExitError)) {
			break
		}
	}
	return err
}

func (o *OpenClaw) start(ctx context.Context) error {
	var config struct{ Gateway struct{ Port int } }
	text, err := os.ReadFile(filepath.Join(o.Home, ".openclaw", "openclaw.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(o.Home, "tmp", "gateway.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(o.Bin, "gateway", "run")
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = o.Project, o.env(), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	o.gateway, o.ended = cmd, make(chan error, 1)
	go func() { o.ended <- cmd.Wait() }()
	limit := time.After(turnLimit)
	for !ready(ctx, fmt.Sprintf("http://127.0.0.1:%d/readyz", config.Gateway.Port)) {
		select {
		case err = <-o.ended:
			o.gateway = nil
		case <-limit:
			o.Stop()
			err = errors.New("it is not ready")
		case <-time.After(100 * time.Millisecond):
			continue
		}
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("gateway: %w\n%s", err, said)
	}
	return nil
}

func ready(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer r.Body.Close()
	return r.StatusCode == http.StatusOK
}

// Stop ends the gateway, if there is one, as a service manager does. On a busy machine OpenClaw kills itself when it takes too
// long over that.
func (o *OpenClaw) Stop() {
	if o.gateway == nil {
		return
	}
	_ = o.gateway.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(turnLimit, func() { _ = o.gateway.Process.Kill() })
	<-o.ended
	kill.Stop()
	_ = syscall.Kill(-o.gateway.Process.Pid, syscall.SIGKILL)
	o.gateway = nil
}

// Run implements Host.
func (o *OpenClaw) Run(ctx context.Context, turn Turn) (Result, error) {
	session := turn.Session
	if session == "" {
		session = newUUID()
	}
	argv := []string{o.Bin, "agent", "--session-id", session, "--message", turn.Prompt, "--json"}
	if o.gateway == nil {
		argv = append(argv, "--local")
	}
	r, err := start(ctx, o.Project, o.env(), nil, turn.Interrupt, append(argv, turn.Args...)...)
	r.Session = session
	type payloads []struct{ Text string }
	var said struct {
		Payloads payloads
		Result   struct{ Payloads payloads } // of a gateway
	}
	if json.Unmarshal([]byte(r.Stdout), &said) == nil {
		var texts []string
		for _, p := range append(said.Payloads, said.Result.Payloads...) {
			texts = append(texts, p.Text)
		}
		r.Reply = strings.Join(texts, "\n")
	}
	return r, err
}

// Command runs a command of the host that asks no model.
func (o *OpenClaw) Command(ctx context.Context, args ...string) (Result, error) {
	return start(ctx, o.Project, o.env(), nil, nil, append([]string{o.Bin}, args...)...)
}

func (o *OpenClaw) env() []string {
	return hostEnv(o.Home, o.Path, o.Model.URL(), "NO_COLOR=1", "NODE_NO_WARNINGS=1", "NODE_COMPILE_CACHE="+o.cache, "OPENCLAW_SKIP_UPDATE_CHECK=1")
}
