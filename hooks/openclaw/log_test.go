package openclaw

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
	"github.com/agentscope-ai/reme-hook/install"
)

// newDatabase makes the database of the agent "main" in a folder of OpenClaw.
func newDatabase(t *testing.T, folder string, statements ...string) (l logs, path string) {
	t.Helper()
	home := t.TempDir()
	path = filepath.Join(home, folder, "agents", "main", "agent", "openclaw-agent.sqlite")
	hosttest.Database(t, path, append([]string{hosttest.Get(t, "testdata/schema.sql")}, statements...)...)
	return logs{func() install.Env { return install.Env{Home: home} }}, path
}

// everything is what is in the logs: the sessions, where they are at work, and
// their turns; those without a name have a ~ in front.
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
			line := hosttest.Turns([]hooks.LogTurn{turn})
			if turn.Unnamed {
				line = "~" + line
			}
			out = append(out, line)
		}
		if page.Damaged > 0 {
			out = append(out, fmt.Sprint("damaged: ", page.Damaged))
		}
	}
	return strings.Join(out, "\n")
}

const askBilling = "user: What is the billing rewrite called, and when does it go live?"

// What the real OpenClaw wrote.
func TestDatabases(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"gateway": `main/39e0dfe2-0fce-441b-a856-16a40072f938 in /home/dev/project
47632316-cf9b-4043-b052-9272a1528235! ` + askBilling + ` | assistant: In spring.
9b43e6da-54b1-4e52-9566-a14f63e4b4e0! ` + askBilling + ` | assistant: On 23 March.
72413f6d-ba03-409d-8dc2-cfc01316acb1! user: Which port does the staging database server listen on? | assistant: 6543.
d38e42ed-892c-44c8-bdd4-a9ae0c8dc4d4! ` + askBilling + ` | assistant: Again.
main/a370a6dd-4382-4de3-b1a8-bc6a04a8e4a2 in /home/dev/project
d4413cfd-c459-4980-9a66-d5a8a9112b4d! user: The office kettle is called Bartholomew and wants descaling every Thursday.
15bee6fb-c5f5-4043-997d-795daaea2805! user: Go on, please. | assistant: Well.`,
		"embedded": `main/2df19bb2-9715-4f48-8479-e545b2e44e26 in /home/dev/project
~2b4a2084-09c9-4f06-9db3-5011a4344358! ` + askBilling + ` | assistant: In spring.
~f63a09f1-12be-4856-ba75-c3c8f59be177! ` + askBilling + ` | assistant: On 23 March.
main/311719f4-51b6-459a-983a-670e604b6bcf in /home/dev/project
~74b87017-a4a4-4a9f-8a42-bc9d4ca782b6 user: The staging database server is named Marmalade and listens on port 6543.
main/56fd19a5-b304-4b47-b691-a2aeff8f127d in /home/dev/project
~40b4ffce-afc9-4afa-9166-4ce5a32b54ef! user: Go on, please. | assistant: Well.`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := newDatabase(t, ".openclaw", hosttest.Get(t, filepath.Join("testdata", name+".sql")))
			if got := everything(t, l); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// begin begins a session with its header.
func begin(id, key string) string {
	return fmt.Sprintf(`INSERT INTO session_windows VALUES ('%s', '%s');
		INSERT INTO transcript_events VALUES ('%[1]s', 0, '{"type":"session","timestamp":"2026-11-30T07:00:00Z","cwd":"/src"}', 1000, NULL, NULL);`, id, key)
}

// add adds events to a session, behind those that it has.
func add(id string, events ...string) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "INSERT INTO transcript_events SELECT '%s', max(seq) + 1, '%s', 1000, NULL, NULL FROM transcript_events WHERE session_id = '%[1]s';\n", id, e)
	}
	return b.String()
}

func message(members string) string {
	return `{"type":"message","id":"m1","timestamp":"2026-11-30T07:00:01Z","message":{` + members + `}}`
}

// user is a message of the user, by its key.
func user(key, text string) string {
	return message(fmt.Sprintf(`"role":"user","content":"%s","idempotencyKey":"%s:user"`, text, key))
}

// agent is one of the agent in a run.
func agent(run, text, stop string) string {
	return message(fmt.Sprintf(`"role":"assistant","content":[{"type":"thinking","text":"secret"},{"type":"text","text":"%s"}],"stopReason":"%s","__openclaw":{"runId":"%s"}`, text, stop, run))
}

