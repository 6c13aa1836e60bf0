package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentscope-ai/reme-hook/client"
)

// handler is the way in over HTTP of the world.
func (w *world) handler(token string, log io.Writer) http.Handler {
	w.Helper()
	h, err := w.Handler(HandlerOptions{Token: token, Log: slog.New(slog.NewJSONHandler(log, nil))})
	if err != nil {
		w.Fatal(err)
	}
	return h
}

// post makes a request as a good client does; headers are name, value, …
func post(path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest("POST", "http://127.0.0.1:2334"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		switch name, value := headers[i], headers[i+1]; {
		case name == "Method":
			r.Method = value
		case name == "Host":
			r.Host = value
		case value == "":
			r.Header.Del(name)
		default:
			r.Header.Set(name, value)
		}
	}
	return r
}

// withLength makes a request claim a length.
func withLength(r *http.Request, n int64) *http.Request {
	r.ContentLength = n
	return r
}

func served(t *testing.T, h http.Handler, r *http.Request) (*http.Response, Answer) {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	res := rec.Result()
	var a Answer
	if err := json.Unmarshal(rec.Body.Bytes(), &a); err != nil || res.Header.Get("Content-Type") != "application/json" || a.Metadata == nil {
		t.Errorf("%s: %d, %v, %q", r.URL.Path, res.StatusCode, err, rec.Body)
	}
	return res, a
}

// Each refusal has its status, and says what is to blame.
func TestHTTPRefused(t *testing.T) {
	t.Parallel()
	w := filled(t)
	const search = `{"query":"osprey"}`
	for _, test := range []struct {
		name    string
		token   string
		request *http.Request
		status  int
		field   string
		class   string
	}{
		{"a field is missing", "", post("/search", `{}`), 400, "query", "permanent"},
		{"a field is wrong", "", post("/search", `{"query":"x","limit":99}`), 400, "limit", "permanent"},
		{"a field within", "", post("/agent_session_append", `{"host":"codex","scope_id":"d","session_id":"s","events":[{"event_id":""}]}`), 400, "events[0].event_id", "permanent"},
		{"not JSON", "", post("/search", `{"query":`), 422, "arguments", "permanent"},
		{"no object", "", post("/search", `["query"]`), 422, "arguments", "permanent"},
		{"a field that is not known", "", post("/search", `{"query":"x","project":"y"}`), 422, "arguments", "permanent"},
		{"too deep", "", post("/search", strings.Repeat(`{"a":`, maxNesting+1)), 422, "body", "permanent"},
		{"no such job", "", post("/delete", `{}`), 404, "job", "permanent"},
		{"no such page", "", post("/", ``, "Method", "GET"), 404, "job", "permanent"},
		{"another method", "", post("/search", search, "Method", "GET"), 405, "method", "permanent"},
		{"another method for MCP", "", post("/mcp", ``, "Method", "DELETE"), 405, "method", "permanent"},
		{"post of the schemas", "", post("/openapi.json", ``), 405, "method", "permanent"},
		{"an agent that is none", "", post("/search", search, "Reme-Host", "../codex"), 400, "Reme-Host", "permanent"},
		{"an agent that is none for MCP", "", post("/mcp", search, "Reme-Host", "Codex CLI"), 400, "Reme-Host", "permanent"},
		{"a folder that is none", "", post("/search", search, "Reme-Cwd", "%zz"), 400, "Reme-Cwd", "permanent"},
		{"too large", "", post("/search", strings.Repeat(" ", MaxBody+1)), 413, "body", "permanent"},
		{"far too large", "", withLength(post("/search", search), 1<<40), 413, "body", "permanent"},
		{"a form", "", post("/search", search, "Content-Type", "application/x-www-form-urlencoded"), 415, "Content-Type", "permanent"},
		{"plain text", "", post("/search", search, "Content-Type", "text/plain; x=application/json"), 415, "Content-Type", "permanent"},
		{"no type", "", post("/search", search, "Content-Type", ""), 415, "Content-Type", "permanent"},
		{"plain text to MCP", "", post("/mcp", search, "Content-Type", "text/plain"), 415, "Content-Type", "permanent"},
		{"a rebound name", "", post("/search", search, "Host", "evil.example:2334"), 403, "Host", "configuration"},
		{"a rebound name for MCP", "", post("/mcp", search, "Host", "evil.example:2334"), 403, "Host", "configuration"},
		{"a name that begins well", "", post("/search", search, "Host", "localhost.evil.example"), 403, "Host", "configuration"},
		// Not all browsers and systems keep such names from the network's name servers.
		{"a name below localhost", "", post("/search", search, "Host", "memory.localhost:2334"), 403, "Host", "configuration"},
		{"a name below localhost, from its own page", "", post("/search", search, "Host", "memory.localhost:2334", "Origin", "http://memory.localhost:2334"), 403, "Host", "configuration"},
		{"a name below localhost for MCP", "", post("/mcp", search, "Host", "x.localhost"), 403, "Host", "configuration"},
		{"localhost with a dot", "", post("/search", search, "Host", "localhost.:2334"), 403, "Host", "configuration"},
		{"an address of the network", "", post("/search", search, "Host", "192.168.1.5:2334"), 403, "Host", "configuration"},
		{"no host", "", post("/search", search, "Host", ""), 403, "Host", "configuration"},
		{"a rebound name for the schemas", "", post("/openapi.json", ``, "Method", "GET", "Host", "evil.example"), 403, "Host", "configuration"},
		{"another site", "", post("/search", search, "Origin", "https://evil.example"), 403, "Origin", "configuration"},
		{"a file", "", post("/search", search, "Origin", "null"), 403, "Origin", "configuration"},
		{"another port of this machine", "", post("/search", search, "Origin", "http://127.0.0.1:3000"), 403, "Origin", "configuration"},
		{"a browser says so", "", post("/search", search, "Sec-Fetch-Site", "cross-site"), 403, "Origin", "configuration"},
		{"another site to MCP", "", post("/mcp", search, "Origin", "https://evil.example"), 403, "Origin", "configuration"},
		{"another site with the token", "sesame", post("/search", search, "Origin", "https://evil.example", "Authorization", "Bearer sesame"), 403, "Origin", "configuration"},
		{"no token", "sesame", post("/search", search), 401, "Authorization", "configuration"},
		{"no token for MCP", "sesame", post("/mcp", search), 401, "Authorization", "configuration"},
		{"no token, no such job", "sesame", post("/delete", search), 401, "Authorization", "configuration"},
		{"another token", "sesame", post("/search", search, "Authorization", "Bearer sesam"), 401, "Authorization", "configuration"},
		{"an empty token", "sesame", post("/search", search, "Authorization", "Bearer "), 401, "Authorization", "configuration"},
		{"another scheme", "sesame", post("/search", search, "Authorization", "Basic sesame"), 401, "Authorization", "configuration"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			res, a := served(t, w.handler(test.token, &log), test.request)
			if res.StatusCode != test.status || a.Success || a.Metadata["field"] != test.field || a.Metadata["reason"] == "" || a.Metadata["class"] != test.class {
				t.Errorf("%d %+v", res.StatusCode, a)
			}
			if jobs, _ := a.Metadata["jobs"].([]any); (len(jobs) == len(w.jobs)) != (test.status == 404) {
				t.Errorf("jobs: %v", jobs)
			}
			if (res.Header.Get("Allow") != "") != (test.status == 405) || (res.Header.Get("WWW-Authenticate") != "") != (test.status == 401) {
				t.Errorf("%v", res.Header)
			}
			if l := log.String(); strings.Count(l, "\n") != 1 || strings.Contains(l, "delete") || strings.Contains(l, "evil") || strings.Contains(l, "osprey") {
				t.Errorf("log: %s", l)
			}
		})
	}
}

