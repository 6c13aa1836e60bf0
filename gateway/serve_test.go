package gateway

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// running is a server of a world's.
type running struct {
	address string
	stop    func() error // tells it to end and waits
}

func (w *world) serving(o ServeOptions, l *limits, t timeouts) running {
	w.Helper()
	listener, err := Listen(w.Context(), "127.0.0.1:0", false)
	if err != nil {
		w.Fatal(err)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() { done <- w.serve(ctx, listener, o, l, t) }()
	stop := sync.OnceValue(func() error { cancel(); return <-done })
	w.Cleanup(func() { _ = stop() }) // it writes until it has ended
	return running{listener.Addr().String(), stop}
}

func (r running) dial(t *testing.T, said string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.address)
	if err == nil {
		_, err = io.WriteString(c, said)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

const halfRequest = "POST /version HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{"

// What has begun when the server is told to end is answered, and the notes of what
// was said are written.
func TestServeEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := newLimits()
	s := w.serving(ServeOptions{}, l, serveTimeouts)
	w.say("codex", "s1", "When does the release train leave?", "On 14 December.")
	const flush = `{"host":"codex","scope_id":"default","session_id":"s1","reason":"turn_end"}`
	res, err := http.Post("http://"+s.address+"/agent_session_flush", "application/json", strings.NewReader(flush))
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("%v, %v", res, err)
	}
	res.Body.Close()
	if a := w.call("status", ``); a.Answer != "1 turns, 1 sessions, 0 notes" {
		t.Errorf("before the end: %+v", a)
	}
	half := s.dial(t, halfRequest)
	for l.bodies.TryAcquire(maxBodies) { // until there is room for its body, for which a handler has asked
		l.bodies.Release(maxBodies)
		runtime.Gosched()
	}
	ended := make(chan error, 1)
	go func() { ended <- s.stop() }()
	for { // until the port is closed
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			break
		}
		c.Close()
	}
	if _, err := io.WriteString(half, "}"); err != nil {
		t.Fatal(err)
	}
	if res, err := http.ReadResponse(bufio.NewReader(half), nil); err != nil || res.StatusCode != 200 {
		t.Errorf("what had begun: %v, %v", res, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if a := w.call("status", ``); a.Answer != "1 turns, 1 sessions, 1 notes" {
		t.Errorf("after the end: %+v", a)
	}
}

// A client that does not go on cannot keep the server from ending.
func TestServeEndsInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	times := serveTimeouts
	times.end = 20 * time.Millisecond
	s := w.serving(ServeOptions{}, newLimits(), times)
	half := s.dial(t, halfRequest)
	whole := s.dial(t, strings.Replace(halfRequest, "{", "{}", 1))
	if res, err := http.ReadResponse(bufio.NewReader(whole), nil); err != nil || res.StatusCode != 200 {
		t.Fatalf("%v, %v", res, err)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if _, err := half.Read(make([]byte, 1)); err == nil {
		t.Error("the server still talks")
	}
}

// Slow clients are cut, and headers are bounded.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const short = 20 * time.Millisecond
	for name, test := range map[string]struct {
		cut        func(*timeouts, *limits)
		said, want string
	}{
		"nothing said":  {func(t *timeouts, _ *limits) { t.header = short }, "", ""},
		"half a header": {func(t *timeouts, _ *limits) { t.header = short }, halfRequest[:40], "HTTP/1.1 400 "},
		"half a body":   {func(_ *timeouts, l *limits) { l.bodyTime = short }, halfRequest, "HTTP/1.1 408 "},
		"half a chunk": {func(_ *timeouts, l *limits) { l.bodyTime = short },
			strings.Replace(halfRequest, "Content-Length: 2\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n2\r\n", 1), "HTTP/1.1 408 "},
		"many headers": {func(*timeouts, *limits) {},
			"POST /version HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 2*maxHeader) + "\r\n\r\n", "HTTP/1.1 431 "},
		"idle afterwards": {func(t *timeouts, _ *limits) { t.idle = short }, strings.Replace(halfRequest, "{", "{}", 1), "HTTP/1.1 200 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			times, l := serveTimeouts, newLimits()
			test.cut(&times, l)
			c := w.serving(ServeOptions{}, l, times).dial(t, test.said)
			got, err := io.ReadAll(c) // returns when the server closes
			if !strings.HasPrefix(string(got), test.want) || len(got) > 0 && test.want == "" || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// Too many requests wait for a place, and are told to come back if none gets free.
func TestConcurrencyLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, l := range map[string]*limits{
		"no place to work": {semaphore.NewWeighted(MaxBody), semaphore.NewWeighted(0), time.Millisecond, bodyTime},
		"no room":          {semaphore.NewWeighted(1), semaphore.NewWeighted(1), time.Millisecond, bodyTime},
	} {
		h, err := w.Gateway.handler(HandlerOptions{Log: slog.New(slog.DiscardHandler)}, l)
		if err != nil {
			t.Fatal(err)
		}
		res, a := served(t, h, post("/version", `{}`))
		if res.StatusCode != 503 || res.Header.Get("Retry-After") != "2" || a.Metadata["class"] != "retryable" {
			t.Errorf("%s: %d %v %+v", name, res.StatusCode, res.Header, a)
		}
		// What was taken for it is free again.
		if !l.bodies.TryAcquire(1) {
			t.Errorf("%s: room is kept", name)
		}
	}
	l := newLimits()
	h, err := w.Gateway.handler(HandlerOptions{Log: slog.New(slog.DiscardHandler)}, l)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*http.Request{post("/version", `{}`), post("/search", `{}`), post("/version", strings.Repeat("[", 1000))} {
		served(t, h, r)
	}
	if !l.bodies.TryAcquire(maxBodies) || !l.working.TryAcquire(maxWorking) {
		t.Error("what was taken is kept")
	}
}

// deadlines are those that a handler has set for its request's body.
type deadlines struct {
	*httptest.ResponseRecorder
	set chan time.Time
}

// SetReadDeadline is for [http.ResponseController].
func (d deadlines) SetReadDeadline(t time.Time) error {
	d.set <- t
	return nil
}

// A request that has waited for room has all the time that there is for its body.
func TestWaitForRoom(t *testing.T) {
	t.Parallel()
	l := newLimits()
	h, err := newWorld(t).Gateway.handler(HandlerOptions{Log: slog.New(slog.DiscardHandler)}, l)
	if err != nil || !l.bodies.TryAcquire(maxBodies) {
		t.Fatal(err)
	}
	w := deadlines{httptest.NewRecorder(), make(chan time.Time, 8)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.ServeHTTP(w, post("/version", `{}`))
	}()
	<-w.set
	free := time.Now()
	l.bodies.Release(maxBodies)
	if <-ended; w.Code != http.StatusOK {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	if again := <-w.set; again.Before(free.Add(bodyTime)) {
		t.Errorf("the body has to come in %v", again.Sub(free))
	}
}

func TestServeTLS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	s := w.serving(ServeOptions{Certificate: &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}, newLimits(), serveTimeouts)
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	res, err := c.Get("https://" + s.address + "/healthz")
	if err != nil || res.StatusCode != 200 || res.ProtoMajor != 2 {
		t.Errorf("%+v, %v", res, err)
	}
	c.CloseIdleConnections()
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

// Whoever can be reached from elsewhere has a token, and whoever finds the port
// taken hears by whom.
func TestListen(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "nowhere.invalid:0"} {
		if l, err := Listen(t.Context(), address, false); err == nil {
			t.Errorf("%s: listens on %s", address, l.Addr())
			l.Close()
		}
	}
	l, err := Listen(t.Context(), "0.0.0.0:0", true)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()

	answering := func(status int, body string) func(*testing.T) string {
		return func(t *testing.T) string {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked, _ := io.ReadAll(r.Body)
				if r.Method != "POST" || r.URL.Path != "/version" || string(asked) != "{}" || r.Header.Get("Content-Type") != "application/json" {
					t.Errorf("asked %s %s %s", r.Method, r.URL, asked)
				}
				w.WriteHeader(status)
				io.WriteString(w, body)
			})}
			go s.Serve(l)
			t.Cleanup(func() { s.Close() })
			return l.Addr().String()
		}
	}
	for _, test := range []struct {
		want   string
		listen func(*testing.T) string
	}{
		{"reme-hook 1.2.3 serves there already", func(t *testing.T) string {
			return newWorld(t).serving(ServeOptions{}, newLimits(), serveTimeouts).address
		}},
		{"wants a token", func(t *testing.T) string {
			return newWorld(t).serving(ServeOptions{HandlerOptions: HandlerOptions{Token: "sesame"}}, newLimits(), serveTimeouts).address
		}},
		{"ReMe 0.4.2.0 serves there already", answering(200, `{"answer":"0.4.2.0","success":true,"metadata":{"version":"0.4.2.0"}}`)},
		{"another program", answering(200, "<html>")},
		{"another program", answering(404, `{"detail":"Not Found"}`)},
		{"another program", func(t *testing.T) string {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					c.Close()
				}
			}()
			t.Cleanup(func() { l.Close() })
			return l.Addr().String()
		}},
	} {
		address := test.listen(t)
		if _, err := Listen(t.Context(), address, false); err == nil || !strings.HasPrefix(err.Error(), address+" is taken: ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %s", err, test.want)
		}
	}
}

