package kimi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
)

const session = "session_1"

// sessionFile is a fake home of Kimi with one session, whose wire is as given.
type sessionFile struct {
	*testing.T
	home, path string
	cursor     string
	logs       *logs
}

func newSession(t *testing.T, lines ...string) *sessionFile {
	t.Helper()
	s := &sessionFile{T: t, home: t.TempDir()}
	s.path = wireIn(filepath.Join(s.home, "sessions", "wd_p [1]*_123456789012", session))
	s.reopen()
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		t.Fatal(err)
	}
	s.write(`{"type":"metadata","protocol_version":"1.5","created_at":1795982986732}`)
	s.write(lines...)
	return s
}

// reopen forgets what was read, as another process.
func (s *sessionFile) reopen() { s.logs = newLogs(func() string { return s.home }) }

// write appends lines.
func (s *sessionFile) write(lines ...string) {
	s.Helper()
	for _, l := range lines {
		s.append(l + "\n")
	}
}

func (s *sessionFile) append(text string) {
	s.Helper()
	f, err := os.OpenFile(s.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		s.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		s.Fatal(err)
	}
}

// read reads on as another process would, and keeps the cursor.
func (s *sessionFile) read() (string, error) {
	s.Helper()
	s.reopen()
	page, err := s.logs.turns(hooks.Event{Session: client.Session{ID: session}}, s.cursor)
	s.cursor = page.Next
	return hosttest.Turns(page.Turns), err
}

