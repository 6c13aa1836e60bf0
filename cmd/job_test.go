package cmd

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/upstream"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// A job that gets no answer says so.
func TestJobEnds(t *testing.T) {
	t.Parallel()
	stdin, never, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer never.Close()
	defer stdin.Close()
	dir := t.TempDir()
	var out bytes.Buffer
	a := &app{stdin: stdin, stdout: &out, now: time.Now, dir: dir, upstream: upstream.New(filepath.Join(dir, "upstream"), "", time.Now), workspace: func() (*workspace.Workspace, error) {
		return workspace.Open(filepath.Join(dir, "workspace"), workspace.Options{})
	}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.runJob(ctx, "", "daily_list"); !errors.Is(err, errTold) {
		t.Error(err)
	}
	if got := out.String(); !strings.HasPrefix(got, `{"answer":"Error: no answer within`) || !strings.Contains(got, `"success":false`) {
		t.Error(got)
	}
}