// Whatever comes, the answer is JSON of ours, and only what is right has status 200.
func FuzzHTTP(f *testing.F) {
	ws, err := workspace.Open(f.TempDir(), workspace.Options{})
	if err != nil {
		f.Fatal(err)
	}
	defer ws.Close()
	h, err := New(ws, Caller{}).Handler(HandlerOptions{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	for _, body := range []string{``, `{}`, `{"query":"x"}`, `[]`, `{"query":"\ud800"}`, "\xef\xbb\xbf{}", strings.Repeat(`[`, 200), `{"query":"x"}{"query":"y"}`, `{"a":"\"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"x"}}}`} {
		for _, path := range []string{"/search", "/mcp", "/agent_memory_recall", "/version", "/nothing", "//search", "/search/", "/%73earch"} {
			f.Add(path, "application/json", "localhost", "", []byte(body))
		}
	}
	f.Add("/search", "text/plain", "evil.example", "https://evil.example", []byte(`{}`))
	f.Fuzz(func(t *testing.T, path, media, host, origin string, body []byte) {
		r := post("/", "", "Content-Type", media, "Host", host, "Accept", "application/json, text/event-stream")
		r.URL.Path = path
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		switch path {
		case "/agent_session_append", "/agent_session_flush": // they write where they are told, which package workspace tests
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if path == mcpPath && rec.Header().Get("Cache-Control") != "no-store" {
			if rec.Code >= 500 {
				t.Errorf("mcp: %d %s", rec.Code, rec.Body)
			}
			return // the SDK's own answer
		}
		a, err := asType[Answer](json.RawMessage(rec.Body.Bytes()))
		if err != nil || a.Metadata == nil || rec.Code >= 500 || (rec.Code == 200) != (a.Metadata["class"] == nil) {
			t.Errorf("%q: %d %s, %v", path, rec.Code, rec.Body, err)
		}
		if rec.Code != 200 && a.Metadata["field"] == nil {
			t.Errorf("%q: %d %s says not what is to blame", path, rec.Code, rec.Body)
		}
		if rec.Code == 200 && (!isLoopback(host) || origin != "" && !strings.HasSuffix(origin, "//"+host)) {
			t.Errorf("answered for %q from %q", host, origin)
		}
	})
}

func TestIsNested(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		``: false, `[[]]`: false, `[[[]]]`: true, `{"a":{"b":{}}}`: true, `{"a":{},"b":{},"c":[]}`: false, `["[[[["]`: false, `["\"[[[[", "\\"]`: false,
		`["\\",[[`: true, `[[`: false, `"[[[`: false, `]]][[[`: false, `"\`: false,
	} {
		if got := isNested([]byte(text), 2); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// The numbers of an error's wait are whole seconds, never too few.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		&client.Error{RetryAfter: 1500 * time.Millisecond}: "2", &client.Error{}: "2", fmt.Errorf("x: %w", &client.Error{RetryAfter: time.Minute}): "60", errors.New("x"): "2",
	} {
		rec := httptest.NewRecorder()
		(&handler{Gateway: &Gateway{}}).fail(rec, err)
		if rec.Code != 503 || rec.Header().Get("Retry-After") != want {
			t.Errorf("%v: %d, %q", err, rec.Code, rec.Header().Get("Retry-After"))
		}
	}
	rec := httptest.NewRecorder()
	(&handler{Gateway: &Gateway{}}).fail(rec, &client.Error{Class: client.Configuration, Reason: "full"})
	if rec.Code != 500 || !strings.Contains(rec.Body.String(), `"class":"configuration"`) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}