func (s *sessionFile) expect(want ...string) {
	s.Helper()
	got, err := s.read()
	if err != nil {
		s.Error(err)
	}
	if got != strings.Join(want, "\n") {
		s.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func prompt(turn int, id, text string) string {
	return fmt.Sprintf(`{"type":"turn.prompt","agentId":"main","input":[{"type":"text","text":%s}],"origin":{"kind":"user"},"promptId":%q,"turnId":%d,"time":1795982986951}`, quote(text), id, turn)
}

func steer(turn int, id, text string) string {
	return fmt.Sprintf(`{"type":"turn.steer","agentId":"main","input":[{"type":"text","text":%s}],"origin":{"kind":"user","inTurn":true},"messageId":%q,"promptIds":[%[2]q],"turnId":%d,"time":1795982986951}`, quote(text), id, turn)
}

func loop(turn int, event string) string {
	return fmt.Sprintf(`{"type":"context.append_loop_event","agentId":"main","event":{"turnId":"%d",%s},"time":1795982986951}`, turn, event)
}

// step is a whole step of a turn.
func step(turn int, uuid, text, finish string) []string {
	return []string{
		loop(turn, fmt.Sprintf(`"type":"step.begin","uuid":%q`, uuid)),
		loop(turn, `"type":"content.part","part":{"type":"think","think":"hm"}`),
		loop(turn, fmt.Sprintf(`"type":"content.part","part":{"type":"text","text":%s}`, quote(text))),
		loop(turn, fmt.Sprintf(`"type":"step.end","uuid":%q,"finishReason":%q`, uuid, finish)),
	}
}

// typed is a prompt that is more than what the user typed.
func typed(origin string, parts ...string) string {
	var input []map[string]string
	for _, p := range parts {
		input = append(input, map[string]string{"type": "text", "text": p})
	}
	b, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"type":"turn.prompt","input":%s,"origin":{%s},"promptId":"m0","turnId":0}`, b, origin)
}

func spawned(background bool) string {
	return fmt.Sprintf(`{"type":"subagent.spawned","subagentId":"agent-0","subagentName":"coder","runInBackground":%t,"taskId":"agent-vz","time":1795983472560}`, background)
}

func ended(turn int) string {
	return fmt.Sprintf(`{"type":"turn.ended","agentId":"main","turnId":%d,"reason":"completed","time":1795982986951}`, turn)
}

// TestRealWires reads what Kimi 2.1.0 wrote.
func TestRealWires(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"tool-two-turns": `msg_01M8MEV3M004HRX9CXQV2JKDB1! user: My favourite drink is tea, remember | assistant: Noted.
msg_01M8MEV654M54R54QMV58SXMDX! user: What do I drink? | assistant: Tea.`,
		"subagent":  `msg_01M8MF9WZQ94PSYNCVTX8SKE7K! user: use a subagent | assistant: AGENT-TEXT`,
		"interrupt": `msg_01M8MF8GCSZNBBB5MCAHBRT1G1! user: please write long text | assistant: PARTIAL-ONE PARTIAL-`,
		"steer-queue-compact-undo": `msg_01M8MFZXJDYFCFGSRQPSJVJZJN! user: main prompt | assistant: R0
msg_01M8MFZZ63PEN188QYPM4T8XST! user: to be steered | assistant: R0
msg_01M8MFZZ4JHSJ5116MRCKV18Z3! user: queued prompt | assistant: R0`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := read(t, "wire", name+".jsonl")
			s := newSession(t)
			if err := os.WriteFile(s.path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			s.expect(strings.Split(want, "\n")...)
			s.expect()

			// The same comes of it in pieces, whatever they are: with each line that is
			// added, and with half a line.
			s = newSession(t)
			if err := os.Truncate(s.path, 0); err != nil {
				t.Fatal(err)
			}
			var turns []hooks.LogTurn
			for line := range bytes.Lines(text) {
				for _, piece := range [][]byte{line[:len(line)/2], line[len(line)/2:]} {
					s.append(string(piece))
					s.reopen()
					page, err := s.logs.turns(hooks.Event{Session: client.Session{ID: session}}, s.cursor)
					if err != nil {
						t.Fatal(err)
					}
					s.cursor = page.Next
					for _, told := range page.Turns {
						turns = slices.DeleteFunc(turns, func(t hooks.LogTurn) bool { return t.ID == told.ID })
						turns = append(turns, told)
					}
				}
			}
			got := hosttest.Turns(turns)
			if name == "steer-queue-compact-undo" {
				got, _, _ = strings.Cut(got, "\nmsg_01M8MG0KMSBD4JJWD00YK7TXQZ!") // told before it was taken back
			}
			if got != want {
				t.Errorf("in pieces\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestTurns(t *testing.T) {
	t.Parallel()
	lines := func(parts ...any) []string {
		var out []string
		for _, p := range parts {
			switch p := p.(type) {
			case string:
				out = append(out, p)
			case []string:
				out = append(out, p...)
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		lines []string
		want  []string
	}{
		"running":            {lines(prompt(0, "m0", "q")), []string{"m0 user: q"}},
		"between tools":      {lines(prompt(0, "m0", "q"), step(0, "u0", "let me see", "tool_use")), []string{"m0 user: q"}},
		"last step counts":   {lines(prompt(0, "m0", "q"), step(0, "u0", "let me see", "tool_use"), step(0, "u1", "done", "end_turn")), []string{"m0! user: q | assistant: done"}},
		"cut short":          {lines(prompt(0, "m0", "q"), step(0, "u0", "long", "max_tokens")), []string{"m0! user: q | assistant: long"}},
		"steer within":       {lines(prompt(0, "m0", "q"), step(0, "u0", "", "tool_use"), steer(0, "m1", "and"), step(0, "u1", "done", "end_turn")), []string{"m0! user: q | user: and | assistant: done"}},
		"steer after":        {lines(prompt(0, "m0", "q"), step(0, "u0", "a", "end_turn"), steer(0, "m1", "and"), step(0, "u1", "b", "end_turn"), ended(0)), []string{"m0! user: q | assistant: a", "m1! user: and | assistant: b"}},
		"retried":            {lines(prompt(0, "m0", "q"), step(0, "u0", "half", "error"), step(0, "u1", "whole", "end_turn")), []string{"m0! user: q | assistant: whole"}},
		"failed":             {lines(prompt(0, "m0", "q"), step(0, "u0", "", "error"), ended(0)), []string{"m0! user: q"}},
		"stopped by a tool":  {lines(prompt(0, "m0", "q"), step(0, "u0", "so be it", "tool_use"), ended(0)), []string{"m0! user: q | assistant: so be it"}},
		"killed":             {lines(prompt(0, "m0", "q"), prompt(1, "m1", "r")), []string{"m0! user: q", "m1 user: r"}},
		"another turn's end": {lines(prompt(1, "m1", "q"), ended(0)), []string{"m1 user: q"}},
		"a hook went on":     {lines(prompt(0, "m0", "q"), step(0, "u0", "a", "end_turn"), step(0, "u1", "b", "end_turn")), []string{"m0! user: q | assistant: a", "u1! assistant: b"}},
		"a task": {lines(
			prompt(0, "m0", "q"), step(0, "u0", "a", "end_turn"), ended(0),
			`{"type":"turn.prompt","input":[{"type":"text","text":"task done"}],"origin":{"kind":"task"},"turnId":1}`,
			step(1, "u1", "", "tool_use"), step(1, "u2", "it is done", "end_turn"), ended(1),
		), []string{"m0! user: q | assistant: a", "u1! assistant: it is done"}},
		"an image alone": {lines(
			`{"type":"turn.prompt","input":[{"type":"image_url","imageUrl":{"url":"data:"}}],"origin":{"kind":"user"},"promptId":"m0","turnId":0}`,
			step(0, "u0", "a cat", "end_turn")), []string{"m0! assistant: a cat"}},
		"no ids": {lines(strings.Replace(prompt(4, "m0", "q"), "promptId", "x", 1), step(4, "u0", "a", "end_turn")), []string{"turn-4! user: q | assistant: a"}},
		"undone": {lines(prompt(0, "m0", "q"), step(0, "u0", "a", "end_turn"), prompt(1, "m1", "r"), step(1, "u1", "b", "end_turn"), prompt(2, "m2", "s"), `{"type":"context.undone","agentId":"main","turns":2,"fromTurnId":1}`), []string{"m0! user: q | assistant: a"}},
		"a skill of the user's": {lines(typed(`"kind":"skill_activation","skillName":"review","skillArgs":"the pump ","trigger":"user-slash"`, "the whole skill"),
			step(0, "u0", "a", "end_turn")), []string{"m0! user: /review the pump | assistant: a"}},
		"a skill of the model's":       {lines(typed(`"kind":"skill_activation","skillName":"review","trigger":"model-tool"`, "the whole skill")), []string{""}},
		"a plugin's command":           {lines(typed(`"kind":"plugin_command","pluginId":"ops","commandName":"deploy","trigger":"user-slash"`, "the whole command")), []string{"m0 user: /ops:deploy"}},
		"skills with a prompt":         {lines(typed(`"kind":"user","skillActivations":[{"skillName":"review"}]`, "the whole skill", "look at the pump")), []string{"m0 user: look at the pump"}},
		"skills that are not there":    {lines(typed(`"kind":"user","skillActivations":[1,2,3]`, "look at the pump")), []string{"m0 user: look at the pump"}},
		"a subagent":                   {lines(prompt(0, "m0", "q"), loop(0, `"type":"step.begin","uuid":"u0"`), spawned(false)), []string{"m0+ user: q"}},
		"a subagent that is done":      {lines(prompt(0, "m0", "q"), loop(0, `"type":"step.begin","uuid":"u0"`), spawned(false), step(0, "u1", "b", "tool_use")), []string{"m0 user: q"}},
		"a subagent in the background": {lines(prompt(0, "m0", "q"), loop(0, `"type":"step.begin","uuid":"u0"`), spawned(true)), []string{"m0 user: q"}},
		"a fork":                       {lines(prompt(0, "m0", "q"), step(0, "u0", "a", "end_turn"), `{"type":"forked","agentId":"main"}`, prompt(1, "m1", "r")), []string{"m1 user: r"}},
		"garbage":                      {lines("", "{", "null", "[]", `{"type":7}`, `{"type":"turn.prompt"`, `{"type":"turn.prompt","origin":"user","input":3}`, prompt(0, "m0", "q")), []string{"m0 user: q"}},
		"other order of keys": {lines(
			`{"turnId":0,"promptId":"m0","origin":{"kind":"user"},"input":[{"text":"q","type":"text"}],"type":"turn.prompt"}`,
			`{"event":{"finishReason":"end_turn","type":"step.end","turnId":"0"},"type":"context.append_loop_event"}`), []string{"m0! user: q"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newSession(t, c.lines...).expect(c.want...)
			// A cursor after each line makes the same turns of it.
			s := newSession(t)
			var last []string
			for _, l := range c.lines {
				s.write(l)
				got, err := s.read()
				if err != nil {
					t.Fatal(err)
				}
				last = append(last, strings.Split(got, "\n")...)
			}
			for _, w := range c.want {
				if !slices.Contains(last, w) {
					t.Errorf("line by line: %q is not among\n%s", w, strings.Join(last, "\n"))
				}
			}
		})
	}
}

func TestCursor(t *testing.T) {
	t.Parallel()
	s := newSession(t, prompt(0, "m0", "q"))
	s.write(step(0, "u0", "a", "end_turn")...)
	s.expect("m0! user: q | assistant: a")
	s.expect()
	s.write(ended(0), prompt(1, "m1", "r"))
	s.append(ended(1)[:20])
	s.expect("m1 user: r")
	s.expect("m1 user: r") // the cursor is at the turn that goes on
	s.append(ended(1)[20:] + "\n")
	s.expect("m1! user: r")

	for name, change := range map[string]func(text []byte) []byte{
		"shorter": func(text []byte) []byte { return text[:len(text)-1] },
		"rewritten": func(text []byte) []byte {
			return bytes.ReplaceAll(text, []byte(`"agentId":"main",`), nil)
		},
		"longer": func(text []byte) []byte {
			return append(bytes.ReplaceAll(text, []byte("1795982986951"), []byte("1795982986952")), prompt(2, "m2", "s")+"\n"...)
		},
	} {
		old, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		cursor := s.cursor
		if err := os.WriteFile(s.path, change(slices.Clone(old)), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := s.read(); err != nil || !strings.HasPrefix(got, "m0! user: q | assistant: a\nm1") {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
		s.cursor = cursor
		if err := os.WriteFile(s.path, old, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"x", "-1-0", "999999-0", "5-", "99999999999999999999-1"} {
		s.cursor = bad
		if got, err := s.read(); err != nil || !strings.HasPrefix(got, "m0!") {
			t.Errorf("cursor %q: %v\n%s", bad, err, got)
		}
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, ok := range map[string]bool{`"1.5"`: true, `"1.4"`: true, `"1"`: true, `"2.0"`: false, `"10.1"`: false, `""`: false, "null": false} {
		s := newSession(t)
		if err := os.WriteFile(s.path, []byte(`{"type":"metadata","protocol_version":`+version+`}`+"\n"+prompt(0, "m0", "q")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 { // not only at first
			got, err := s.read()
			if ok != (err == nil) || ok != (got == "m0 user: q") {
				t.Errorf("%s: %q, %v", version, got, err)
			}
		}
	}
}

func TestFinding(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	if path, err := wireOf(s.home, session); err != nil || path != s.path {
		t.Errorf("%s, %v", path, err)
	}
	for _, id := range []string{"", ".", "..", "../" + session, "session_2", "*", "session_[1]", "/", "a/../" + session} {
		if path, err := wireOf(s.home, id); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q: %s, %v", id, path, err)
		}
	}
	elsewhere := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(filepath.Dir(filepath.Dir(filepath.Dir(s.path))), elsewhere); err != nil {
		t.Fatal(err)
	}
	index := fmt.Sprintf("{\"sessionId\":\"session_0\",\"sessionDir\":\"/x\"}\nnull\n{\"sessionId\":%q,\"sessionDir\":%q,\"workDir\":\"/w\"}\n{\"sess", session, elsewhere)
	if err := os.WriteFile(filepath.Join(s.home, "session_index.jsonl"), []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
	if path, err := wireOf(s.home, session); err != nil || path != wireIn(elsewhere) {
		t.Errorf("by the index: %s, %v", path, err)
	}
	if _, err := s.logs.turns(hooks.Event{Session: client.Session{ID: "session_2"}, Turn: "t"}, ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a wire: %v", err)
	}
	if page, err := s.logs.turns(hooks.Event{Kind: hooks.SessionStart, Session: client.Session{ID: "session_2"}}, ""); err != nil || len(page.Turns) > 0 {
		t.Errorf("not begun: %v, %v", page, err)
	}
	// A self-test has no session files.
	for want, e := range map[string]hooks.Event{
		"t! user: what":       {Kind: hooks.Prompt, Prompt: "what"},
		"t! assistant: words": {Kind: hooks.TurnEnd, Reply: "words"},
	} {
		e.Session.ID, e.Turn = "probe", "t"
		page, err := s.logs.turns(decode(e.Kind, payload(t, sample(e))), "")
		if got := hosttest.Turns(page.Turns); err != nil || got != want {
			t.Errorf("self-test: %s, %v; want %s", got, err, want)
		}
	}
}

// TestFlat reads a session of 500 turns as its hooks would, and counts the bytes.
// While a hook waits, only what is new is read.
func TestFlat(t *testing.T) {
	t.Parallel()
	const turns, head = 500, 95 << 10
	s := newSession(t, `{"type":"profile.bind","systemPrompt":`+quote(strings.Repeat("x", head))+`}`)
	var costs []int64
	for i := range turns {
		id := fmt.Sprintf("m%03d", i)
		s.expect() // UserPromptSubmit
		s.write(prompt(i, id, "q"), `{"type":"llm.request","kind":"loop"}`)
		s.reopen()
		for poll := range 20 {
			if poll == 19 {
				s.write(step(i, "u"+id, "a", "end_turn")...)
			}
			page, err := s.logs.turns(hooks.Event{Session: client.Session{ID: session}}, s.cursor)
			if err != nil {
				t.Fatal(err)
			}
			if poll == 19 {
				s.cursor = page.Next
				if got, want := hosttest.Turns(page.Turns), id+"! user: q | assistant: a"; got != want {
					t.Fatalf("got\n%s\nwant\n%s", got, want)
				}
			}
		}
		s.write(ended(i))
		costs = append(costs, s.logs.follow.BytesRead())
	}
	t.Logf("bytes read per Stop: %d in the first turn, %d in the last one", costs[0], costs[turns-1])
	if low, high := slices.Min(costs), slices.Max(costs); high > low+low/10 || high > 2<<10 {
		t.Errorf("from %d to %d bytes", low, high)
	}
}

// TestLongSession: a session that had no hooks for long is caught up with in
// bounded portions, between turns.
func TestLongSession(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 8<<20)
	s := newSession(t)
	for i := range 5 {
		s.write(prompt(i, fmt.Sprintf("m%d", i), "q"), `{"type":"llm.request","text":"`+long+`"}`)
		s.write(step(i, fmt.Sprintf("u%d", i), "a", "end_turn")...)
	}
	s.expect("m0! user: q | assistant: a", "m1! user: q | assistant: a")
	s.expect("m2! user: q | assistant: a", "m3! user: q | assistant: a")
	s.expect("m4! user: q | assistant: a")
	s.expect()
}

func FuzzWire(f *testing.F) {
	// Small, as the fuzzer takes long to make large ones smaller.
	f.Add([]byte(prompt(0, "m0", "q") + "\n" + steer(0, "m1", "r") + "\n"))
	f.Add([]byte(strings.Join(step(0, "u0", "a", "end_turn"), "\n") + "\n" + ended(0) + "\n"))
	f.Add([]byte(`{"type":"metadata","protocol_version":"1.5"}` + "\n" + `{"type":"context.undone","fromTurnId":0}` + "\n" + `{"type":"forked"}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		// Whatever is in the file: only the last turn can go on, it begins at a line that
		// was taken, and ids are never empty.
		w := &wire{}
		at := int64(0)
		for line := range bytes.Lines(text) {
			if _, err := w.Take(line, at); err != nil {
				break
			}
			if begin, open := w.Open(); open && (begin < 0 || begin > at) {
				t.Errorf("at %d, a turn begins at %d", at, begin)
			}
			at += int64(len(line))
		}
		for i, turn := range w.turns {
			if turn.ID == "" || !turn.Ended && (i != len(w.turns)-1 || w.open != turn) {
				t.Errorf("turn %d of %d: %+v", i, len(w.turns), turn)
			}
		}
	})
}
