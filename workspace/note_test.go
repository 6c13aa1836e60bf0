package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

func mustFlush(t *testing.T, w *Workspace, s client.Session, reason client.FlushReason) client.FlushResult {
	t.Helper()
	res, err := w.Flush(context.Background(), client.FlushRequest{Session: s, Reason: reason})
	if err != nil {
		t.Fatalf("flush: %v", err)
	}
	return res
}

// notes returns the notes of a day by name.
func notes(t *testing.T, w *Workspace, date string) map[string]string {
	t.Helper()
	paths, _ := filepath.Glob(w.abs("daily/" + date + "/*"))
	m := map[string]string{}
	for _, path := range paths {
		m[filepath.Base(path)] = readFile(t, w, "daily/"+date+"/"+filepath.Base(path))
	}
	return m
}

func TestRowFormat(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	s := testSession("s0")
	at := time.Date(2026, 11, 29, 12, 1, 0, 0, time.FixedZone("", 2*3600))
	mustAppend(t, w, s, client.Event{ID: "7:user", Role: client.User, Content: "A <b> & 'c'\nd", CreatedAt: at})
	want := `{"name":"user","content":[{"type":"text","text":"A <b> & 'c'\nd","id":"BLOCK","created_at":"2026-11-29T10:01:00+00:00","finished_at":null}],"role":"user","id":"7:user",` +
		`"metadata":{"host":"codex","scope_id":"default","session_id":"s0","turn_id":"7","cwd":"/src/osprey"},"created_at":"2026-11-29T10:01:00+00:00","usage":null,"finished_at":null,"finished_reason":null,"structured_output":null,"error":null}` + "\n"
	path := "session/dialog/codex/" + string(s.Key()) + ".jsonl"
	got := readFile(t, w, path)
	i := strings.Index(got, `"id":"`) + len(`"id":"`)
	block := got[i : i+32]
	if got = strings.Replace(got, block, "BLOCK", 1); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	// The same event anywhere gives the same bytes.
	again := openAt(t, t.TempDir(), noon)
	mustAppend(t, again, s, client.Event{ID: "7:user", Role: client.User, Content: "A <b> & 'c'\nd", CreatedAt: at})
	if readFile(t, again, path) != readFile(t, w, path) {
		t.Error("two appends of one event differ")
	}
}

func TestGeneratedNote(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	s := testSession("s0")
	mustAppend(t, w, s, testTurn(1, "Why does the parser: skip a token?\nSee internal/parse/lex.go.",
		"The lexer read ahead. I fixed `lex.go` and ran `go test ./...`.\n```sh\n$ make lint\n# comment\n```\nAll is green.")...)
	mustAppend(t, w, s, testTurn(2, "continue", "Done.")...)
	mustFlush(t, w, s, client.SessionEnd)
	got := notes(t, w, "2026-11-30")
	name := "why-does-the-parser-skip-a-token-see-internal-parse-lex-go-" + keyHash(s)
	want := `---
description: '2 turn(s) with codex in osprey: Why does the parser: skip a token? See internal/parse/lex.go.'
generated_by: reme-hook
name: ` + name + `
session_id: ` + string(s.Key()) + `
source_conversation: '[[session/dialog/codex/` + string(s.Key()) + `.jsonl]]'
---

# Why does the parser: skip a token? See internal/parse/lex.go.

## 11:01

Asked: Why does the parser: skip a token? See internal/parse/lex.go.

Outcome: The lexer read ahead. I fixed ` + "`lex.go` and ran `go test ./...`. ```sh $ make lint # comment ```" + ` All is green.

## 11:02

Asked: continue

Outcome: Done.

Files: ` + "`internal/parse/lex.go`, `lex.go`" + `

Commands: ` + "`go test ./...`, `make lint`" + `

<!-- reme-hook: through ` + shortHash("2:assistant") + ` text `
	if len(got) != 1 || !strings.HasPrefix(got[name+".md"], want) {
		t.Errorf("got %v\nwant %s", got, want)
	}
	if through, edited := readMark(got[name+".md"]); edited || through != shortHash("2:assistant") {
		t.Errorf("mark: %s, %v", through, edited)
	}
	wantListed(t, w, "2026-11-30", 1)
}

