package cmd

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agentscope-ai/reme-hook/gateway"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// scriptMemory is a service that a script has started.
type scriptMemory struct {
	server *http.Server
	ws     *workspace.Workspace
	url    string
}

func (m *scriptMemory) stop() {
	m.server.Close()
	m.ws.Close()
}

type memoryKey struct{}

// setUpMemory gives a script a place for its service.
func setUpMemory(e *testscript.Env) {
	var m *scriptMemory
	e.Values[memoryKey{}] = &m
	e.Defer(func() {
		if m != nil {
			m.stop()
		}
	})
}

// runMemory is "memory start <token> [<contract>]" or "memory stop": a service on
// loopback, that may claim another version of the contract, at the URL $SERVICE and, by a name that Go's own rules send through a proxy,
// $LOCALNAME, with its workspace in $WORK/served. Started again, it is at the
// same URL.
func runMemory(ts *testscript.TestScript, neg bool, args []string) {
	slot := ts.Value(memoryKey{}).(**scriptMemory)
	switch {
	case neg:
	case len(args) == 1 && args[0] == "stop" && *slot != nil:
		(*slot).stop()
		*slot = nil
		return
	case (len(args) == 2 || len(args) == 3) && args[0] == "start" && *slot == nil:
		now, err := time.Parse(time.RFC3339, ts.Getenv("TEST_NOW"))
		ts.Check(err)
		ws, err := workspace.Open(filepath.Join(ts.Getenv("WORK"), "served"), workspace.Options{
			Now: func() time.Time { return now }, Location: time.UTC, Version: "1.2.3",
		})
		ts.Check(err)
		h, err := gateway.New(ws, gateway.Caller{}).Handler(gateway.HandlerOptions{Token: args[1], Log: slog.New(slog.DiscardHandler)})
		ts.Check(err)
		if len(args) == 3 {
			h = claiming(h, args[2])
		}
		address := "127.0.0.1:0"
		if url := ts.Getenv("SERVICE"); url != "" {
			address = url[len("http://"):]
		}
		l, err := net.Listen("tcp", address)
		ts.Check(err)
		*slot = &scriptMemory{&http.Server{Handler: h}, ws, "http://" + l.Addr().String()}
		go (*slot).server.Serve(l)
		ts.Setenv("SERVICE", (*slot).url)
		ts.Setenv("LOCALNAME", strings.Replace((*slot).url, "127.0.0.1", "memory.localhost", 1))
		return
	}
	ts.Fatalf("usage: memory start <token> [<contract>] | memory stop")
}

// claiming is a service that speaks a version of the contract.
func claiming(h http.Handler, contract string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			h.ServeHTTP(w, r)
			return
		}
		fmt.Fprintf(w, `{"answer":"","success":true,"metadata":{"name":"fancy","version":"9","integration_api_version":%q}}`, contract)
	})
}
