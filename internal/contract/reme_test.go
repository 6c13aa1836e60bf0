//go:build unix

package contract

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

// remeBin is the real ReMe's program; without one the test ends.
func remeBin(t *testing.T) string {
	t.Helper()
	bin := os.Getenv("REME_CONTRACT_REME")
	if _, err := os.Stat(bin); err != nil {
		lacking(t, "reme", "REME_CONTRACT_REME")
	}
	return bin
}

// service is a real ReMe that can be restarted on its workspace and port.
type service struct {
	*testing.T
	*ReMe
	bin, home string
}

func newService(t *testing.T, workspace, model string) *service {
	t.Helper()
	s := &service{T: t, bin: remeBin(t), home: filepath.Join(scratch, strings.ReplaceAll(t.Name(), "/", "-")+"-reme")}
	if workspace == "" {
		workspace = filepath.Join(s.home, "workspace")
	}
	var err error
	if s.ReMe, err = StartReMe(t.Context(), s.bin, s.home, workspace, model); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop() })
	return s
}

// restart starts it again, after Stop or Kill.
func (s *service) restart(model string) {
	s.Helper()
	var err error
	if s.ReMe, err = startReMe(s.Context(), s.bin, s.home, s.Workspace, model, s.Port()); err != nil {
		s.Fatal(err)
	}
}

// job asks for a job that has to succeed.
func (s *service) job(name string, args map[string]any) RemeAnswer {
	s.Helper()
	a, err := s.Job(s.Context(), name, args)
	if err != nil {
		s.Fatal(err)
	}
	return a
}

// found waits until the search knows a word: a note is indexed some seconds after it was written.
func (s *service) found(word string) {
	s.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for tick := time.Tick(200 * time.Millisecond); ; <-tick {
		if a, _ := s.job("search", map[string]any{"query": word}).Answer.(string); strings.Contains(a, word) {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("%q is not found", word)
		}
	}
}

// use points a machine to a ReMe and has it looked for.
func (w *world) use(url string) {
	w.Helper()
	w.upstream(url)
	w.must("upstream")
}

// forwarding is what reme-hook upstream --json prints.
type forwarding struct {
	Server        struct{ Kind, Version string }
	SameWorkspace bool `json:"same_workspace"`
	Backlog       struct{ Turns int }
	History       struct {
		Turns      int
		ModelCalls int `json:"model_calls"`
	}
	Waiting     map[string]int
	Reason      string
	KeptNothing int `json:"kept_nothing"`
	Parked      int
	Refused     int
}

func (w *world) forwarding() forwarding {
	w.Helper()
	var f forwarding
	if err := json.Unmarshal([]byte(w.hook("upstream", "--json").Stdout), &f); err != nil {
		w.Fatal(err)
	}
	return f
}

// call runs a hook of a host as the host would, and returns its output.
func (w *world) call(host, event, payload string) string {
	w.Helper()
	c := exec.CommandContext(w.Context(), binary, host, event)
	c.Dir, c.Env = w.project, hostEnv(w.home, w.path(), w.codex.Model.URL())
	c.Stdin = strings.NewReader(payload)
	out, err := c.CombinedOutput()
	if err != nil {
		w.Fatalf("%s %s: %v\n%s", host, event, err, out)
	}
	return string(out)
}

// hooked is a turn by the hooks of Codex or Claude Code, without the host.
func (w *world) hooked(host, session, turn, prompt, reply string) {
	w.Helper()
	w.asked(host, session, turn, prompt)
	w.call(host, "stop", toJSON(map[string]any{"session_id": session, "turn_id": turn, "hook_event_name": "Stop", "cwd": w.project, "last_assistant_message": reply}))
}

// asked is a prompt by the hooks, and what it gets.
func (w *world) asked(host, session, turn, prompt string) string {
	w.Helper()
	return w.call(host, "user-prompt-submit",
		toJSON(map[string]any{"session_id": session, "turn_id": turn, "hook_event_name": "UserPromptSubmit", "cwd": w.project, "prompt": prompt}))
}

