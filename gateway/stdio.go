package gateway

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Answering makes a transport whose client gets its answers although it has
// closed its end. The SDK cancels them, so that of what a script writes into a
// pipe at once only the first is answered.
func Answering(t mcp.Transport) mcp.Transport { return answering{t} }

type answering struct{ mcp.Transport }

func (t answering) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &answeringConn{Connection: c, calls: map[jsonrpc.ID]bool{}, done: make(chan struct{})}, nil
}

type answeringConn struct {
	mcp.Connection

	mu     sync.Mutex
	calls  map[jsonrpc.ID]bool // to be answered
	ended  bool                // no more will come
	broken bool                // no answer can be written
	done   chan struct{}       // closed when ended, and answered or broken
}

func (c *answeringConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if req, ok := msg.(*jsonrpc.Request); ok && err == nil && req.IsCall() {
		c.update(func() { c.calls[req.ID] = true })
	}
	if errors.Is(err, io.EOF) {
		c.update(func() { c.ended = true })
		<-c.done
	}
	return msg, err
}

func (c *answeringConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	err := c.Connection.Write(ctx, msg)
	c.update(func() {
		if r, ok := msg.(*jsonrpc.Response); ok {
			delete(c.calls, r.ID)
		}
		c.broken = c.broken || err != nil
	})
	return err
}

func (c *answeringConn) Close() error {
	c.update(func() { c.broken = true })
	return c.Connection.Close()
}

func (c *answeringConn) update(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.settled()
	change()
	if !before && c.settled() {
		close(c.done)
	}
}

func (c *answeringConn) settled() bool { return c.ended && (len(c.calls) == 0 || c.broken) }
