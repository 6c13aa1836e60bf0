package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/client/reme"
	"github.com/agentscope-ai/reme-hook/client/reme/remetest"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// world is a workspace and an upstream, with a clock that stands still.
type world struct {
	*testing.T
	*Upstream
	fake *remetest.Server
	ws   *workspace.Workspace
	now  time.Time
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, fake: remetest.New(t), now: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)}
	dir := t.TempDir()
	w.Upstream = New(filepath.Join(dir, "upstream"), filepath.Join(dir, "workspace"), func() time.Time { return w.now })
	w.Use(w.fake.URL, os.Getenv)
	var err error
	if w.ws, err = workspace.Open(w.Workspace, workspace.Options{Now: w.Now, Location: time.UTC, Elsewhere: w.Upstream}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.ws.Close() })
	return w
}

// met makes a world in which ReMe is known.
func met(t *testing.T) *world {
	w := newWorld(t)
	if k, err := w.Probe(t.Context()); err != nil || k.Kind != reme.Released {
		t.Fatalf("%+v, %v", k, err)
	}
	return w
}

func named(id string) client.Session {
	return client.Session{Host: "codex", Scope: "default", ID: id}
}

// say appends a turn, a second after the last one.
func (w *world) say(session, turn, prompt, reply string) {
	w.Helper()
	w.now = w.now.Add(time.Second)
	id := client.TurnID(turn)
	req := client.AppendRequest{Session: named(session), Cwd: "/src", Events: []client.Event{
		{ID: client.NewEventID(id, client.User, 1), Role: client.User, Content: prompt, CreatedAt: w.now},
		{ID: client.NewEventID(id, client.Assistant, 1), Role: client.Assistant, Content: reply, CreatedAt: w.now},
	}}
	if _, err := w.ws.Append(w.Context(), req); err != nil {
		w.Fatal(err)
	}
	w.flush(session, client.TurnEnd)
}

func (w *world) flush(session string, reason client.FlushReason) {
	w.Helper()
	if _, err := w.ws.Flush(w.Context(), client.FlushRequest{Session: named(session), Reason: reason}); err != nil {
		w.Fatal(err)
	}
}

// forward makes one run and returns what was sent.
func (w *world) forward() []request {
	w.Helper()
	err := w.Forward(w.Context(), w.ws, Options{})
	var failure *reme.Failure
	if err != nil && !errors.As(err, &failure) {
		w.Fatal(err)
	}
	return w.sent()
}

func (w *world) sent() []request {
	w.Helper()
	var out []request
	for _, body := range w.fake.Took() {
		var r request
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			w.Fatal(err)
		}
		if len(body) > maxBody {
			w.Errorf("a request of %d bytes", len(body))
		}
		out = append(out, r)
	}
	return out
}

// texts is what was said in a request.
func (r request) texts() string {
	var out []string
	for _, m := range r.Messages {
		out = append(out, m.Content)
	}
	return strings.Join(out, " ")
}

func wantTexts(t *testing.T, got []request, want ...string) {
	t.Helper()
	var texts []string
	for _, r := range got {
		texts = append(texts, r.texts())
	}
	if !slices.Equal(texts, want) {
		t.Fatalf("sent %q, want %q", texts, want)
	}
}

// The request is what a released ReMe takes, byte for byte.
func TestRequest(t *testing.T) {
	t.Parallel()
	w := met(t)
	w.say("s", "t1", "What is <b> & \"c\"?", "项目评审")
	w.flush("s", client.SessionEnd)
	if err := w.Forward(t.Context(), w.ws, Options{}); err != nil {
		t.Fatal(err)
	}
	id := `codex-` // + 32 hex digits
	got := w.fake.Took()
	var r request
	if len(got) != 1 || json.Unmarshal([]byte(got[0]), &r) != nil {
		t.Fatalf("%q", got)
	}
	if r.SessionID != named("s").RemoteID() || len(r.SessionID) != len(id)+32 || len(r.RequestID) != 64 {
		t.Errorf("%+v", r)
	}
	want := fmt.Sprintf(`{"request_id":%q,"session_id":%q,"date":"2026-11-30","messages":[`+
		`{"id":%q,"role":"user","name":"user","content":"What is <b> & \"c\"?","created_at":"2026-11-30T09:00:01.000000+00:00","metadata":{"host":"codex","scope_id":"default","session_id":"s","turn_id":"t1","cwd":"/src"}},`+
		`{"id":%q,"role":"assistant","name":"assistant","content":"项目评审","created_at":"2026-11-30T09:00:01.000000+00:00","metadata":{"host":"codex","scope_id":"default","session_id":"s","turn_id":"t1","cwd":"/src"}}]}`,
		r.RequestID, r.SessionID, messageID(named("s"), "t1:user"), messageID(named("s"), "t1:assistant"))
	if got[0] != want {
		t.Errorf("sent\n%s\nwant\n%s", got[0], want)
	}
}

