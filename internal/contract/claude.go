//go:build unix

package contract

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
)

// Claude drives `claude -p`.
type Claude struct {
	Bin, Home, Project, Path string
	Model                    *Model
}

// Name implements Host.
func (c *Claude) Name() string { return "claude-code" }

func (c *Claude) model() *Model { return c.Model }

// Run implements Host. "/compact" as a prompt is the host's own command.
func (c *Claude) Run(ctx context.Context, turn Turn) (Result, error) {
	return c.run(ctx, turn, nil, "--", turn.Prompt)
}

// Stream gives several prompts to one process, each after the answer to the one before: the host makes one prompt of
// those that wait.
func (c *Claude) Stream(ctx context.Context, turn Turn, prompts ...string) (Result, error) {
	return c.run(ctx, turn, &feeder{prompts: prompts}, "--input-format", "stream-json")
}

// Steer gives a prompt, and another one while a tool runs.
func (c *Claude) Steer(ctx context.Context, turn Turn, other string) (Result, error) {
	return c.run(ctx, turn, &feeder{prompts: []string{turn.Prompt, other}, within: true}, "--input-format", "stream-json")
}

func (c *Claude) run(ctx context.Context, turn Turn, feed *feeder, tail ...string) (Result, error) {
	argv := []string{
		c.Bin, "-p", "--output-format", "stream-json", "--verbose", "--include-hook-events",
		"--allowedTools", "Bash,Read,Agent",
	}
	session := turn.Session
	if session == "" {
		session = newUUID()
		argv = append(argv, "--session-id", session)
	} else {
		argv = append(argv, "--resume", session)
	}
	argv = append(append(argv, turn.Args...), tail...)
	env := hostEnv(c.Home, c.Path, c.Model.URL(),
		"ANTHROPIC_BASE_URL="+c.Model.URL(), "ANTHROPIC_API_KEY=sk-test", "CLAUDE_CODE_MAX_RETRIES=0", "MAX_THINKING_TOKENS=0",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1",
		"DISABLE_BUG_COMMAND=1")
	r, err := start(ctx, c.Project, env, feed, turn.Interrupt, argv...)
	r.Session = session
	r.readStream()
	return r, err
}

// readStream takes the reply and what was said about hooks out of stream-json lines.
func (r *Result) readStream() {
	lines := bufio.NewScanner(strings.NewReader(r.Stdout))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var line struct {
			Type, Subtype, Result, Outcome, Stdout, Stderr string

			HookEvent string `json:"hook_event"`
			ExitCode  *int   `json:"exit_code"`
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		switch {
		case line.Type == "result":
			r.Reply = line.Result
		case line.Subtype == "hook_response":
			r.Hooks = append(r.Hooks, line.HookEvent)
			// Output that is no JSON is no failure to the host: it goes to the model as it is.
			leak := line.Stdout != "" && !json.Valid([]byte(line.Stdout))
			if line.Outcome != "success" || line.Stderr != "" || line.ExitCode == nil || *line.ExitCode != 0 || leak {
				r.Complaints = append(r.Complaints, lines.Text())
			}
		case line.Subtype == "informational" || line.Subtype == "notification":
			r.Complaints = append(r.Complaints, lines.Text())
		}
	}
	for l := range strings.Lines(r.Stderr) {
		if strings.Contains(strings.ToLower(l), "hook") {
			r.Complaints = append(r.Complaints, l)
		}
	}
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
