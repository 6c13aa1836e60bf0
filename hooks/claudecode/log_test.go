package claudecode

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
)

const session = "2c19abc9-fd74-4631-bf85-4d0ff668dd55"

// line is a line of a transcript, said some seconds into the session.
func line(kind string, second int, format string, args ...any) string {
	return fmt.Sprintf(`{"type":%q,"uuid":"u%d","timestamp":"2026-11-29T20:37:%02d.000Z","sessionId":%q,`, kind, second, second, session) + fmt.Sprintf(format, args...) + "}"
}

func prompt(second int, id, text string) string {
	return line("user", second, `"promptId":%q,"message":{"role":"user","content":%q}`, id, text)
}

func block(second int, message, stop, content string) string {
	return line("assistant", second, `"message":{"id":%q,"role":"assistant","content":[%s],"stop_reason":%s}`, message, content, stop)
}

// inserted is what somebody said in the middle of a turn.
func inserted(second int, mode, text string) string {
	return line("attachment", second, `"attachment":{"type":"queued_command","prompt":%s,"commandMode":%q}`, text, mode)
}

func reply(second int, message, text string) string {
	return block(second, message, `"end_turn"`, fmt.Sprintf(`{"type":"text","text":%q}`, text))
}

func readAt(path, id string) func(string) (hooks.LogPage, error) {
	return func(cursor string) (hooks.LogPage, error) {
		return logs{}.Read(hooks.Log{Path: path, Session: client.Session{ID: id}, Modified: time.Now()}, cursor)
	}
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ session, want string }{
		"2.1.332": {session, `6848e4ca-a87e-4662-b819-f8fddf40252f! user: one | assistant: A1
9354a7bd-2023-4090-94eb-aac8fb67bce0! user: two | assistant: A2`},
		"2.1.197": {"681fea2b-714c-4cb4-9ae6-071bae41ba89", `99fefa36-b07a-4711-a824-a6402ab17551! user: one | assistant: A1
b369a1de-183b-40c4-b197-6a3511288603! user: two | assistant: A2`},
		"interrupted": {"1cf77ca1-ff49-4a9a-9931-367fa2a4094f", `16dd62c7-7bf7-482e-a9a8-ca15d5d630fd! user: hello`},
		"background-subagent": {"01542f33-f67f-42e8-be9f-e9232df36139", `9dc5670d-9d2a-4d7b-9d29-54c88564109a! user: hello | assistant: R1
6b37bebd-afc2-457e-bce0-1dd7ad41b706! assistant: <analysis>short</analysis>
<summary>drive summary of the session</summary>`},
		"subagent-sidechain": {"01542f33-f67f-42e8-be9f-e9232df36139", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := func(path string) func(string) (hooks.LogPage, error) { return readAt(path, c.session) }
			hosttest.Reads(t, filepath.Join("testdata", "transcript."+name+".jsonl"), c.want, read)
		})
	}
}

