//go:build unix

package contract

import (
	"context"
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// DSH drives `dsh --profile headless`.
type DSH struct {
	Bin, Home, Project, Path string
	Model                    *Model
	Patch                    []map[string]any // further rows for the configuration
}

// NewDSHModel starts a fake model that calls DSH's tools.
func NewDSHModel() *Model {
	return NewChat(Chat{
		Shell: func(command string) (string, map[string]any) {
			return "bash", map[string]any{"command": command, "description": "scripted"}
		},
		Spawn: func(task string) (string, map[string]any) {
			return "subagent", map[string]any{"description": "scripted", "prompt": task, "run_in_background": false}
		},
		Compaction: "You are now acting as a compaction engine",
	})
}

// Name implements Host.
func (d *DSH) Name() string { return "dsh" }

func (d *DSH) model() *Model { return d.Model }

//go:embed dsh_driver.mjs
var dshDriver []byte

// Run implements Host. A new session is the host's own one-shot run, whose output does not name it.
func (d *DSH) Run(ctx context.Context, turn Turn) (Result, error) {
	if turn.Session != "" {
		return d.Turns(ctx, turn, turn.Prompt)
	}
	before := d.sessions()
	r, err := d.start(ctx, turn, d.Patch, turn.Prompt)
	r.Reply = strings.TrimSpace(r.Stdout)
	for id := range d.sessions() {
		if !before[id] {
			r.Session = id
		}
	}
	return r, err
}

// Turns gives several prompts to one process, each after the answer to the one before. "/compact" is a compaction,
// "/fork" goes on in a fork.
func (d *DSH) Turns(ctx context.Context, turn Turn, prompts ...string) (Result, error) {
	driver := filepath.Join(d.Home, "tmp", "driver.mjs")
	if err := os.WriteFile(driver, dshDriver, 0o600); err != nil {
		return Result{}, err
	}
	anchor, err := filepath.EvalSymlinks(d.Bin)
	if err != nil {
		return Result{}, err
	}
	session := turn.Session
	if session == "" {
		session = "session-" + newUUID()
	}
	config := map[string]any{"prompts": prompts, "session": session, "resume": turn.Session != "", "anchor": anchor}
	r, err := d.start(ctx, turn, append([]map[string]any{
		{"id": "headless-runner", "disabled": true},
		{"id": "headless-startup", "disabled": true},
		{"insert": []any{map[string]any{"id": "contract-driver", "name": driver, "config": config}}},
	}, d.Patch...))
	r.Session = session
	for line := range strings.Lines(r.Stdout) {
		var said struct{ Reply *string }
		if json.Unmarshal([]byte(line), &said) == nil && said.Reply != nil {
			r.Reply = *said.Reply
		}
	}
	return r, err
}

func (d *DSH) start(ctx context.Context, turn Turn, patch []map[string]any, tail ...string) (Result, error) {
	argv := append([]string{d.Bin, "--profile", "headless"}, turn.Args...)
	if len(patch) > 0 {
		file := filepath.Join(d.Home, "tmp", "patch.yml") // JSON is YAML
		if err := os.WriteFile(file, []byte(toJSON(patch)), 0o600); err != nil {
			return Result{}, err
		}
		argv = append(argv, "--patch", file)
	}
	env := hostEnv(d.Home, d.Path, d.Model.URL(),
		"DEEPSEEK_BASE_URL="+d.Model.URL()+"/v1", "DEEPSEEK_API_KEY=sk-test", "DSH_TELEMETRY_DISABLED=1")
	return start(ctx, d.Project, env, nil, turn.Interrupt, append(argv, tail...)...)
}

// sessions are the ids of the sessions that were kept, but for those of subagents.
func (d *DSH) sessions() map[string]bool {
	out := map[string]bool{}
	found, _ := filepath.Glob(filepath.Join(d.Home, ".dsh", "sessions", "*", "session-*"))
	for _, path := range found {
		out[filepath.Base(path)] = true
	}
	return out
}
