package cmd

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/gateway"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/internal/config"
	"github.com/agentscope-ai/reme-hook/internal/remote"
	"github.com/agentscope-ai/reme-hook/spool"
	"github.com/agentscope-ai/reme-hook/upstream"
	"github.com/agentscope-ai/reme-hook/workspace"
)

const faultsPage = "../docs/faults.md"

// fault is something that goes wrong with a memory, for some time.
type fault struct {
	kind string // of memory: a column of the page
	name string
	// waits says that a prompt waits in vain, once; the test has it wait less.
	waits bool
	// strange says that nobody has met the service before.
	strange bool
	// loses says that there is no place for what is said. The log tells so.
	loses bool
	begin func(*machine)
	end   func(*machine) // nil if the machine is only started anew
}

// answer makes each request be answered by h instead of the service.
func answer(h http.HandlerFunc) func(*machine) {
	return func(m *machine) { m.handler.Store(&h) }
}

func responding(code int, body string, headers ...string) func(*machine) {
	return answer(func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		io.WriteString(w, body)
	})
}

// occupy puts a file where a folder is needed.
func occupy(elements ...string) func(*machine) {
	return displace(func(path string) error { return os.WriteFile(path, nil, 0o600) }, elements...)
}

// occupyFile puts a folder where a file is needed.
func occupyFile(elements ...string) func(*machine) {
	return displace(func(path string) error { return os.Mkdir(path, 0o700) }, elements...)
}

// displace puts something where something else is needed.
func displace(put func(path string) error, elements ...string) func(*machine) {
	return func(m *machine) {
		path := filepath.Join(append([]string{m.home}, elements...)...)
		if err := os.Rename(path, path+".away"); err != nil && !errors.Is(err, os.ErrNotExist) {
			m.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			m.Fatal(err)
		}
		if err := put(path); err != nil {
			m.Fatal(err)
		}
	}
}

// damage changes the content of the index.
func damage(change func([]byte) []byte) func(*machine) {
	return func(m *machine) {
		path := filepath.Join(append([]string{m.home}, index...)...)
		data, err := os.ReadFile(path)
		m.check(err)
		m.check(os.WriteFile(path, change(data), 0o600))
	}
}

// monopolize has another program have the index to itself.
func monopolize(m *machine) {
	db, err := sql.Open("sqlite", filepath.Join(append([]string{m.home}, index...)...))
	m.check(err)
	_, err = db.Exec("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT")
	m.check(err)
	m.release = db.Close
}

// jump has the clock go ahead or back.
func jump(d time.Duration) func(*machine) { return func(m *machine) { m.clock = m.clock.Add(d) } }

var index = []string{"workspace", "metadata", "reme-hook", "index.sqlite"}

// sessionA is the one that faults happen to.
var sessionA = string(client.Session{Host: "codex", Scope: "default", ID: "a"}.Key())

// clear takes it away again.
func clear(elements ...string) func(*machine) {
	return func(m *machine) {
		path := filepath.Join(append([]string{m.home}, elements...)...)
		if err := os.Remove(path); err != nil {
			m.Fatal(err)
		}
		if err := os.Rename(path+".away", path); err != nil && !errors.Is(err, os.ErrNotExist) {
			m.Fatal(err)
		}
	}
}

const (
	embedded = "embedded"
	overHTTP = "at a URL"
)

