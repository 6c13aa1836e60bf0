package reme

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/client"
)

// What a real ReMe 0.4.2.0 answered, or what stands in its place, and what it means.
func TestAutoMemory(t *testing.T) {
	t.Parallel()
	const secret = "the word of the user"
	for name, c := range map[string]struct {
		status  int
		kind    string
		body    string
		want    Extraction
		class   client.Class
		reason  string
		alone   bool
		unknown bool
	}{
		"created":     {200, "application/json", `{"answer":"Created.","success":true,"metadata":{"path":"daily/2026-11-29/a.md","created":true}}`, Extraction{Answer: "Created.", Path: "daily/2026-11-29/a.md"}, 0, "", false, false},
		"nothing":     {200, "application/json", `{"answer":"Nothing worth it.","success":true,"metadata":{"path":null}}`, Extraction{Answer: "Nothing worth it."}, 0, "", false, false},
		"skipped":     {200, "application/json", `{"answer":"Skipped: no messages","success":true,"metadata":{}}`, Extraction{Answer: "Skipped: no messages", Skipped: true}, 0, "", false, false},
		"evil path":   {200, "application/json", `{"answer":"x","success":true,"metadata":{"path":"../../etc/passwd.md"}}`, Extraction{Answer: "x"}, 0, "", false, false},
		"other type":  {200, "application/problem+json", `{"answer":"x","success":true}`, Extraction{}, client.Retryable, "not ReMe", false, false},
		"no key":      {200, "application/json", `{"answer":"OpenAIError: Missing credentials. Please pass an api_key","success":false,"metadata":{}}`, Extraction{}, client.Configuration, "set LLM_API_KEY", false, false},
		"401":         {200, "application/json", `{"answer":"AuthenticationError: Error code: 401 - fake","success":false,"metadata":{}}`, Extraction{}, client.Configuration, "LLM_API_KEY", false, false},
		"no model":    {200, "application/json", `{"answer":"NotFoundError: Error code: 404","success":false}`, Extraction{}, client.Configuration, "LLM_MODEL_NAME", false, false},
		"429":         {200, "application/json", `{"answer":"RateLimitError: Error code: 429","success":false}`, Extraction{}, client.Retryable, "RateLimitError", false, false},
		"500":         {200, "application/json", `{"answer":"InternalServerError: Error code: 500","success":false}`, Extraction{}, client.Retryable, "InternalServerError", false, false},
		"exception":   {200, "application/json", `{"answer":"KeyError: '` + secret + `'","success":false}`, Extraction{}, client.Retryable, "KeyError", true, false},
		"no name":     {200, "application/json", `{"answer":"` + secret + `","success":false}`, Extraction{}, client.Retryable, "did not say why", true, false},
		"no text":     {200, "application/json", `{"answer":{"a":1},"success":false}`, Extraction{}, client.Retryable, "did not say why", true, false},
		"validation":  {200, "application/json", `{"answer":"ValidationError: 1 validation error for Msg input_value='` + secret + `'","success":false}`, Extraction{}, client.Permanent, "ValidationError", true, false},
		"session id":  {200, "application/json", `{"answer":"Error: session_id contains invalid characters","success":false}`, Extraction{}, client.Permanent, "refuses", true, false},
		"long name":   {200, "application/json", `{"answer":"OSError: [Errno 36] File name too long: '` + secret + `'","success":false}`, Extraction{}, client.Permanent, "OSError", true, false},
		"full disk":   {200, "application/json", `{"answer":"OSError: [Errno 28] No space left on device","success":false}`, Extraction{}, client.Retryable, "OSError", true, false},
		"other input": {200, "application/json", `{"answer":"Error: request_id was already used for different input","success":false}`, Extraction{}, client.Permanent, "request_id", true, false},
		"422":         {422, "application/json", `{"detail":[{"input":"` + secret + `"}]}`, Extraction{}, client.Permanent, "422", true, false},
		"413":         {413, "text/html", `too big`, Extraction{}, client.Permanent, "413", true, false},
		"405":         {405, "application/json", `{"detail":"Method Not Allowed"}`, Extraction{}, client.Configuration, "no such job", false, false},
		"404":         {404, "application/json", `{"detail":"Not Found"}`, Extraction{}, client.Configuration, "no such job", false, false},
		"403":         {403, "text/html", `no`, Extraction{}, client.Configuration, "proxy", false, false},
		"redirect":    {302, "text/html", ``, Extraction{}, client.Configuration, "key upstream", false, false},
		"502":         {502, "text/html", `bad gateway`, Extraction{}, client.Retryable, "502", false, true},
		"page":        {200, "text/html", `<!doctype html>`, Extraction{}, client.Retryable, "not ReMe", false, false},
		"no success":  {200, "application/json", `{"answer":"x"}`, Extraction{}, client.Retryable, "not ReMe", false, false},
		"list":        {200, "application/json", `[]`, Extraction{}, client.Retryable, "not ReMe", false, false},
		"broken off":  {200, "application/json", `{"answer":"x","succ`, Extraction{}, client.Retryable, "not ReMe", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := make([]byte, 64)
				n, _ := r.Body.Read(body)
				got = r.Method + " " + r.URL.Path + " " + string(body[:n])
				w.Header().Set("Content-Type", c.kind)
				w.Header().Set("Location", "http://127.0.0.1:9/")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			t.Cleanup(server.Close)
			x, err := New(server.URL).AutoMemory(t.Context(), []byte(`{"exact" : 1}`))
			if want := `POST /auto_memory {"exact" : 1}`; got != want {
				t.Errorf("sent %s, want %s", got, want)
			}
			if c.reason == "" {
				if err != nil || x != c.want {
					t.Errorf("%+v, %v", x, err)
				}
				return
			}
			var f *Failure
			if !errors.As(err, &f) || f.Class != c.class || client.ClassOf(err) != c.class || f.Alone != c.alone || f.Unknown != c.unknown || !strings.Contains(err.Error(), c.reason) {
				t.Fatalf("%+v", err)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error quotes the user: %v", err)
			}
		})
	}
}

