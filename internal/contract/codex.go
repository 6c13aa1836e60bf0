//go:build unix

package contract

import (
	"context"
	"regexp"
	"slices"
	"strings"
)

// Codex drives `codex exec`.
type Codex struct {
	Bin, Home, Project, Path string
	Model                    *Model
}

// Name implements Host.
func (c *Codex) Name() string { return "codex" }

func (c *Codex) model() *Model { return c.Model }

var (
	codexSession   = regexp.MustCompile(`(?m)^session id: (\S+)`)
	codexHook      = regexp.MustCompile(`(?m)^hook: (\w+)$`)
	codexComplaint = regexp.MustCompile(`(?mi)^.*(?:hook: .*(?:failed|blocked|stopped)|(?:warning|error).*hook|hook.*(?:warning|timed out)).*$`)
)

// Run implements Host. The output is the human one, since the JSON one is silent about hooks.
func (c *Codex) Run(ctx context.Context, turn Turn) (Result, error) {
	argv := []string{c.Bin, "exec"}
	if turn.Session != "" {
		argv = append(argv, "resume", turn.Session)
	}
	for _, setting := range []string{
		`model="gpt-5.1"`, `model_provider="fake"`,
		`model_providers.fake={name="fake",base_url="` + c.Model.URL() + `/v1",wire_api="responses",env_key="FAKE_MODEL_KEY",request_max_retries=0,stream_max_retries=0}`,
		"check_for_update_on_startup=false", "analytics.enabled=false", "features.apps=false",
		"features.enable_request_compression=false", "model_auto_compact_token_limit=100000",
		`sandbox_mode="danger-full-access"`, `approval_policy="never"`,
	} {
		argv = append(argv, "-c", setting)
	}
	argv = append(append(argv, "--skip-git-repo-check"), turn.Args...)
	env := hostEnv(c.Home, c.Path, c.Model.URL(), "FAKE_MODEL_KEY=sk-test")
	r, err := start(ctx, c.Project, env, nil, turn.Interrupt, append(argv, "--", turn.Prompt)...)
	if m := codexSession.FindStringSubmatch(r.Stderr); m != nil {
		r.Session = m[1]
	}
	for _, m := range codexHook.FindAllStringSubmatch(r.Stderr, -1) {
		r.Hooks = append(r.Hooks, m[1])
	}
	r.Reply = strings.TrimSpace(r.Stdout)
	r.Complaints = slices.DeleteFunc(codexComplaint.FindAllString(r.Stderr, -1), func(line string) bool {
		return strings.Contains(line, "--dangerously-bypass-hook-trust") // of its own arguments
	})
	return r, err
}
