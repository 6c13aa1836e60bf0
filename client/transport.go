package client

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

const (
	// localhost is the one name by which this machine is asked.
	localhost = "localhost"
	// connectLimit bounds the making of a connection.
	connectLimit = 5 * time.Second
	// maxRedirects is how often a service may send on to another path of its own.
	maxRedirects = 3
)

// bearer sends the token along, and who asks.
type bearer struct {
	*http.Transport
	token  string
	header http.Header
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	maps.Copy(r.Header, b.header)
	r.Header.Set("User-Agent", "reme-hook")
	// Nothing is sent for this. It has a request repeated that met a connection which
	// the service had just closed; each of ours may be made twice.
	r.Header["Idempotency-Key"] = nil
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.Transport.RoundTrip(r)
}

// checkRedirect keeps a request, and with it the token and what was said, at the
// place that the user named, and makes no other request of it.
func checkRedirect(r *http.Request, via []*http.Request) error {
	first := via[0]
	if r.URL.Scheme != first.URL.Scheme || r.URL.Host != first.URL.Host || r.Method != first.Method || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  proxy,
		DialContext:            dial,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        30 * time.Second,
		TLSHandshakeTimeout:    connectLimit,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// dial connects to this machine by either of its addresses, whatever the system
// takes localhost for: the service may listen on only one.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: connectLimit}
	host, port, err := net.SplitHostPort(address)
	if err != nil || !isLocalName(host) {
		return d.DialContext(ctx, network, address)
	}
	c, err4 := d.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
	if err4 == nil {
		return c, nil
	}
	c, err6 := d.DialContext(ctx, network, net.JoinHostPort("::1", port))
	if err6 != nil {
		return nil, fmt.Errorf("%w; %w", err4, err6) // on one line
	}
	return c, nil
}

// isLocalName tells the names that always mean this machine, whoever may answer a
// look-up of them.
func isLocalName(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return host == localhost || strings.HasSuffix(host, "."+localhost)
}

// isLocalhost tells what stands for either address of this machine.
func isLocalhost(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == localhost || host == localhost+"." || err == nil && ip.IsUnspecified()
}

// proxy is that of the environment, but never for this machine.
func proxy(r *http.Request) (*url.URL, error) {
	via, err := http.ProxyFromEnvironment(r)
	if via == nil && err == nil || IsLocal(r.Context(), r.URL.Hostname()) {
		return nil, nil
	}
	return via, err
}

// IsLocal tells whether a host is this machine, looking up its name if need be.
func IsLocal(ctx context.Context, host string) bool {
	return isLoopback(ctx, host, net.DefaultResolver)
}

// resolver looks up names.
type resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// isLoopback tells whether a host is this machine.
func isLoopback(ctx context.Context, host string, names resolver) bool {
	if isLocalName(host) || isLocalhost(host) {
		return true
	}
	addresses := []netip.Addr{}
	if ip, err := netip.ParseAddr(host); err == nil {
		addresses = append(addresses, ip)
	} else if addresses, err = names.LookupNetIP(ctx, "ip", host); err != nil || len(addresses) == 0 {
		return false
	}
	for _, ip := range addresses {
		if !ip.Unmap().IsLoopback() {
			return false
		}
	}
	return true
}