// Batches are closed by five turns, by size, by the day, by the end of a session
// and by silence; not before.
func TestBatches(t *testing.T) {
	t.Parallel()
	w := met(t)
	for i := range 4 {
		w.say("s", fmt.Sprint(i), fmt.Sprint("q", i), "a")
	}
	wantTexts(t, w.forward())
	w.say("s", "4", "q4", "a")
	w.say("s", "5", "q5", "a")
	wantTexts(t, w.forward(), "q0 a q1 a q2 a q3 a q4 a")
	wantTexts(t, w.forward())
	w.flush("s", client.PreCompact)
	wantTexts(t, w.forward(), "q5 a")

	w.say("s", "6", "q6", "a")
	wantTexts(t, w.forward())
	w.now = w.now.Add(workspace.Settled)
	wantTexts(t, w.forward(), "q6 a")

	w.say("s", "7", "q7", "a")
	w.now = w.now.Add(16 * time.Hour)
	w.say("s", "8", "next day", "a")
	got := w.forward()
	wantTexts(t, got, "q7 a")
	if got[0].Date != "2026-11-30" {
		t.Errorf("date %s", got[0].Date)
	}
	w.flush("s", client.SessionEnd)
	if got = w.forward(); len(got) != 1 || got[0].Date != "2026-12-01" {
		t.Errorf("%+v", got)
	}

	big := strings.Repeat("x", 40<<10)
	w.say("s", "9", "small", "a")
	w.say("s", "10", big, big)
	w.say("s", "11", "after", "a")
	w.flush("s", client.SessionEnd)
	got = w.forward()
	if len(got) != 3 || got[0].texts() != "small a" || !strings.HasSuffix(got[2].texts(), " after a") {
		t.Fatalf("%d requests", len(got))
	}
	for _, r := range got[1:] {
		if text := r.Messages[0].Content; len(text) > maxMessage || !strings.Contains(text, cutMark) {
			t.Errorf("a message of %d bytes", len(text))
		}
	}
	if st := w.status(); len(st.Waiting) > 0 || st.NeedsUser() {
		t.Errorf("%+v", st)
	}
	if q, err := w.ws.Queued(t.Context()); err != nil || len(q) > 0 {
		t.Errorf("queued: %+v, %v", q, err)
	}
}

func (w *world) status() Status {
	w.Helper()
	st, err := w.Status()
	if err != nil {
		w.Fatal(err)
	}
	return st
}

// What failed is sent again with the same bytes until ReMe has an answer, and what
// became of it is told.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []string
		waiting string // the class while it waits
		tries   int
		line    string
	}{
		"taken":         {nil, "", 1, ""},
		"model away":    {[]string{"RateLimitError: 429", "InternalServerError: 500"}, "retryable", 3, ""},
		"no key":        {[]string{"OpenAIError: Missing credentials"}, "configuration", 2, ""},
		"broken off":    {[]string{"broken", "broken"}, "retryable", 3, ""},
		"exception":     {[]string{"KeyError: 'x'", "KeyError: 'x'"}, "retryable", 3, ""},
		"poison":        {slices.Repeat([]string{"KeyError: 'x'"}, maxTries), "retryable", maxTries, "1 request given up"},
		"refused":       {[]string{"ValidationError: x"}, "", 1, "1 request refused"},
		"other input":   {[]string{"Error: request_id was already used for different input"}, "", 1, "1 request refused"},
		"kept nothing":  {[]string{"nothing"}, "", 1, "1 request taken without a note"},
		"nothing later": {[]string{"InternalServerError: 500", "nothing"}, "retryable", 2, "1 request taken without a note"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := met(t)
			w.fake.Answers = c.answers
			w.say("s", "t1", "question", "answer")
			w.flush("s", client.SessionEnd)
			var bodies []string
			for try := 1; ; try++ {
				_ = w.Forward(t.Context(), w.ws, Options{})
				bodies = append(bodies, w.fake.Took()...)
				st := w.status()
				if st.Waiting[c.waiting] == 0 {
					break
				}
				if try > 40 {
					t.Fatal("it never ends")
				}
				if c.waiting == "configuration" && (!st.NeedsUser() || !strings.Contains(strings.Join(st.Lines(), ""), "LLM_API_KEY")) {
					t.Errorf("%q", st.Lines())
				}
				before := len(bodies)
				_ = w.Forward(t.Context(), w.ws, Options{})
				if n := len(w.fake.Took()); n > 0 {
					t.Errorf("after %d tries it is not left in peace", before)
				}
				w.now = w.now.Add(20 * time.Minute)
			}
			if len(bodies) != c.tries || len(slices.Compact(slices.Clone(bodies))) != 1 {
				t.Errorf("%d tries, want %d, all of the same bytes", len(bodies), c.tries)
			}
			lines := w.status().Lines()
			if c.line == "" && len(lines) > 0 || c.line != "" && (len(lines) != 1 || !strings.HasPrefix(lines[0], c.line)) {
				t.Errorf("%q, want %q", lines, c.line)
			}
			// Sent again, it goes under another name.
			ready, _, err := w.Release(t.Context(), 0, true)
			if err != nil || ready != min(len(lines), 1) {
				t.Fatalf("%d released, %v", ready, err)
			}
			if got := w.forward(); ready == 1 && (len(got) != 1 || got[0].texts() != "question answer" || strings.Contains(bodies[0], got[0].RequestID)) {
				t.Errorf("sent again: %+v", got)
			}
			if lines := w.status().Lines(); len(lines) > 0 {
				t.Errorf("%q", lines)
			}
			w.say("s", "t2", "more", "answer")
			w.flush("s", client.SessionEnd)
			wantTexts(t, w.forward(), "more answer")
		})
	}
}

