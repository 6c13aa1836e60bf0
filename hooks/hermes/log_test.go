package hermes

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
	"github.com/agentscope-ai/reme-hook/install"
)

// newDatabase makes the database of a profile, in the folder of Hermes.
func newDatabase(t *testing.T, place string, statements ...string) (l logs, path string) {
	t.Helper()
	home := t.TempDir()
	path = filepath.Join(home, ".hermes", filepath.FromSlash(place), "state.db")
	hosttest.Database(t, path, append([]string{hosttest.Get(t, "testdata/schema.sql")}, statements...)...)
	return logs{func() install.Env { return install.Env{Home: home} }}, path
}

// everything is what is in the logs: the sessions, where they are at work, and
// their turns.
func everything(t *testing.T, l logs) string {
	t.Helper()
	var out []string
	for log, err := range l.List(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s/%s in %s", log.Session.Scope, log.Session.ID, log.Cwd))
		page, err := l.Read(log, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, turn := range page.Turns {
			if !turn.Unnamed {
				t.Errorf("%s is named", turn.ID)
			}
		}
		if len(page.Turns) > 0 {
			out = append(out, hosttest.Turns(page.Turns))
		}
		if page.Damaged > 0 {
			out = append(out, fmt.Sprint("damaged: ", page.Damaged))
		}
	}
	return strings.Join(out, "\n")
}

const (
	askBilling = "user: What is the billing rewrite called, and when does it go live?"
	walk       = `after-0! user: Good morning, here we are. | assistant: One.
after-2! user: Nice weather for a walk. | assistant: Two.
after-4! ` + askBilling + ` | assistant: Three.
after-6! user: Run it often. | assistant: Done.
`
)

// What the real Hermes wrote.
func TestDatabases(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"in_place": "default/20261130_065052_f1342e in /home/dev/project\n" + walk + "after-133! " + askBilling + " | assistant: Four.",
		"rotated": "default/20261130_065328_8be322 in /home/dev/project\n" + walk +
			"default/20261130_065452_b5f249 in /home/dev/project\nafter-133! " + askBilling + " | assistant: Four.",
		"undo_new": "default/20261130_065516_27bb06 in /home/dev/project\nafter-0! " + askBilling + " | assistant: Reply-1\nafter-2! " + askBilling + " | assistant: Reply-2\n" +
			"default/20261130_065534_2447ad in /home/dev/project\nafter-0! " + askBilling + " | assistant: Reply-3",
		"killed": "default/20261130_064908_5e987a in /home/dev/project\nafter-0! user: Our billing rewrite is called Quillfeather and it goes live on 23 March.\nafter-1! user: Go on, please. | assistant: Well.",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := newDatabase(t, "", hosttest.Get(t, filepath.Join("testdata", name+".sql")))
			if got := everything(t, l); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// say writes messages: the role and the text, with the seconds at which it was said
// in front, and what else is to be told behind.
func say(session string, messages ...string) string {
	var b strings.Builder
	for _, m := range messages {
		f := strings.SplitN(m, " ", 3)
		finish := "NULL"
		if f[1] == "assistant" {
			finish = "'stop'"
		}
		fmt.Fprintf(&b, "INSERT INTO messages (session_id, role, content, timestamp, finish_reason) VALUES ('%s', '%s', '%s', %s, %s);\n", session, f[1], f[2], f[0], finish)
	}
	return b.String()
}

func begin(session, source, columns, values string) string {
	return fmt.Sprintf("INSERT INTO sessions (id, source, started_at, cwd%s) VALUES ('%s', '%s', 1, '/src'%s);\n", columns, session, source, values)
}

func TestSessions(t *testing.T) {
	t.Parallel()
	const summary = "[CONTEXT COMPACTION — REFERENCE ONLY] of it"
	for name, c := range map[string]struct{ sql, want string }{
		"nobody speaks": {begin("a", "cron", "", "") + say("a", "1 user x") + begin("b", "subagent", "", "") + say("b", "1 user x") +
			begin("c", "cli", ", model_config, parent_session_id", `, '{"_delegate_from": "z"}', 'z'`) + say("c", "1 user x"), ""},
		"nothing is said": {begin("a", "cli", "", ""), ""},
		"machine": {begin("a", "telegram", "", "") + say("a", "1 user [IMPORTANT: Background process 5 ended]", "2 assistant It ended.", "3 user [System note: night] Hello", "4 assistant Hi.", "5 assistant Hi again."),
			"default/a in /src\nafter-0! assistant: It ended.\nafter-2! user: Hello | assistant: Hi again."},
		"tools": {begin("a", "cli", "", "") + say("a", "1 user x", "2 tool secret") + "INSERT INTO messages (session_id, role, content, timestamp, finish_reason) VALUES ('a', 'assistant', 'I look', 3, 'tool_calls');",
			"default/a in /src\nafter-0 user: x"},
		"a group": {begin("a", "cli", "", "") + say("a", "1 user mine") + "INSERT INTO messages (session_id, role, content, timestamp, observed) VALUES ('a', 'user', 'of others', 2, 1);" + say("a", "3 assistant Yes.", "4 user more"),
			"default/a in /src\nafter-0! user: mine | assistant: Yes.\nafter-3 user: more"},
		"sent at once": {begin("a", "telegram", "", "") + say("a", "1 user go on", "2 assistant A.", "3 user more", "3 user go on"),
			"default/a in /src\nafter-0! user: go on | assistant: A.\nafter-2! user: more\nafter-3 user: go on"},
		"parts": {begin("a", "cli", "", "") + "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('a', 'user', char(0) || 'json:[{\"type\":\"text\",\"text\":\"seen\"},{\"type\":\"image_url\"}]', 1), ('a', 'user', char(0) || 'json:[{', 2), ('a', 'user', x'ff', 'x');",
			"default/a in /src\nafter-0! user: seen\nafter-2 user: \xff\ndamaged: 1"},
		"a branch": {begin("a", "cli", "", "") + say("a", "1 user go on", "2 assistant A.", "3 user more", "4 assistant B.") + begin("b", "cli", ", model_config, parent_session_id", `, '{"_branched_from": "a"}', 'a'`) +
			say("b", "5 user go on", "5.1 assistant A.", "5.2 user more", "5.3 assistant B.", "6 user go on", "7 assistant C.") + say("a", "8 user go on", "9 assistant D."),
			"default/a in /src\nafter-0! user: go on | assistant: A.\nafter-2! user: more | assistant: B.\nafter-4! user: go on | assistant: D.\n" +
				"default/b in /src\nafter-8! user: go on | assistant: C."},
		"compacted before a prompt": {begin("a", "cli", "", "") + say("a", "1 user go on", "2 assistant A.", "3 user more", "4 assistant B.",
			"1 user go on", "5 assistant "+summary, "5.000001 assistant B.", "5.000002 user go on", "6 assistant C.", "7 user go on", "8 assistant D."),
			"default/a in /src\nafter-0! user: go on | assistant: A.\nafter-2! user: more | assistant: B.\nafter-8! user: go on | assistant: C.\nafter-9! user: go on | assistant: D."},
		"compacted before a prompt that gets no answer": {begin("a", "cli", "", "") + say("a", "1 user go on", "2 assistant A.",
			"5 assistant "+summary, "5.000001 assistant A.", "5.000002 user new", "6 user again", "7 assistant B."),
			"default/a in /src\nafter-0! user: go on | assistant: A.\nafter-5! user: new\nafter-5+! user: again | assistant: B."},
		"compacted in a turn": {begin("a", "cli", "", "") + say("a", "1 user go on", "2 assistant A.", "3 user go on", "3.5 tool x",
			"5 user go on", "5.000001 assistant "+summary, "5.000002 user go on", "5.000003 tool x", "6 assistant B."),
			"default/a in /src\nafter-0! user: go on | assistant: A.\nafter-2! user: go on | assistant: B."},
		"compacted before an answer": {begin("a", "cli", "", "") + say("a", "1 user go on", "2 assistant A.", "3 user go on",
			"5 assistant "+summary, "5.000001 user go on", "6 assistant B."),
			"default/a in /src\nafter-0! user: go on | assistant: A.\nafter-2! user: go on | assistant: B."},
		"rotated before a prompt": {begin("a", "cli", ", end_reason", ", 'compression'") + say("a", "1 user go on", "2 assistant A.", "3 user new") + begin("b", "cli", ", parent_session_id", ", 'a'") +
			say("b", "4 assistant "+summary, "4.000001 assistant A.", "4.000002 user new", "5 assistant B."),
			"default/a in /src\nafter-0! user: go on | assistant: A.\ndefault/b in /src\nafter-6! user: new | assistant: B."},
		"rewritten": {begin("a", "cli", "", "") + say("a", "1 user go on", "1.000001 assistant A.", "1.000002 user more", "1.000003 assistant B."),
			"default/a in /src\nafter-0! user: go on | assistant: A.\nafter-3! user: more | assistant: B."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := newDatabase(t, "", c.sql)
			if got := everything(t, l); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	l, path := newDatabase(t, "profiles/coder", begin("a", "cli", "", "")+say("a", "1 user x"))
	if got, want := everything(t, l), "coder/a in /src\nafter-0 user: x"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, dir := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(filepath.Dir(path)))} {
		used := logs{func() install.Env { return install.Env{Home: t.TempDir(), Environ: []string{"HERMES_HOME=" + dir}} }}
		if got, want := used.Places(), l.Places(); !slices.Equal(got, want) {
			t.Errorf("places %q with %s, want %q", got, dir, want)
		}
	}
}

// A database grows, by one transaction after the other, and is read on from where it
// was.
func TestGrowingDatabase(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"in_place", "killed"} {
		whole, _ := newDatabase(t, "", hosttest.Get(t, filepath.Join("testdata", name+".sql")))
		want := everything(t, whole)
		_, want, _ = strings.Cut(want, "\n")
		l, path := newDatabase(t, "")
		var turns []hooks.LogTurn
		cursor, reads, told := "", 0, 0
		var pending strings.Builder
		for _, line := range strings.SplitAfter(hosttest.Get(t, filepath.Join("testdata", name+".sql")), "\n") {
			pending.WriteString(line)
			if regexp.MustCompile(`VALUES \((6[89]|7[0-9]|1[0-2][0-9]|13[01]), `).MatchString(line) { // a compaction
				continue
			}
			hosttest.Database(t, path, pending.String())
			pending.Reset()
			for log, err := range l.List(context.Background()) {
				page, readErr := l.Read(log, cursor)
				if err = errors.Join(err, readErr); err != nil {
					t.Fatal(err)
				}
				turns, cursor = hosttest.Merge(turns, page.Turns), page.Next
				reads, told = reads+1, told+len(page.Turns)
			}
		}
		if got := hosttest.Turns(turns); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
		if most := reads + len(turns); told > most {
			t.Errorf("%s: %d turns were told in %d reads", name, told, reads)
		}
	}
}

// A cursor of another database leads to the beginning.
func TestReplacedDatabase(t *testing.T) {
	t.Parallel()
	l, path := newDatabase(t, "", begin("a", "cli", "", "")+say("a", "1 user x", "2 assistant X.", "3 user y", "4 assistant Y."))
	log := hooks.Log{Path: path, Session: client.Session{Host: Host, Scope: "default", ID: "a"}}
	page, err := l.Read(log, "")
	if err != nil {
		t.Fatal(err)
	}
	if next, err := l.Read(log, page.Next); err != nil || len(next.Turns) != 0 || next.Next != page.Next {
		t.Errorf("%+v, %v", next, err)
	}
	for name, statements := range map[string]string{
		"emptied":  "DELETE FROM messages;",
		"shorter":  "DELETE FROM messages WHERE id > 2;",
		"replaced": "DELETE FROM messages; DELETE FROM sqlite_sequence;" + say("a", "11 user x", "12 assistant X.", "13 user y", "14 assistant Y.", "15 user z"),
	} {
		hosttest.Database(t, path, statements)
		again, err := l.Read(log, page.Next)
		whole, wholeErr := l.Read(log, "")
		if err != nil || wholeErr != nil || hosttest.Turns(again.Turns) != hosttest.Turns(whole.Turns) {
			t.Errorf("%s: %s, %v, want %s, %v", name, hosttest.Turns(again.Turns), err, hosttest.Turns(whole.Turns), wholeErr)
		}
	}
}

func TestRefusedDatabases(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, want string }{
		"newer":       {"UPDATE schema_version SET version = 23", `its format has version "23"`},
		"older":       {"UPDATE schema_version SET version = 21", `its format has version "21"`},
		"another one": {"DROP TABLE schema_version", "no such table"},
	} {
		l, path := newDatabase(t, "", begin("a", "cli", "", "")+say("a", "1 user x"), c.sql)
		hosttest.Refused(t, name, l, path, c.want)
	}
}