// Whether the server may have done the work is known only if it was not reached.
func TestUnknown(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		panic(http.ErrAbortHandler)
	}))
	var f *Failure
	if _, err := New(server.URL).AutoMemory(t.Context(), []byte(`{}`)); !errors.As(err, &f) || !f.Unknown {
		t.Errorf("broken connection: %+v", err)
	}
	server.Close()
	if _, err := New(server.URL).AutoMemory(t.Context(), []byte(`{}`)); !errors.As(err, &f) || f.Unknown {
		t.Errorf("nobody there: %+v", err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(server.URL).AutoMemory(done, []byte(`{}`)); !errors.As(err, &f) || !f.Unknown {
		t.Errorf("no time: %+v", err)
	}
	if _, err := New("ftp://x").AutoMemory(t.Context(), []byte(`{}`)); client.ClassOf(err) != client.Configuration {
		t.Errorf("bad address: %+v", err)
	}
}

// A server is a released ReMe only if all of its answers say so.
func TestProbe(t *testing.T) {
	t.Parallel()
	const help = "🛠️ `auto_memory` — x\n🛠️ `search` — y"
	answer := func(answer any, metadata string) string {
		raw, _ := json.Marshal(answer)
		return `{"success":true,"answer":` + string(raw) + `,"metadata":` + metadata + `}`
	}
	version := answer("0.4.2.0", `{"version":"0.4.2.0"}`)
	for name, c := range map[string]struct {
		jobs map[string]string
		want Server
	}{
		"released": {map[string]string{"/version": version, "/help": answer(help, "{}"), "/app_config": answer(map[string]any{"workspace_dir": "/w", "timezone": "Asia/Shanghai"}, "{}")},
			Server{Kind: Released, Version: "0.4.2.0", Workspace: "/w", Timezone: "Asia/Shanghai"}},
		"without its configuration": {map[string]string{"/version": version, "/help": answer(help, "{}")}, Server{Kind: Released, Version: "0.4.2.0"}},
		"our own serve":             {map[string]string{"/version": answer("1", `{"version":"1","integration_api_version":"1.0"}`), "/help": answer(help, "{}")}, Server{Kind: Agent, Version: "1"}},
		"a later ReMe":              {map[string]string{"/version": version, "/help": answer(help+"\n`agent_session_append`", "{}")}, Server{Kind: Agent, Version: "0.4.2.0"}},
		"some other service":        {map[string]string{"/version": version, "/help": answer("`shutdown`", "{}")}, Server{Kind: Foreign}},
		"no version":                {map[string]string{"/version": answer("ok", `{}`)}, Server{Kind: Foreign}},
		"a web server":              {map[string]string{"/version": "<html>"}, Server{Kind: Foreign}},
		"mcp only":                  {map[string]string{}, Server{Kind: Foreign}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, ok := c.jobs[r.URL.Path]
				if !ok || r.Method != http.MethodPost {
					http.Error(w, `{"detail":"Not Found"}`, http.StatusNotFound)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(body))
			}))
			t.Cleanup(server.Close)
			got := New(server.URL).Probe(t.Context())
			if (got.Why == "") != (got.Kind == Released) {
				t.Errorf("why: %q", got.Why)
			}
			if got.Why = ""; got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	if got := New(server.URL).Probe(t.Context()); got.Kind != Offline {
		t.Errorf("nobody: %+v", got)
	}
}

