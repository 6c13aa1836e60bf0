package client_test

import (
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/client/servicetest"
	"github.com/agentscope-ai/reme-hook/gateway"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// The service at a URL does what the embedded one does.
func TestService(t *testing.T) {
	servicetest.Run(t, func(t *testing.T) client.Ledger {
		const token = "s3same"
		ws, err := workspace.Open(t.TempDir(), workspace.Options{Version: "1.2.3"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ws.Close() })
		h, err := gateway.New(ws, gateway.Caller{}).Handler(gateway.HandlerOptions{Token: token, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		svc, err := client.NewHTTP(s.URL, token, nil)
		if err != nil {
			t.Fatal(err)
		}
		return svc
	})
}
