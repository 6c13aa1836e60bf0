//go:build unix

package contract

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
)

// Kind says what a host wanted from the model.
type Kind string

// The kinds of model requests that the hosts make.
const (
	Main       Kind = "main"       // the conversation with the user
	Compaction Kind = "compaction" // the summary of a conversation
	Subagent   Kind = "subagent"   // the conversation of a spawned agent
	Review     Kind = "review"     // what a host asks itself about a session, behind the user's back
	Aux        Kind = "aux"        // titles and the like
)

// Message is one item of a model request, whatever its host calls it.
type Message struct {
	Role string // system, developer, user or assistant; "tool" for a tool's result
	Text string
}

// Request is one recorded model request.
type Request struct {
	Kind     Kind
	Messages []Message
	Body     map[string]any
}

// Step scripts the answer to one main request. The zero value answers "ok".
type Step struct {
	Text   string         // the reply
	Shell  string         // instead: a call of the host's shell tool with this command
	Tool   string         // instead: a call of this tool
	Args   map[string]any // the arguments of Tool
	Spawn  string         // instead: a subagent with this task
	Await  bool           // instead: wait for the subagent just spawned (Codex; Claude Code wakes the model itself)
	Status int            // instead: this HTTP error
	Hang   bool           // instead: begin to answer, then say nothing until the host hangs up
	Tokens int            // input tokens to report, if not a few
}

const (
	summaryText  = "Summary by the fake model."
	subagentText = "Answer of the fake subagent."
)

// Model is a fake model server. It is also the HTTP proxy of the host it serves, and as such refuses everything.
type Model struct {
	api     api
	server  *httptest.Server
	hanging chan struct{}

	mu       sync.Mutex
	requests []Request
	steps    []Step
	tasks    []string
	refused  []string
}

// api is the dialect of a model server.
type api interface {
	// parse reads a request's body; tasks are those of the subagents spawned so far.
	parse(body map[string]any, tasks []string) Request
	// answer writes the scripted answer to r as the n-th of the server. It must stop when the client has gone.
	answer(w http.ResponseWriter, hr *http.Request, r Request, step Step, n int)
	path() string
}

func newModel(a api) *Model {
	m := &Model{api: a, hanging: make(chan struct{}, 8)}
	m.server = httptest.NewServer(http.HandlerFunc(m.serve))
	return m
}

// NewResponses starts a fake of the Responses API.
func NewResponses() *Model { return newModel(responses{}) }

// NewMessages starts a fake of the Messages API.
func NewMessages() *Model { return newModel(messages{}) }

// URL is the server's address, without a path.
func (m *Model) URL() string { return m.server.URL }

// Close stops the server and ends what still hangs on it.
func (m *Model) Close() {
	m.server.CloseClientConnections()
	m.server.Close()
}

// Script queues the answers to the next main requests.
func (m *Model) Script(steps ...Step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps = append(m.steps, steps...)
}

// Hanging yields once for each Hang step that has begun.
func (m *Model) Hanging() <-chan struct{} { return m.hanging }

// Requests returns the recorded requests of the given kinds, of all kinds if none is given.
func (m *Model) Requests(kinds ...Kind) []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Request
	for _, r := range m.requests {
		if len(kinds) == 0 || slices.Contains(kinds, r.Kind) {
			out = append(out, r)
		}
	}
	return out
}

// Refused lists what the host asked for beside the model.
func (m *Model) Refused() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.refused)
}

func (m *Model) serve(w http.ResponseWriter, hr *http.Request) {
	var body map[string]any
	if hr.Method != http.MethodPost || hr.URL.Path != m.api.path() || hr.URL.IsAbs() ||
		json.NewDecoder(hr.Body).Decode(&body) != nil {
		m.mu.Lock()
		m.refused = append(m.refused, hr.Method+" "+hr.Host+hr.URL.Path)
		m.mu.Unlock()
		w.Header().Set("Connection", "close")
		http.Error(w, "{}", http.StatusNotFound)
		return
	}
	r, step, n := m.take(body)
	if step.Status != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(step.Status)
		_, _ = w.Write([]byte(`{"type":"error","error":{"type":"api_error","message":"scripted to fail"}}`))
		return
	}
	if step.Hang {
		step.Text = "Half an ans"
	}
	m.api.answer(w, hr, r, step, n)
	if step.Hang {
		m.hanging <- struct{}{}
		<-hr.Context().Done()
	}
}

// take records a request and decides its answer.
func (m *Model) take(body map[string]any) (Request, Step, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.api.parse(body, m.tasks)
	r.Body = body
	m.requests = append(m.requests, r)
	step := Step{Text: "ok"}
	switch r.Kind {
	case Compaction:
		step.Text = summaryText
	case Subagent:
		step.Text = subagentText
	case Aux:
		step.Text = `{"title":"fake"}`
	case Main:
		if len(m.steps) > 0 {
			step, m.steps = m.steps[0], m.steps[1:]
		}
		if step.Spawn != "" {
			m.tasks = append(m.tasks, step.Spawn)
		}
	}
	return r, step, len(m.requests)
}

// event writes one server-sent event.
func event(w http.ResponseWriter, name string, data map[string]any) {
	data["type"] = name
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write([]byte("event: " + name + "\ndata: " + string(raw) + "\n\n"))
	_ = http.NewResponseController(w).Flush()
}

// textOf joins the texts of a message's content, which is a string or a list of parts.
func textOf(content any) string {
	switch c := content.(type) {
	case string:
		return c
	case []any:
		var texts []string
		for _, part := range c {
			if p, ok := part.(map[string]any); ok {
				if s, ok := p["text"].(string); ok {
					texts = append(texts, s)
				}
			}
		}
		return strings.Join(texts, "\n")
	}
	return ""
}

func str(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func list(m map[string]any, key string) []map[string]any {
	raw, _ := m[key].([]any)
	var out []map[string]any
	for _, x := range raw {
		if o, ok := x.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

func toJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