func TestSessions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, want string }{
		"nobody writes": {begin("a", "agent:main:subagent:x") + add("a", user("r", "x")) + begin("b", "agent:main:cron:x") + add("b", user("r", "x")), ""},
		"another session's": {begin("a", "agent:main:main") + add("a", message(`"role":"user","content":"x","provenance":{"kind":"inter_session"}`), agent("q", "X.", "stop"),
			user("r", "y"), agent("r", "Y.", "stop"), message(`"role":"user","content":"[cron:1 x] y"`), agent("s", "Z.", "stop")),
			"main/a in /src\nr! user: y | assistant: Y."},
		"copied": {begin("a", "agent:main:main") + add("a", strings.Replace(user("q", "old"), "T07:", "T06:", 1), strings.Replace(agent("q", "Old.", "stop"), "T07:", "T06:", 1), user("r", "y")),
			"main/a in /src\n~r user: y"},
		"a prompt before there is a session": {begin("a", "agent:main:main") + add("a", strings.Replace(user("r", "x"), "T07:00:01", "T06:59:59", 1), agent("r", "X.", "stop")),
			"main/a in /src\nr! user: x | assistant: X."},
		"tools": {begin("a", "agent:main:main") + add("a", user("r", "x"), agent("r", "I look", "toolUse"), message(`"role":"toolResult","content":"secret"`)),
			"main/a in /src\nr user: x"},
		"tools and an answer": {begin("a", "agent:main:main") + add("a", user("r", "x"), agent("r", "I look", "toolUse"), agent("r", "", "stop")),
			"main/a in /src\nr! user: x | assistant: I look"},
		"steered": {begin("a", "agent:main:main") + add("a", user("r", "x"), agent("r", "I look", "toolUse"), user("q", "here"), agent("r", "Found.", "stop")),
			"main/a in /src\nr! user: x | user: here | assistant: Found."},
		"steered twice": {begin("a", "agent:main:main") + add("a", user("r", "x"), agent("r", "I look", "toolUse"), user("q", "here"), user("s", "or there"), agent("r", "Found.", "stop")),
			"main/a in /src\nr! user: x | user: here | user: or there | assistant: Found."},
		"steered, and written late": {begin("a", "agent:main:main") + add("a", user("r", "x"), agent("r", "Found.", "stop"), message(`"role":"user","content":"here","idempotencyKey":"q:user","__openclaw":{"steerTargetRunId":"r"}`), user("s", "y")),
			"main/a in /src\nr! user: x | user: here | assistant: Found.\n~s user: y"},
		"told something meanwhile": {begin("a", "agent:main:main") + add("a", user("r", "x"), agent("r", "I look", "toolUse"), user("q", "here"), message(`"role":"user","content":"[Subagent Context] x"`), agent("r", "Found.", "stop")),
			"main/a in /src\nr! user: x | user: here | assistant: Found."},
		"killed, then told something": {begin("a", "agent:main:main") + add("a", user("r", "x"), agent("r", "I look", "toolUse"), message(`"role":"user","content":"[Subagent Context] x"`), agent("q", "Found.", "stop")),
			"main/a in /src\nr! user: x"},
		"commands": {begin("a", "agent:main:main") + add("a", user("c", "/status"), message(`"role":"assistant","content":"Fine.","stopReason":"stop","model":"gateway-injected","idempotencyKey":"c"`),
			user("r", "x"), agent("r", "I look", "toolUse"), user("d", "/status"), message(`"role":"assistant","content":"Fine.","stopReason":"stop","model":"gateway-injected","idempotencyKey":"d"`), agent("r", "X.", "stop"),
			user("s", "/weather in Bern"), agent("s", "Fair.", "stop"), user("t", "/etc is full"), user("u", "y"), message(`"role":"assistant","content":"Failed.","model":"gateway-injected","idempotencyKey":"u"`)),
			"main/a in /src\nr! user: x | assistant: X.\ns! user: /weather in Bern | assistant: Fair.\n~t! user: /etc is full\n~u user: y"},
		"another attempt": {begin("a", "agent:main:main") + add("a", user("r", "x"), agent("r", "No", "error"), user("r", "x"), agent("r", "Yes.", "stop")),
			"main/a in /src\nr! user: x | assistant: Yes."},
		"stopped": {begin("a", "agent:main:main") + add("a", user("r", "x"), agent("r", "Half", "aborted"), user("s", "y"), user("t", "z")),
			"main/a in /src\nr! user: x\n~s! user: y\n~t user: z"},
		"of OpenClaw itself": {begin("a", "agent:main:main") + add("a", user("r", "x"), agent("r", "X.", "stop"), message(`"role":"assistant","content":[{"type":"text","text":"X. mirrored"}],"model":"delivery-mirror"`)),
			"main/a in /src\nr! user: x | assistant: X."},
		"of OpenClaw itself, for want of an answer": {begin("a", "agent:main:main") + add("a", user("r", "x"), agent("", "Failed", "stop")),
			"main/a in /src\n~r user: x"},
		"damaged": {begin("a", "agent:main:main") + add("a", user("r", "x"), `{"type":"mess`, agent("r", "X.", "stop")) + "INSERT INTO transcript_events VALUES ('a', 9, NULL, 1, x'28b52ffd00', 9);",
			"main/a in /src\nr! user: x | assistant: X.\ndamaged: 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := newDatabase(t, ".openclaw", c.sql)
			if got := everything(t, l); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// insert adds a compressed event.
func insert(t *testing.T, path, session string, seq int, event string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	pack, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO transcript_events VALUES (?, ?, NULL, 1000, ?, ?)", session, seq, pack.EncodeAll([]byte(event), nil), len(event)); err != nil {
		t.Fatal(err)
	}
}

func TestCompressed(t *testing.T) {
	t.Parallel()
	l, path := newDatabase(t, ".openclaw", begin("a", "agent:main:main"))
	long := strings.Repeat("long ", 7000)
	insert(t, path, "a", 1, user("r", long+"x"))
	insert(t, path, "a", 2, message(`"role":"toolResult","content":"`+strings.Repeat("y", 5<<20)+`"`)) // longer than OpenClaw keeps them
	insert(t, path, "a", 3, agent("r", "X.", "stop"))
	if got, want := everything(t, l), "main/a in /src\nr! user: "+long+"x | assistant: X.\ndamaged: 1"; got != want {
		t.Errorf("got %.100s … %s", got, got[max(0, len(got)-60):])
	}
}

// A session is read in pages, and on from where it was.
func TestPages(t *testing.T) {
	t.Parallel()
	l, path := newDatabase(t, ".openclaw", begin("a", "agent:main:main"))
	log := hooks.Log{Path: path, Session: client.Session{Host: Host, ID: "a"}}
	var want []string
	for i := range 8 {
		run := fmt.Sprintf("r%02d", i)
		insert(t, path, "a", 3*i+1, user(run, "x"))
		insert(t, path, "a", 3*i+2, message(`"role":"toolResult","content":"`+strings.Repeat("y", 3<<20)+`"`))
		insert(t, path, "a", 3*i+3, agent(run, "X.", "stop"))
		want = append(want, run+"! user: x | assistant: X.")
	}
	pages := 0
	turns, damaged := hosttest.Whole(t, func(cursor string) (hooks.LogPage, error) {
		pages++
		return l.Read(log, cursor)
	})
	if got := hosttest.Turns(turns); got != strings.Join(want, "\n") || pages != 2 || damaged != 0 {
		t.Errorf("%d pages, %d damaged:\n%s", pages, damaged, got)
	}
}

// A database grows, event by event.
func TestGrowingDatabase(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gateway", "embedded"} {
		statements := strings.SplitAfter(hosttest.Get(t, filepath.Join("testdata", name+".sql")), "\n")
		l, path := newDatabase(t, ".openclaw")
		cursors, turns := map[string]string{}, map[string][]hooks.LogTurn{}
		for _, s := range statements {
			hosttest.Database(t, path, s)
			for log, err := range l.List(context.Background()) {
				id := log.Session.ID
				page, readErr := l.Read(log, cursors[id])
				if err = errors.Join(err, readErr); err != nil {
					t.Fatal(err)
				}
				if len(page.Turns) > 1 {
					t.Errorf("%s: %d turns at once", name, len(page.Turns))
				}
				// What gets its name later stays one turn.
				if n := len(turns[id]); n > 0 && !turns[id][n-1].Ended && len(page.Turns) > 0 && page.Turns[0].Messages[0] == turns[id][n-1].Messages[0] {
					turns[id] = turns[id][:n-1]
				}
				turns[id], cursors[id] = hosttest.Merge(turns[id], page.Turns), page.Next
			}
		}
		for log := range l.List(context.Background()) {
			page, err := l.Read(log, "")
			if got, want := hosttest.Turns(turns[log.Session.ID]), hosttest.Turns(page.Turns); err != nil || got != want {
				t.Errorf("%s: got\n%s\nwant\n%s, %v", name, got, want, err)
			}
		}
	}
}

