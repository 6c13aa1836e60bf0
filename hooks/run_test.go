package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/config"
	"github.com/agentscope-ai/reme-hook/internal/link"
	"github.com/agentscope-ai/reme-hook/spool"
	"github.com/agentscope-ai/reme-hook/state"
)

// service is a memory in a test, with scripted failures.
type service struct {
	mu       sync.Mutex
	appended []client.Event
	flushed  []client.FlushReason
	notes    []client.RememberRequest
	recalled []client.RecallRequest
	answer   client.RecallResult
	fail     error
	panics   bool
}

func (s *service) Append(_ context.Context, r client.AppendRequest) (client.AppendResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return client.AppendResult{}, s.fail
	}
	var res client.AppendResult
	for _, e := range r.Events {
		res.EventIDs = append(res.EventIDs, e.ID)
		if !s.has(e.ID) {
			s.appended = append(s.appended, e)
		}
	}
	return res, nil
}

func (s *service) has(id client.EventID) bool {
	for _, e := range s.appended {
		if e.ID == id {
			return true
		}
	}
	return false
}

func (s *service) Flush(_ context.Context, r client.FlushRequest) (client.FlushResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushed = append(s.flushed, r.Reason)
	return client.FlushResult{Queued: true}, s.fail
}

func (s *service) Recall(_ context.Context, r client.RecallRequest) (client.RecallResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.panics {
		panic("secret text")
	}
	s.recalled = append(s.recalled, r)
	return s.answer, s.fail
}

func (s *service) Remember(_ context.Context, r client.RememberRequest) (client.Note, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, r)
	return client.Note{}, s.fail
}

func (s *service) Info(context.Context) (client.Info, error) { return client.Info{}, nil }

// world is a runner on a scratch folder, with a plain host.
type world struct {
	*Runner
	t           *testing.T
	svc         *service
	host        *Adapter
	clock       time.Time
	log         bytes.Buffer
	poked       atomic.Int32
	due, behind bool
	env         map[string]string
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, svc: &service{}, clock: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC), env: map[string]string{}}
	dir := t.TempDir()
	now := func() time.Time { return w.clock }
	w.Runner = &Runner{
		Now: now, Getenv: func(k string) string { return w.env[k] },
		Config:  config.Config{Workspace: filepath.Join(dir, "workspace"), Recall: true, Capture: true, RecallLimit: 5, RecallMaxChars: 4000, RecallTimeout: time.Second, CompactionNotes: true},
		State:   state.Store{Dir: filepath.Join(dir, "state"), Now: now},
		Spool:   spool.Spool{Dir: filepath.Join(dir, "spool"), Now: now},
		Link:    link.File{Path: filepath.Join(dir, "service.json")},
		Service: func() (client.Service, error) { return w.svc, nil },
		Poke:    func() { w.poked.Add(1) },
		Due:     func() bool { return w.due },
		Behind:  func() bool { return w.behind },
		Log:     slog.New(slog.NewTextHandler(&w.log, nil)),
	}
	w.host = &Adapter{
		Host: "plain",
		Events: map[string]Kind{"start": SessionStart, "prompt": Prompt, "stop": TurnEnd, "interrupt": Interrupt,
			"compact": PreCompact, "compacted": PostCompact, "end": SessionEnd, "tool": PreToolUse, "memory": MemoryWrite},
		Decode: func(_ Kind, p Payload) Event {
			return Event{Name: p.String("name"), Session: client.Session{Scope: "s", ID: p.String("session")}, Turn: client.TurnID(p.String("turn")),
				Cwd: p.String("cwd"), Prompt: p.Text("text"), Reply: p.Text("text"), Summary: p.Text("text"), Answered: strings.Split(p.Text("answered"), "|"), Note: p.Text("text"), Subagent: p.String("agent") != "",
				ContextLost: p.String("source") != "", TurnLost: p.String("source") == "compact", Compacted: p.String("source") == "compact", Paths: []string{p.String("path")}}
		},
		Encode:     func(_ Event, o Outcome) []byte { return []byte(o.Context + o.Deny) },
		MaxContext: 10000, Size: Bytes,
		Envelopes: []string{"system-reminder"}, Machine: []string{"note"},
	}
	return w
}