// One failing request does not keep the other sessions waiting; a server that is
// away is asked once.
func TestOthersGoOn(t *testing.T) {
	t.Parallel()
	w := met(t)
	for _, s := range []string{"a", "b", "c"} {
		w.say(s, "t", "of "+s, "x")
		w.flush(s, client.SessionEnd)
	}
	w.fake.Answers = []string{"KeyError: 'x'"}
	if got := w.forward(); len(got) != 3 {
		t.Errorf("%d requests, want all three", len(got))
	}
	w.now = w.now.Add(time.Hour)
	for _, s := range []string{"d", "e", "f", "g"} {
		w.say(s, "t", "of "+s, "x")
		w.flush(s, client.SessionEnd)
	}
	w.fake.Change(func() { w.fake.Answers = slices.Repeat([]string{"RateLimitError: x"}, 9) })
	if got := w.forward(); len(got) < 1 || len(got) > workers {
		t.Errorf("%d requests to a model that is away", len(got))
	}
	w.fake.Change(func() { w.fake.Answers = nil })
	w.now = w.now.Add(time.Hour)
	if got := w.forward(); len(got) < 4 {
		t.Errorf("%d requests after the repair", len(got))
	}
	if w.fake.Most[""] > workers {
		t.Errorf("%d extractions at once", w.fake.Most[""])
	}
}

// Without the index, which may be deleted at any time, nothing is sent twice.
func TestIndexLost(t *testing.T) {
	t.Parallel()
	w := met(t)
	w.say("s", "t1", "first", "x")
	w.flush("s", client.SessionEnd)
	wantTexts(t, w.forward(), "first x")
	w.ws.Close()
	if err := os.RemoveAll(filepath.Join(w.Workspace, "metadata")); err != nil {
		t.Fatal(err)
	}
	w.say("s", "t2", "second", "x")
	w.flush("s", client.SessionEnd)
	wantTexts(t, w.forward(), "second x")
	w.ws.Close()
	if err := os.RemoveAll(filepath.Join(w.Workspace, "metadata")); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Hour)
	wantTexts(t, w.forward())
}

// Of a session one request is under way at a time, however many processes there
// are; a second process ends at once.
func TestOneProcess(t *testing.T) {
	t.Parallel()
	w := met(t)
	for i := range 12 {
		w.say("s", fmt.Sprint(i), "q", "a")
		w.say("r", fmt.Sprint(i), "q", "a")
		w.say("o", fmt.Sprint(i), "q", "a")
	}
	w.fake.Gate = make(chan struct{})
	done := make(chan error)
	go func() { done <- w.Forward(t.Context(), w.ws, Options{All: true}) }()
	w.fake.Gate <- struct{}{} // one has begun
	if err := w.Forward(t.Context(), w.ws, Options{}); !errors.Is(err, ErrBusy) {
		t.Errorf("%v", err)
	}
	close(w.fake.Gate)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := w.sent(); len(got) != 9 {
		t.Errorf("%d requests", len(got))
	}
	for who, n := range w.fake.Most {
		if who != "" && n > 1 || n > workers {
			t.Errorf("%s: %d at once", who, n)
		}
	}
}

