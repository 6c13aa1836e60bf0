package gateway

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
)

// The jobs of the service contract, see package client. The workspace checks the
// values.

func sessionAppend(ctx context.Context, g *Gateway, req client.AppendRequest) (Answer, error) {
	for i := range req.Events {
		req.Events[i].Content = hooks.Clean(req.Events[i].Content)
	}
	res, err := g.ws.Append(ctx, req)
	return withMetadata(fmt.Sprintf("%d events appended", res.Appended), res, err)
}

func sessionFlush(ctx context.Context, g *Gateway, req client.FlushRequest) (Answer, error) {
	res, err := g.ws.Flush(ctx, req)
	return withMetadata("queued", res, err)
}

func memoryRecall(ctx context.Context, g *Gateway, req client.RecallRequest) (Answer, error) {
	if req.Limit < 0 {
		return Answer{}, refuse("limit", "must be 1 or more")
	}
	if req.MaxChars < 0 {
		return Answer{}, refuse("max_chars", "must be 1 or more")
	}
	switch req.Purpose {
	case "", client.ForPrompt, client.ForSessionStart, client.ForCompact:
	default:
		return Answer{}, refuse("purpose", "must be prompt, session_start or compact")
	}
	res, err := g.ws.Recall(ctx, req)
	return withMetadata(fmt.Sprintf("%d memories", len(res.Items)), res, err)
}

func memoryRemember(ctx context.Context, g *Gateway, req client.RememberRequest) (Answer, error) {
	req.Content, req.Title = hooks.Clean(req.Content), hooks.Clean(req.Title)
	note, err := g.ws.Remember(ctx, req)
	return withMetadata("remembered in reme://"+note.Path, note, err)
}

// withMetadata is an answer whose metadata are a struct.
func withMetadata(text string, metadata any, err error) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}
	m, err := asMap(metadata)
	return answer(text, m), err
}

type empty struct{}

func version(ctx context.Context, g *Gateway, _ empty) (Answer, error) {
	info, err := g.ws.Info(ctx)
	return withMetadata(info.Version, info, err)
}

func healthCheck(ctx context.Context, g *Gateway, _ empty) (Answer, error) {
	info, err := g.ws.Info(ctx)
	if err != nil {
		return Answer{}, err
	}
	stats, err := g.ws.Stats(ctx)
	health := map[string]any{"version": info.Version, "healthy": err == nil, "index": stats.Index}
	text := "healthy"
	if err != nil {
		text = "not healthy: " + err.Error()
	}
	return answer(text, map[string]any{"health": health}), nil
}

func status(ctx context.Context, g *Gateway, _ empty) (Answer, error) {
	stats, err := g.ws.Stats(ctx)
	if err != nil {
		return Answer{}, err
	}
	return answer(fmt.Sprintf("%d turns, %d sessions, %d notes", stats.Turns, stats.Sessions, stats.Notes), map[string]any{"status": stats}), nil
}

func help(_ context.Context, g *Gateway, _ empty) (Answer, error) {
	var lines []string
	list := []map[string]any{}
	for _, j := range g.jobs {
		schema, err := j.Schema()
		if err != nil {
			return Answer{}, err
		}
		lines = append(lines, fmt.Sprintf("`%s`: %s", j.Name, j.Description))
		list = append(list, map[string]any{"name": j.Name, "description": j.Description, "tool": j.Tool, "parameters": schema})
	}
	return answer(strings.Join(lines, "\n"), map[string]any{"job_count": len(list), "jobs": list}), nil
}
