package client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// at makes the service at a handler's URL.
func at(t *testing.T, h http.HandlerFunc) *HTTP {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	svc, err := NewHTTP(s.URL, "s3same", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(svc.Client().CloseIdleConnections)
	return svc
}

// answering is a handler with one answer.
func answering(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"http://localhost:2334":      "http://localhost:2334",
		"HTTP://LocalHost.:2334/":    "http://localhost:2334",
		"http://0.0.0.0:2334":        "http://localhost:2334",
		"http://[::]:2334":           "http://localhost:2334",
		"http://[::1]:2334":          "http://[::1]:2334",
		"http://127.0.0.1:2334/a//":  "http://127.0.0.1:2334/a",
		"https://memory.example/x/y": "https://memory.example/x/y",
		" http://localhost ":         "http://localhost",
		"":                           "",
		"localhost:2334":             "",
		"ftp://localhost":            "",
		"http://":                    "",
		"http://:2334":               "",
		"http://u:p@localhost":       "",
		"http://localhost?x=1":       "",
		"http://localhost#x":         "",
		"http://localhost:99999":     "",
		"http://local host":          "",
	} {
		if got, err := ParseURL(raw); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", raw, got, err)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	for _, s := range []string{"http://localhost:2334/", "https://u:secret@[::1%25eth0]:1/%2f?#", "HTTP://0.0.0.0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		once, err := ParseURL(raw)
		if err != nil {
			return
		}
		if twice, err := ParseURL(once); err != nil || twice != once {
			t.Errorf("%q: %q, then %q, %v", raw, once, twice, err)
		}
	})
}

// endless writes until nobody reads any more.
func endless(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	for chunk := make([]byte, 1<<20); r.Context().Err() == nil; {
		w.Write(chunk)
	}
}