// hook runs one event of session s1; args are member, value, …
func (w *world) hook(event string, args ...string) string {
	w.t.Helper()
	p := map[string]string{"session": "s1", "turn": "t1", "name": event}
	for i := 0; i < len(args); i += 2 {
		p[args[i]] = args[i+1]
	}
	data, err := json.Marshal(p)
	if err != nil {
		w.t.Fatal(err)
	}
	w.clock = w.clock.Add(10 * time.Second)
	return string(w.Run(context.Background(), w.host, event, bytes.NewReader(data)))
}

// life is that of a session's state which the next hook begins.
func (w *world) life() string {
	return "-" + strconv.FormatInt(w.clock.Add(10*time.Second).UnixMilli(), 36)
}

func (w *world) expect(want ...string) {
	w.t.Helper()
	var got []string
	for _, e := range w.svc.appended {
		got = append(got, string(e.ID)+" "+e.Content)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		w.t.Errorf("the service has\n%s\nwant\n%s\nlog:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), w.log.String())
	}
}

func (w *world) pending() int {
	w.t.Helper()
	entries, err := w.Spool.List()
	if err != nil {
		w.t.Fatal(err)
	}
	return len(entries)
}

func TestTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hook("start")
	w.hook("prompt", "text", "the cat is called Minka")
	w.expect()
	if w.pending() != 1 {
		t.Error("the running turn is not in the spool")
	}
	w.hook("stop", "text", "Noted.")
	w.expect("t1:user the cat is called Minka", "t1:assistant Noted.")
	if w.pending() != 0 {
		t.Error("the delivered turn is still in the spool")
	}
	w.hook("end")
	if got := fmt.Sprint(w.svc.flushed); got != "[turn_end session_end]" {
		t.Errorf("flushed %s", got)
	}
}

func TestSteeringAndContinuedStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hook("prompt", "text", "first")
	w.hook("prompt", "text", "steer")
	w.hook("stop", "text", "one")
	w.hook("prompt", "text", "steer again")
	w.hook("stop", "text", "two")
	w.hook("stop", "text", "two", "n", "continued") // the same words again are no new message
	w.hook("prompt", "text", "continue", "turn", "t2")
	w.hook("stop", "text", "two", "turn", "t2") // in another turn they are
	w.expect("t1:user first", "t1:user:2 steer", "t1:assistant one", "t1:user:3 steer again", "t1:assistant:2 two",
		"t2:user continue", "t2:assistant two")
}

func TestTurnsWithoutIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	life := w.life()
	for range 2 {
		w.hook("prompt", "text", "continue", "turn", "")
		w.hook("prompt", "text", "steer", "turn", "")
		w.hook("stop", "text", "done", "turn", "")
	}
	w.expect("000001"+life+":user continue", "000001"+life+":user:2 steer", "000001"+life+":assistant done",
		"000002"+life+":user continue", "000002"+life+":user:2 steer", "000002"+life+":assistant done")
}

func TestTurnThatNeverStops(t *testing.T) {
	t.Parallel()
	for name, next := range map[string][]string{
		"next turn":   {"prompt", "turn", "t2", "text", "ok"},
		"interrupt":   {"interrupt"},
		"session end": {"end"},
		"compaction":  {"compact"},
	} {
		w := newWorld(t)
		w.hook("prompt", "text", "killed")
		w.hook(next[0], next[1:]...)
		if name == "next turn" {
			w.hook("stop", "turn", "t2", "text", "yes")
			w.expect("t1:user killed", "t2:user ok", "t2:assistant yes")
			continue
		}
		w.expect("t1:user killed")
		w.hook("stop", "text", "after all")
		w.expect("t1:user killed", "t1:assistant after all")
	}
}

func TestKilledHostIsDeliveredByAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hook("prompt", "text", "killed")
	w.hook("start", "session", "s2")
	if w.poked.Load() != 0 {
		t.Error("poked for a turn that may be running")
	}
	w.clock = w.clock.Add(spool.OpenFor)
	w.hook("start", "session", "s3")
	if w.poked.Load() != 1 {
		t.Error("not poked for an abandoned turn")
	}
	if _, err := w.Spool.DeliverAll(t.Context(), w.svc); err != nil {
		t.Error(err)
	}
	w.expect("t1:user killed")
}

func TestDoubleRegistration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.svc.answer = client.RecallResult{Items: []client.Item{{ID: "m", Path: "p", Snippet: "memory"}}}
	twice := func(event string, args ...string) (out int) {
		w.hook(event, args...)
		var n sync.WaitGroup
		w.clock = w.clock.Add(time.Minute)
		results := make(chan string, 2)
		for range 2 {
			n.Go(func() {
				p := map[string]string{"session": "s1", "turn": "t9", "name": event, "text": "the same question", "again": "yes"}
				data, _ := json.Marshal(p)
				results <- string(w.Run(context.Background(), w.host, event, bytes.NewReader(data)))
			})
		}
		n.Wait()
		close(results)
		for r := range results {
			if r != "" {
				out++
			}
		}
		return out
	}
	if n := twice("prompt", "text", "warm up", "turn", "t0"); n != 1 {
		t.Errorf("%d outputs of one prompt", n)
	}
	twice("stop", "text", "warm up", "turn", "t0")
	var users, replies int
	for _, e := range w.svc.appended {
		if e.ID.Turn() == "t9" && e.Role == client.User {
			users++
		}
		if e.ID.Turn() == "t9" && e.Role == client.Assistant {
			replies++
		}
	}
	if users != 1 || replies != 1 {
		t.Errorf("%d prompts and %d replies of one turn", users, replies)
	}
}

func TestRecall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.svc.answer = client.RecallResult{Items: []client.Item{{ID: "m1", Path: "session/dialog/x.jsonl", StartLine: 1, EndLine: 2, Snippet: "user: hi", Date: "2026-11-29", Host: "codex", Score: 0.9}}}
	out := w.hook("prompt", "text", "what is new?", "cwd", "/p")
	want := frameStart + "<reme-memory path=\"reme://session/dialog/x.jsonl#L1-L2\" date=\"2026-11-29\" host=\"codex\" score=\"0.90\">\nuser: hi\n</reme-memory>\n" + frameEnd
	if out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	r := w.svc.recalled[0]
	if r.Query != "what is new?" || r.Cwd != "/p" || r.Session != "s1" || r.Host != "plain" || r.ScopeID != "s" || r.Purpose != client.ForPrompt || r.Limit != 5 || r.MaxChars != 4000 {
		t.Errorf("asked %+v", r)
	}
	w.hook("prompt", "text", "and then?")
	if got := w.svc.recalled[1].Exclude; len(got) != 1 || got[0] != "m1" {
		t.Errorf("shown before: %v", got)
	}

	// A compaction in the middle of the turn takes what was shown; it comes back.
	w.hook("compact")
	if out := w.hook("start", "source", "compact"); !strings.Contains(out, "user: hi") {
		t.Errorf("after a compaction: %q", out)
	}
	if r := w.svc.recalled[2]; r.Query != "and then?" || len(r.Exclude) != 0 {
		t.Errorf("asked %+v", r)
	}
	// One that keeps what the turn was given is no reason to repeat it.
	w.hook("start", "source", "early")
	w.hook("prompt", "text", "and then, after all?")
	if r := w.svc.recalled[3]; len(r.Exclude) != 1 {
		t.Errorf("asked %+v", r)
	}
	w.svc.recalled = w.svc.recalled[:3]
	w.hook("stop", "text", "done")
	if out := w.hook("start", "source", "compact"); out != "" {
		t.Errorf("after a compaction between turns: %q", out)
	}
	for _, prompt := range []string{"", "  ", "ok", "/clear", "!ls", "<note>x</note>", "<reme-context source=\"x\">old</reme-context>"} {
		if w.hook("prompt", "text", prompt, "turn", "t3"); len(w.svc.recalled) != 3 {
			t.Errorf("recalled for %q", prompt)
			w.svc.recalled = w.svc.recalled[:3]
		}
	}
}

func TestProjectContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Config.ProjectContext = true
	w.svc.answer = client.RecallResult{Items: []client.Item{{ID: "m1", Path: "p", Snippet: "memory"}}}
	out := w.hook("prompt", "text", "what is new?", "cwd", "/p")
	if n := strings.Count(out, "<reme-context"); n != 1 {
		t.Errorf("%d frames in %q", n, out)
	}
	if len(w.svc.recalled) != 2 {
		t.Fatalf("asked %+v", w.svc.recalled)
	}
	if r := w.svc.recalled[1]; r.Purpose != client.ForSessionStart || r.Query != "" || r.Limit != maxIntroduced || r.MaxChars != maxIntroducedChars || len(r.Exclude) != 1 {
		t.Errorf("asked %+v", r)
	}
	w.hook("prompt", "text", "and then?")
	if len(w.svc.recalled) != 3 {
		t.Error("introduced twice")
	}
	w.hook("start", "source", "compact")
	w.hook("prompt", "text", "go on", "turn", "t2")
	if n := len(w.svc.recalled); n != 5 || w.svc.recalled[4].Purpose != client.ForSessionStart {
		t.Errorf("after a compaction: %+v", w.svc.recalled[3:])
	}
}

func TestProjectContextAtTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.host.StartContext = true
	w.svc.answer = client.RecallResult{Items: []client.Item{{ID: "m1", Path: "p", Snippet: "memory"}}}
	if out := w.hook("start", "cwd", "/p"); out != "" {
		t.Errorf("nobody asked for %q", out)
	}
	w.Config.ProjectContext = true
	if out := w.hook("start", "cwd", "/p"); !strings.Contains(out, "memory") {
		t.Errorf("the session starts with %q", out)
	}
	purposes := func() (list []client.Purpose) {
		for _, r := range w.svc.recalled {
			list = append(list, r.Purpose)
		}
		w.svc.recalled = nil
		return list
	}
	if got := purposes(); !slices.Equal(got, []client.Purpose{client.ForSessionStart}) {
		t.Errorf("asked for %q", got)
	}
	w.clock = w.clock.Add(time.Minute)
	if out := w.hook("start", "cwd", "/p"); out != "" {
		t.Errorf("resumed, it has %q again", out)
	}
	w.hook("prompt", "text", "what is new?", "cwd", "/p", "turn", "t1")
	if r := w.svc.recalled; len(r) != 1 || !slices.Equal(r[0].Exclude, []string{"m1"}) {
		t.Errorf("the prompt asked %+v", r)
	}
	purposes()
	w.hook("stop", "text", "done", "turn", "t1")
	w.hook("start", "source", "compact", "cwd", "/p")
	if got := purposes(); !slices.Equal(got, []client.Purpose{client.ForCompact, client.ForSessionStart}) {
		t.Errorf("after a compaction, asked for %q", got)
	}
}

func TestCompactionNotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hook("compacted", "text", "what was said <reme-context source=\"x\">old</reme-context>", "cwd", "/p")
	if len(w.svc.notes) != 1 || w.svc.notes[0].Content != "what was said" || w.svc.notes[0].Session.ID != "s1" || w.svc.notes[0].Cwd != "/p" {
		t.Errorf("noted %+v", w.svc.notes)
	}
	w.expect()
	w.hook("compacted", "text", " ")
	w.Config.CompactionNotes = false
	w.hook("compacted", "text", "another")
	if len(w.svc.notes) != 1 || w.pending() != 0 {
		t.Errorf("noted %+v", w.svc.notes)
	}
}

func TestMemoryWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Config.CompactionNotes = false
	w.hook("memory", "text", "the key is sk-"+"proj-9fK2mQ7xLr4vTz8wBn5cYd1gHj6pSs3e", "cwd", "/p")
	if len(w.svc.notes) != 1 || strings.Contains(w.svc.notes[0].Content, "sk-proj") || w.svc.notes[0].Title != "" || w.svc.notes[0].Session != nil || w.svc.notes[0].Cwd != "/p" {
		t.Errorf("noted %+v", w.svc.notes)
	}
	w.hook("memory", "text", " ")
	w.Config.Capture = false
	w.hook("memory", "text", "another")
	if len(w.svc.notes) != 1 || w.pending() != 0 {
		t.Errorf("noted %+v", w.svc.notes)
	}
}

// A host that sends the prompt with the reply again does not have it kept twice,
// also if the next turn has begun. What was not announced is kept.
func TestAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hook("prompt", "text", "one")
	w.hook("stop", "text", "1", "answered", "one")
	w.hook("stop", "text", "2", "answered", "two", "turn", "t2")
	w.hook("prompt", "text", "three", "turn", "t3")
	w.hook("prompt", "text", "four", "turn", "t4")
	w.hook("stop", "text", "3", "answered", "three", "turn", "t3")
	w.hook("stop", "text", "4", "answered", "four", "turn", "t4")
	w.hook("stop", "text", "5", "answered", "<private>five</private>", "turn", "t5")
	w.hook("prompt", "text", "six", "turn", "t6")
	w.hook("stop", "text", "6", "answered", "six| |seven|eight", "turn", "t6")
	w.hook("stop", "text", "7", "answered", "six|seven|eight|nine", "turn", "t6")
	w.expect("t1:user one", "t1:assistant 1", "t2:user two", "t2:assistant 2", "t3:user three", "t3:assistant 3", "t4:user four", "t4:assistant 4",
		"t6:user six", "t6:user:2 seven", "t6:user:3 eight", "t6:assistant 6", "t6:user:4 nine", "t6:assistant:2 7")
}

func TestWhatIsNotCaptured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hook("prompt", "text", "  \n")
	w.hook("prompt", "text", "<note>a task has ended</note>")
	w.hook("prompt", "text", "subagent's task", "agent", "a1")
	w.hook("stop", "text", "subagent's answer", "agent", "a1")
	w.hook("prompt", "text", "<system-reminder>be kind</system-reminder>\nreal <reme-context source=\"auto-recall\">old</reme-context>words", "turn", "t2")
	w.hook("stop", "text", "reply <reme-context source=\"auto-recall\">old", "turn", "t2")
	w.hook("stop", "text", "the answer to the note", "turn", "t3")
	w.hook("prompt", "text", "<private>nothing of this</private>", "turn", "t4")
	w.hook("stop", "text", "nor of this", "turn", "t4")
	w.hook("prompt", "text", "my key is sk-"+"proj-Vb7Nq2Zx9Lm4Kj8Hg3Fd6Sa1Pw5E", "turn", "t5")
	w.hook("stop", "text", "gh"+"p_q8Wn3LkZr5Tb7Yx2Vc9Mj4Hd6Fs1Ga0PoIuE is yours", "turn", "t5")
	w.expect("t2:user real words", "t2:assistant reply", "t3:assistant the answer to the note",
		"t5:user my key is [redacted api-key]", "t5:assistant [redacted github-token] is yours")
}

