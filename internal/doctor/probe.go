package doctor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/internal/config"
	"github.com/agentscope-ai/reme-hook/internal/durable"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// Call runs one hook of a host as the host would, in an environment, and
// returns its stdout.
type Call func(ctx context.Context, env []string, event hooks.Kind, payload []byte) ([]byte, error)

// Side is a host in a probe.
type Side struct {
	Adapter *hooks.Adapter
	Call    Call
}

// probeWait bounds one hook of a probe. It is more than any hook takes, on a machine that
// has nothing to spare, too.
const probeWait = 20 * time.Second

// probePattern is how the folders of probes are named.
const probePattern = "reme-hook-probe-"

// Loop is what a probe found out: why a half of the loop is broken, nil if it
// works.
type Loop struct{ Capture, Recall error }

// Err is the first of its errors.
func (l Loop) Err() error { return cmp.Or(l.Capture, l.Recall) }

// Probe tells something to one host's hooks and asks another's for it (they may
// be the same), in a scratch memory that is removed afterwards. If nothing was
// captured, the memory is told by other means, so that recall is tried all the
// same. environ is the environment of the hooks, to which the scratch memory is
// added. What fails is tried once more: on a busy machine, a hook gives up before
// it keeps its host waiting.
func Probe(ctx context.Context, environ []string, teach, ask Side) Loop {
	l := probe(ctx, environ, teach, ask)
	if l.Err() != nil && ctx.Err() == nil {
		l = probe(ctx, environ, teach, ask)
	}
	return l
}

// Scratch is a memory of nobody.
type Scratch struct {
	Dir       string
	Workspace string   // below Dir
	Env       []string // makes hooks use it
}

// NewScratch makes one in a folder for temporary files, which the caller removes.
// environ is what its environment has besides.
func NewScratch(environ []string) (Scratch, error) {
	dir, err := os.MkdirTemp("", probePattern)
	s := Scratch{Dir: dir, Workspace: filepath.Join(dir, "workspace")}
	s.Env = append(slices.Clone(environ),
		"REME_INTEGRATIONS_DIR="+filepath.Join(dir, "integrations"),
		"REME_SERVICE="+config.Embedded, "REME_WORKSPACE="+s.Workspace, "REME_UPSTREAM=off",
		"REME_RECALL=true", "REME_CAPTURE=true", "REME_EXCLUDE=", hooks.GuardEnv+"=", hooks.BypassEnv+"=")
	return s, err
}

func probe(ctx context.Context, environ []string, teach, ask Side) Loop {
	scratch, err := NewScratch(environ)
	if err != nil {
		return Loop{err, err}
	}
	defer os.RemoveAll(scratch.Dir)
	fact := fmt.Sprintf("probe%08d", rand.IntN(1e8))
	said := "Remember that the codename of the lighthouse project is " + fact + "."
	var l Loop
	for _, e := range []hooks.Event{{Kind: hooks.Prompt, Prompt: said}, {Kind: hooks.TurnEnd, Reply: "Noted: " + fact + "."}} {
		e.Session, e.Turn, e.Cwd = client.Session{ID: "probe-teach"}, "probe-turn-1", scratch.Dir
		if _, err := teach.Run(ctx, scratch.Env, e); err != nil {
			l.Capture = cmp.Or(l.Capture, fmt.Errorf("capture does not work: %w", err))
		}
	}
	if l.Capture == nil && !captured(scratch.Workspace) {
		l.Capture = errors.New("capture does not work: the hooks ran, but the turn did not reach the memory")
	}
	if l.Capture != nil {
		if err := tell(ctx, scratch.Workspace, said); err != nil {
			l.Recall = err
			return l
		}
	}
	out, err := ask.Run(ctx, scratch.Env, hooks.Event{
		Kind: hooks.Prompt, Session: client.Session{ID: "probe-ask"}, Turn: "probe-turn-2", Cwd: scratch.Dir,
		Prompt: "What is the codename of the lighthouse project?",
	})
	switch {
	case err != nil:
		l.Recall = fmt.Errorf("recall does not work: %w", err)
	case !bytes.Contains(out, []byte(fact)):
		l.Recall = errors.New("recall does not work: the memory has the answer, but the prompt did not get it")
	}
	return l
}

// captured tells whether a workspace has a session.
func captured(folder string) bool {
	rows, err := durable.Glob(folder, "session/dialog/*/*.jsonl")
	return err == nil && len(rows) > 0
}

// tell puts something into a workspace without a hook.
func tell(ctx context.Context, folder, said string) error {
	ws, err := workspace.Open(folder, workspace.Options{Now: time.Now, Location: time.UTC})
	if err != nil {
		return err
	}
	defer ws.Close()
	_, err = ws.Append(ctx, client.AppendRequest{Session: client.Session{Host: "probe", Scope: "default", ID: "probe-told"}, Events: []client.Event{
		{ID: "probe-turn-0:user", Role: client.User, Content: said, CreatedAt: time.Now()},
	}})
	return err
}

// Run has the host's hook for an event run, and returns its stdout.
func (s Side) Run(ctx context.Context, env []string, e hooks.Event) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	return s.Call(ctx, env, e.Kind, s.Adapter.Sample(e))
}

// Exec runs a command with a payload on stdin. An exit status other than 0 and
// output on stderr are errors: a host would show them.
func Exec(c *exec.Cmd, env []string, payload []byte) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	c.Env, c.Stdin, c.Stdout, c.Stderr = env, bytes.NewReader(payload), &stdout, &stderr
	c.WaitDelay = time.Second // what it has started may hold the pipes
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("run %s: %w", c.Path, err)
	}
	if stderr.Len() > 0 {
		return nil, fmt.Errorf("run %s: it wrote to stderr: %.200s", c.Path, strings.Join(strings.Fields(stderr.String()), " "))
	}
	return stdout.Bytes(), nil
}