func TestIdempotent(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"0.4.2.0": true, "0.4.1.13": false, "0.4.1.8": false, "0.4.2": true, "0.4.10.0": true, "0.4.2.0rc1": true, "0.5": true, "1.0": true, "0.3.9": false, "": false, "dev": false, "0.4.2a": true,
	} {
		if got := (Server{Version: version}).Idempotent(); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	got := passages(json.RawMessage(`{"results":[
		{"path":"daily/2026-11-29/a.md","start_line":9,"end_line":24,"text":"x","scores":{"score":16.6}},
		{"path":"/etc/passwd.md","text":"x"},{"path":"a/../b.md"},{"path":"daily/x.txt"},{"path":5},7,null,{"text":"x"},
		{"path":"digest/b.md","start_line":-1,"end_line":-9,"text":""}]}`))
	want := []Passage{{"daily/2026-11-29/a.md", 9, 24, "x"}, {"digest/b.md", 1, 1, ""}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v", got)
	}
}

// Nothing that a server answers makes the client panic, let through a path that
// leads elsewhere, or call a success what is none.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		`{"answer":"Created.","success":true,"metadata":{"path":"daily/2026-11-29/a.md","results":[{"path":"daily/a.md","start_line":1,"end_line":2,"text":"x"}]}}`,
		`{"answer":"KeyError: 'x'","success":false,"metadata":{}}`, `{"answer":null,"success":true,"metadata":null}`, `{"success":"true"}`, `{"SUCCESS":true}`,
		`{"answer":{"a":[1]},"success":true,"metadata":{"path":5,"results":{"path":1}}}`, "\ufeff{}", `null`, `[]`, ``,
	} {
		f.Add("application/json", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		e, err := parse(kind, body, 1<<20)
		if err != nil {
			var failure *Failure
			if !errors.As(err, &failure) || failure.Reason == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		for _, p := range passages(e.Metadata) {
			if !isNote(p.Path) || p.Start < 1 || p.End < p.Start {
				t.Errorf("%+v", p)
			}
		}
		x, err := extraction(e)
		if (err == nil) != *e.Success {
			t.Errorf("success %v: %v", *e.Success, err)
		}
		if x.Path != "" && (!isNote(x.Path) || x.Skipped) {
			t.Errorf("%+v", x)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%v", err)
		}
	})
}