func TestSwitchedOff(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]func(*world) string{
		"guard":     func(w *world) string { w.env[GuardEnv] = "1"; return "/p" },
		"bypass":    func(w *world) string { w.env[BypassEnv] = "1"; return "/p" },
		"workspace": func(w *world) string { return filepath.Join(w.Config.Workspace, "session") },
		"excluded":  func(w *world) string { w.Config.Exclude = []string{"/secret/*"}; return "/secret/a/b" },
	} {
		w := newWorld(t)
		cwd := off(w)
		w.hook("prompt", "text", "what is new?", "cwd", cwd)
		w.hook("stop", "text", "this", "cwd", cwd)
		w.expect()
		if len(w.svc.recalled) > 0 {
			t.Errorf("%s: recalled", name)
		}
		if _, err := os.Stat(w.Spool.Dir); err == nil {
			t.Errorf("%s: the spool was written", name)
		}
	}
	w := newWorld(t)
	w.Config.Capture = false
	w.hook("prompt", "text", "what is new?")
	w.hook("stop", "text", "this")
	w.expect()
	if len(w.svc.recalled) != 1 {
		t.Error("no recall without capture")
	}
	w = newWorld(t)
	w.Config.Recall = false
	w.hook("prompt", "text", "what is new?")
	w.hook("stop", "text", "this")
	w.expect("t1:user what is new?", "t1:assistant this")
	if len(w.svc.recalled) != 0 {
		t.Error("recall although it is off")
	}
}

func TestGuardPaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if out := w.hook("tool", "path", "reme://session/dialog/codex/x.jsonl#L1-L2"); !strings.Contains(out, "reme-hook show 'reme://session/dialog/codex/x.jsonl#L1-L2'") {
		t.Errorf("denied with %q", out)
	}
	if out := w.hook("tool", "path", "reme://x", "agent", "a1"); out == "" {
		t.Error("a subagent may open it")
	}
	for _, path := range []string{"", "/etc/hosts", "docs/reme://x", "https://example.com"} {
		if out := w.hook("tool", "path", path); out != "" {
			t.Errorf("%s: denied with %q", path, out)
		}
	}
}

func TestServiceFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.svc.fail = errors.New("down")
	w.hook("prompt", "text", "first question")
	w.hook("stop", "text", "first answer")
	if w.pending() != 2 {
		t.Error("the turn is not in the spool")
	}
	w.hook("prompt", "text", "second question", "turn", "t2")
	w.hook("stop", "text", "second answer", "turn", "t2")
	if w.pending() != 4 {
		t.Error("the turns are not in the spool")
	}
	if b := w.Link.Load().Delivery; b.Failures < 1 || b.Class != "retryable" {
		t.Errorf("noted %+v", b)
	}
	w.svc.fail = nil
	w.clock = w.clock.Add(time.Hour)
	w.hook("prompt", "text", "third question", "turn", "t3")
	w.hook("stop", "text", "third answer", "turn", "t3")
	w.expect("t1:user first question", "t1:assistant first answer", "t2:user second question", "t2:assistant second answer",
		"t3:user third question", "t3:assistant third answer")
	if b := w.Link.Load().Delivery; b.Failures != 0 {
		t.Errorf("noted %+v", b)
	}
}