func TestNoteFollowsItsSession(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	s := testSession("s0")
	const day = "2026-11-30"
	mustAppend(t, w, s, testTurn(1, "first question", "first answer")...)
	mustFlush(t, w, s, client.PreCompact)
	before := notes(t, w, day)
	mustFlush(t, w, s, client.SessionEnd)
	for name, text := range notes(t, w, day) {
		if before[name] != text {
			t.Errorf("a flush without a new turn changed %s", name)
		}
	}
	mustAppend(t, w, s, testTurn(2, "second question", "second answer")...)
	mustFlush(t, w, s, client.SessionEnd)
	wantListed(t, w, day, 1)
	var name, text string
	for name, text = range notes(t, w, day) {
		if !strings.Contains(text, "first answer") || !strings.Contains(text, "second answer") {
			t.Errorf("the note is not up to date:\n%s", text)
		}
	}

	edited := strings.Replace(text, "second answer", "second answer, says the user", 1)
	writeFile(t, w, "daily/"+day+"/"+name, edited)
	mustFlush(t, w, s, client.SessionEnd)
	wantListed(t, w, day, 1)
	mustAppend(t, w, s, testTurn(3, "third question", "third answer")...)
	for range 2 {
		mustFlush(t, w, s, client.SessionEnd)
	}
	wantListed(t, w, day, 2)
	second := strings.TrimSuffix(name, ".md") + "-2.md"
	if got := notes(t, w, day); got[name] != edited || !strings.Contains(got[second], "third answer") {
		t.Errorf("notes: %v", got)
	}
	mustAppend(t, w, s, testTurn(4, "fourth question", "fourth answer")...)
	mustFlush(t, w, s, client.SessionEnd)
	wantListed(t, w, day, 2)
	if got := notes(t, w, day); got[name] != edited || !strings.Contains(got[second], "fourth answer") {
		t.Errorf("notes: %v", got)
	}

	mustAppend(t, w, s, client.Event{ID: "9:user", Role: client.User, Content: "the morning after", CreatedAt: noon.Add(20 * time.Hour)})
	mustFlush(t, w, s, client.SessionEnd)
	wantListed(t, w, day, 2)
	wantListed(t, w, "2026-12-01", 1)
}

func TestNoteIsBounded(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	s := testSession("s0")
	var events []client.Event
	for n := range 58 {
		events = append(events, testTurn(n, fmt.Sprintf("Question %d. ", n)+strings.Repeat("It is long. ", 100), strings.Repeat("项目评审安排在周四。", 300))...)
	}
	mustAppend(t, w, s, events...)
	mustFlush(t, w, s, client.SessionEnd)
	for _, text := range notes(t, w, "2026-11-30") {
		if len(text) > maxNoteText || len(text) < maxNoteText/2 {
			t.Errorf("%d bytes", len(text))
		}
		if !strings.Contains(text, "Question 57.") || strings.Contains(text, "Question 1.") || !strings.Contains(text, "earlier turn(s)") {
			t.Errorf("not the newest turns:\n%s", text)
		}
	}
}

func TestFlushQueues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := openAt(t, dir, noon)
	// Turns 1 and 2 are an hour old, turn 55 is five minutes old.
	mustAppend(t, w, testSession("old"), testTurn(1, "old question", "old answer")...)
	mustAppend(t, w, testSession("new"), testTurn(55, "new question", "new answer")...)
	mustFlush(t, w, testSession("old"), client.TurnEnd)
	if res := mustFlush(t, w, testSession("new"), client.TurnEnd); !res.Queued || res.Pending != 2 {
		t.Errorf("flush: %+v", res)
	}
	if len(notes(t, w, "2026-11-30")) != 0 {
		t.Error("the end of a turn wrote a note")
	}
	w.Close()
	w = openAt(t, dir, noon)
	if err := w.Drain(context.Background(), Settled); err != nil {
		t.Fatal(err)
	}
	wantListed(t, w, "2026-11-30", 1)
	if st := mustStats(t, w); st.Queued != 1 {
		t.Errorf("stats: %+v", st)
	}
	// The queue may be lost: the sessions that are behind are found again, and
	// those that are not stay as they are.
	w.Close()
	os.RemoveAll(filepath.Join(dir, "metadata"))
	before := notes(t, w, "2026-11-30")
	w = openAt(t, dir, noon.Add(time.Hour))
	if err := w.Drain(context.Background(), Settled); err != nil {
		t.Fatal(err)
	}
	wantListed(t, w, "2026-11-30", 2)
	for name, text := range before {
		if readFile(t, w, "daily/2026-11-30/"+name) != text {
			t.Errorf("%s has changed", name)
		}
	}
	if st := mustStats(t, w); st.Queued != 0 {
		t.Errorf("stats: %+v", st)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := w.Drain(ctx, Settled); !errors.Is(err, context.Canceled) {
		t.Errorf("drain without time: %v", err)
	}
}