var faults = []fault{
	{kind: embedded, name: "none", begin: func(*machine) {}},
	{kind: embedded, name: "a file lies where it should be", begin: occupy("workspace"), end: clear("workspace")},
	{kind: embedded, name: "a file lies where the sessions should be", begin: occupy("workspace", "session", "dialog"), end: clear("workspace", "session", "dialog")},
	{kind: embedded, name: "a file lies where the index should be", begin: occupy("workspace", "metadata", "reme-hook"), end: clear("workspace", "metadata", "reme-hook")},
	{kind: embedded, name: "a file lies where the spool should be", begin: occupy("integrations", "spool"), end: clear("integrations", "spool")},
	{kind: embedded, name: "a file lies where the state should be", begin: occupy("integrations", "state"), end: clear("integrations", "state")},

	{kind: embedded, name: "a folder lies where the index should be", begin: occupyFile(index...), end: clear(index...)},
	{kind: embedded, name: "a folder lies where the session's rows should be", begin: occupyFile("workspace", "session", "dialog", "codex", sessionA+".jsonl"), end: clear("workspace", "session", "dialog", "codex", sessionA+".jsonl")},
	{kind: embedded, name: "a folder lies where the session's state should be", begin: occupyFile("integrations", "state", "codex", sessionA+".json"), end: clear("integrations", "state", "codex", sessionA+".json")},
	{kind: embedded, name: "a file lies where the session's records should be", begin: occupy("integrations", "spool", "pending", sessionA), end: clear("integrations", "spool", "pending", sessionA)},
	{kind: embedded, name: "a folder lies where service.json should be", begin: occupyFile("integrations", "service.json"), end: clear("integrations", "service.json")},
	{kind: embedded, name: "the index is cut in half", begin: damage(func(b []byte) []byte { return b[:len(b)/2] })},
	{kind: embedded, name: "the index is garbage", begin: damage(func(b []byte) []byte { return bytes.Repeat([]byte("x"), len(b)) })},
	{kind: embedded, name: "another program has the index to itself", begin: monopolize, end: func(m *machine) { m.check(m.release()) }},
	{kind: embedded, name: "the clock goes ahead a year", begin: jump(365 * 24 * time.Hour), end: jump(-365 * 24 * time.Hour)},
	{kind: embedded, name: "the clock goes back a year", begin: jump(-365 * 24 * time.Hour), end: jump(365 * 24 * time.Hour)},

	{kind: overHTTP, name: "none", begin: func(*machine) {}},
	{kind: overHTTP, name: "nobody has met it yet", strange: true, begin: func(*machine) {}},
	{kind: overHTTP, name: "nothing listens", begin: (*machine).stop},
	{kind: overHTTP, name: "it hangs", waits: true, begin: answer(hang)},
	{kind: overHTTP, name: "a byte now and then", waits: true, begin: answer(drip)},
	{kind: overHTTP, name: "it stores, then hangs", waits: true, begin: (*machine).stall},
	{kind: overHTTP, name: "it is gone between append and flush", begin: (*machine).forgetful},
	{kind: overHTTP, name: "connections are reset", begin: answer(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })},
	{kind: overHTTP, name: "answers are cut", begin: responding(200, `{"success":true`, "Content-Length", "9999")},
	{kind: overHTTP, name: "status 500", begin: responding(500, `{"answer":"Error","success":false}`)},
	{kind: overHTTP, name: "status 503, Retry-After", begin: responding(503, `{}`, "Retry-After", "600")},
	{kind: overHTTP, name: "another program listens", begin: responding(200, `<html>hello</html>`, "Content-Type", "text/html")},
	{kind: overHTTP, name: "a ReMe without the agent contract", begin: responding(405, `{"detail":"Method Not Allowed"}`)},
	{kind: overHTTP, name: "it sends on to another host", begin: responding(307, ``, "Location", "http://memory.example/")},
	{kind: overHTTP, name: "a giant answer", begin: giant},
	{kind: overHTTP, name: "numbers that are none", begin: responding(200, `{"success":true,"metadata":{"items":[{"score":NaN}],"event_ids":NaN}}`)},
	{kind: overHTTP, name: "events are not confirmed", begin: responding(200, `{"success":true,"metadata":{"version":"1","integration_api_version":"1.0"}}`)},
	{kind: overHTTP, name: "it wants another token", begin: responding(401, `{}`)},
	{kind: overHTTP, name: "it refuses what was said", begin: (*machine).refuse},
	{kind: overHTTP, name: "another major version of the contract", strange: true, begin: (*machine).upgrade},
	{kind: overHTTP, name: "it becomes another major version", begin: (*machine).upgrade},
}

// giant is not made before it is needed: each process of the tests would have it.
func giant(m *machine) {
	responding(200, `{"success":true,"metadata":{},"answer":"`+strings.Repeat("x", 21<<20)+`"}`)(m)
}