// What one real host is told goes to the real ReMe, whose note another real host recalls through ReMe's search.
func TestReMeLoop(t *testing.T) {
	w := newWorld(t)
	model, _ := NewExtractor()
	t.Cleanup(model.Close)
	s := newService(t, "", model.URL())
	w.upstream(s.URL)
	w.must("setup", "--yes")
	if f := w.forwarding(); f.Server.Kind != "reme" || f.Server.Version != "0.4.2.0" || f.SameWorkspace {
		t.Errorf("%+v", f)
	}

	told := w.say(w.codex, "", billing, Step{Text: "Noted."})
	w.must("upstream", "replay")
	id := (client.Session{Host: "codex", Scope: "default", ID: told.Session}).RemoteID()
	if got, err := s.Dialog(id); err != nil || !slices.Equal(got, []string{"user: " + billing, "assistant: Noted."}) {
		t.Errorf("ReMe's dialog: %q, %v", got, err)
	}
	if notes, err := s.Notes(id); err != nil || len(notes) != 1 {
		t.Errorf("ReMe's notes: %q, %v", notes, err)
	}
	if own, _ := filepath.Glob(filepath.Join(w.home, ".reme/workspace/daily/*/*.md")); len(own) > 0 {
		t.Errorf("beside ReMe's note: %q", own)
	}
	s.found("Ottokar")

	// The words of the extractor are nowhere but in ReMe's note.
	w.say(w.claude, "", "Whom do I ask about the Quillfeather billing rewrite, Ottokar?", Step{Text: "Him."})
	frames := w.last(w.claude, Main).Frames()
	if len(frames) != 1 || strings.Count(frames[0], Derived+"Quillfeather") != 1 || !strings.Contains(frames[0], "reme://upstream/daily/") {
		t.Errorf("recalled:\n%s", strings.Join(frames, "\n"))
	}
	// What a turn says itself is told by the turn alone.
	w.say(w.claude, "", askBilling, Step{Text: "In spring."})
	w.shown(w.last(w.claude, Main), 1, billing)

	// Without ReMe everything goes on.
	s.Stop()
	told = w.say(w.claude, "", server, Step{Text: "Understood."})
	w.say(w.codex, "", askServer, Step{Text: "That one."})
	w.shown(w.last(w.codex, Main), 1, server)
	if r := w.hook("doctor"); r.Code != 3 || !strings.Contains(r.Stdout, "no ReMe at "+s.URL) {
		t.Errorf("doctor: %d\n%s", r.Code, r.Stdout)
	}
	if f := w.forwarding(); f.Backlog.Turns == 0 {
		t.Errorf("%+v", f)
	}
	s.restart(model.URL())
	w.must("upstream", "replay")
	id = (client.Session{Host: "claude-code", Scope: "default", ID: told.Session}).RemoteID()
	if got, err := s.Dialog(id); err != nil || !slices.Equal(got, []string{"user: " + server, "assistant: Understood."}) {
		t.Errorf("ReMe's dialog after the restart: %q, %v", got, err)
	}
	if f := w.forwarding(); f.Backlog.Turns > 0 {
		t.Errorf("%+v", f)
	}
}