func TestDayIndexOfSomeoneElse(t *testing.T) {
	for _, test := range []struct{ name, before, after string }{
		{"written by hand", "My Monday.\n", "My Monday.\n\n<!-- notes:auto -->\n- [[P]] name: n description: d\n<!-- /notes:auto -->\n"},
		{"written by ReMe",
			"---\ndescription: 1 note(s) today.\nmood: good\nname: '2026-11-30'\n---\n\n# Mine\n\n<!-- notes:auto -->\n- [[daily/2026-11-30/a.md]] name: a memory_tags: ['x']\n<!-- /notes:auto -->\n\nAnd mine.\n",
			"---\ndescription: 2 note(s) today.\nmood: good\nname: '2026-11-30'\n---\n\n# Mine\n\n<!-- notes:auto -->\n- [[daily/2026-11-30/a.md]] name: a memory_tags: ['x']\n- [[P]] name: n description: d\n<!-- /notes:auto -->\n\nAnd mine.\n"},
		{"empty", "", "---\ndescription: 1 note(s) today.\nname: '2026-11-30'\n---\n\n<!-- notes:auto -->\n- [[P]] name: n description: d\n<!-- /notes:auto -->\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range 2 {
				got := withListed(test.before, "2026-11-30", "- [[P]]", " name: n description: d")
				if got != test.after {
					t.Errorf("got\n%s\nwant\n%s", got, test.after)
				}
				test.before = got
			}
		})
	}
}

