package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connect is an MCP client of the world, at a protocol revision.
func (w *world) connect(revision string, log io.Writer) *mcp.ClientSession {
	w.Helper()
	server, err := w.MCP(slog.New(slog.NewJSONHandler(log, nil)))
	if err != nil {
		w.Fatal(err)
	}
	there, here := mcp.NewInMemoryTransports()
	if _, err := server.Connect(w.Context(), Answering(there), nil); err != nil {
		w.Fatal(err)
	}
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(w.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { c.Close() })
	return c
}

func textOf(t *testing.T, r *mcp.CallToolResult, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Content) != 1 || r.StructuredContent != nil {
		t.Fatalf("%+v", r)
	}
	return r.Content[0].(*mcp.TextContent).Text
}

// The tools as a model sees them: a change here is a change for every model.
func TestToolList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	list, err := w.connect("2025-11-25", io.Discard).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "tools", list.Tools)
}

func TestMCP(t *testing.T) {
	t.Parallel()
	for _, revision := range mcp.SupportedProtocolVersions() {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			w := filled(t)
			var log bytes.Buffer
			c := w.connect(revision, &log)
			if got := c.InitializeResult(); got.ProtocolVersion != revision || got.ServerInfo.Name != "reme" || got.ServerInfo.Version != "1.2.3" ||
				!strings.Contains(got.Instructions, "not instructions") || got.Capabilities.Tools == nil || got.Capabilities.Resources != nil {
				t.Errorf("%+v", got)
			}
			for _, test := range []struct {
				tool      string
				arguments any
				isError   bool
				want      string
			}{
				{"search", map[string]any{"query": "osprey freeze"}, false, "========== reme://session/dialog/codex/"},
				{"search", map[string]any{"query": "qqqzzz"}, false, nothing},
				{"search", map[string]any{"query": 5}, true, "Error: query: must be a text"},
				{"search", nil, true, "Error: query: is required"},
				{"read", map[string]any{"path": "reme://digest/reviews.md#L6-L6"}, false, "Each review of Juniper takes an hour."},
				{"read", map[string]any{"path": "digest/none.md"}, true, "Error: file digest/none.md does not exist"},
				{"traverse", map[string]any{"path": "digest/reviews.md"}, false, `{"depth":1,"direction":"both","edges":[{"depth":1,"source":"daily/2026-11-29/juniper.md"`},
				{"daily_list", nil, false, "No notes found for 2026-11-30"},
				{"remember", map[string]any{"content": "The quokka listens on port 6543."}, false, "Remembered in reme://daily/2026-11-30/"},
				{"daily_list", map[string]any{}, false, "- path: daily/2026-11-30/"},
			} {
				r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: test.tool, Arguments: test.arguments})
				if got := textOf(t, r, err); !strings.HasPrefix(got, test.want) || r.IsError != test.isError {
					t.Errorf("%s %v: error %v, %s", test.tool, test.arguments, r.IsError, got)
				}
			}
			for _, name := range []string{"agent_session_append", "status", "delete"} {
				if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name}); err == nil {
					t.Errorf("%s is a tool", name)
				}
			}
			c.Close()
			if strings.Contains(log.String(), "osprey") || strings.Contains(log.String(), "quokka") || strings.Count(log.String(), `"tool":`) != 10 {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}

// What was asked before the client closed its end is answered.
func TestAnswersAfterEOF(t *testing.T) {
	t.Parallel()
	w := filled(t)
	server, err := w.MCP(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	const asked = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search","arguments":{"query":"juniper"}}}
{"jsonrpc":"2.0","id":3,"method":"nonsense"}
`
	for range 20 {
		var out bytes.Buffer
		err = server.Run(t.Context(), Answering(&mcp.IOTransport{Reader: io.NopCloser(strings.NewReader(asked)), Writer: nopCloser{&out}}))
		if err != nil || strings.Count(out.String(), "\n") != 3 {
			t.Fatalf("%v: %s", err, out.String())
		}
	}
}

// A client that is gone altogether is not waited for.
func TestEndsWithoutAnswers(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(mcp.Connection){
		"broken pipe": func(c mcp.Connection) { c.Write(t.Context(), &jsonrpc.Request{Method: "log"}) },
		"closed":      func(c mcp.Connection) { c.Close() },
	} {
		const asked = `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
		pipe := &mcp.IOTransport{Reader: io.NopCloser(strings.NewReader(asked)), Writer: nopCloser{broken{}}}
		c, err := Answering(pipe).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		end(c)
		if _, err := c.Read(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// A server that is told to end does so, whatever its client does.
func TestEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server, err := w.MCP(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	in, _ := io.Pipe()
	done := make(chan error)
	go func() {
		done <- server.Run(ctx, Answering(&mcp.IOTransport{Reader: in, Writer: nopCloser{io.Discard}}))
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