// Each answer has its class, and none is an error that tells the token.
func TestClasses(t *testing.T) {
	t.Parallel()
	ok := `{"answer":"","success":true,"metadata":{"event_ids":["e"]}}`
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		class   Class
		field   string
		reason  string // in the error
		after   time.Duration
	}{
		"no token":             {answering(401, `{}`), Configuration, "", "set the key token", 0},
		"forbidden":            {answering(403, `{}`), Configuration, "", "set the key token", 0},
		"a name of its own":    {answering(403, `{"success":false,"metadata":{"field":"Host"}}`), Configuration, "", "name it so in the key service", 0},
		"proxy wants one":      {answering(407, ``), Configuration, "", "set the key token", 0},
		"no such job":          {answering(404, `{"detail":"Not Found"}`), Configuration, "", "no service of the agent contract", 0},
		"a service before":     {answering(404, `{"success":false,"metadata":{"field":"job","jobs":["version"]}}`), Configuration, "", "it is older than this program; upgrade it", 0},
		"real ReMe":            {answering(405, `{"detail":"Method Not Allowed"}`), Configuration, "", "no service of the agent contract", 0},
		"a web page":           {answering(200, `<html>`), Configuration, "", "no service of the agent contract", 0},
		"nothing":              {answering(200, ``), Configuration, "", "no service of the agent contract", 0},
		"other JSON":           {answering(200, `[1,2]`), Configuration, "", "no service of the agent contract", 0},
		"no success":           {answering(200, `{"answer":"","metadata":{}}`), Configuration, "", "no service of the agent contract", 0},
		"success is a text":    {answering(200, `{"success":"true","metadata":{}}`), Configuration, "", "no service of the agent contract", 0},
		"metadata is a list":   {answering(200, `{"success":true,"metadata":[]}`), Configuration, "", "no service of the agent contract", 0},
		"no metadata":          {answering(200, `{"success":true}`), Configuration, "", "no service of the agent contract", 0},
		"moved":                {answering(301, ``, "Location", "/elsewhere"), Configuration, "", "set the key service", 0},
		"sent to another host": {answering(307, ``, "Location", "http://memory.example/x"), Configuration, "", "set the key service", 0},
		"sent in circles":      {answering(308, ``, "Location", "/agent_session_append"), Configuration, "", "set the key service", 0},
		"bad field":            {answering(400, `{"metadata":{"field":"role","reason":"must be\u202e user\nor assistant"}}`), Permanent, "role", "role: must be user or assistant", 0},
		"bad, and quoted":      {answering(422, `{"metadata":{"field":"content","reason":"must not be 'the secret words that were said'"}}`), Permanent, "", "status 422", 0},
		"bad, no envelope":     {answering(400, `nope`), Permanent, "", "status 400", 0},
		"too large":            {answering(413, `{}`), Permanent, "", "status 413", 0},
		"not understood":       {answering(422, `{"detail":[]}`), Permanent, "", "status 422", 0},
		"too many":             {answering(429, ``, "Retry-After", "90"), Retryable, "", "status 429", 90 * time.Second},
		"busy":                 {answering(503, ``, "Retry-After", "Mon, 30 Nov 2099 00:00:00 GMT"), Retryable, "", "status 503", time.Hour},
		"busy for some time":   {answering(503, ``, "Retry-After", "soon"), Retryable, "", "status 503", 0},
		"busy since long":      {answering(503, ``, "Retry-After", "-5"), Retryable, "", "status 503", 0},
		"broken":               {answering(500, `<html>`), Retryable, "", "status 500", 0},
		"a failure":            {answering(200, `{"answer":"secret words","success":false,"metadata":{}}`), Retryable, "", "reports a failure", 0},
		"cut":                  {answering(200, ok, "Content-Length", "9999"), Retryable, "", "no answer", 0},
		"reset":                {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, Retryable, "", "no answer", 0},
		"without end":          {endless, Retryable, "", "longer than 20 MiB", 0},
		"too long":             {answering(200, `"`+strings.Repeat("x", maxAnswer)+`"`), Retryable, "", "longer than 20 MiB", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := at(t, c.handler).Append(t.Context(), AppendRequest{Events: []Event{{ID: "t:user", Role: User, Content: "These are the secret words that were said."}}})
			var e *Error
			if !errors.As(err, &e) || e.Class != c.class || e.Field != c.field || !strings.Contains(err.Error(), c.reason) || e.RetryAfter < c.after || c.after == 0 && e.RetryAfter != 0 {
				t.Fatalf("%+v", err)
			}
			for _, bad := range []string{"s3same", "\u202e", "\n", "secret words"} {
				if strings.Contains(err.Error(), bad) {
					t.Errorf("tells %q: %v", bad, err)
				}
			}
			if errors.Is(err, ErrUnreachable) != (c.reason == "no answer") {
				t.Errorf("unreachable: %v", err)
			}
		})
	}
	res, err := at(t, answering(200, ok)).Append(t.Context(), AppendRequest{})
	if err != nil || len(res.EventIDs) != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}

// A service that hangs, or sends a byte now and then, is left when the context
// ends, and known as one that does not answer.
func TestContextEnds(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"hangs": func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		},
		"drips": func(w http.ResponseWriter, r *http.Request) {
			for io.Copy(io.Discard, r.Body); r.Context().Err() == nil; {
				io.WriteString(w, " ")
				w.(http.Flusher).Flush()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			svc := at(t, handler)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := svc.Recall(ctx, RecallRequest{}); !errors.Is(err, ErrUnreachable) || ClassOf(err) != Retryable || ctx.Err() == nil {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	var got http.Header
	var method, path string
	svc := at(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			http.Redirect(w, r, "/moved/version", http.StatusPermanentRedirect)
			return
		}
		got, method, path = r.Header, r.Method, r.URL.Path
		answering(200, `{"answer":"1","success":true,"metadata":{"name":"reme\u202e","version":"1","integration_api_version":"1.0"}}`)(w, r)
	})
	info, err := svc.Info(t.Context())
	if err != nil || info != (Info{"reme", "1", "1.0"}) {
		t.Errorf("%+v, %v", info, err)
	}
	if method != "POST" || path != "/moved/version" || got.Get("Authorization") != "Bearer s3same" || got.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s %v", method, path, got)
	}
}

