package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/internal/config"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// Call runs one hook of a host as the host would, in an environment, and
// returns its stdout.
type Call func(ctx context.Context, env []string, event hooks.Kind, payload []byte) ([]byte, error)

// Side is a host in a probe.
type Side struct {
	Adapter *hooks.Adapter
	Call    Call
}

// probeWait bounds one hook of a probe. It is more than any hook takes.
const probeWait = 5 * time.Second

// Probe tells something to one host's hooks and asks another's for it (they may
// be the same), in a scratch memory that is removed afterwards. The error says
// which half of the loop is broken.
func Probe(ctx context.Context, teach, ask Side) error {
	scratch, err := os.MkdirTemp("", "reme-hook-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	env := append(os.Environ(),
		"REME_INTEGRATIONS_DIR="+filepath.Join(scratch, "integrations"),
		"REME_SERVICE="+config.Embedded, "REME_WORKSPACE="+filepath.Join(scratch, "workspace"), "REME_UPSTREAM=off",
		"REME_RECALL=true", "REME_CAPTURE=true", "REME_EXCLUDE=", hooks.GuardEnv+"=", hooks.BypassEnv+"=")
	fact := fmt.Sprintf("probe%08d", rand.IntN(1e8))
	if _, err := teach.run(ctx, env, hooks.Event{
		Kind: hooks.Prompt, Session: client.Session{ID: "probe-teach"}, Turn: "probe-turn-1", Cwd: scratch,
		Prompt: "Remember that the codename of the lighthouse project is " + fact + ".",
	}); err != nil {
		return err
	}
	if _, err := teach.run(ctx, env, hooks.Event{
		Kind: hooks.TurnEnd, Session: client.Session{ID: "probe-teach"}, Turn: "probe-turn-1", Cwd: scratch, Reply: "Noted: " + fact + ".",
	}); err != nil {
		return err
	}
	if rows, err := durable.Glob(scratch, "workspace/session/dialog/*/*.jsonl"); err != nil || len(rows) == 0 {
		return errors.New("capture does not work: the hooks ran, but the turn did not reach the memory")
	}
	out, err := ask.run(ctx, env, hooks.Event{
		Kind: hooks.Prompt, Session: client.Session{ID: "probe-ask"}, Turn: "probe-turn-2", Cwd: scratch,
		Prompt: "What is the codename of the lighthouse project?",
	})
	if err != nil {
		return err
	}
	if !bytes.Contains(out, []byte(fact)) {
		return errors.New("recall does not work: the turn was captured, but the prompt did not get it")
	}
	return nil
}

func (s Side) run(ctx context.Context, env []string, e hooks.Event) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	return s.Call(ctx, env, e.Kind, s.Adapter.Sample(e))
}

// Exec runs a command with a payload on stdin. An exit status other than 0 and
// output on stderr are errors: a host would show them.
func Exec(ctx context.Context, env []string, payload []byte, name string, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(ctx, name, args...)
	c.Env, c.Stdin, c.Stdout, c.Stderr = env, bytes.NewReader(payload), &stdout, &stderr
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("run %s: %w", name, err)
	}
	if stderr.Len() > 0 {
		return nil, fmt.Errorf("run %s: it wrote to stderr: %.200s", name, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}