func hang(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func drip(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for r.Context().Err() == nil {
		io.WriteString(w, " ")
		w.(http.Flusher).Flush()
		<-tick.C
	}
}

// machine is one on which hooks run, in this process, by a clock of its own.
type machine struct {
	*testing.T
	*app
	fault
	clock   time.Time
	served  *workspace.Workspace // of a service at a URL
	address string
	server  *http.Server
	handler atomic.Pointer[http.HandlerFunc] // nil for the service itself
	service http.Handler
	log     bytes.Buffer
	release func() error // what a fault has taken
}

const (
	seedText = "The lighthouse project is called Quillfeather."
	question = "What is the lighthouse project called?"
)

func newMachine(t *testing.T, f fault) *machine {
	t.Helper()
	m := &machine{T: t, fault: f, clock: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)}
	home := newHome(t)
	env := map[string]string{"REME_WORKSPACE": filepath.Join(home, "workspace"), "REME_RECALL_TIMEOUT": "2.5s"}
	if f.waits {
		env["REME_RECALL_TIMEOUT"] = "100ms"
	}
	options := workspace.Options{Now: m.now, Location: time.UTC, Version: "1.2.3"}
	if f.kind == overHTTP {
		ws, err := workspace.Open(filepath.Join(home, "served"), options)
		m.check(err)
		t.Cleanup(func() { ws.Close() })
		m.served = ws
		m.service, err = gateway.New(ws, gateway.Caller{}).Handler(gateway.HandlerOptions{Token: "s3same", Log: slog.New(slog.DiscardHandler)})
		m.check(err)
		m.address = "127.0.0.1:0"
		m.start()
		t.Cleanup(m.stop)
		env["REME_SERVICE"], env["REME_TOKEN"] = "http://"+m.address, "s3same"
	}
	dir := filepath.Join(home, "integrations")
	m.app = &app{now: m.now, home: home, dir: dir, upstream: upstream.New(filepath.Join(dir, "upstream"), "", m.now), hosts: knownHosts(), stdout: io.Discard, stderr: io.Discard}
	m.app.config, _, m.app.problems = config.Load("", home, func(k string) string { return env[k] })
	// Each process opens the memory for itself.
	m.app.workspace = func() (*workspace.Workspace, error) { return workspace.Open(m.config.Workspace, options) }
	m.app.memory = func() (memory, error) {
		if url := m.config.URL(); url != "" {
			return remote.New(url, m.config.Token, gateway.Caller{})
		}
		return workspace.Open(m.config.Workspace, options)
	}
	seed := client.AppendRequest{Session: client.Session{Host: "kimi", Scope: "default", ID: "seed"}, Events: []client.Event{
		{ID: "t0:user", Role: client.User, Content: seedText, CreatedAt: m.clock.Add(-24 * time.Hour)},
	}}
	mem, err := m.memory()
	m.check(err)
	defer mem.Close()
	_, err = mem.Append(t.Context(), seed)
	m.check(err)
	if !f.strange {
		m.check(m.meet(t.Context(), mem))
	}
	return m
}

func (m *machine) now() time.Time { return m.clock }

func (m *machine) check(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *machine) start() {
	l, err := net.Listen("tcp", m.address)
	m.check(err)
	m.address = l.Addr().String()
	m.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h := m.handler.Load(); h != nil {
			(*h)(w, r)
			return
		}
		m.service.ServeHTTP(w, r)
	}), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go m.server.Serve(l)
}

func (m *machine) stop() { m.server.Close() }

// stall has the service do what it is asked, and not say so.
func (m *machine) stall() {
	answer(func(w http.ResponseWriter, r *http.Request) {
		m.service.ServeHTTP(httptest.NewRecorder(), r)
		<-r.Context().Done()
	})(m)
}

// forgetful has the service end whenever it is to flush.
func (m *machine) forgetful() {
	answer(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/agent_session_flush" {
			panic(http.ErrAbortHandler)
		}
		m.service.ServeHTTP(w, r)
	})(m)
}

