package doctor

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// fakeSide is a host whose hooks work on the scratch memory themselves, as far as
// they work at all.
func fakeSide(captures, recalls bool, fails error) Side {
	a := &hooks.Adapter{Host: "codex", Sample: func(e hooks.Event) []byte { return []byte(e.Prompt + e.Reply) }}
	return Side{a, func(ctx context.Context, env []string, kind hooks.Kind, payload []byte) ([]byte, error) {
		if fails != nil {
			return nil, fails
		}
		folder := ""
		for _, v := range env {
			if path, ok := strings.CutPrefix(v, "REME_WORKSPACE="); ok {
				folder = path
			}
		}
		ws, err := workspace.Open(folder, workspace.Options{Now: time.Now, Location: time.UTC})
		if err != nil {
			return nil, err
		}
		defer ws.Close()
		switch text := string(payload); {
		case strings.HasPrefix(text, "What is"):
			res, err := ws.Recall(ctx, client.RecallRequest{Query: text, Limit: 1, MaxChars: 1000})
			if err != nil || len(res.Items) == 0 || !recalls {
				return nil, err
			}
			return []byte(res.Items[0].Snippet), nil
		case captures:
			_, err := ws.Append(ctx, client.AppendRequest{Session: client.Session{Host: "codex", Scope: "default", ID: "s"}, Events: []client.Event{
				{ID: client.EventID(strings.Fields(text)[0] + ":user"), Role: client.User, Content: text, CreatedAt: time.Now()},
			}})
			return nil, err
		}
		return nil, nil
	}}
}

// TestProbe: each half of the loop is judged by itself, and nothing is left.
func TestProbe(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	failed := errors.New("no such program")
	for name, c := range map[string]struct {
		side            Side
		capture, recall string // what is said of each
	}{
		"well":         {fakeSide(true, true, nil), "", ""},
		"no capture":   {fakeSide(false, true, nil), "did not reach the memory", ""},
		"no recall":    {fakeSide(true, false, nil), "", "the prompt did not get it"},
		"nothing":      {fakeSide(false, false, nil), "did not reach", "did not get"},
		"no programs":  {fakeSide(true, true, failed), failed.Error(), failed.Error()},
		"no such call": {Side{fakeSide(true, true, nil).Adapter, func(context.Context, []string, hooks.Kind, []byte) ([]byte, error) { return nil, failed }}, "capture does not work", "recall does not work"},
	} {
		l := Probe(t.Context(), nil, c.side, c.side)
		for half, got := range map[string]struct {
			err  error
			want string
		}{"capture": {l.Capture, c.capture}, "recall": {l.Recall, c.recall}} {
			if (got.err != nil) != (got.want != "") || got.err != nil && !strings.Contains(got.err.Error(), got.want) {
				t.Errorf("%s: %s: %v, want %q", name, half, got.err, got.want)
			}
		}
	}
	calls := 0
	busy := fakeSide(true, true, nil)
	call := busy.Call
	busy.Call = func(ctx context.Context, env []string, kind hooks.Kind, payload []byte) ([]byte, error) {
		if calls++; calls <= 3 {
			return nil, nil // as a hook that has no time
		}
		return call(ctx, env, kind, payload)
	}
	if l := Probe(t.Context(), nil, busy, busy); l.Err() != nil {
		t.Errorf("a busy machine: %+v", l)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestExec: what a host would show is an error, and what a hook leaves running is
// not waited for.
func TestExec(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	for script, want := range map[string]string{
		"cat":                "",
		"exit 2":             "exit status 2",
		"echo a >&2; exit 0": "stderr: a",
	} {
		out, err := Exec(exec.CommandContext(t.Context(), sh, "-c", script), os.Environ(), []byte("x"))
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && string(out) != "x" {
			t.Errorf("%s: %q, %v", script, out, err)
		}
	}
}