// What is allowed, and the answers of jobs.
func TestHTTP(t *testing.T) {
	t.Parallel()
	w := filled(t)
	for _, test := range []struct {
		name    string
		token   string
		request *http.Request
		want    string
	}{
		{"search", "", post("/search", `{"query":"osprey freeze"}`), "========== reme://session/dialog/codex/"},
		{"by name", "", post("/version", `{}`, "Host", "localhost:2334"), "1.2.3"},
		{"by IPv6", "", post("/version", `{}`, "Host", "[::1]:2334"), "1.2.3"},
		{"without a body", "", post("/version", ``, "Content-Type", ""), "1.2.3"},
		{"a page of our own", "", post("/version", `{}`, "Origin", "http://127.0.0.1:2334", "Sec-Fetch-Site", "same-origin"), "1.2.3"},
		{"another JSON type", "", post("/version", `{}`, "Content-Type", "application/vnd.x+json; charset=utf-8"), "1.2.3"},
		{"the token", "sesame", post("/version", `{}`, "Authorization", "bearer sesame", "Host", "memory.example"), "1.2.3"},
		{"health needs no token", "sesame", post("/healthz", ``, "Method", "GET"), "ok"},
		{"a failure of the job", "", post("/read", `{"path":"digest/none.md"}`), "Error: file digest/none.md does not exist"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			res, a := served(t, w.handler(test.token, &log), test.request)
			if text, _ := a.Answer.(string); res.StatusCode != 200 || !strings.HasPrefix(text, test.want) {
				t.Errorf("%d %+v", res.StatusCode, a)
			}
			if l := log.String(); strings.Contains(l, "osprey") || strings.Contains(l, "none.md") || (l == "") != (test.request.URL.Path == "/healthz") {
				t.Errorf("log: %s", l)
			}
		})
	}
	_, a := served(t, w.handler("", io.Discard), post("/agent_memory_remember",
		`{"content":"The parrot is called Kea. <reme-context>old</reme-context>","host":"codex","created_at":"2026-11-28T10:00:00Z","session":{"host":"codex","scope_id":"default","session_id":"s1"}}`))
	if note, err := asType[client.Note](a.Metadata); err != nil || !note.Created || note.Date != "2026-11-28" || note.Path != "daily/2026-11-28/the-parrot-is-called-kea.md" {
		t.Errorf("%+v, %v", a, err)
	}
}