// The service is found on either of this machine's addresses, by any of its names.
func TestLocalhost(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1", "::1"} {
		l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
		if err != nil {
			t.Skip("this machine has no ", address)
		}
		s := &httptest.Server{Listener: l, Config: &http.Server{Handler: answering(200, `{"success":true,"metadata":{"version":"1"}}`)}}
		s.Start()
		t.Cleanup(s.Close)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		for _, host := range []string{"localhost", "localhost.", "0.0.0.0", "[::]", "LOCALHOST", "memory.localhost"} {
			svc, err := NewHTTP("http://"+host+":"+port, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := svc.Info(t.Context()); err != nil {
				t.Errorf("%s on %s: %v", host, address, err)
			}
		}
	}
}

type names map[string][]netip.Addr

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if a, ok := n[host]; ok {
		return a, nil
	}
	return nil, errors.New("no such host")
}

func TestIsLoopback(t *testing.T) {
	t.Parallel()
	book := names{
		"reme.local":  {netip.MustParseAddr("127.0.1.1"), netip.MustParseAddr("::1")},
		"half.local":  {netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("192.0.2.1")},
		"far.example": {netip.MustParseAddr("192.0.2.1")},
		"no.address":  {},
	}
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST": true, "localhost.": true, "x.localhost": true, "x.localhost.": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true,
		"0.0.0.0": true, "::": true, "::ffff:127.0.0.1": true, "reme.local": true,
		"half.local": false, "far.example": false, "no.address": false, "unknown": false, "192.0.2.1": false, "localhost.example": false, "": false,
	} {
		if got := isLoopback(t.Context(), host, book); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	request := func(method, raw string) *http.Request {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		return &http.Request{Method: method, URL: u}
	}
	first := request("POST", "https://memory.example/reme/version")
	for to, want := range map[string]bool{
		"POST https://memory.example/other": true, "GET https://memory.example/other": false, "POST http://memory.example/other": false,
		"POST https://memory.example:444/other": false, "POST https://evil.example/": false,
	} {
		method, raw, _ := strings.Cut(to, " ")
		if err := checkRedirect(request(method, raw), []*http.Request{first}); (err == nil) != want {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// recalled asks a service that gives one answer.
func recalled(t *testing.T, body string, req RecallRequest) (RecallResult, error) {
	svc := &HTTP{"http://localhost", &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}, nil
	})}}
	return svc.Recall(t.Context(), req)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRecallIsBounded(t *testing.T) {
	t.Parallel()
	item := func(members string) string { return `{"id":"i","path":"p","snippet":"s"` + members + `}` }
	envelope := func(items ...string) string {
		return `{"success":true,"metadata":{"items":[` + strings.Join(items, ",") + `]}}`
	}
	for name, c := range map[string]struct {
		body  string
		items int
		check func(RecallResult) bool
	}{
		"null":            {`{"success":true,"metadata":{"items":null}}`, 0, func(r RecallResult) bool { return r.Items != nil }},
		"scores":          {envelope(item(`,"score":7e300`), item(`,"score":-3`)), 2, func(r RecallResult) bool { return r.Items[0].Score == 1 && r.Items[1].Score == 0 }},
		"lines":           {envelope(item(`,"start_line":-5,"end_line":-9`)), 1, func(r RecallResult) bool { return r.Items[0].StartLine == 1 && r.Items[0].EndLine == 1 }},
		"more than asked": {envelope(item(``), item(``), item(``), item(``)), 3, func(r RecallResult) bool { return r.Omitted == 1 }},
		"a giant text":    {envelope(item(`,"snippet":"` + strings.Repeat("长", 100_000) + `"`)), 1, func(r RecallResult) bool { return r.Truncated }},
		"a giant id":      {envelope(item(`,"id":"`+strings.Repeat("x", 5000)+`"`), item(``)), 1, nil},
		"bad ones between": {envelope(item(`,"score":"1"`), item(``), `7`, item(`,"snippet":[]`), item(`,"score":1e999`), item(`,"id":"j"`)), 2, func(r RecallResult) bool {
			return r.Items[0].ID == "i" && r.Items[1].ID == "j"
		}},
		"no id": {envelope(`{"path":"p","snippet":"s"}`), 0, nil},
		"harmful letters": {envelope(item(`,"path":"a\nb\u001b[31m\u202e","snippet":"x\u001b]0;y\u0007\u202e\nz","host":"h\r","project":"p\n\u202e"`)), 1, func(r RecallResult) bool {
			return r.Items[0].Snippet == "x]0;y\nz" && r.Items[0].Path == "a b[31m" && r.Items[0].Host == "h" && r.Items[0].Project == "p"
		}},
		"broken UTF-8": {envelope(item(`,"snippet":"a` + "\xff" + `\ud800"`)), 1, func(r RecallResult) bool { return utf8.ValidString(r.Items[0].Snippet) }},
	} {
		res, err := recalled(t, c.body, RecallRequest{Limit: 3, MaxChars: 300})
		if err != nil || len(res.Items) != c.items || c.check != nil && !c.check(res) {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	for name, body := range map[string]string{
		"NaN": envelope(item(`,"score":NaN`)), "a score as a text": envelope(item(`,"score":"1"`)), "items is an object": `{"success":true,"metadata":{"items":{}}}`, "too great a number": envelope(item(`,"score":1e999`)),
	} {
		if res, err := recalled(t, body, RecallRequest{}); ClassOf(err) != Configuration || res.Items != nil {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(`{"answer":"1 memories","success":true,"metadata":{"items":[{"id":"i","path":"p","start_line":1,"end_line":2,"snippet":"s","score":0.5,"date":"2026-11-30","host":"codex","session_id":"s"}],"truncated":false,"omitted":0,"took_ms":3}}`)
	f.Add(`{"success":true,"metadata":{"items":[null,{}]}}`)
	f.Add(`{"success":1}`)
	f.Fuzz(func(t *testing.T, body string) {
		res, err := recalled(t, body, RecallRequest{Limit: 2, MaxChars: 50})
		if err != nil {
			return
		}
		chars := 0
		for _, it := range res.Items {
			chars += utf8.RuneCountInString(it.Snippet)
			if !(it.Score >= 0 && it.Score <= 1) || it.StartLine < 1 || it.EndLine < it.StartLine || it.ID == "" || strings.ContainsAny(it.Path+it.Date+it.Project+it.SessionID, "\n\r\x1b\x00") || strings.ContainsAny(it.Snippet, "\r\x1b\x00\u202e") {
				t.Errorf("%+v", it)
			}
		}
		if len(res.Items) > 2 || chars > 50 {
			t.Errorf("%d items, %d characters", len(res.Items), chars)
		}
	})
}

func TestCompatible(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"1.0": "", "1.7": "", "1": "", "2.0": "upgrade reme-hook", "0.9": "upgrade the service", "": "does not speak", "x.1": "does not speak"} {
		err := Info{"svc", "9", version}.Compatible()
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || ClassOf(err) != Configuration) {
			t.Errorf("%q: %v", version, err)
		}
	}
}

// A service that speaks HTTP/1.0, and says with the end of the connection where its
// answer ends, is one like any other.
func TestHTTP10(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				io.Copy(io.Discard, req.Body)
			}
			io.WriteString(c, "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"+
				`{"success":true,"answer":"","metadata":{"items":[{"id":"m","path":"p","snippet":"s"}]}}`)
			c.Close()
		}
	}()
	c, err := NewHTTP("http://"+l.Addr().String(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Recall(t.Context(), RecallRequest{Query: "x", Limit: 1})
	if err != nil || len(res.Items) != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}