// A database that is cut or damaged is an error, or has less in it; nothing worse.
func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	l, path := newDatabase(t, "", hosttest.Get(t, "testdata/in_place.sql"))
	hosttest.Damaged(t, l, path)
}

// FuzzFold reads messages of any kind, one a line: the time, the role and the text.
func FuzzFold(f *testing.F) {
	f.Add("1 user a\n2 assistant b\n1 user a\n3 assistant [CONTEXT COMPACTION\n3.000001 user c\n", "1 user a\n", true)
	f.Add("1 user a\n1.000001 user a\n1.000002 user a\n", "", false)
	parse := func(text string) (out []message) {
		for line := range strings.Lines(text) {
			m := message{number: int64(len(out) + 1), stop: true, ok: true}
			fmt.Sscan(line, &m.at, &m.role)
			if f := strings.SplitN(line, " ", 3); len(f) == 3 {
				m.text, _ = decodeContent([]byte(f[2]))
			}
			out = append(out, m)
		}
		return out
	}
	f.Fuzz(func(t *testing.T, text, parent string, branch bool) {
		all := parse(text)
		fold := newFold(parse(parent), branch)
		fold.take(all)
		fold.goOn(all, parse(parent))
		seen := map[client.TurnID]bool{}
		for _, turn := range fold.turns {
			if seen[turn.ID] {
				t.Errorf("two turns are called %s", turn.ID)
			}
			seen[turn.ID] = true
			for _, m := range turn.Messages {
				if !strings.Contains(text+parent, m.Text) && !strings.Contains(text+parent, "json:") {
					t.Errorf("nobody said %q", m.Text)
				}
			}
		}
	})
}