// A ReMe started on what we wrote goes on from there: it finds our notes, continues our sessions, and nothing is recalled
// twice.
func TestReMeGraduation(t *testing.T) {
	w := newWired(t)
	remeBin(t)
	w.hooked("codex", "before", "t1", billing, "Noted.")
	w.call("codex", "session-end", `{"session_id":"before","hook_event_name":"SessionEnd","reason":"other"}`)
	w.must("remember", "The staging quokka likes port 6543.", "--title", "Staging")
	day := time.Now().Format(time.DateOnly)
	notes, err := filepath.Glob(filepath.Join(w.home, ".reme/workspace/daily/"+day+"/*.md"))
	if err != nil || len(notes) != 2 {
		t.Fatalf("notes: %q, %v", notes, err)
	}

	model, extractor := NewExtractor()
	t.Cleanup(model.Close)
	s := newService(t, filepath.Join(w.home, ".reme/workspace"), model.URL())
	s.found("Quillfeather")
	s.found("quokka")
	if a := s.job("daily_list", map[string]any{"date": day}); a.Metadata["count"] != 2.0 {
		t.Errorf("daily_list: %v", a.Metadata)
	}
	for _, note := range notes {
		rel := "daily/" + day + "/" + filepath.Base(note)
		text, err := os.ReadFile(note)
		if a, _ := s.job("read", map[string]any{"path": rel}).Answer.(string); err != nil || !strings.Contains(string(text), strings.TrimSpace(a)) || a == "" {
			t.Errorf("read: %q, want %q", a, text)
		}
		graph := toJSON(s.job("traverse", map[string]any{"path": rel}).Answer)
		if !strings.Contains(graph, "daily/"+day+".md") {
			t.Errorf("traverse: %s", graph)
		}
	}

	w.use(s.URL)
	if f := w.forwarding(); !f.SameWorkspace || f.History.Turns != 1 || f.History.ModelCalls != 4 {
		t.Errorf("%+v", f)
	}
	w.hooked("codex", "before", "t2", "The billing rewrite Quillfeather is led by Ludmilla.", "Good.")
	w.must("upstream", "replay")
	id := (client.Session{Host: "codex", Scope: "default", ID: "before"}).RemoteID()
	if got, err := s.Notes(id); err != nil || len(got) != 1 {
		t.Errorf("notes: %q, %v", got, err)
	}
	if r := w.must("upstream", "backfill", "--dry-run"); !strings.Contains(r.Stdout, "1 turns in 1 sessions: 1 requests, about 5 calls") {
		t.Errorf("%s", r.Stdout)
	}
	w.must("upstream", "backfill", "--yes")
	dialog, err := s.Dialog(id)
	if want := []string{"user: " + billing, "assistant: Noted.", "user: The billing rewrite Quillfeather is led by Ludmilla.", "assistant: Good."}; err != nil || !slices.Equal(dialog, want) {
		t.Errorf("ReMe's dialog: %q, %v", dialog, err)
	}
	if got, err := s.Notes(id); err != nil || len(got) != 1 || !strings.Contains(got[0], "## Update") {
		t.Errorf("after the backfill: %q, %v; written %d times", got, err, extractor.Writes(id))
	}
	for _, question := range []string{askBilling, "Who leads the billing rewrite Quillfeather?"} {
		out := w.asked("claude-code", "asker-"+question[:3], "t", question)
		if n := strings.Count(out, "23 March"); n > 1 {
			t.Errorf("%q is answered %d times:\n%s", question, n, out)
		}
	}
	var listed struct{ Sessions []struct{ Key string } }
	if err := json.Unmarshal([]byte(w.must("sessions", "--json").Stdout), &listed); err != nil || len(listed.Sessions) != 2 && len(listed.Sessions) != 1 {
		t.Errorf("sessions: %+v, %v", listed, err)
	}
}

