package kimi

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
	"github.com/agentscope-ai/reme-hook/internal/config"
	"github.com/agentscope-ai/reme-hook/internal/link"
	"github.com/agentscope-ai/reme-hook/spool"
	"github.com/agentscope-ai/reme-hook/state"
)

// memory keeps what it is given, double or not.
type memory struct {
	client.Service
	mu   sync.Mutex
	rows []string
}

func (m *memory) Append(_ context.Context, r client.AppendRequest) (client.AppendResult, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var res client.AppendResult
	for _, e := range r.Events {
		m.rows = append(m.rows, string(e.ID)+" "+e.Content)
		res.EventIDs = append(res.EventIDs, e.ID)
	}
	return res, nil
}

func (*memory) Flush(context.Context, client.FlushRequest) (client.FlushResult, error) {
	return client.FlushResult{}, nil
}

func (*memory) Recall(context.Context, client.RecallRequest) (client.RecallResult, error) {
	return client.RecallResult{}, nil
}

// TestFastStops runs the hooks of 100 turns, while Kimi writes the end of each
// turn behind its Stop, in two pieces.
func TestFastStops(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log bytes.Buffer
	m := &memory{}
	run := &hooks.Runner{
		Now: time.Now, Getenv: func(string) string { return "" },
		Config:  config.Config{Workspace: filepath.Join(dir, "workspace"), Recall: true, Capture: true, RecallLimit: 5, RecallMaxChars: 4000, RecallTimeout: time.Second},
		State:   state.Store{Dir: filepath.Join(dir, "state"), Now: time.Now},
		Spool:   spool.Spool{Dir: filepath.Join(dir, "spool"), Now: time.Now},
		Link:    link.File{Path: filepath.Join(dir, "service.json")},
		Service: func() (client.Service, error) { return m, nil },
		Poke:    func() {},
		Due:     func() bool { return false },
		Behind:  func() bool { return false },
		Log:     slog.New(slog.NewTextHandler(&log, nil)),
	}
	s := newSession(t)
	hook := func(event, more string) {
		a := Adapter() // each hook is a process of its own
		a.ReadLog = newLogs(s.logs.Root).turns
		payload := fmt.Sprintf(`{"hook_event_name":"x","session_id":%q,"cwd":"/p"%s}`, session, more)
		if out := run.Run(t.Context(), a, event, strings.NewReader(payload)); len(out) > 0 {
			t.Errorf("%s says %q", event, out)
		}
	}
	var want []string
	hook("session-start", `,"source":"startup"`)
	for i := range 100 {
		id := fmt.Sprintf("m%03d", i)
		hook("user-prompt-submit", fmt.Sprintf(`,"prompt":[{"type":"text","text":"question %d"}]`, i))
		s.write(prompt(i, id, fmt.Sprintf("question %d", i)))
		var behind sync.WaitGroup
		behind.Go(func() {
			end := strings.Join(step(i, "u"+id, fmt.Sprintf("answer %d", i), "end_turn"), "\n") + "\n"
			s.append(end[:len(end)/2])
			s.append(end[len(end)/2:])
		})
		hook("stop", `,"stop_hook_active":false`)
		behind.Wait()
		s.write(ended(i))
		want = append(want, fmt.Sprintf("%s:user question %d", id, i), fmt.Sprintf("%s:assistant answer %d", id, i))
	}
	if !slices.Equal(m.rows, want) {
		t.Errorf("the memory has\n%s\nwant\n%s\nlog:\n%s", strings.Join(m.rows, "\n"), strings.Join(want, "\n"), log.String())
	}
	if entries, err := run.Spool.List(); err != nil || len(entries) > 0 {
		t.Errorf("left in the spool: %+v, %v", entries, err)
	}
}

// TestFlatSession is not parallel: see [hosttest.Flat].
func TestFlatSession(t *testing.T) {
	s := newSession(t)
	adapter := func() *hooks.Adapter {
		a := Adapter()
		a.ReadLog = newLogs(s.logs.Root).turns
		return a
	}
	hosttest.Flat(t, session, adapter, func(kind hooks.Kind, turn int, text string) {
		id := fmt.Sprintf("m%03d", turn)
		if kind == hooks.TurnEnd {
			s.write(append(step(turn, "u"+id, text, "end_turn"), ended(turn))...)
			return
		}
		s.write(prompt(turn, id, text))
	})
}
