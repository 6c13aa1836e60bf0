package main

import (
	"cmp"
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// embedded is the workspace with the whole set in it.
type embedded struct {
	*workspace.Workspace
	notes map[string]string // path → id of the memory
}

// fill makes a workspace of the memories, as captures and `remember` would.
func (d *data) fill(ctx context.Context, dir string) (*embedded, error) {
	ws, err := workspace.Open(dir, workspace.Options{Now: func() time.Time { return clock }, Location: time.UTC})
	if err != nil {
		return nil, err
	}
	e := &embedded{ws, map[string]string{}}
	for _, m := range d.memories {
		if err := e.add(ctx, m); err != nil {
			return nil, fmt.Errorf("%s: %w", m.id, err)
		}
	}
	return e, nil
}

func (e *embedded) add(ctx context.Context, m memory) error {
	if m.isNote() {
		note, err := e.Remember(ctx, client.RememberRequest{Title: m.title, Content: m.turns[0].assistant, Cwd: m.cwd(), CreatedAt: m.at})
		e.notes[note.Path] = m.id
		return err
	}
	req := client.AppendRequest{Session: m.session(), Cwd: m.cwd()}
	for i, t := range m.turns {
		id, at := client.TurnID(fmt.Sprint(i)), m.at.Add(time.Duration(i)*time.Minute)
		req.Events = append(req.Events,
			client.Event{ID: client.NewEventID(id, client.User, 1), Role: client.User, Content: t.user, CreatedAt: at},
			client.Event{ID: client.NewEventID(id, client.Assistant, 1), Role: client.Assistant, Content: t.assistant, CreatedAt: at.Add(30 * time.Second)})
	}
	_, err := e.Append(ctx, req)
	return err
}

// ask answers a query as the hook of a prompt would.
func (e *embedded) ask(ctx context.Context, q query) (answer, error) {
	a := answer{query: q}
	if !hooks.WorthRecalling(q.text) {
		return a, nil
	}
	req := client.RecallRequest{Query: q.text, Cwd: q.cwd, Purpose: client.ForPrompt}
	if q.running != nil {
		if err := e.add(ctx, *q.running); err != nil {
			return a, err
		}
		s := q.running.session()
		req.Host, req.ScopeID, req.Session = s.Host, s.Scope, s.ID
	}
	res, why, err := e.Explain(ctx, req)
	a.task = why.Task
	for _, it := range res.Items {
		a.items = append(a.items, cmp.Or(e.notes[it.Path], it.SessionID))
		a.chars += utf8.RuneCountInString(it.Snippet)
	}
	for _, c := range why.Candidates {
		a.looked = append(a.looked, candidate{cmp.Or(e.notes[c.Path], c.SessionID), c})
	}
	return a, err
}
