package codex

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
)

const (
	thread = "01a22900-eb58-7bc0-8524-0907451b86ad"
	older  = "01a22800-eb80-7d41-abc1-89c7e3ad9c29"
	turn1  = "01a22901-eb80-7d41-abc1-89c7e3ad9c29"
	turn2  = "01a22902-eb80-7d41-abc1-89c7e3ad9c29"
)

// event is a line of a rollout that tells its texts as items.
func event(payload string, args ...any) string {
	return `{"timestamp":"2026-11-29T20:30:56.249Z","ordinal":8,"type":"event_msg","payload":{` + fmt.Sprintf(payload, args...) + `}}`
}

// oldEvent is one of a rollout that tells its texts alone.
func oldEvent(payload string, args ...any) string {
	return strings.Replace(event(payload, args...), `"ordinal":8,`, "", 1)
}

func started(turn string) string { return event(`"type":"task_started","turn_id":%q`, turn) }

func completed(turn, reply string) string {
	return event(`"type":"task_complete","turn_id":%q,"last_agent_message":%q`, turn, reply)
}

func aborted(turn string) string {
	return event(`"type":"turn_aborted","turn_id":%q,"reason":"interrupted"`, turn)
}

func user(turn, text string) string {
	return event(`"type":"item_completed","turn_id":%q,"item":{"type":"UserMessage","content":[{"type":"text","text":%q}]}`, turn, text)
}

func agent(turn, text string) string {
	return event(`"type":"item_completed","turn_id":%q,"item":{"type":"AgentMessage","content":[{"type":"Text","text":%q}]}`, turn, text)
}

func readAt(path string) func(string) (hooks.LogPage, error) {
	return func(cursor string) (hooks.LogPage, error) {
		return logs{}.Read(hooks.Log{Path: path, Session: client.Session{ID: thread}, Modified: time.Now()}, cursor)
	}
}

func TestRollouts(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"rollout": `01a22900-eb80-7d41-abc1-89c7e3ad9c29! user: Remember that my cat is called Minka. | assistant: Noted: your cat is called Minka.
01a22900-f450-7860-a5b8-54c1d4922af9! user: What is my cat called? | assistant: Minka.`,
		"rollout.interrupted": `01a228ff-d54d-7543-a656-a64d7e6feb09! user: p-sig`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := filepath.Join("testdata", name+".jsonl")
			log := hooks.Log{Path: source}
			ok, err := describe(&log)
			if !ok || err != nil || log.Cwd != "/home/dev/project" {
				t.Errorf("%+v, %v, %v", log, ok, err)
			}
			read := func(path string) func(string) (hooks.LogPage, error) {
				return func(cursor string) (hooks.LogPage, error) {
					log.Path, log.Modified = path, time.Now()
					return logs{}.Read(log, cursor)
				}
			}
			hosttest.Reads(t, source, want, read)
		})
	}
}

func TestTurnsOfARollout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"a turn that goes on": {[]string{started(turn1), user(turn1, "q"), agent(turn1, "let me see")}, turn1 + " user: q"},
		"a picture in between": {[]string{started(turn1), event(`"type":"item_completed","turn_id":%q,"item":{"type":"UserMessage","content":[{"type":"text","text":"look"},{"type":"image","image_url":"SECRET"},{"type":"text","text":" here"}]}`, turn1), completed(turn1, "a")},
			turn1 + "! user: look here | assistant: a"},
		"steered": {[]string{started(turn1), user(turn1, "q"), user(turn1, "also"), completed(turn1, "a")}, turn1 + "! user: q | user: also | assistant: a"},
		"continued by a hook": {[]string{started(turn1), user(turn1, "q"), agent(turn1, "a"), event(`"type":"item_completed","turn_id":%q,"item":{"type":"HookPrompt"}`, turn1), agent(turn1, "b"), completed(turn1, "b")},
			turn1 + "! user: q | assistant: a | assistant: b"},
		"continued to say the same": {[]string{started(turn1), user(turn1, "q"), agent(turn1, "a"), event(`"type":"item_completed","turn_id":%q,"item":{"type":"HookPrompt"}`, turn1), completed(turn1, "a")},
			turn1 + "! user: q | assistant: a"},
		"aborted":         {[]string{started(turn1), user(turn1, "q"), agent(turn1, "half"), aborted(turn1)}, turn1 + "! user: q"},
		"killed":          {[]string{started(turn1), user(turn1, "q"), agent(turn1, "half"), started(turn2), user(turn2, "r"), completed(turn2, "b")}, turn1 + "! user: q\n" + turn2 + "! user: r | assistant: b"},
		"of another host": {[]string{started(older), user(older, "q"), completed(older, "a"), started(turn1), user(turn1, "r"), completed(turn1, "b")}, turn1 + "! user: r | assistant: b"},
		"nothing said":    {[]string{started(turn1), completed(turn1, "")}, ""},
		"in older files": {[]string{
			oldEvent(`"type":"task_started","turn_id":%q`, turn1), oldEvent(`"type":"user_message","message":"q"`), oldEvent(`"type":"agent_message","message":"hm"`),
			oldEvent(`"type":"agent_message","message":"a"`), oldEvent(`"type":"task_complete","turn_id":%q,"last_agent_message":"a"`, turn1)}, turn1 + "! user: q | assistant: a"},
		"in files that number their lines, both": {[]string{started(turn1), event(`"type":"user_message","message":"q"`), user(turn1, "q"), completed(turn1, "a")}, turn1 + "! user: q | assistant: a"},
		"without turns": {[]string{oldEvent(`"type":"user_message","message":"q"`), oldEvent(`"type":"agent_message","message":"a"`), oldEvent(`"type":"user_message","message":"r"`)},
			"at-0! user: q | assistant: a\nat-217 user: r"},
		"not of the conversation": {[]string{started(turn1), user(turn1, "q"),
			`{"timestamp":"","ordinal":1,"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context> \"UserMessage\""}]}}`,
			`{"timestamp":"","ordinal":1,"type":"compacted","payload":{"message":"\"AgentMessage\" summary"}}`,
			event(`"type":"item_completed","turn_id":%q,"item":{"type":"CommandExecution","output":"{\"type\":\"AgentMessage\"} SECRET"}`, turn1), completed(turn1, "a")}, turn1 + "! user: q | assistant: a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "rollout.jsonl")
			got := hosttest.Turns(hosttest.Pieces(t, path, []byte(strings.Join(c.lines, "\n")+"\n"), readAt(path)))
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// The last turn of an old file without turns ends with the session.
func TestSettledRollout(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rollout.jsonl")
	hosttest.Write(t, path, oldEvent(`"type":"user_message","message":"q"`)+"\n"+oldEvent(`"type":"agent_message","message":"a"`)+"\n")
	for modified, want := range map[time.Time]string{
		time.Now():                     "at-0 user: q",
		time.Now().Add(-2 * time.Hour): "at-0! user: q | assistant: a",
	} {
		page, err := logs{}.Read(hooks.Log{Path: path, Modified: modified}, "")
		if got := hosttest.Turns(page.Turns); err != nil || got != want {
			t.Errorf("%v: %s, %v; want %s", modified, got, err, want)
		}
	}
}

func TestCwdOfATurn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rollout.jsonl")
	context := `{"timestamp":"2026-11-29T20:30:56.249Z","ordinal":8,"type":"turn_context","payload":{"turn_id":"` + turn1 + `","cwd":"/q"}}`
	hosttest.Write(t, path, started(turn1)+"\n"+context+"\n"+user(turn1, "q")+"\n")
	turns, _ := hosttest.Whole(t, readAt(path))
	if len(turns) != 1 || turns[0].Cwd != "/q" {
		t.Errorf("%+v", turns)
	}
}

