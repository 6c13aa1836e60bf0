package gateway

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// timeouts cut clients that are too slow, and bound the end of a server.
type timeouts struct {
	header, idle, write time.Duration
	end                 time.Duration
	drain               time.Duration // between two looks at the queue
}

var serveTimeouts = timeouts{
	header: 10 * time.Second, idle: 2 * time.Minute, write: 2*patience + bodyTime + callLimit + 30*time.Second,
	end: 10 * time.Second, drain: 30 * time.Second,
}

// maxHeader is the size of a request's headers in bytes, at most.
const maxHeader = 32 << 10

// ServeOptions are what a server takes from outside.
type ServeOptions struct {
	HandlerOptions
	Certificate *tls.Certificate // nil means no TLS
}

// Serve answers on a listener until ctx ends, and extracts queued sessions
// meanwhile, see [workspace.Workspace.Drain]. Then it takes no more requests, ends
// those that have begun, and extracts the sessions that are left; after ten
// seconds it leaves the rest in the queue. It closes the listener.
func (g *Gateway) Serve(ctx context.Context, l net.Listener, o ServeOptions) error {
	return g.serve(ctx, l, o, newLimits(), serveTimeouts)
}

func (g *Gateway) serve(ctx context.Context, l net.Listener, o ServeOptions, limits *limits, t timeouts) error {
	h, err := g.handler(o.HandlerOptions, limits)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: t.header, IdleTimeout: t.idle, WriteTimeout: t.write, MaxHeaderBytes: maxHeader,
		ErrorLog: stdlog.New(io.Discard, "", 0), // it would tell what clients have sent
	}
	ended := make(chan error, 1)
	go func() {
		if o.Certificate == nil {
			ended <- server.Serve(l)
			return
		}
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*o.Certificate}}
		ended <- server.ServeTLS(l, "", "")
	}()
	working, stop := context.WithCancel(ctx)
	defer stop()
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		g.drain(working, o.Log, t.drain)
	}()
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	stop()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.end)
	defer cancel()
	if server.Shutdown(last) != nil {
		_ = server.Close()
	}
	<-idle
	if derr := g.ws.Drain(last, 0); derr != nil {
		o.Log.Warn("drain at the end", "class", client.ClassOf(derr).String(), "in_time", last.Err() == nil)
	}
	return err
}

// drain looks at the queue again and again.
func (g *Gateway) drain(ctx context.Context, log *slog.Logger, every time.Duration) {
	for {
		if err := g.ws.Drain(ctx, workspace.Settled); err != nil && ctx.Err() == nil {
			log.Warn("drain", "class", client.ClassOf(err).String())
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}

// Listen opens a port, given as host:port. Beyond the loopback it takes a token:
// whoever reaches the port can read the memory. If the port is taken, the error
// says by whom.
func Listen(ctx context.Context, address string, token bool) (net.Listener, error) {
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	if !token && !a.IP.IsLoopback() {
		return nil, fmt.Errorf("%s can be reached from other machines: set a token first", address)
	}
	l, err := net.ListenTCP("tcp", a)
	if err != nil {
		if there := who(ctx, a); there != "" {
			return nil, fmt.Errorf("%s is taken: %s", address, there)
		}
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}

// whoTime is what a ReMe needs at most to tell its version.
const whoTime = 2 * time.Second

// who tells which service listens at an address, "" if none does.
func who(ctx context.Context, a *net.TCPAddr) string {
	if a.IP.IsUnspecified() || a.IP == nil {
		a = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: a.Port}
	}
	ctx, cancel := context.WithTimeout(ctx, whoTime)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", a.String())
	if err != nil {
		return ""
	}
	c.Close()
	const stranger = "another program listens there"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+a.String()+"/version", strings.NewReader("{}")) // a ReMe wants an object
	if err != nil {
		return stranger
	}
	r.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{} // without a proxy
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(r)
	if err != nil {
		return stranger
	}
	defer res.Body.Close()
	var told struct {
		Success  *bool
		Metadata struct{ Name, Version, Field string }
	}
	switch err := json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&told); {
	case err != nil || told.Success == nil:
		return stranger
	case told.Metadata.Name == workspace.ServiceName:
		return "reme-hook " + told.Metadata.Version + " serves there already"
	case told.Metadata.Version != "":
		return "ReMe " + told.Metadata.Version + " serves there already"
	case res.StatusCode == http.StatusUnauthorized:
		return "a memory service that wants a token serves there already"
	}
	return stranger
}