// asType reads a value as a client does.
func asType[T any](value any) (v T, err error) {
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	return v, err
}

// The tools and nothing else are there for MCP clients.
func TestHTTPTools(t *testing.T) {
	t.Parallel()
	w := filled(t)
	s := httptest.NewServer(w.handler("", io.Discard))
	defer s.Close()
	for _, revision := range mcp.SupportedProtocolVersions() {
		c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
			&mcp.StreamableClientTransport{Endpoint: s.URL + "/mcp", DisableStandaloneSSE: true}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
		if err != nil {
			t.Fatal(err)
		}
		list, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "tools", list.Tools)
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "search", Arguments: map[string]any{"query": "osprey freeze"}})
		if got := textOf(t, r, err); !strings.HasPrefix(got, "========== reme://session/dialog/codex/") {
			t.Errorf("%s: %s", revision, got)
		}
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "agent_session_append"}); err == nil {
			t.Errorf("%s: agent_session_append is a tool", revision)
		}
		c.Close()
	}
}

// help and /openapi.json describe every job, and real requests and answers keep
// what they say.
func TestSchemas(t *testing.T) {
	t.Parallel()
	w := filled(t)
	const session = `"host":"kimi","scope_id":"default","session_id":"k1"`
	samples := map[string]string{
		"search": `{"query":"osprey","limit":3,"tags":["planning"]}`, "read": `{"path":"digest/reviews.md"}`,
		"traverse": `{"path":["digest/reviews.md"],"depth":0,"direction":"both"}`, "daily_list": `{}`,
		"remember":              `{"content":"The quokka listens on port 6543."}`,
		"agent_session_append":  `{` + session + `,"newer":1,"events":[{"event_id":"1:user","role":"user","content":"x","created_at":"2026-11-30T11:00:00Z","newer":2}]}`,
		"agent_session_events":  `{` + session + `,"limit":2}`,
		"agent_session_flush":   `{` + session + `,"reason":"turn_end","wait":true}`,
		"agent_memory_recall":   `{"query":"osprey freeze","purpose":"prompt","exclude":["x"]}`,
		"agent_memory_remember": `{"content":"The parrot is called Kea.","session":{` + session + `}}`,
		"version":               `{}`,
		"health_check":          `{"newer":1}`,
		"sessions":              `{"limit":1}`,
		"status":                `{}`,
		"help":                  `{}`,
	}
	rec := httptest.NewRecorder()
	w.handler("sesame", io.Discard).ServeHTTP(rec, post("/openapi.json", "", "Method", "GET", "Authorization", "Bearer sesame"))
	golden(t, "openapi", json.RawMessage(rec.Body.Bytes()))
	var doc struct {
		Paths map[string]struct {
			Post struct {
				RequestBody struct {
					Content map[string]struct{ Schema *jsonschema.Schema }
				}
				Responses map[string]struct {
					Content map[string]struct{ Schema *jsonschema.Schema }
				}
			}
		}
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	validate := func(what string, s *jsonschema.Schema, value any) {
		t.Helper()
		resolved, err := s.Resolve(nil)
		if err == nil {
			var v any
			if v, err = asType[any](value); err == nil {
				err = resolved.Validate(v)
			}
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, j := range w.jobs {
		validate(j.Name, doc.Paths["/"+j.Name].Post.RequestBody.Content["application/json"].Schema, json.RawMessage(samples[j.Name]))
		validate(j.Name, doc.Paths["/"+j.Name].Post.Responses["200"].Content["application/json"].Schema, w.call(j.Name, samples[j.Name]))
	}
	if len(doc.Paths) != len(w.jobs)+1 {
		t.Errorf("%d paths", len(doc.Paths))
	}
	golden(t, "help", w.call("help", ``))
}

// No job is both a model's and an integration's, so that none becomes a tool by
// oversight.
func TestAllowlists(t *testing.T) {
	t.Parallel()
	tools := names(Tools())
	if want := []string{"search", "read", "traverse", "daily_list", "remember"}; !slices.Equal(tools, want) {
		t.Errorf("tools: %q", tools)
	}
	for _, name := range names(Internal()) {
		if slices.Contains(tools, name) {
			t.Errorf("%s is in both", name)
		}
	}
}