// A release that does not know a request again gets one whose end nobody saw only
// after the time that its model may take, and doctor says that it may be there
// twice.
func TestOldRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fake.Version = "0.4.1.13"
	if _, err := w.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.say("s", "t1", "question", "answer")
	w.flush("s", client.SessionEnd)
	w.fake.Answers = []string{"broken"}
	wantTexts(t, w.forward(), "question answer")
	w.now = w.now.Add(unknownWait - time.Second)
	wantTexts(t, w.forward())
	w.now = w.now.Add(time.Minute)
	wantTexts(t, w.forward(), "question answer")
	if st := w.status(); st.Repeated != 1 || st.Idempotent || len(st.Lines()) != 1 {
		t.Errorf("%+v", st)
	}
	// An answer leaves no doubt.
	w.say("s", "t2", "more", "answer")
	w.flush("s", client.SessionEnd)
	w.fake.Change(func() { w.fake.Answers = []string{"RateLimitError: x"} })
	wantTexts(t, w.forward(), "more answer")
	w.now = w.now.Add(time.Minute)
	wantTexts(t, w.forward(), "more answer")
	if st := w.status(); st.Repeated != 1 {
		t.Errorf("%+v", st)
	}
}

// What was said before ReMe was there is forwarded only if it is asked for, and
// then counted first.
func TestBackfill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 7 {
		w.say("old", fmt.Sprint(i), fmt.Sprint("old", i), "a")
	}
	w.say("running", "1", "before", "a")
	w.now = w.now.Add(time.Hour)
	if _, err := w.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.say("running", "2", "after", "a")
	w.flush("running", client.SessionEnd)
	wantTexts(t, w.forward(), "after a")

	got, err := w.Estimate(t.Context(), w.ws, time.Time{})
	// A new note and an update of it; an update of the running session's.
	if want := (Work{Sessions: 2, Turns: 8, Requests: 3, ModelCalls: 4 + 5 + 5}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if err := w.Forward(t.Context(), w.ws, Options{Backfill: true, All: true}); err != nil {
		t.Fatal(err)
	}
	sent := w.sent()
	if len(sent) != 3 {
		t.Errorf("%d requests", len(sent))
	}
	if got, err := w.Estimate(t.Context(), w.ws, time.Time{}); err != nil || got != (Work{}) {
		t.Errorf("left: %+v, %v", got, err)
	}
	if err := w.Forward(t.Context(), w.ws, Options{Backfill: true, All: true}); err != nil || len(w.sent()) > 0 {
		t.Errorf("once more: %v", err)
	}
}

// Switched off, nothing is sent; and what was said meanwhile is history.
func TestOff(t *testing.T) {
	t.Parallel()
	w := met(t)
	w.Use(Off, os.Getenv)
	w.say("s", "t1", "meanwhile", "a")
	w.flush("s", client.SessionEnd)
	wantTexts(t, w.forward())
	notes, err := filepath.Glob(filepath.Join(w.Workspace, "daily/*/*.md"))
	if err != nil || len(notes) != 1 {
		t.Errorf("notes: %v, %v", notes, err)
	}
	w.now = w.now.Add(time.Minute)
	w.Use(w.fake.URL, os.Getenv)
	if _, err := w.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.say("s", "t2", "now", "a")
	w.flush("s", client.SessionEnd)
	wantTexts(t, w.forward(), "now a")
	if notes, _ := filepath.Glob(filepath.Join(w.Workspace, "daily/*/*.md")); len(notes) != 1 {
		t.Errorf("beside ReMe: %v", notes)
	}
}

// Nobody is asked but who is known; one that is slow or gone is left in peace for
// a while, by all processes.
func TestSearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fake.Found = []map[string]any{{"path": "daily/2026-11-29/a.md", "start_line": 3, "end_line": 4, "text": "x"}}
	ask := func(want int) {
		t.Helper()
		before := w.fake.Searches
		got := w.Search(t.Context(), "query", 5)
		if asked := w.fake.Searches - before; asked != want || len(got) != want {
			t.Errorf("asked %d times, %d passages; want %d", asked, len(got), want)
		}
	}
	ask(0)
	if _, err := w.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask(1)
	w.fake.Change(func() { w.fake.Down = true })
	ask(0)
	w.fake.Change(func() { w.fake.Down = false })
	ask(0)
	if !w.Due() {
		t.Error("nobody looks after it")
	}
	w.now = w.now.Add(10 * time.Second)
	ask(1)
	w.now = w.now.Add(knownFor)
	ask(0)
	w.fake.Folder = w.Workspace
	if err := os.MkdirAll(w.Workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask(0) // its notes are ours
}

// Whoever takes the port of a ReMe gets no turns.
func TestStranger(t *testing.T) {
	t.Parallel()
	w := met(t)
	w.fake.Version = ""
	w.now = w.now.Add(knownFor)
	w.say("s", "t1", "question", "answer")
	w.flush("s", client.SessionEnd)
	wantTexts(t, w.forward())
	if st := w.status(); st.Server.Kind != reme.Foreign || st.Since == nil {
		t.Errorf("%+v", st)
	}
	w.fake.Change(func() { w.fake.Version = "0.4.2.0" })
	w.now = w.now.Add(askAgain)
	wantTexts(t, w.forward(), "question answer")
}