func TestRemember(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := openAt(t, t.TempDir(), noon)
	remember := func(title, content string) client.Note {
		t.Helper()
		n, err := w.Remember(ctx, client.RememberRequest{Title: title, Content: content, Cwd: "/src/osprey", Host: "kimi"})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := remember("Editor: Settings!", "I like tabs.")
	wantListed(t, w, "2026-11-30", 1)
	if first.Path != "daily/2026-11-30/editor-settings.md" || !first.Created || first.Name != "editor-settings" || first.Date != "2026-11-30" {
		t.Errorf("note: %+v", first)
	}
	want := "---\ncwd: '/src/osprey'\ndescription: 'Editor: Settings!'\nhost: kimi\nname: editor-settings\n---\n\nI like tabs.\n"
	if got := readFile(t, w, first.Path); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if again := remember("Editor: settings", "I like tabs.\n"); again.Created || again.Path != first.Path {
		t.Errorf("the same again: %+v", again)
	}
	if second := remember("editor settings", "I like spaces."); second.Path != "daily/2026-11-30/editor-settings-2.md" || !second.Created {
		t.Errorf("another of that title: %+v", second)
	}
	if again := remember("editor settings", "I like spaces."); again.Created || again.Path != "daily/2026-11-30/editor-settings-2.md" {
		t.Errorf("the same again: %+v", again)
	}
	wantListed(t, w, "2026-11-30", 2)
	writeFile(t, w, "daily/2026-11-30/mine.md", "mine\n")
	if n := remember("mine", "not mine"); n.Path != "daily/2026-11-30/mine-2.md" || readFile(t, w, "daily/2026-11-30/mine.md") != "mine\n" {
		t.Errorf("note: %+v", n)
	}
	if n := remember("", "# 我喜欢制表符\n\n宽度为四。"); n.Path != "daily/2026-11-30/我喜欢制表符-宽度为四.md" {
		t.Errorf("note without a title: %+v", n)
	}
	if n := remember("../../etc/passwd", "x"); n.Path != "daily/2026-11-30/etc-passwd.md" {
		t.Errorf("note: %+v", n)
	}
	if items := mustRecall(t, w, "制表符"); len(items) != 1 {
		t.Errorf("items: %+v", items)
	}
	for _, content := range []string{"", " \n", strings.Repeat("x", maxRemember+1)} {
		if _, err := w.Remember(ctx, client.RememberRequest{Content: content}); client.ClassOf(err) != client.Permanent {
			t.Errorf("%d bytes: %v", len(content), err)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := openAt(t, t.TempDir(), noon)
	s := testSession("s0")
	mustAppend(t, w, s, testTurn(1, "a question\non two lines", "an \x1b[31manswer")...)
	mustAppend(t, w, s, testTurn(2, "more", "less")...)
	writeFile(t, w, "digest/topic.md", "one\ntwo\n\nfour\nfive")
	dialog := dialogPath(s)
	for _, test := range []struct {
		path       string
		start, end int
		want       string
	}{
		{dialog, 0, 0, "user: a question\non two lines\nassistant: an [31manswer\nuser: more\nassistant: less"},
		{"reme://" + dialog + "#L2-L3", 0, 0, "assistant: an [31manswer\nuser: more"},
		{"reme://" + dialog + "#L4", 0, 0, "assistant: less"},
		{dialog + "#L2-L3", 1, 1, "user: a question\non two lines"},
		{"digest/topic.md", 0, 0, "one\ntwo\n\nfour\nfive"},
		{"reme://digest/topic.md", 2, 4, "two\n\nfour"},
		{"digest/topic", 5, 5, "five"},
		{"digest/topic.md", 9, 0, ""},
	} {
		if got, err := w.Read(ctx, test.path, test.start, test.end); err != nil || got != test.want {
			t.Errorf("%s %d-%d: %q, %v; want %q", test.path, test.start, test.end, got, err, test.want)
		}
	}

	outside := filepath.Join(t.TempDir(), "secret.md")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, w.abs("digest/link.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), w.abs("digest/dir")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"", ".", "/", "..", outside, "reme://" + outside, "../secret.md", "digest/../../secret.md", `..\secret.md`, "digest/link.md", "digest/dir/secret.md",
		"digest", "metadata/reme-hook/index.sqlite", "digest/../metadata/reme-hook/index.sqlite", "no/such.md", "reme:///etc/passwd", "~/x", "digest/\x00",
	} {
		got, err := w.Read(ctx, path, 0, 0)
		if client.ClassOf(err) != client.Permanent || err == nil || got != "" {
			t.Errorf("%q: %q, %v", path, got, err)
		}
	}
	if _, err := w.Read(ctx, "no/such.md", 0, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	// What a recall names can be read.
	items := mustRecall(t, w, "more less question")
	if len(items) == 0 {
		t.Error("nothing recalled")
	}
	for _, item := range items {
		text, err := w.Read(ctx, fmt.Sprintf("reme://%s#L%d-L%d", item.Path, item.StartLine, item.EndLine), 0, 0)
		if err != nil || text != item.Snippet {
			t.Errorf("item %q, read %q, %v", item.Snippet, text, err)
		}
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	if list, err := w.Sessions(context.Background(), 5); err != nil || list == nil || len(list) != 0 {
		t.Errorf("of nothing: %#v, %v", list, err)
	}
	mustAppend(t, w, testSession("a"), testTurn(1, "first\n\nwords", "yes")...)
	mustAppend(t, w, testSession("b"), testTurn(2, "other", "yes")...)
	mustAppend(t, w, testSession("a"), testTurn(3, "later", "yes")...)
	list, err := w.Sessions(context.Background(), 0)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	a := list[0]
	if a.Session != testSession("a") || a.Key != string(testSession("a").Key()) || a.Turns != 2 || a.Events != 4 || a.Title != "first words" || a.Cwd != "/src/osprey" ||
		a.Path != dialogPath(testSession("a")) || !a.First.Equal(noon.Add(-59*time.Minute)) || !a.Last.Equal(noon.Add(-57*time.Minute+5*time.Second)) {
		t.Errorf("%+v", a)
	}
	if list, _ := w.Sessions(context.Background(), 1); len(list) != 1 || list[0].ID != "a" {
		t.Errorf("limit: %+v", list)
	}
}
