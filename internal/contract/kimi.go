//go:build unix

package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Kimi drives `kimi -p`.
type Kimi struct {
	Bin, Home, Project, Path string
	Model                    *Model
}

// NewKimiModel starts a fake model that calls Kimi Code's tools.
func NewKimiModel() *Model {
	return NewChat(Chat{
		Shell: func(command string) (string, map[string]any) {
			return "Bash", map[string]any{"command": command}
		},
		Spawn: func(task string) (string, map[string]any) {
			return "Agent", map[string]any{"description": "scripted", "prompt": task}
		},
		Compaction: "Create a handoff summary for the",
	})
}

// Name implements Host.
func (k *Kimi) Name() string { return "kimi" }

func (k *Kimi) model() *Model { return k.Model }

// kimiWindow is the size of the model's context. A turn that reports nearly as many tokens is followed by a compaction.
const kimiWindow = 131072

var kimiComplaint = regexp.MustCompile(`(?mi)^.*(?:warning|error|ignored|failed).*hook.*$`)

// Run implements Host. The host does not say which hooks ran; the product's log does.
func (k *Kimi) Run(ctx context.Context, turn Turn) (Result, error) {
	argv := []string{k.Bin, "-p", turn.Prompt, "--output-format", "stream-json"}
	if turn.Session != "" {
		argv = append(argv, "-S", turn.Session)
	}
	before := len(k.log())
	r, err := start(ctx, k.Project, k.env(), nil, turn.Interrupt, append(argv, turn.Args...)...)
	r.Session = turn.Session
	if r.Session == "" {
		r.Session = k.newest()
	}
	for line := range strings.Lines(r.Stdout) {
		var said struct {
			Role, Content string
			Calls         []any `json:"tool_calls"`
		}
		if json.Unmarshal([]byte(line), &said) == nil && said.Role == "assistant" && said.Calls == nil {
			r.Reply = said.Content
		}
	}
	r.Hooks = handled(k.log()[before:])
	r.Complaints = kimiComplaint.FindAllString(r.Stderr, -1)
	return r, err
}

func (k *Kimi) env() []string {
	return hostEnv(k.Home, k.Path, k.Model.URL(),
		"KIMI_MODEL_NAME=fake-model", "KIMI_MODEL_API_KEY=sk-test", "KIMI_MODEL_BASE_URL="+k.Model.URL()+"/v1",
		"KIMI_MODEL_PROVIDER_TYPE=openai", "KIMI_MODEL_CAPABILITIES=tool_use", "KIMI_MODEL_MAX_CONTEXT_SIZE="+toJSON(kimiWindow),
		"KIMI_DISABLE_TELEMETRY=1", "KIMI_CODE_NO_AUTO_UPDATE=1", "KIMI_DISABLE_CRON=1")
}

// Plugins has the host's own server do something with plugins, which no command of it does, and returns the answer. The
// server is started for that.
func (k *Kimi) Plugins(ctx context.Context, path string, body any) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := l.Addr().(*net.TCPAddr)
	l.Close()
	ctx, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := start(serving, k.Home, k.env(), nil, nil, k.Bin, "web", "--no-open", "--host", "127.0.0.1", "--port", strconv.Itoa(address.Port))
		ended <- err
	}()
	defer func() { stop(); <-ended }()
	for again := time.Tick(100 * time.Millisecond); ; {
		token, err := os.ReadFile(filepath.Join(k.Home, ".kimi-code/server.token"))
		if err == nil {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address.String()+"/api/v1/plugins"+path, strings.NewReader(toJSON(body)))
			if err != nil {
				return "", err
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
			if resp, err := http.DefaultClient.Do(req); err == nil {
				defer resp.Body.Close()
				answer, err := io.ReadAll(resp.Body)
				if err == nil && resp.StatusCode != http.StatusOK {
					err = errors.New(resp.Status)
				}
				return string(answer), err
			}
		}
		select {
		case <-again:
		case err := <-ended:
			ended <- err
			return "", fmt.Errorf("kimi web ended: %w", err)
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// log is the product's own.
func (k *Kimi) log() []byte {
	raw, _ := os.ReadFile(filepath.Join(k.Home, ".reme/integrations/log/hook.jsonl"))
	return raw
}

// handled lists the host's events in a piece of the product's log.
func handled(log []byte) []string {
	var out []string
	for line := range bytes.Lines(log) {
		var l struct{ Msg, Host, Event string }
		if json.Unmarshal(line, &l) != nil || l.Msg != "handled" || l.Host != "kimi" {
			continue
		}
		name := ""
		for word := range strings.SplitSeq(l.Event, "-") {
			name += strings.ToUpper(word[:1]) + word[1:]
		}
		out = append(out, name)
	}
	return out
}

// newest is the session that was begun last: a run that is interrupted does not name it.
func (k *Kimi) newest() string {
	raw, _ := os.ReadFile(filepath.Join(k.Home, ".kimi-code/session_index.jsonl"))
	id := ""
	for line := range bytes.Lines(raw) {
		var entry struct {
			ID string `json:"sessionId"`
		}
		if json.Unmarshal(line, &entry) == nil {
			id = entry.ID
		}
	}
	return id
}