// Whatever fails at ReMe, what was said is in its dialog once, is extracted once, and is there after the repair. The
// table shows each fault.
func TestReMeFaults(t *testing.T) {
	first := newWired(t)
	model, extractor := NewExtractor()
	t.Cleanup(model.Close)
	s := newService(t, "", "") // without a key
	var mu sync.Mutex
	var table []string
	note := func(row ...any) {
		mu.Lock()
		defer mu.Unlock()
		table = append(table, fmt.Sprintf("| %s | %s | %s | %s | %s | %d | %d | %d |\n", row...))
	}
	begin := func(w *world, fault string) {
		w.use(s.URL)
		w.hooked("codex", fault, "t1", "Remember that the fault="+fault+" of today is called Quillfeather.", "Noted.")
		w.hooked("codex", fault, "t2", "And that Marmalade comes after it.", "Noted too.")
	}
	// during tells what becomes of forwarding, and looks whether the agents notice.
	during := func(w *world, fault string) string {
		r := w.hook("upstream", "replay")
		if strings.Contains(r.Stderr, "no ReMe") {
			w.Errorf("%s", r.Stderr)
		}
		if got := w.asked("claude-code", "while "+fault, "p1", "What is the fault="+fault+" of today called?"); !strings.Contains(got, "Quillfeather") {
			w.Errorf("%s: a prompt gets %q", fault, got)
		}
		if rows := w.rows(w.codex); len(rows) != 4 {
			w.Errorf("%s: stored: %+v", fault, rows)
		}
		f := w.forwarding()
		for class, n := range f.Waiting {
			if n > 0 {
				return class + ": " + f.Reason
			}
		}
		if f.KeptNothing > 0 {
			return "kept nothing"
		}
		return "extracted"
	}
	end := func(w *world, fault, was, want string, notes int, more ...string) {
		if !strings.HasPrefix(was, want) {
			w.Errorf("%s: %q, want %q", fault, was, want)
		}
		extractor.Repair(fault)
		w.must(append([]string{"upstream", "replay"}, more...)...)
		w.must("upstream", "replay")
		f := w.forwarding()
		after := "delivered"
		if f.Backlog.Turns > 0 || f.Waiting[""]+f.Waiting["retryable"]+f.Waiting["configuration"]+f.Parked+f.Refused > 0 {
			after = "left"
			w.Errorf("%s: after the repair: %+v", fault, f)
		}
		id := (client.Session{Host: "codex", Scope: "default", ID: fault}).RemoteID()
		dialog, err := s.Dialog(id)
		if err != nil || len(dialog) != 4 {
			w.Errorf("%s: ReMe's dialog: %q, %v", fault, dialog, err)
		}
		made, err := s.Notes(id)
		if err != nil || len(made) != notes || notes == 1 && (strings.Count(made[0], "Quillfeather of") > 1 || !strings.Contains(made[0], "Marmalade")) {
			w.Errorf("%s: ReMe's notes: %q, %v", fault, made, err)
		}
		if extractor.Writes(id) > 1 {
			w.Errorf("%s: extracted %d times", fault, extractor.Writes(id))
		}
		class, _, _ := strings.Cut(was, ":")
		note(remeFaults[fault], "memory", "all, once", class, after, len(dialog), len(made), extractor.Writes(id))
	}

	begin(first, "nokey")
	was := during(first, "nokey")
	if r := first.hook("doctor"); r.Code != 3 || !strings.Contains(r.Stdout, "set LLM_API_KEY") {
		t.Errorf("doctor: %d\n%s", r.Code, r.Stdout)
	}
	if r := first.hook("status"); r.Code != 3 || !strings.Contains(r.Stdout, "set LLM_API_KEY") {
		t.Errorf("status: %d\n%s", r.Code, r.Stdout)
	}
	s.Stop()
	s.restart(model.URL())
	end(first, "nokey", was, "configuration", 1)

	var group sync.WaitGroup
	for fault, c := range map[string]struct {
		want  string
		notes int
		more  []string
	}{
		"401": {"configuration", 1, nil}, "429": {"retryable", 1, nil}, "500": {"retryable", 1, nil},
		"badname": {"kept nothing", 1, []string{"--kept-nothing"}}, "garbage": {"", 1, []string{"--kept-nothing"}}, "skip": {"kept nothing", 1, []string{"--kept-nothing"}},
	} {
		w := newBare(t)
		group.Go(func() {
			begin(w, fault)
			end(w, fault, during(w, fault), c.want, c.notes, c.more...)
		})
	}
	group.Wait()

	w := newBare(t)
	begin(w, "hang")
	killed := make(chan string)
	go func() { killed <- during(w, "hang") }()
	<-extractor.Hanging()
	s.Kill()
	was = <-killed
	s.restart(model.URL())
	end(w, "hang", was, "retryable", 1)

	slices.Sort(table)
	page(t, "../../docs/faults-reme.md", remeFaultsHead+strings.Join(table, ""))
}

// remeFaults names the faults of TestReMeFaults for a reader.
var remeFaults = map[string]string{
	"nokey": "it has no key of a model", "401": "the model refuses the key (401)", "429": "the model is busy (429)", "500": "the model fails (500)",
	"badname": "the model names a note badly", "garbage": "the model answers with garbage", "skip": "the model finds nothing worth keeping",
	"hang": "it is killed in the middle, and started again",
}

const remeFaultsHead = `# What happens when a real ReMe fails

Written by TestReMeFaults, which drives reme-ai 0.4.2.0 with a model that fails in each of these ways for a session of two turns. Do not edit; run it with
REME_CONTRACT_UPDATE=1. The hooks use the embedded memory meanwhile; what of it they do not find when that fails is in faults.md.

While it lasts, a prompt of another host gets what was said all the same, and all four messages are in our own memory. What ReMe did not take waits, in the
class that ` + "`reme-hook status`" + ` and ` + "`doctor`" + ` name, and is sent again, under the same name, when it is due; what ReMe took and made nothing of is sent
again by ` + "`reme-hook upstream replay --kept-nothing`" + `. Afterwards ReMe has each message once, one note, written once.

| ReMe's fault | a prompt meanwhile | messages stored | forwarding | once repaired | messages at ReMe | notes | written |
| --- | --- | --- | --- | --- | --- | --- | --- |
`

// page checks a page that a test writes.
func page(t *testing.T, path, want string) {
	t.Helper()
	if os.Getenv("REME_CONTRACT_UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != want {
		t.Errorf("%s is not what the run showed (%v); it showed:\n%s", path, err, want)
	}
}