// A cursor of another database leads to the beginning.
func TestReplacedDatabase(t *testing.T) {
	t.Parallel()
	l, path := newDatabase(t, ".openclaw", begin("a", "agent:main:main")+add("a", user("r", "x"), agent("r", "X.", "stop"), user("s", "y"), agent("s", "Y.", "stop")))
	log := hooks.Log{Path: path, Session: client.Session{Host: Host, ID: "a"}}
	page, err := l.Read(log, "")
	if err != nil {
		t.Fatal(err)
	}
	if next, err := l.Read(log, page.Next); err != nil || len(next.Turns) != 0 || next.Next != page.Next {
		t.Errorf("%+v, %v", next, err)
	}
	for name, statements := range map[string]string{
		"emptied":  "DELETE FROM transcript_events;",
		"shorter":  "DELETE FROM transcript_events; DELETE FROM session_windows;" + begin("a", "agent:main:main") + add("a", user("q", "x")),
		"replaced": add("a", agent("q", "X.", "stop"), user("t", "x"), agent("t", "X.", "stop"), agent("t", "X.", "stop")) + "UPDATE transcript_events SET created_at = 2000;",
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
		"newer":       {"PRAGMA user_version = 24", `its format has version "24"`},
		"older":       {"PRAGMA user_version = 22", `its format has version "22"`},
		"another one": {"DROP TABLE transcript_events", "no such table"},
	} {
		l, path := newDatabase(t, ".openclaw", begin("a", "agent:main:main"), c.sql)
		hosttest.Refused(t, name, l, path, c.want)
	}
}