func TestDamagedRollout(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rollout.jsonl")
	hosttest.Write(t, path, strings.Join([]string{started(turn1), user(turn1, "q")[:90], "\x00\x00", "", user(turn1, "q"), completed(turn1, "a")}, "\n")+"\n")
	turns, damaged := hosttest.Whole(t, readAt(path))
	if got := hosttest.Turns(turns); got != turn1+"! user: q | assistant: a" || damaged != 2 {
		t.Errorf("%d damaged\n%s", damaged, got)
	}
}

func TestListRollouts(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	meta := func(more string) string {
		return `{"timestamp":"2026-11-29T20:30:55.896Z","type":"session_meta","payload":{"id":"` + thread + `","cwd":"/p"` + more + `}}` + "\n"
	}
	for name, text := range map[string]string{
		"sessions/2026/11/29/rollout-a.jsonl": meta(`,"source":"cli"`),
		"archived_sessions/rollout-b.jsonl":   meta(""),
		"sessions/2026/11/29/rollout-c.jsonl": meta(`,"source":{"subagent":"review"}`),
		"sessions/2026/11/29/rollout-d.jsonl": meta(`,"thread_source":"subagent"`),
		"sessions/2026/11/29/rollout-e.jsonl": strings.TrimSuffix(meta(""), "\n"), // being written
		"sessions/2026/11/29/rollout-f.jsonl": `{"type":"session_header"}` + "\n",
		"sessions/2026/11/29/notes.jsonl":     meta(""),
	} {
		hosttest.Write(t, filepath.Join(home, filepath.FromSlash(name)), text)
	}
	var got []string
	for l, err := range hosttest.Logs(t, newLogs(func() string { return home })) {
		var version *hooks.VersionError
		switch {
		case errors.As(err, &version):
			got = append(got, filepath.Base(l.Path)+" unknown")
		case err != nil || l.Session.ID != thread || l.Cwd != "/p" || l.Size == 0 || l.Modified.IsZero():
			t.Errorf("%+v, %v", l, err)
		default:
			got = append(got, filepath.Base(l.Path))
		}
	}
	if want := "rollout-a.jsonl rollout-f.jsonl unknown rollout-b.jsonl"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	for l, err := range hosttest.Logs(t, newLogs(func() string { return filepath.Join(home, "nowhere") })) {
		t.Errorf("found %+v, %v", l, err)
	}
}

func FuzzRollout(f *testing.F) {
	f.Add([]byte(strings.Join([]string{started(turn1), user(turn1, "q"), agent(turn1, "a"), completed(turn1, "a"), started(turn2), user(turn2, "r"), aborted(turn2)}, "\n") + "\n"))
	f.Add([]byte(oldEvent(`"type":"user_message","message":"q"`) + "\n" + oldEvent(`"type":"agent_message","message":"a"`) + "\n"))
	f.Add([]byte(`{"type":"turn_context","payload":{"turn_id":"","cwd":3}}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		turns := hosttest.Fold(t, &rollout{session: thread}, text, 1)
		for i, turn := range turns {
			if !turn.Ended && i != len(turns)-1 {
				t.Errorf("turn %d of %d goes on: %+v", i, len(turns), turn)
			}
		}
	})
}