// refuse has the service take all but what is to be kept.
func (m *machine) refuse() {
	answer(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/agent_session_") {
			w.WriteHeader(422)
			return
		}
		m.service.ServeHTTP(w, r)
	})(m)
}

// upgrade puts a service of another contract in place of ours, which takes the
// same words for something else.
func (m *machine) upgrade() {
	answer(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			io.WriteString(w, `{"answer":"9.0","success":true,"metadata":{"name":"reme","version":"9.0","integration_api_version":"2.0"}}`)
			return
		}
		if m.strange && strings.HasPrefix(r.URL.Path, "/agent_") {
			m.Errorf("a service of another contract is asked for %s", r.URL.Path)
		}
		w.WriteHeader(400)
		io.WriteString(w, `{"metadata":{"field":"thread_id","reason":"is required"}}`)
	})(m)
}

// restore ends the fault.
func (m *machine) restore() {
	m.handler.Store(nil)
	m.app.config.RecallTimeout, m.waits = 2500*time.Millisecond, false
	if m.end != nil {
		m.end(m)
	}
	if m.kind == overHTTP {
		m.stop()
		m.start()
	}
}

// hook runs one hook, and the deliverer if the hook has started it. It returns
// what the host gets, and how long the prompt was kept waiting for that.
func (m *machine) hook(event, session, turn, text string) (out, waited string) {
	m.Helper()
	m.clock = m.clock.Add(time.Second)
	h, _ := m.host("codex")
	kind := h.Adapter.Events[event]
	m.log.Reset()
	poked := false
	var mu sync.Mutex
	r := m.runner()
	if !m.waits && m.release == nil {
		r.Ease = 20 // a busy machine is no fault
	}
	r.Getenv = func(string) string { return "" }
	r.Log = slog.New(slog.NewTextHandler(&m.log, nil))
	r.Poke = func() {
		mu.Lock()
		defer mu.Unlock()
		poked = true
	}
	out = string(r.Run(m.Context(), h.Adapter, event, bytes.NewReader(h.Adapter.Sample(hooks.Event{
		Kind: kind, Session: client.Session{ID: session}, Turn: client.TurnID(turn), Cwd: "/src", Prompt: text, Reply: text,
	}))))
	log := m.log.String()
	switch {
	case strings.Contains(log, "msg=recall") && strings.Contains(log, "deadline exceeded"):
		waited = "after recall_timeout"
	case strings.Contains(log, "msg=recall"), strings.Contains(log, `msg="open service"`):
		waited = "at once"
	default:
		waited = "not asked"
	}
	if strings.Contains(log, "Quillfeather") || strings.Contains(log, "s3same") || strings.Contains(log, "turn lost") && !m.loses {
		m.Errorf("%s logged %s", event, log)
	}
	if poked {
		ctx, cancel := context.WithTimeout(m.Context(), 10*time.Second)
		if m.waits && m.handler.Load() != nil {
			ctx, cancel = context.WithTimeout(m.Context(), 100*time.Millisecond)
		}
		defer cancel()
		_ = m.deliver(ctx) // what is left by it is looked at
	}
	return out, waited
}

// prompt is a hook that may show a memory.
func (m *machine) prompt(session, turn, text string) string {
	m.Helper()
	out, waited := m.hook("user-prompt-submit", session, turn, text)
	switch {
	case out == "":
		return "nothing, " + waited
	case strings.Count(out, "Quillfeather") == 1 && strings.HasPrefix(out, `{"hookSpecificOutput":`) && strings.HasSuffix(out, "\\n</reme-context>\"}}\n"):
		return "memory"
	}
	m.Errorf("the host gets %q", out)
	return out
}

