package gateway

import (
	"cmp"
	"net/http"
	"net/url"
	"unicode/utf8"

	"github.com/agentscope-ai/reme-hook/client"
)

// Caller is who asks a gateway.
type Caller struct {
	Host client.Host // the agent; "" if that is not known
	Cwd  string      // the folder that it works in; "" if it is anywhere
}

// The headers by which a request over HTTP says who asks. The folder is written as
// in a URL.
const (
	hostHeader = "Reme-Host"
	cwdHeader  = "Reme-Cwd"
)

// maxCwd bounds the folder, in bytes.
const maxCwd = 4 << 10

// Header says who asks in a request to a gateway over HTTP.
func (c Caller) Header() http.Header {
	h := http.Header{}
	if c.Host.IsName() {
		h.Set(hostHeader, string(c.Host))
	}
	if c.Cwd != "" && len(c.Cwd) <= maxCwd && utf8.ValidString(c.Cwd) {
		h.Set(cwdHeader, url.PathEscape(c.Cwd))
	}
	return h
}

// callerOf reads what [Caller.Header] says.
func callerOf(h http.Header) (c Caller, err error) {
	if c.Host = client.Host(h.Get(hostHeader)); c.Host != "" && !c.Host.IsName() {
		return Caller{}, refuse(hostHeader, "must be a short name of letters, digits and dashes")
	}
	if c.Cwd, err = url.PathUnescape(h.Get(cwdHeader)); err != nil || len(c.Cwd) > maxCwd || !utf8.ValidString(c.Cwd) {
		return Caller{}, refuse(cwdHeader, "must be a path, written as in a URL")
	}
	return c, nil
}

// as is the gateway for a caller. What that does not say is as in g.
func (g *Gateway) as(c Caller) *Gateway {
	other := *g
	other.caller = Caller{cmp.Or(c.Host, g.caller.Host), cmp.Or(c.Cwd, g.caller.Cwd)}
	return &other
}
