package gateway

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// The jobs of the service contract, see package client. The workspace checks the
// values.

func sessionAppend(ctx context.Context, g *Gateway, req client.AppendRequest) (string, client.AppendResult, error) {
	for i := range req.Events {
		req.Events[i].Content = hooks.Clean(req.Events[i].Content)
	}
	res, err := g.ws.Append(ctx, req)
	return fmt.Sprintf("%d events appended", res.Appended), res, err
}

func sessionEvents(ctx context.Context, g *Gateway, req client.SessionEventsRequest) (string, client.SessionEventsResult, error) {
	res, err := g.ws.SessionEvents(ctx, req)
	return fmt.Sprintf("%d of %d events", len(res.Events), res.Total), res, err
}

func sessionFlush(ctx context.Context, g *Gateway, req client.FlushRequest) (string, client.FlushResult, error) {
	res, err := g.ws.Flush(ctx, req)
	return "queued", res, err
}

func memoryRecall(ctx context.Context, g *Gateway, req client.RecallRequest) (string, client.RecallResult, error) {
	if req.Limit < 0 {
		return "", client.RecallResult{}, refuse("limit", "must be 1 or more")
	}
	if req.MaxChars < 0 {
		return "", client.RecallResult{}, refuse("max_chars", "must be 1 or more")
	}
	switch req.Purpose {
	case "", client.ForPrompt, client.ForSessionStart, client.ForCompact:
	default:
		return "", client.RecallResult{}, refuse("purpose", "must be prompt, session_start or compact")
	}
	res, err := g.ws.Recall(ctx, req)
	return fmt.Sprintf("%d memories", len(res.Items)), res, err
}

func memoryRemember(ctx context.Context, g *Gateway, req client.RememberRequest) (string, client.Note, error) {
	req.Content, req.Title = hooks.Clean(req.Content), hooks.Clean(req.Title)
	note, err := g.ws.Remember(ctx, req)
	return "remembered in reme://" + note.Path, note, err
}

type sessionsRequest struct {
	Limit int `json:"limit,omitempty"` // 0 means all
}

type sessionsResult struct {
	Sessions []workspace.SessionSummary `json:"sessions"`
}

func sessions(ctx context.Context, g *Gateway, req sessionsRequest) (string, sessionsResult, error) {
	if req.Limit < 0 {
		return "", sessionsResult{}, refuse("limit", "must be 1 or more")
	}
	list, err := g.ws.Sessions(ctx, req.Limit)
	return fmt.Sprintf("%d sessions", len(list)), sessionsResult{list}, err
}

type empty struct{}

func version(ctx context.Context, g *Gateway, _ empty) (string, client.Info, error) {
	info, err := g.ws.Info(ctx)
	return info.Version, info, err
}

type healthMetadata struct {
	Health health `json:"health"`
}

type health struct {
	Version string               `json:"version"`
	Healthy bool                 `json:"healthy"`
	Index   workspace.IndexState `json:"index"`
}

func healthCheck(ctx context.Context, g *Gateway, _ empty) (string, healthMetadata, error) {
	info, err := g.ws.Info(ctx)
	if err != nil {
		return "", healthMetadata{}, err
	}
	stats, err := g.ws.Stats(ctx)
	text := "healthy"
	if err != nil {
		text = "not healthy: " + err.Error()
	}
	return text, healthMetadata{health{info.Version, err == nil, stats.Index}}, nil
}

type statusMetadata struct {
	Status workspace.Stats `json:"status"`
}

func status(ctx context.Context, g *Gateway, _ empty) (string, statusMetadata, error) {
	stats, err := g.ws.Stats(ctx)
	return fmt.Sprintf("%d turns, %d sessions, %d notes", stats.Turns, stats.Sessions, stats.Notes), statusMetadata{stats}, err
}

type helpMetadata struct {
	Count int       `json:"job_count"`
	Jobs  []helpJob `json:"jobs"`
}

type helpJob struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Tool        bool   `json:"tool"`               // a model may call it
	Parameters  any    `json:"parameters"`         // JSON schema of the request
	Metadata    any    `json:"metadata,omitempty"` // JSON schema of an answer's metadata
}

func help(_ context.Context, g *Gateway, _ empty) (string, helpMetadata, error) {
	var lines []string
	m := helpMetadata{Count: len(g.jobs)}
	for _, j := range g.jobs {
		request, metadata, err := g.schemas(j)
		if err != nil {
			return "", m, err
		}
		h := helpJob{Name: j.Name, Description: j.Description, Tool: g.isTool(j.Name), Parameters: request}
		if metadata != nil {
			h.Metadata = metadata
		}
		m.Jobs = append(m.Jobs, h)
		lines = append(lines, fmt.Sprintf("`%s`: %s", j.Name, j.Description))
	}
	return strings.Join(lines, "\n"), m, nil
}
