package cmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/gateway"
	"github.com/agentscope-ai/reme-hook/internal/config"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// serveOptions are those of serve, which service puts into its command line.
type serveOptions struct {
	listen  string
	tlsCert string
	tlsKey  string
}

func (o *serveOptions) addFlags(c *cobra.Command) {
	c.Flags().StringVar(&o.listen, "listen", "", "where to listen, `host:port`; port 0 is any free one (default: listen in config.toml, 127.0.0.1:2334)")
	c.Flags().StringVar(&o.tlsCert, "tls-cert", "", "serve HTTPS with the certificate in this PEM `file`")
	c.Flags().StringVar(&o.tlsKey, "tls-key", "", "and the key in this one")
}

func (o *serveOptions) check() error {
	if o.listen != "" {
		if err := config.CheckAddress(o.listen); err != nil {
			return usageError{fmt.Errorf("--listen: %w", err)}
		}
	}
	if (o.tlsCert == "") != (o.tlsKey == "") {
		return usageError{errors.New("--tls-cert and --tls-key go together")}
	}
	return nil
}

func newServeCommand(a *app) *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:     "serve",
		Short:   "Give the memory to programs, MCP clients and other machines over HTTP",
		GroupID: groupMemory,
		Long: `Serve the memory on one port: POST /<job> with JSON, and the Model Context Protocol
(streamable HTTP) at /mcp with the tools that 'reme-hook mcp' has. GET /openapi.json
describes all jobs, GET /healthz answers once it is up. It prints its URL when it is
ready, writes the notes of sessions that have been silent for ten minutes, and ends
on SIGINT and SIGTERM. Hooks do not need it; it may run beside them.

Other machines can reach it only if token is set in config.toml (or REME_TOKEN); then
every request must have the header 'Authorization: Bearer <token>'. 'reme-hook service
install' starts it with your session.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return a.withWorkspace(func(ws *workspace.Workspace) error { return a.serve(c.Context(), ws, o) })
		},
	}
	o.addFlags(c)
	return c
}

// serve ends without an error when it is told to end.
func (a *app) serve(ctx context.Context, ws *workspace.Workspace, o serveOptions) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // who asks again need not wait
	defer stop()
	address := a.config.Listen
	if o.listen != "" {
		address = o.listen
	}
	for _, p := range a.problems {
		// What was to be a token is not the same as none.
		if a.config.Token == "" && (p.Key == "token" || p.Key == "") || o.listen == "" && p.Key == "listen" {
			return fmt.Errorf("the configuration is not safe to serve with: %w", p)
		}
	}
	scheme := "http"
	options := gateway.ServeOptions{HandlerOptions: gateway.HandlerOptions{Token: a.config.Token, Log: a.log()}}
	if o.tlsCert != "" {
		cert, err := tls.LoadX509KeyPair(o.tlsCert, o.tlsKey)
		if err != nil {
			return fmt.Errorf("read the certificate: %w", err)
		}
		scheme, options.Certificate = "https", &cert
	}
	l, err := gateway.Listen(ctx, address, a.config.Token != "")
	if err != nil {
		return err
	}
	url := scheme + "://" + l.Addr().String()
	fmt.Fprintf(a.stdout, "ready on %s (MCP clients: %s/mcp)\n", url, url)
	go a.pokeAgainAndAgain(ctx)
	return gateway.New(ws, gateway.Caller{}).Serve(ctx, l, options)
}

// pokeAgainAndAgain has waiting turns delivered also when no hook is called.
func (a *app) pokeAgainAndAgain(ctx context.Context) {
	for {
		a.pokeIfDue()
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Minute):
		}
	}
}