// other is a hook that never shows anything. It returns what became of what was
// said.
func (m *machine) other(event, session, turn, text string) string {
	m.Helper()
	if out, _ := m.hook(event, session, turn, text); out != "" {
		m.Errorf("%s: the host gets %q", event, out)
	}
	entries, err := m.spool().List()
	if err != nil {
		return "stored" // at once, without a spool
	}
	states := map[spool.State]int{}
	for _, e := range entries {
		if e.Turn.ID == "a" {
			states[e.State]++
		}
	}
	switch {
	case states[spool.Quarantined] > 0:
		return "quarantined"
	case states[spool.Pending] > 0:
		return "waits"
	}
	return "stored"
}

// stored is what the memory has of a session.
func (m *machine) stored(session string) string {
	m.Helper()
	ws := m.served
	if ws == nil {
		var err error
		ws, err = workspace.Open(m.config.Workspace, workspace.Options{Now: m.now, Location: time.UTC})
		m.check(err)
		defer ws.Close()
	}
	list, err := ws.Sessions(m.Context(), 0)
	m.check(err)
	for _, s := range list {
		if s.ID == session {
			text, err := ws.Read(m.Context(), s.Path, 0, 0)
			m.check(err)
			return text
		}
	}
	return ""
}

// row lets the fault happen to a session from its start to its end, and tells
// what became of it as a row of the page.
func (m *machine) row() string {
	m.begin(m)
	m.other("session-start", "a", "", "")
	first := m.prompt("a", "t1", question)
	stop := m.other("stop", "a", "t1", "Let me see.")
	next := m.prompt("b", "t2", question)
	second, _ := m.hook("user-prompt-submit", "a", "t3", "Go on.")
	if second != "" {
		m.Errorf("the host gets %q", second)
	}
	compact := m.other("pre-compact", "a", "t3", "")
	end := m.other("session-end", "a", "", "")

	m.restore()
	m.clock = m.clock.Add(20 * time.Minute)
	over := m.other("session-start", "c", "", "")
	then := "was stored"
	switch {
	case over == "quarantined":
		then = "`spool replay`"
		m.check(m.runSpoolReplay(m.Context(), nil))
	case end != "stored" && over == "stored":
		then = "next hook"
	case end != "stored":
		m.Errorf("still %s", over)
	}
	if again := m.prompt("d", "t4", question); again != "memory" {
		m.Errorf("once it is over, a prompt gets %s", again)
	}
	const want = "user: " + question + "\nassistant: Let me see.\nuser: Go on."
	if got := m.stored("a"); got != want {
		m.Errorf("the memory has\n%s\nwant\n%s", got, want)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s |\n", m.kind, m.name, first, stop, next, compact, end, then)
}

// TestFaults writes docs/faults.md with UPDATE_FAULTS=1, and else compares it with
// what happens.
func TestFaults(t *testing.T) {
	var page strings.Builder
	page.WriteString(`# What happens when the memory fails

Written by TestFaults, which lets each fault happen to a session of Codex from its start to its end. Do not edit; run it with UPDATE_FAULTS=1.

Each hook exits with status 0 and writes whole answers only. A prompt gets the memory that it asks for, or nothing: at once, after recall_timeout, or without the
service being asked because an earlier hook has found it failing. What is said is stored in the memory, waits in the spool, or is quarantined. The last
column tells what brings it to the memory when the fault is over: it was stored already, the next hook of any session does it, or ` + "`reme-hook spool replay`" + `. In each
case it is there once, in order.

| memory | fault | first prompt | its turn's end | next prompt | compaction | session end | arrives with |
| --- | --- | --- | --- | --- | --- | --- | --- |
`)
	rows := make([]string, len(faults))
	t.Run("rows", func(t *testing.T) {
		for i, f := range faults {
			t.Run(f.kind+", "+f.name, func(t *testing.T) {
				t.Parallel()
				rows[i] = newMachine(t, f).row()
			})
		}
	})
	if t.Failed() {
		return
	}
	for _, row := range rows {
		page.WriteString(row)
	}
	if os.Getenv("UPDATE_FAULTS") == "1" {
		if err := os.WriteFile(faultsPage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have, err := os.ReadFile(faultsPage); err != nil || string(have) != page.String() {
		t.Errorf("docs/faults.md is not what happens; run this test with UPDATE_FAULTS=1. What happens:\n%s", page.String())
	}
}