// A service at a URL gets and is asked for nothing before it is known to be one that
// can be used: the deliverer asks. Not even when there is no other place for a turn.
func TestUnmetService(t *testing.T) {
	t.Parallel()
	for name, meet := range map[string]func(link.File, time.Time) error{
		"unmet": func(link.File, time.Time) error { return nil },
		"another major": func(f link.File, now time.Time) error {
			return f.Probed(client.Info{Name: "x", Version: "1", APIVersion: "2.0"}, now)
		},
		"of no version": func(f link.File, now time.Time) error { return f.Probed(client.Info{Name: "x", Version: "1"}, now) },
	} {
		w := newWorld(t)
		w.Link.URL = "http://memory.test"
		if err := meet(w.Link, w.clock); err != nil {
			t.Fatal(err)
		}
		w.hook("prompt", "text", "question")
		poked := w.poked.Load()
		w.hook("stop", "text", "answer")
		if len(w.svc.appended)+len(w.svc.recalled)+len(w.svc.flushed) > 0 || w.pending() != 2 {
			t.Errorf("%s: used: %+v; %d records wait", name, w.svc, w.pending())
		}
		if poked != 1 || w.poked.Load() != 2 {
			t.Errorf("%s: the deliverer was started %d times by the prompt, %d in all", name, poked, w.poked.Load())
		}
		if b := w.Link.Load().Delivery; b.Failures != 0 {
			t.Errorf("%s: noted %+v", name, b)
		}
		if err := w.Link.Probed(client.Info{Name: "x", Version: "1", APIVersion: client.APIVersion}, w.clock); err != nil {
			t.Fatal(err)
		}
		w.hook("prompt", "text", "another question", "turn", "t2")
		w.hook("stop", "text", "another answer", "turn", "t2")
		w.expect("t1:user question", "t1:assistant answer", "t2:user another question", "t2:assistant another answer")
		if len(w.svc.recalled) != 1 {
			t.Errorf("%s: recalled %d times", name, len(w.svc.recalled))
		}
	}
	w := newWorld(t)
	w.Link.URL = "http://memory.test"
	if err := os.WriteFile(w.Spool.Dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.hook("stop", "text", "answer")
	if len(w.svc.appended) > 0 {
		t.Errorf("without a spool: %+v", w.svc.appended)
	}
}

// What else the deliverer has to do, it is started for by the end of a turn; by a
// prompt only when there was trouble.
func TestDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	expect := func(when string, pokes int32) {
		t.Helper()
		if got := w.poked.Swap(0); got != pokes {
			t.Errorf("%s: the deliverer was started %d times, want %d", when, got, pokes)
		}
	}
	w.hook("prompt", "text", "question")
	w.hook("stop", "text", "answer")
	expect("nothing is due", 0)
	w.due = true
	w.hook("prompt", "text", "question", "turn", "t2")
	expect("a prompt", 0)
	w.hook("stop", "text", "answer", "turn", "t2")
	expect("the end of a turn", 1)
	w.svc.fail = errors.New("down")
	w.hook("stop", "text", "answer", "turn", "t3")
	expect("a delivery that failed", 0)
	w.clock = w.clock.Add(time.Hour)
	w.hook("prompt", "text", "question", "turn", "t4")
	expect("a prompt after trouble", 1)
}

func TestWhatARecallCannotWaitForIsTheDeliverers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hook("prompt", "text", "first")
	if w.poked.Load() != 0 {
		t.Error("poked for nothing")
	}
	w.behind = true
	w.hook("prompt", "text", "second")
	if w.poked.Load() != 1 {
		t.Errorf("poked %d times", w.poked.Load())
	}
}

func TestPermanentErrorGoesToQuarantine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.svc.fail = &client.Error{Class: client.Permanent, Reason: "refused"}
	w.hook("stop", "text", "bad")
	// A hook leaves it to the deliverer, which knows what the service is.
	if w.poked.Load() != 1 || w.pending() != 1 {
		t.Errorf("poked %d times, %d records wait", w.poked.Load(), w.pending())
	}
	if _, err := w.Spool.DeliverAll(t.Context(), w.svc); err != nil {
		t.Fatal(err)
	}
	w.svc.fail = nil
	w.hook("stop", "text", "good", "turn", "t2")
	w.expect("t2:assistant good")
	entries, err := w.Spool.List()
	if err != nil || len(entries) != 1 || entries[0].State != spool.Quarantined || entries[0].Turn.Reason != "refused" {
		t.Fatalf("spool: %+v, %v", entries, err)
	}
	if err := w.Spool.Release(entries[0]); err != nil {
		t.Fatal(err)
	}
	w.hook("stop", "text", "better", "turn", "t3")
	w.expect("t2:assistant good", "t1:assistant bad", "t3:assistant better")
}

