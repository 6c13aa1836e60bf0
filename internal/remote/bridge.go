package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolLimit bounds a call of a tool.
const toolLimit = time.Minute

// Bridge passes the messages of an MCP client on to the service's /mcp, without the
// secrets that its calls may have in them, and the answers back, until the client ends or ctx does. A call that the service does
// not answer is answered with an error. A service that was down or started anew
// is met again by the next call, as if it had been there all the time.
func (m *Memory) Bridge(ctx context.Context, agent mcp.Transport) error {
	near, err := agent.Connect(ctx)
	if err != nil {
		return err
	}
	defer near.Close()
	b := &bridge{near: near, url: m.URL(), calls: map[jsonrpc.ID]call{}}
	b.transport = &mcp.StreamableClientTransport{
		Endpoint: m.URL() + "/mcp", DisableStandaloneSSE: true, MaxRetries: -1,
		HTTPClient: &http.Client{Transport: revised{m.Client().Transport, &b.revision}, CheckRedirect: m.Client().CheckRedirect},
	}
	defer b.drop(nil, nil)
	for {
		msg, err := near.Read(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		b.pass(ctx, msg)
	}
}

// revised says in each request which revision of the protocol was agreed upon, as
// the client of the SDK does that does not only pass messages on.
type revised struct {
	http.RoundTripper
	revision *atomic.Pointer[string]
}

// RoundTrip implements http.RoundTripper.
func (r revised) RoundTrip(req *http.Request) (*http.Response, error) {
	const header = "Mcp-Protocol-Version"
	if revision := r.revision.Load(); revision != nil && req.Header.Get(header) == "" {
		req = req.Clone(req.Context())
		req.Header.Set(header, *revision)
	}
	return r.RoundTripper.RoundTrip(req)
}

type bridge struct {
	near      mcp.Connection
	transport *mcp.StreamableClientTransport
	url       string
	revision  atomic.Pointer[string]

	mu      sync.Mutex
	far     mcp.Connection      // nil until the first message, and after a failure
	opening []*jsonrpc.Request  // with which the client began
	calls   map[jsonrpc.ID]call // that wait for an answer
}

// call is one that was passed on.
type call struct {
	over       mcp.Connection
	initialize bool
	cancel     context.CancelFunc
}

// pass hands on one message. Those with which a session begins go one after the
// other; calls do not wait for each other.
func (b *bridge) pass(ctx context.Context, msg jsonrpc.Message) {
	req, ok := msg.(*jsonrpc.Request)
	if ok {
		cleanCall(req)
	}
	far, err := b.connect(ctx)
	switch {
	case !ok || !req.IsCall():
		if ok && req.Method == "notifications/initialized" {
			b.open(req)
		}
		if err == nil {
			_ = far.Write(ctx, msg) // nobody waits for an answer; the next call tells what is wrong
		}
	case err != nil:
		b.fail(req.ID, err)
	case req.Method == "initialize":
		b.open(req)
		b.call(ctx, far, req)
	default:
		go b.call(ctx, far, req)
	}
}

// open keeps the message for a service that is started anew.
func (b *bridge) open(req *jsonrpc.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if req.IsCall() {
		b.opening = nil
	}
	b.opening = append(b.opening, req)
}

// call passes on one call. If the service was started anew and has forgotten the
// session, it is met again first.
func (b *bridge) call(ctx context.Context, far mcp.Connection, req *jsonrpc.Request) {
	err := b.send(ctx, far, req)
	if errors.Is(err, mcp.ErrSessionMissing) {
		b.settle(req.ID)
		b.drop(far, err)
		if far, err = b.connect(ctx); err == nil {
			err = b.send(ctx, far, req)
		}
	}
	if err != nil {
		b.fail(req.ID, err) // if the connection is of no more use, listen is told as well
	}
}

func (b *bridge) send(ctx context.Context, far mcp.Connection, req *jsonrpc.Request) error {
	ctx, cancel := context.WithTimeout(ctx, toolLimit)
	b.mu.Lock()
	b.calls[req.ID] = call{far, req.Method == "initialize", cancel}
	b.mu.Unlock()
	return far.Write(ctx, req)
}

// connect returns the connection to the service. A new one begins as the client
// began, so that the service knows it.
func (b *bridge) connect(ctx context.Context) (mcp.Connection, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.far != nil {
		return b.far, nil
	}
	far, err := b.transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, req := range b.opening {
		if err := repeat(ctx, far, req); err != nil {
			far.Close()
			return nil, err
		}
	}
	b.far = far
	go b.listen(ctx, far)
	return far, nil
}

// repeat sends a message once more; the client has had the answer.
func repeat(ctx context.Context, far mcp.Connection, req *jsonrpc.Request) error {
	ctx, cancel := context.WithTimeout(ctx, toolLimit)
	defer cancel()
	if err := far.Write(ctx, req); err != nil || !req.IsCall() {
		return err
	}
	for {
		msg, err := far.Read(ctx)
		if err != nil {
			return err
		}
		if res, ok := msg.(*jsonrpc.Response); ok && res.ID == req.ID {
			return res.Error
		}
	}
}

// listen passes back what the service says.
func (b *bridge) listen(ctx context.Context, far mcp.Connection) {
	for {
		msg, err := far.Read(ctx)
		if err != nil {
			b.drop(far, err)
			return
		}
		if res, ok := msg.(*jsonrpc.Response); ok {
			c, waits := b.settle(res.ID)
			if !waits {
				continue
			}
			if c.initialize {
				b.agree(res)
			}
		}
		_ = b.near.Write(ctx, msg) // a client that is gone is found out by Read
	}
}

// agree notes the revision of the protocol that the service has chosen.
func (b *bridge) agree(res *jsonrpc.Response) {
	var result struct {
		Revision string `json:"protocolVersion"`
	}
	if json.Unmarshal(res.Result, &result) == nil && result.Revision != "" {
		b.revision.Store(&result.Revision)
	}
}

// settle takes a call off the list of those that wait.
func (b *bridge) settle(id jsonrpc.ID) (call, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.calls[id]
	if ok {
		delete(b.calls, id)
		c.cancel()
	}
	return c, ok
}

// drop gives a connection up, or the present one if it is nil, and answers the
// calls that wait on it.
func (b *bridge) drop(far mcp.Connection, why error) {
	b.mu.Lock()
	if far == nil {
		far = b.far
	}
	if far != nil && far == b.far {
		b.far = nil
	}
	var lost []jsonrpc.ID
	for id, c := range b.calls {
		if c.over == far {
			lost = append(lost, id)
		}
	}
	b.mu.Unlock()
	if far != nil {
		far.Close()
	}
	for _, id := range lost {
		b.fail(id, why)
	}
}

// fail answers a call in place of the service.
func (b *bridge) fail(id jsonrpc.ID, why error) {
	b.settle(id)
	reason := "it ended before it answered"
	if why != nil {
		reason = why.Error()
	}
	_ = b.near.Write(context.Background(), &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{
		Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("the memory at %s does not answer (%s); `reme-hook doctor` tells more", b.url, reason),
	}})
}
