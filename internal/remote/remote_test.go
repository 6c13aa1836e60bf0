package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/gateway"
	"github.com/agentscope-ai/reme-hook/workspace"
)

const token = "s3same"

// place is where a service can be started and stopped.
type place struct {
	*testing.T
	address string
	server  *http.Server
	handler http.Handler
}

func newPlace(t *testing.T, h http.Handler) *place {
	p := &place{T: t, address: "127.0.0.1:0", handler: h}
	p.start()
	t.Cleanup(p.stop)
	return p
}

func (p *place) start() {
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		p.Fatal(err)
	}
	p.address = l.Addr().String()
	p.server = &http.Server{Handler: p.handler}
	go p.server.Serve(l)
}

func (p *place) stop() { p.server.Close() }

// memory is the memory at the place.
func (p *place) memory(token string) *Memory {
	p.Helper()
	m, err := New("http://"+p.address, token, gateway.Caller{Host: "codex", Cwd: "/src/höhle 7"})
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { m.Close() })
	return m
}

// newService makes the handler of a workspace.
func newService(t *testing.T) (http.Handler, *workspace.Workspace) {
	t.Helper()
	ws, err := workspace.Open(t.TempDir(), workspace.Options{Version: "1.2.3", Location: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	h, err := gateway.New(ws, gateway.Caller{}).Handler(gateway.HandlerOptions{Token: token, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return h, ws
}

// What the commands show is the same as from the workspace itself, also of a file
// that takes many answers.
func TestMemory(t *testing.T) {
	t.Parallel()
	h, ws := newService(t)
	m := newPlace(t, h).memory(token)
	var events []client.Event
	for i := range 40 {
		id := client.TurnID(string(rune('A' + i)))
		events = append(events, client.Event{ID: client.NewEventID(id, client.User, 1), Role: client.User, CreatedAt: time.Now(),
			Content: strings.Repeat("A line of "+string(id)+" [with brackets].\n\n", 200)})
	}
	if _, err := m.Append(t.Context(), client.AppendRequest{Session: client.Session{Host: "codex", Scope: "default", ID: "s"}, Events: events}); err != nil {
		t.Fatal(err)
	}
	want, err := ws.Sessions(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	list, err := m.Sessions(t.Context(), 0)
	if err != nil || len(list) != 1 || list[0].Path != want[0].Path || list[0].Turns != 40 {
		t.Fatalf("%+v, %v", list, err)
	}
	whole, err := ws.Read(t.Context(), want[0].Path, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.Read(t.Context(), list[0].Path, 0, 0); err != nil || got != whole {
		t.Errorf("%d bytes of %d, %v", len(got), len(whole), err)
	}
	if got, err := m.Read(t.Context(), list[0].Path, 3, 3); err != nil || strings.Count(got, "A line of C") != 200 || strings.Contains(got, "of D") {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if st, err := m.Stats(t.Context()); err != nil || st.Turns != 40 {
		t.Errorf("%+v, %v", st, err)
	}
	if _, err := m.Read(t.Context(), "digest/none.md", 0, 0); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("%v", err)
	}
}

// What a service says of its conversations cannot harm a terminal.
func TestSessionsHarmless(t *testing.T) {
	t.Parallel()
	m := newPlace(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		const evil = `"\u001b[2Jx\u202e\n"`
		fmt.Fprintf(w, `{"answer":"","success":true,"metadata":{"sessions":[{"host":%[1]s,"scope_id":%[1]s,"session_id":%[1]s,"key":%[1]s,"path":%[1]s,"cwd":%[1]s,"title":%[1]s}]}}`, evil)
	})).memory("")
	const text = "[2Jx"
	want := workspace.SessionSummary{Session: client.Session{Host: text, Scope: text, ID: text}, Key: text, Path: text, Cwd: text, Title: text}
	if got, err := m.Sessions(t.Context(), 0); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%+v, %v", got, err)
	}
}

// bridged connects a client through a bridge.
func bridged(t *testing.T, m *Memory) *mcp.ClientSession {
	t.Helper()
	near, far := mcp.NewInMemoryTransports()
	ended := make(chan error, 1)
	go func() { ended <- m.Bridge(context.WithoutCancel(t.Context()), far) }() // ended by its client
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), near, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

func callTool(t *testing.T, s *mcp.ClientSession, tool string, arguments map[string]any) (string, error) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return "", err
	}
	return r.Content[0].(*mcp.TextContent).Text, nil
}

// The bridge has the service's tools, and outlives the service.
func TestBridge(t *testing.T) {
	t.Parallel()
	h, _ := newService(t)
	var revision atomic.Value
	p := newPlace(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		revision.Store(r.Header.Get("Mcp-Protocol-Version"))
		h.ServeHTTP(w, r)
	}))
	s := bridged(t, p.memory(token))
	tools, err := s.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != len(gateway.Tools()) {
		t.Fatalf("%+v, %v", tools, err)
	}
	if got := revision.Load(); got == "" {
		t.Error("the revision of the protocol is not said")
	}
	if _, err := callTool(t, s, "remember", map[string]any{"content": "The staging quokka listens on port 6543."}); err != nil {
		t.Fatal(err)
	}
	var n sync.WaitGroup
	for range 20 {
		n.Go(func() {
			if got, err := callTool(t, s, "search", map[string]any{"query": "staging quokka"}); err != nil || !strings.Contains(got, "6543") {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
	n.Wait()
	for range 2 {
		p.stop()
		if got, err := callTool(t, s, "search", map[string]any{"query": "staging quokka"}); err == nil || !strings.Contains(err.Error(), "reme-hook doctor") {
			t.Errorf("of a service that is down: %s, %v", got, err)
		}
		p.start()
		if got, err := callTool(t, s, "search", map[string]any{"query": "staging quokka"}); err != nil || !strings.Contains(got, "6543") {
			t.Errorf("of a service that is up again: %s, %v", got, err)
		}
	}
}

// What the memory is asked for over the bridge, or by a job, has no secret in it and
// says who asks, as what is asked in-process does.
func TestAsked(t *testing.T) {
	t.Parallel()
	h, ws := newService(t)
	var mu sync.Mutex
	var wire []string
	p := newPlace(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		wire = append(wire, string(body))
		mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
	}))
	m := p.memory(token)
	s := bridged(t, m)
	const secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
	for name, ask := range map[string]func(tool string, arguments map[string]any) (string, error){
		"bridge": func(tool string, arguments map[string]any) (string, error) { return callTool(t, s, tool, arguments) },
		"job": func(tool string, arguments map[string]any) (string, error) {
			raw, err := json.Marshal(arguments)
			if err != nil {
				t.Fatal(err)
			}
			a, err := m.Tool(t.Context(), tool, raw)
			return a.Text(), err
		},
	} {
		if _, err := ask("search", map[string]any{"query": "quokka " + secret, "tags": []string{"a " + secret}, "limit": 7}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		told, err := ask("remember", map[string]any{"content": "The " + name + " quokka has the token " + secret + "."})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_, path, _ := strings.Cut(told, "reme://")
		path, _, _ = strings.Cut(path, ".md")
		note, err := ws.Read(t.Context(), path+".md", 0, 0)
		if err != nil || !strings.Contains(note, "host: codex\n") || !strings.Contains(note, "cwd: '/src/höhle 7'\n") {
			t.Errorf("%s: %s, %v", name, note, err)
		}
		if got, err := ask("read", map[string]any{"path": "reme://" + path + ".md", "start_line": 1}); err != nil || !strings.Contains(got, name+" quokka") {
			t.Errorf("%s: an address is not what it was: %s, %v", name, got, err)
		}
	}
	all := strings.Join(wire, "\n")
	if strings.Contains(all, secret) || strings.Count(all, "[redacted") != 6 || strings.Count(all, `"limit":7`) != 2 {
		t.Errorf("%s", all)
	}
}

// A service with sessions gets what it needs, also when it has forgotten ours.
func TestBridgeSessions(t *testing.T) {
	t.Parallel()
	newServer := func() http.Handler {
		server := mcp.NewServer(&mcp.Implementation{Name: "other", Version: "1"}, nil)
		mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct{ Text string }) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
		})
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	}
	p := newPlace(t, newServer())
	s := bridged(t, p.memory(""))
	for range 2 {
		if got, err := callTool(t, s, "echo", map[string]any{"Text": "hello"}); err != nil || got != "hello" {
			t.Errorf("%s, %v", got, err)
		}
	}
	p.stop()
	p.handler = newServer()
	p.start()
	if got, err := callTool(t, s, "echo", map[string]any{"Text": "hello"}); err != nil || got != "hello" {
		t.Errorf("started anew: %s, %v", got, err)
	}
}

// Without the token, the client is told so, not left waiting.
func TestBridgeRefused(t *testing.T) {
	t.Parallel()
	h, _ := newService(t)
	near, far := mcp.NewInMemoryTransports()
	m := newPlace(t, h).memory("another")
	go m.Bridge(t.Context(), far)
	_, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), near, nil)
	if err == nil || !strings.Contains(err.Error(), "Unauthorized") || strings.Contains(err.Error(), "another") {
		t.Error(err)
	}
}
