// Package gateway offers a workspace to others by jobs: the tools that a model
// may call, and what integrations need. One table of jobs serves every way in.
//
// # Promises
//
// A job is described by its Go request type: its JSON schema is made of that and
// requests are read by it. A request that is not understood is refused with the
// field and the reason, before anything is done. Answers have ReMe's envelope and
// shapes. Text of the memory is data: it cannot close or imitate the frame in
// which hooks show memories.
//
// # What it refuses
//
// A model can search, read and remember. Nothing that appends to a conversation,
// deletes, overwrites or names a file to write is a tool.
//
// # What survives a crash
//
// It keeps nothing but a cache; the promises of package workspace hold.
package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// Gateway answers jobs from a workspace. It is safe for concurrent use.
type Gateway struct {
	ws     *workspace.Workspace
	links  *workspace.Links
	tools  []Job // the only ones that MCP clients are offered
	jobs   []Job // all
	caller Caller
	limit  time.Duration // of a call
}

// New makes a gateway for a caller. The workspace stays open.
func New(ws *workspace.Workspace, caller Caller) *Gateway {
	tools := Tools()
	return &Gateway{ws: ws, links: ws.Links(), tools: tools, jobs: slices.Concat(tools, Internal()), caller: caller, limit: callLimit}
}

func (g *Gateway) isTool(name string) bool { return slices.Contains(names(g.tools), name) }

// Answer is ReMe's envelope.
type Answer struct {
	Answer   any            `json:"answer"` // mostly a text for a model
	Success  bool           `json:"success"`
	Metadata map[string]any `json:"metadata"`
}

func answer(a any, metadata map[string]any) Answer {
	if metadata == nil {
		metadata = map[string]any{}
	}
	return Answer{Answer: a, Success: true, Metadata: metadata}
}

// Failure is the envelope of an error.
func Failure(err error) Answer {
	metadata := map[string]any{}
	if e := new(client.Error); errors.As(err, &e) && e.Field != "" {
		metadata["field"], metadata["reason"] = e.Field, e.Reason
	}
	return Answer{Answer: "Error: " + err.Error(), Metadata: metadata}
}

// callLimit is far beyond what a job takes, but for the first one on a large
// workspace without an index.
const callLimit = time.Minute

// Call does a job. The arguments are a JSON object, or nothing. A bad request is
// a permanent [*client.Error]; it is of the field "job" if there is no such job.
func (g *Gateway) Call(ctx context.Context, name string, arguments []byte) (a Answer, err error) {
	i := slices.IndexFunc(g.jobs, func(j Job) bool { return j.Name == name })
	if i < 0 {
		return a, &client.Error{Class: client.Permanent, Field: jobField, Reason: "must be one of " + strings.Join(names(g.jobs), ", ")}
	}
	ctx, cancel := context.WithTimeout(ctx, g.limit)
	defer cancel()
	defer func() {
		// One bad request must not end the service of all others.
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: internal error: %T", name, p)
		}
	}()
	// A model would think that a field which its tool does not know was heeded; an
	// integration may be newer than we are.
	return g.jobs[i].run(ctx, g, arguments, g.isTool(name))
}

// Do does a job as [Gateway.Call] does and makes an envelope of an error too. way
// is how it was asked for. Nothing of what is asked or answered goes into the log.
func (g *Gateway) Do(ctx context.Context, log *slog.Logger, way, name string, arguments []byte) Answer {
	start := time.Now()
	a, err := g.Call(ctx, name, arguments)
	attrs := []any{"tool", name, "took_ms", time.Since(start).Milliseconds(), "ok", err == nil && a.Success}
	if err != nil {
		attrs = append(attrs, "class", client.ClassOf(err).String())
		a = Failure(err)
	}
	log.Info(way, attrs...)
	return a
}

func refuse(field, reason string) error {
	return &client.Error{Class: client.Permanent, Field: field, Reason: reason}
}

// asMap makes metadata of a struct.
func asMap(v any) (map[string]any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	err = json.Unmarshal(raw, &m)
	return m, err
}