func TestTurnsOfATranscript(t *testing.T) {
	t.Parallel()
	const think, tool = `{"type":"thinking","thinking":"SECRET"}`, `{"type":"tool_use","id":"x","name":"Bash","input":{}}`
	said := func(text string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, text) }
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"blocks": {[]string{prompt(1, "p1", "q"), block(2, "m1", `"tool_use"`, said("let me see")), block(3, "m1", `"tool_use"`, tool),
			line("user", 4, `"promptId":"p1","toolUseResult":{"stdout":"SECRET"},"message":{"role":"user","content":[{"type":"tool_result","content":"SECRET"}]}`),
			block(5, "m2", `"end_turn"`, think), block(6, "m2", `"end_turn"`, said("a")), block(7, "m2", `"end_turn"`, said("b"))}, "p1! user: q | assistant: b"},
		"said in the middle": {[]string{prompt(1, "p1", "q"), block(2, "m1", `"tool_use"`, tool), line("user", 9, `"promptId":"p1","toolUseResult":{"stdout":"SECRET"},"message":{"role":"user","content":[]}`),
			inserted(3, "prompt", `[{"type":"text","text":"and r"},{"type":"image","source":{"data":"x"}}]`), inserted(4, "prompt", `"and s"`), inserted(5, "task-notification", `"SECRET"`), reply(10, "m2", "a")}, "p1! user: q | user: and r | user: and s | assistant: a"},
		"a turn that goes on":       {[]string{prompt(1, "p1", "q"), block(2, "m1", `"tool_use"`, said("let me see"))}, "p1 user: q"},
		"continued by a hook":       {[]string{prompt(1, "p1", "q"), reply(2, "m1", "a"), reply(3, "m2", "b")}, "p1! user: q | assistant: a | assistant: b"},
		"continued to say the same": {[]string{prompt(1, "p1", "q"), reply(2, "m1", "a"), reply(3, "m2", "a")}, "p1! user: q | assistant: a"},
		"interrupted":               {[]string{prompt(1, "p1", "q"), block(2, "m1", "null", said("half")), prompt(3, "p1", "[Request interrupted by user]"), block(4, "m2", `"end_turn"`, said("x"))[:0] + prompt(5, "p2", "r"), reply(6, "m3", "b")}, "p1! user: q\np2! user: r | assistant: b"},
		"an error":                  {[]string{prompt(1, "p1", "q"), strings.Replace(reply(2, "m1", "API Error"), `"uuid"`, `"isApiErrorMessage":true,"uuid"`, 1)}, "p1 user: q"},
		"made up by the host":       {[]string{prompt(1, "p1", "q"), strings.Replace(reply(2, "m1", "No response requested."), `"id":"m1"`, `"id":"m1","model":"<synthetic>"`, 1)}, "p1 user: q"},
		"without stop reasons":      {[]string{prompt(1, "p1", "q"), block(2, "m1", "null", said("let me see")), block(3, "m1", "null", tool), block(4, "m2", "null", said("a")), prompt(5, "p2", "r"), block(6, "m3", "null", said("b"))}, "p1! user: q | assistant: a\np2 user: r"},
		"without prompt ids":        {[]string{line("user", 1, `"message":{"content":"q"}`), reply(2, "m1", "a")}, "u1! user: q | assistant: a"},
		"a command of the user's": {[]string{prompt(1, "p1", "<command-message>foo is running…</command-message>\n<command-name>/foo</command-name>\n<command-args>alpha beta</command-args>"),
			line("user", 2, `"isMeta":true,"promptId":"p1","message":{"content":"what foo expands to"}`), reply(3, "m1", "a")}, "p1! user: /foo alpha beta | assistant: a"},
		"a command of the host's": {[]string{prompt(1, "p1", "<command-name>/clear</command-name>\n<command-args></command-args>"), prompt(2, "p1", "<local-command-stdout></local-command-stdout>"), prompt(3, "p2", "q"), reply(4, "m1", "a")}, "p2! user: q | assistant: a"},
		"a summary":               {[]string{line("user", 1, `"isCompactSummary":true,"promptId":"p0","message":{"content":"This session is being continued"}`), prompt(2, "p1", "q"), reply(3, "m1", "a")}, "p1! user: q | assistant: a"},
		"nameless":                {[]string{`{"type":"user","sessionId":"` + session + `","message":{"content":"q"}}`, reply(2, "m1", "a")}, ""},
		"a sidechain":             {[]string{prompt(1, "p1", "q"), line("user", 2, `"isSidechain":true,"promptId":"p1","message":{"content":"task"}`), reply(3, "m1", "a")}, "p1! user: q | assistant: a"},
		"of another session":      {[]string{strings.ReplaceAll(prompt(1, "p1", "q"), session, "other"), prompt(2, "p2", "r"), reply(3, "m1", "a")}, "p2! user: r | assistant: a"},
		"copied into a fork": {[]string{line("queue-operation", 30, `"operation":"enqueue"`), prompt(1, "p9", "q"), strings.Replace(reply(2, "m1", "a"), `"uuid"`, `"requestSessionId":"parent","uuid"`, 1),
			prompt(3, "p9", "unanswered"), inserted(4, "prompt", `"and"`), prompt(31, "p9", "r"), reply(32, "m2", "b")}, "p9! user: r | assistant: b"},
		"copied into a fork without a queue": {[]string{prompt(1, "p9", "q"), strings.Replace(reply(2, "m1", "a"), `"uuid"`, `"requestSessionId":"parent","uuid"`, 1), prompt(3, "p9", "r"), reply(4, "m2", "b")}, "p9! user: r | assistant: b"},
		"two blocks of text":                 {[]string{line("user", 1, `"promptId":"p1","message":{"content":[{"type":"text","text":"look"},{"type":"image","source":{"data":"x"}},{"type":"text","text":"here"}]}`), reply(2, "m1", "a")}, "p1! user: look\nhere | assistant: a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "transcript.jsonl")
			got := hosttest.Turns(hosttest.Pieces(t, path, []byte(strings.Join(c.lines, "\n")+"\n"), readAt(path, session)))
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestSettledTranscript(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	hosttest.Write(t, path, prompt(1, "p1", "q")+"\n"+block(2, "m1", "null", `{"type":"text","text":"a"}`)+"\n")
	for modified, want := range map[time.Time]string{
		time.Now():                     "p1 user: q",
		time.Now().Add(-2 * time.Hour): "p1! user: q | assistant: a",
	} {
		page, err := logs{}.Read(hooks.Log{Path: path, Session: client.Session{ID: session}, Modified: modified}, "")
		if got := hosttest.Turns(page.Turns); err != nil || got != want {
			t.Errorf("%v: %s, %v; want %s", modified, got, err, want)
		}
	}
}

func TestListTranscripts(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, name := range []string{"projects/-p/" + session + ".jsonl", "projects/-p/agent-a1.jsonl", "projects/-p/" + session + "/subagents/agent-a2.jsonl", "projects/-p/memory/x.md", "projects/notes.jsonl"} {
		hosttest.Write(t, filepath.Join(home, filepath.FromSlash(name)), "{}\n")
	}
	n := 0
	for l, err := range hosttest.Logs(t, newLogs(func() string { return home })) {
		n++
		if err != nil || l.Session != (client.Session{Host: Host, Scope: "default", ID: session}) || l.Size != 3 || l.Modified.IsZero() {
			t.Errorf("%+v, %v", l, err)
		}
	}
	if n != 1 {
		t.Errorf("%d sessions", n)
	}
}

func FuzzTranscript(f *testing.F) {
	f.Add([]byte(strings.Join([]string{prompt(1, "p1", "q"), reply(2, "m1", "a"), reply(3, "m1", "b"), prompt(4, "p2", "<command-name>/x</command-name>")}, "\n") + "\n"))
	f.Add([]byte(prompt(1, "p1", "q") + "\n" + inserted(2, "prompt", `"r"`) + "\n"))
	f.Add([]byte(strings.Replace(reply(2, "m1", "a"), `"uuid"`, `"requestSessionId":"parent","uuid"`, 1) + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		hosttest.Fold(t, &transcript{session: session}, text, 1)
	})
}
