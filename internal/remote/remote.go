// Package remote is the memory at a URL as the commands use it: the service
// contract, and the jobs that show what a memory holds.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/gateway"
	"github.com/agentscope-ai/reme-hook/internal/harmless"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// Memory is the memory at a URL.
type Memory struct{ *client.HTTP }

// New makes the memory at a URL for who asks; see [client.NewHTTP].
func New(url, token string, caller gateway.Caller) (*Memory, error) {
	h, err := client.NewHTTP(url, token, caller.Header())
	if err != nil {
		return nil, err
	}
	return &Memory{h}, nil
}

// ask does a job and reads its metadata.
func (m *Memory) ask(ctx context.Context, job string, request, metadata any) (client.Answer, error) {
	a, err := m.Job(ctx, job, request)
	if err != nil {
		return a, err
	}
	if !a.Success {
		return a, errors.New(harmless.Text(a.Text()))
	}
	if err := json.Unmarshal(a.Metadata, metadata); err != nil {
		return a, fmt.Errorf("%s: %s answers with something else: %w", m.URL(), job, err)
	}
	return a, nil
}

// Sessions lists the conversations of the memory, newest first; a limit of 0 means
// all.
func (m *Memory) Sessions(ctx context.Context, limit int) ([]workspace.SessionSummary, error) {
	var list struct {
		Sessions []workspace.SessionSummary `json:"sessions"`
	}
	_, err := m.ask(ctx, "sessions", map[string]any{"limit": limit}, &list)
	for i := range list.Sessions {
		s := &list.Sessions[i]
		for _, text := range []*string{&s.Key, &s.Title, &s.Path, &s.Cwd, (*string)(&s.Host), &s.Scope, &s.ID} {
			*text = harmless.Line(*text)
		}
	}
	return list.Sessions, err
}

// maxPages bounds what Read asks for.
const maxPages = 100

// Read returns the lines start to end of a file of the memory, or all that there
// are if both are 0.
func (m *Memory) Read(ctx context.Context, name string, start, end int) (string, error) {
	var text strings.Builder
	for range maxPages {
		request := map[string]any{"path": name}
		if start > 0 {
			request["start_line"] = start
		}
		if end > 0 {
			request["end_line"] = end
		}
		var page struct {
			Path string `json:"path"`
			Next int    `json:"next_line"` // to go on with
		}
		a, err := m.ask(ctx, "read", request, &page)
		if err != nil {
			return "", err
		}
		body := harmless.Text(a.Text())
		if page.Next <= start {
			text.WriteString(body)
			break
		}
		// What is beyond is a word to a model that there is more.
		if i := strings.LastIndex(body, "\n\n["); i >= 0 {
			body = body[:i]
		}
		text.WriteString(body + "\n")
		name, start = page.Path, page.Next
	}
	return text.String(), nil
}

// Stats tells what the memory holds.
func (m *Memory) Stats(ctx context.Context) (workspace.Stats, error) {
	var st struct {
		Status workspace.Stats `json:"status"`
	}
	_, err := m.ask(ctx, "status", struct{}{}, &st)
	return st.Status, err
}

// Drain does nothing: a service does what is queued by itself.
func (m *Memory) Drain(context.Context, time.Duration) error { return nil }

// Close lets go of the connections.
func (m *Memory) Close() error {
	m.Client().CloseIdleConnections()
	return nil
}