func TestUnwritableFolders(t *testing.T) {
	t.Parallel()
	for _, broken := range []string{"state", "spool", "both"} {
		w := newWorld(t)
		for _, dir := range []string{w.State.Dir, w.Spool.Dir} {
			if broken == "both" || strings.HasSuffix(dir, broken) {
				if err := os.WriteFile(dir, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.hook("prompt", "text", "question")
		w.hook("stop", "text", "answer")
		w.expect("t1:user question", "t1:assistant answer")
	}
}

// What a full spool has stays. What is said then goes to the service at once, or the log
// tells that it is lost.
func TestFullSpool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Spool.MaxRecords = 2
	w.svc.fail = errors.New("down")
	w.hook("prompt", "text", "question")
	w.hook("stop", "text", "answer")
	w.hook("prompt", "text", "xylophone", "turn", "t2")
	if log := w.log.String(); strings.Count(log, "turn lost") != 1 || strings.Contains(log, "xylophone") {
		t.Error(log)
	}
	w.log.Reset()
	w.svc.fail, w.svc.flushed = nil, nil
	w.clock = w.clock.Add(-9 * time.Second) // the service is still left alone, but for this
	w.hook("prompt", "text", "new question", "turn", "n1", "session", "s2")
	w.clock = w.clock.Add(-9 * time.Second)
	w.hook("stop", "text", "new answer", "turn", "n1", "session", "s2")
	w.expect("n1:user new question", "n1:assistant new answer")
	if got := fmt.Sprint(w.svc.flushed); got != "[turn_end]" || w.pending() != 2 || strings.Contains(w.log.String(), "turn lost") {
		t.Errorf("flushed %s, %d records wait, log:\n%s", got, w.pending(), w.log.String())
	}
	w.clock = w.clock.Add(time.Hour)
	if _, err := w.Spool.DeliverAll(t.Context(), w.svc); err != nil {
		t.Fatal(err)
	}
	w.expect("n1:user new question", "n1:assistant new answer", "t1:user question", "t1:assistant answer")
}

func TestPanic(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.svc.panics = true
	if out := w.hook("prompt", "text", "what is new?"); out != "" {
		t.Errorf("said %q", out)
	}
	log := w.log.String()
	if !strings.Contains(log, "panic") || !strings.Contains(log, "reme-hook/hooks") || strings.Contains(log, "secret") {
		t.Errorf("logged %s", log)
	}
	w.hook("stop", "text", "nothing")
	w.expect("t1:user what is new?", "t1:assistant nothing")
}

func TestLogHoldsNoText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.svc.fail = errors.New("down")
	w.hook("prompt", "text", "xylophone")
	w.hook("stop", "text", "xylophone")
	w.hook("unknown", "text", "xylophone")
	w.Run(t.Context(), w.host, "stop", strings.NewReader(`{"session":"s1","text":"xylophone`))
	if strings.Contains(w.log.String(), "xylophone") {
		t.Error(w.log.String())
	}
}

func TestBadPayloads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, in := range []string{"", "{", "[]", "null", "\x00\xff", `{"session":5}`, `{"session":[],"text":"x"}`, strings.Repeat("[", 100000)} {
		for event := range w.host.Events {
			if out := w.Run(t.Context(), w.host, event, strings.NewReader(in)); len(out) > 0 {
				t.Errorf("%s said %q to %.20q", event, out, in)
			}
		}
	}
	// A cut answer still ends the turn.
	w.hook("prompt", "text", "question")
	w.Run(t.Context(), w.host, "stop", strings.NewReader(`{"session":"s1","turn":"t1","text":"ans`))
	w.expect("t1:user question")
}

func TestConcurrentHooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const sessions, turns = 20, 3
	var n sync.WaitGroup
	for s := range sessions {
		n.Go(func() {
			for turn := range turns {
				for _, event := range []string{"prompt", "stop"} {
					data, _ := json.Marshal(map[string]string{"session": fmt.Sprint(s), "turn": fmt.Sprintf("%d-%d", s, turn), "text": event})
					w.Run(context.Background(), w.host, event, bytes.NewReader(data))
				}
			}
		})
	}
	n.Wait()
	if _, err := w.Spool.DeliverAll(t.Context(), w.svc); err != nil {
		t.Error(err)
	}
	last := map[string]client.EventID{}
	for _, e := range w.svc.appended {
		session, _, _ := strings.Cut(string(e.ID), "-")
		if e.ID <= last[session] && e.Role == client.User {
			t.Errorf("%s after %s", e.ID, last[session])
		}
		last[session] = e.ID
	}
	if len(w.svc.appended) != sessions*turns*2 {
		t.Errorf("%d events of %d", len(w.svc.appended), sessions*turns*2)
	}
}