// A database that is cut or damaged is an error, or has less in it; nothing worse.
func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	l, path := newDatabase(t, ".openclaw", hosttest.Get(t, "testdata/gateway.sql"))
	hosttest.Damaged(t, l, path)
}

// Sessions have the scope that our plugin tells.
func TestScopes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ folder, env, config, want string }{
		"default":            {".openclaw", "", "", "main"},
		"of a profile":       {".openclaw-work", "", "", "work/main"},
		"the profile in use": {".openclaw-work", "OPENCLAW_PROFILE=work", "", "work/main"},
		"a folder":           {"state", "OPENCLAW_STATE_DIR=~/state", "", "~/state/main"},
		"configured":         {".openclaw", "", `{"plugins": {"entries": {"reme": {"config": {"scope": "team",},},},},}`, "team"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, path := newDatabase(t, c.folder, begin("a", "agent:main:main")+add("a", user("r", "x")))
			home := l.env().Home
			if c.config != "" {
				hosttest.Write(t, filepath.Join(home, c.folder, "openclaw.json"), c.config)
			}
			l.env = func() install.Env { return install.Env{Home: home, Environ: []string{c.env}} }
			var got []string
			for log, err := range l.List(context.Background()) {
				if err != nil || log.Path != path {
					t.Errorf("%+v, %v", log, err)
				}
				got = append(got, log.Session.Scope)
			}
			if !slices.Equal(got, []string{c.want}) {
				t.Errorf("scopes %q, want %q", got, c.want)
			}
		})
	}
}

// FuzzFold reads events of any kind, one a line.
func FuzzFold(f *testing.F) {
	f.Add(user("r", "x") + "\n" + agent("r", "X.", "stop") + "\n" + user("q", "y") + "\n" + agent("r", "Y.", "toolUse"))
	f.Add(message(`"role":"user","content":[{"type":"text","text":"x"}],"provenance":{"kind":"external_user"}`) + "\n{\"type\":\"message\"\n" + agent("", "", "error"))
	f.Fuzz(func(t *testing.T, text string) {
		var l fold
		seq := int64(0)
		for line := range strings.Lines(text) {
			seq++
			l.take([]byte(line), seq)
			if at := l.position(seq + 1); at < 1 || at > seq+1 {
				t.Fatalf("position %d behind %d", at, seq)
			}
		}
		for _, turn := range l.list() {
			if len(turn.Messages) == 0 {
				t.Error("a turn in which nothing is said")
			}
		}
	})
}
