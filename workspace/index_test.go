package workspace

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

// seed fills a workspace with three turns and a note, and closes it.
func seed(t *testing.T) (dir string) {
	t.Helper()
	w := openAt(t, t.TempDir(), noon)
	for n := range 3 {
		mustAppend(t, w, testSession("s0"), testTurn(n, fmt.Sprintf("question %d about the pangolin", n), "It is number "+fmt.Sprint(n))...)
	}
	writeFile(t, w, "digest/beasts.md", "# Beasts\n\nThe aardvark digs.\n")
	if items := mustRecall(t, w, "aardvark"); len(items) != 1 {
		t.Fatalf("items: %+v", items)
	}
	w.Close()
	return w.dir
}

func TestIndexIsDerived(t *testing.T) {
	index := func(dir string) string { return filepath.Join(dir, privateDir, "index.sqlite") }
	edit := func(change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			b, err := os.ReadFile(index(dir))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(index(dir), change(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	statement := func(query string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			db, err := sql.Open("sqlite", index(dir))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec(query); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		aside  bool
	}{
		{"deleted", func(t *testing.T, dir string) { os.Remove(index(dir)) }, false},
		{"deleted with its folder", func(t *testing.T, dir string) { os.RemoveAll(filepath.Join(dir, "metadata")) }, false},
		{"empty", edit(func(b []byte) []byte { return nil }), false},
		{"truncated to half", edit(func(b []byte) []byte { return b[:len(b)/2] }), true},
		{"truncated to a page and a bit", edit(func(b []byte) []byte { return b[:5000] }), true},
		{"cut in its header", edit(func(b []byte) []byte { return b[:60] }), true},
		{"garbage", edit(func(b []byte) []byte { return bytes.Repeat([]byte("garbage!"), len(b)/8) }), true},
		{"garbage behind the header", edit(func(b []byte) []byte { return append(b[:100:100], bytes.Repeat([]byte{0xA5}, len(b)-100)...) }), true},
		{"garbage in the middle", edit(func(b []byte) []byte {
			for i := 4096; i < len(b); i++ {
				b[i] ^= 0x5A
			}
			return b
		}), true},
		{"of another version", statement("PRAGMA user_version=999"), true},
		{"without a table", statement("DROP TABLE docs"), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := seed(t)
			test.damage(t, dir)
			w := openAt(t, dir, noon)
			// An append comes first: it must know what is there.
			if res := mustAppend(t, w, testSession("s0"), testTurn(2, "question 2 about the pangolin", "It is number 2")...); res.Duplicate != 2 || res.Total != 6 {
				t.Errorf("append: %+v", res)
			}
			if res := mustAppend(t, w, testSession("s0"), testTurn(3, "question 3 about the pangolin", "It is number 3")...); res.Appended != 2 || res.Total != 8 {
				t.Errorf("append: %+v", res)
			}
			if items := mustRecall(t, w, "pangolin"); len(items) != 4 {
				t.Errorf("%d items", len(items))
			}
			if items := mustRecall(t, w, "aardvark"); len(items) != 1 {
				t.Errorf("items: %+v", items)
			}
			wantRows(t, w, testSession("s0"), 0, 1, 2, 3)
			st := mustStats(t, w)
			if st.Turns != 4 || st.Notes != 1 || st.Queued != 1 {
				t.Errorf("stats: %+v", st)
			}
			if aside, _ := filepath.Glob(index(dir) + ".damaged-*"); len(aside) != map[bool]int{true: 1}[test.aside] {
				t.Errorf("set aside: %v", aside)
			}
			if st.Index != IndexRebuilt && test.name != "deleted with its folder" {
				t.Errorf("the index is said to be %s", st.Index)
			}
		})
	}
}

func TestDamagedCopiesAreBounded(t *testing.T) {
	t.Parallel()
	dir := seed(t)
	path := filepath.Join(dir, privateDir, "index.sqlite")
	for n := range 5 {
		if err := os.WriteFile(path, bytes.Repeat([]byte(fmt.Sprint(n)), 9000), 0o600); err != nil {
			t.Fatal(err)
		}
		w := openAt(t, dir, noon)
		if items := mustRecall(t, w, "aardvark"); len(items) != 1 {
			t.Fatalf("items: %+v", items)
		}
		w.Close()
	}
	aside, _ := filepath.Glob(path + ".damaged-*")
	if len(aside) != keptDamaged {
		t.Errorf("set aside: %v", aside)
	}
	if b, _ := os.ReadFile(path + ".damaged-1"); !bytes.HasPrefix(b, []byte("44")) {
		t.Error("the newest copy is not the first")
	}
}

// An index that is cut short while it is being read, where it is mapped, costs no more
// than one that cannot be read.
func TestIndexCutWhileRead(t *testing.T) {
	t.Parallel()
	w := openAt(t, seed(t), noon)
	err := w.use(t.Context(), func(x *index) error {
		rows, err := x.db.QueryContext(t.Context(), "SELECT CASE value WHEN 2 THEN (SELECT count(*) FROM docs) END FROM json_each('[1,2]'), (SELECT 1 FROM meta UNION SELECT 2)")
		if err != nil {
			return err
		}
		defer rows.Close()
		rows.Next()
		if err := os.Truncate(w.indexPath(), 0); err != nil {
			t.Skip("this system keeps what is mapped: ", err)
		}
		for rows.Next() {
		}
		return rows.Err()
	})
	if err == nil {
		t.Error("it was read all the same")
	}
	if items := mustRecall(t, w, "pangolin"); len(items) != 3 {
		t.Errorf("%d items", len(items))
	}
}

// A server notices that its index was taken away.
func TestIndexReplacedWhileOpen(t *testing.T) {
	t.Parallel()
	w := openAt(t, seed(t), noon)
	if items := mustRecall(t, w, "aardvark"); len(items) != 1 {
		t.Fatalf("items: %+v", items)
	}
	if err := os.Remove(w.indexPath()); err != nil {
		t.Fatal(err)
	}
	os.Remove(w.indexPath() + "-wal")
	os.Remove(w.indexPath() + "-shm")
	if items := mustRecall(t, w, "aardvark"); len(items) != 1 {
		t.Errorf("items: %+v", items)
	}
	if _, err := os.Stat(w.indexPath()); err != nil {
		t.Error(err)
	}
}

func TestUnusableIndex(t *testing.T) {
	for _, test := range []struct {
		name   string
		damage func(t *testing.T, w *Workspace)
	}{
		{"a folder in its place", func(t *testing.T, w *Workspace) {
			if err := os.MkdirAll(w.indexPath()+"/x", 0o700); err != nil {
				t.Fatal(err)
			}
		}},
		{"locked by someone", func(t *testing.T, w *Workspace) {
			mustAppend(t, w, testSession("first"), testTurn(0, "x", "y")...)
			w.Close()
			db, err := openDB(w.indexPath(), busyWait)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			if _, err := db.Exec("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; CREATE TABLE mine(x); COMMIT"); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := openAt(t, t.TempDir(), noon)
			w.busyWait = 20 * time.Millisecond
			test.damage(t, w)
			s := testSession("s0")
			for range 2 {
				mustAppend(t, w, s, testTurn(1, "What is the mascot?", "A pangolin.")...)
			}
			if res := mustAppend(t, w, s, testTurn(2, "And the port?", "2334")...); res.Appended != 2 || res.Total != 4 {
				t.Errorf("append: %+v", res)
			}
			wantRows(t, w, s, 1, 2)
			if items := mustRecall(t, w, "pangolin mascot"); len(items) != 1 {
				t.Errorf("items: %+v", items)
			}
			mustAppend(t, w, s, testTurn(3, "And the armadillo?", "No.")...)
			if items := mustRecall(t, w, "armadillo"); len(items) != 1 {
				t.Errorf("items: %+v", items)
			}
			if _, err := w.Flush(context.Background(), client.FlushRequest{Session: s, Reason: client.TurnEnd}); err != nil {
				t.Error(err)
			}
			if _, err := w.Flush(context.Background(), client.FlushRequest{Session: s, Reason: client.SessionEnd}); err != nil {
				t.Error(err)
			}
			wantListed(t, w, "2026-11-30", 1)
			if list, err := w.Sessions(context.Background(), 1); err != nil || len(list) != 1 {
				t.Errorf("sessions: %+v, %v", list, err)
			}
			if st := mustStats(t, w); st.Index != IndexUnavailable || st.Why == "" || st.Turns < 3 {
				t.Errorf("stats: %+v", st)
			}
		})
	}
}

// Others may have the index to themselves for a while, for longer than a hook has time:
// then nothing is lost, nothing fails, and the index catches up.
func TestBusyIndex(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	s := testSession("s0")
	mustAppend(t, w, s, testTurn(1, "What is the mascot?", "A pangolin.")...)
	w.Close()
	alone := func() (release func()) {
		db, err := openDB(w.indexPath(), busyWait)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT"); err != nil {
			t.Fatal(err)
		}
		return sync.OnceFunc(func() { db.Close() })
	}
	hurry := func(limit time.Duration, do func(context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		if err := do(ctx); err != nil {
			t.Error(err)
		}
	}

	release := alone()
	hurry(time.Second, func(ctx context.Context) error {
		res, err := w.Append(ctx, client.AppendRequest{Session: s, Events: testTurn(2, "And the port?", "2334")})
		if res.Appended != 2 || len(res.EventIDs) != 2 {
			t.Errorf("append: %+v", res)
		}
		return err
	})
	hurry(time.Second, func(ctx context.Context) error {
		_, err := w.Flush(ctx, client.FlushRequest{Session: s, Reason: client.TurnEnd})
		return err
	})
	hurry(4*time.Second, func(ctx context.Context) error { // it waits a quarter of it, and needs some for an index of its own
		res, err := w.Recall(ctx, client.RecallRequest{Query: "pangolin mascot"})
		if len(res.Items) != 1 {
			t.Errorf("recalled %+v", res)
		}
		return err
	})
	release()
	if st := mustStats(t, w); st.Index != IndexOK || st.Turns != 2 || st.Queued != 1 {
		t.Errorf("stats: %+v", st)
	}

	// Who has the time waits.
	w.Close()
	release = alone()
	time.AfterFunc(300*time.Millisecond, release)
	mustAppend(t, w, s, testTurn(3, "And the armadillo?", "No.")...)
	if w.state != IndexOK {
		t.Errorf("the index is %s: %s", w.state, w.why)
	}
	wantRows(t, w, s, 1, 2, 3)
}

func TestReadOnlyWorkspace(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write anywhere")
	}
	t.Parallel()
	dir := seed(t)
	filepath.Walk(dir, func(path string, _ os.FileInfo, _ error) error { return os.Chmod(path, 0o500) })
	t.Cleanup(func() {
		filepath.Walk(dir, func(path string, _ os.FileInfo, _ error) error { return os.Chmod(path, 0o700) })
	})
	w := openAt(t, dir, noon)
	if items := mustRecall(t, w, "aardvark"); len(items) != 1 {
		t.Errorf("items: %+v", items)
	}
	_, err := w.Append(context.Background(), client.AppendRequest{Session: testSession("s1"), Events: testTurn(1, "a", "b")})
	if client.ClassOf(err) != client.Configuration {
		t.Errorf("append: %v", err)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	w := openAt(t, seed(t), noon)
	mustAppend(t, w, testSession("s1"), testTurn(1, "a question", "an answer")...)
	if _, err := w.Flush(context.Background(), client.FlushRequest{Session: testSession("s1"), Reason: client.SessionEnd}); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"session", "daily", "metadata"} {
		filepath.WalkDir(w.abs(dir), func(path string, d os.DirEntry, _ error) error {
			st, err := d.Info()
			if err != nil {
				t.Error(err)
				return nil
			}
			want := os.FileMode(0o600)
			if d.IsDir() {
				want = 0o700
			}
			if got := st.Mode().Perm(); got != want {
				t.Errorf("%s has mode %o", path, got)
			}
			return nil
		})
	}
}

func TestForeignChanges(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	stamp := time.Now()
	write := func(rel, text string) {
		t.Helper()
		writeFile(t, w, rel, text)
		// Two writes in one tick of the file system's clock would look alike.
		stamp = stamp.Add(time.Second)
		if err := os.Chtimes(w.abs(rel), stamp, stamp); err != nil {
			t.Fatal(err)
		}
	}
	find := func(query string, want int) []client.Item {
		t.Helper()
		items := mustRecall(t, w, query)
		if len(items) != want {
			t.Errorf("recall of %q: %d items, want %d: %+v", query, len(items), want, items)
		}
		return items
	}
	sample := `{"name":"user","content":[{"type":"text","text":"The release train for Project Osprey leaves on 14 December.","id":"7ebb","created_at":"2026-11-29T20:35:57.376442","finished_at":null}],"role":"user","id":"codex-sample-1-u","metadata":{},"created_at":"2026-11-29T10:01:00+00:00","usage":null}
{"name":"assistant","content":"Noted: Osprey releases then.","role":"assistant","id":"codex-sample-1-a","metadata":null,"created_at":"2026-11-29T10:01:05"}
this is no row
{"role":"tool","content":"aardvark","id":"x"}
{"role":"user","content":[{"type":"text","text":"Freeze starts early."},{"type":"image"},7],"id":5}
`
	const dialogFile = "session/dialog/codex-sample.jsonl"
	write(dialogFile, sample)
	items := find("osprey release train", 1)
	if len(items) == 1 && (items[0].StartLine != 1 || items[0].EndLine != 2 || items[0].SessionID != "codex-sample" || items[0].Date != "2026-11-29" || !strings.Contains(items[0].Snippet, "assistant: Noted")) {
		t.Errorf("item: %+v", items[0])
	}
	find("aardvark", 0)
	if got := find("freeze", 0); len(got) != 0 {
		t.Error(got)
	}
	sample = strings.Replace(sample, `"content":[{"type":"text","text":"Freeze starts early."},{"type":"image"},7],"id":5`, `"content":[{"type":"text","text":"Freeze starts early."}],"id":"5"`, 1)
	write(dialogFile, sample)
	find("freeze", 1)

	grown := sample + `{"role":"assistant","content":"A wombat said so.","id":"6","created_at":"2026-11-29T10:03:00+00:00"}` + "\n"
	write(dialogFile, grown)
	if items := find("wombat", 1); len(items) == 1 && (items[0].StartLine != 5 || items[0].EndLine != 6) {
		t.Errorf("the answer did not join its question: %+v", items[0])
	}
	if list, err := w.Sessions(context.Background(), 0); err != nil || len(list) != 1 || list[0].Turns != 2 || list[0].Events != 4 {
		t.Errorf("sessions: %+v, %v", list, err)
	}
	write(dialogFile, strings.ReplaceAll(grown, "wombat", "marmot"))
	find("wombat", 0)
	find("marmot", 1)
	grown = strings.ReplaceAll(grown, "wombat said", "wombat of the woods said")
	write(dialogFile, grown)
	find("marmot", 0)
	find("wombat", 1)
	write(dialogFile, strings.Replace(grown, "Osprey leaves", "Falcon leaves", 1)) // of the same size, with the same end
	find("falcon", 1)
	write(dialogFile, grown+grown) // someone stored each row twice
	if items := find("wombat", 1); len(items) == 1 && strings.Count(items[0].Snippet, "wombat") != 1 {
		t.Errorf("item: %+v", items[0])
	}
	if list, _ := w.Sessions(context.Background(), 0); len(list) != 1 || list[0].Events != 4 {
		t.Errorf("sessions: %+v", list)
	}

	write("daily/2026-11-29/facts.md", "---\nname: facts\ndescription: Facts\nsession_id: codex-sample\n---\n\nThe numbat eats termites.\n")
	write("daily/2026-11-29.md", "---\nname: '2026-11-29'\n---\n\n- [[daily/2026-11-29/facts.md]] numbat termites\n")
	if items := find("numbat termites", 1); len(items) == 1 && (items[0].Path != "daily/2026-11-29/facts.md" || items[0].Date != "2026-11-29" || items[0].StartLine < 6) {
		t.Errorf("item: %+v", items[0])
	}
	write("daily/2026-11-29/facts.md", "The quokka smiles.\n")
	find("numbat termites", 0)
	find("quokka", 1)
	os.Remove(w.abs("daily/2026-11-29/facts.md"))
	os.Remove(w.abs(dialogFile))
	find("quokka", 0)
	find("osprey release train", 0)
	if st := mustStats(t, w); st.Sessions != 0 || st.Notes != 0 || st.Turns != 0 {
		t.Errorf("stats: %+v", st)
	}
	wantFingerprint(t, w)
	mustAppend(t, w, testSession("s0"), testTurn(1, "hello", "there")...)
	mustAppend(t, w, testSession("s0"), testTurn(2, "hello", "there")...)
	wantFingerprint(t, w)
}

// wantFingerprint checks that the index need not be compared with the files.
func wantFingerprint(t *testing.T, w *Workspace) {
	t.Helper()
	all, err := w.walk(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var sum, known int64
	for _, f := range all.files {
		sum ^= f.sum()
	}
	if err := w.use(context.Background(), func(x *index) error {
		return x.db.QueryRow("SELECT value FROM meta WHERE key='sum'").Scan(&known)
	}); err != nil || known != sum {
		t.Errorf("fingerprint %x, want %x, %v", known, sum, err)
	}
}

func TestGlance(t *testing.T) {
	old := manyFiles
	manyFiles = 3
	t.Cleanup(func() { manyFiles = old })
	w := openAt(t, t.TempDir(), noon)
	ctx := context.Background()
	long := time.Now().Add(-time.Hour)
	for n := range 4 {
		mustAppend(t, w, testSession(fmt.Sprint("s", n)), testTurn(n, "hello", "there")...)
	}
	writeFile(t, w, "digest/a.md", "The aardvark digs.\n")
	settle := func() {
		for _, dir := range []string{"digest", "session/dialog", "session/dialog/codex"} {
			if err := os.Chtimes(w.abs(dir), long, long); err != nil {
				t.Fatal(err)
			}
		}
		mustStats(t, w)
	}
	glance := func(want bool) {
		t.Helper()
		if err := w.use(ctx, func(x *index) error {
			looked, err := w.lookAround(ctx, x)
			if err != nil {
				return err
			}
			changed := <-looked
			if got := len(changed.files)+len(changed.folders) == 0; got != want || changed.whole {
				t.Errorf("glance says %v, want %v", changed, want)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	settle()
	glance(true)
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(w.abs("digest"), later, later); err != nil {
		t.Fatal(err)
	}
	mustStats(t, w)
	glance(false) // so new that a change after it may not show
	settle()
	mustAppend(t, w, testSession("s1"), testTurn(9, "our own appends", "are known")...)
	glance(true)
	writeFile(t, w, "digest/b.md", "The badger digs.\n")
	glance(false)
	settle()
	glance(true)
	writeFile(t, w, "digest/b.md", "The badger digs deep.\n")
	glance(false)
	if items := mustRecall(t, w, "badger"); len(items) != 1 {
		t.Errorf("items: %+v", items)
	}
	settle()
	mustAppend(t, w, testSession("new"), testTurn(1, "our own sessions", "are known")...)
	if _, err := w.Remember(ctx, client.RememberRequest{Content: "The dingo digs."}); err != nil {
		t.Fatal(err)
	}
	glance(true)
	if items := mustRecall(t, w, "dingo"); len(items) != 1 {
		t.Errorf("items: %+v", items)
	}
	if err := os.Remove(w.abs("digest/b.md")); err != nil {
		t.Fatal(err)
	}
	glance(false)
	if items := mustRecall(t, w, "badger"); len(items) != 0 {
		t.Errorf("items: %+v", items)
	}
	settle()
	writeFile(t, w, "daily/2026-11-01/c.md", "The coati digs.\n")
	glance(false)
	if items := mustRecall(t, w, "coati"); len(items) != 1 {
		t.Errorf("items: %+v", items)
	}
}

// An agent does not wait until all is indexed that someone put there.
func TestCatchUpIsBounded(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := openAt(t, t.TempDir(), noon)
	const notes = 8
	for n := range notes {
		writeFile(t, w, fmt.Sprintf("digest/%d.md", n), fmt.Sprintf("Animal%d digs.\n", n)+strings.Repeat("It digs on and on.\n", maxCatchUp/2/19))
	}
	count := func() (n int) {
		if err := w.use(ctx, func(x *index) error { return x.db.QueryRow("SELECT count(*) FROM files").Scan(&n) }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 2 { // the second one knows that there is no use in it
		w.Recall(ctx, client.RecallRequest{Query: "animal0 digs", Purpose: client.ForPrompt})
		if n := count(); n == 0 || n > notes/2 || !w.Behind() {
			t.Errorf("%d of %d notes are indexed, behind: %v", n, notes, w.Behind())
		}
	}
	mustAppend(t, w, testSession("s"), testTurn(1, "our own turns", "are not in the way")...)
	if items := mustRecall(t, w, "not in the way"); len(items) != 1 {
		t.Errorf("items: %+v", items)
	}
	if err := w.Drain(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if n := count(); n < notes || w.Behind() {
		t.Errorf("%d of %d notes are indexed, behind: %v", n, notes, w.Behind())
	}
	if items := mustRecall(t, w, "animal7"); len(items) != 1 {
		t.Errorf("items: %+v", items)
	}
}

// What an append reads does not grow with the session: it looks at the end of the
// file and at the turn it adds to.
func TestAppendReadsOnlyTheEnd(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	s := testSession("s0")
	for n := range 3 {
		mustAppend(t, w, s, testTurn(n, "hello", "there")...)
	}
	// Overwritten in place with its size and time kept, the first row is garbage
	// that only a reader of the whole file would see.
	path := w.abs(dialogPath(s))
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteAt([]byte("garbage"), 0)
	f.Close()
	os.Chtimes(path, st.ModTime(), st.ModTime())
	if res := mustAppend(t, w, s, append(testTurn(0, "hello", "there"), testTurn(3, "hello", "there")...)...); res.Duplicate != 2 || res.Appended != 2 || res.Total != 8 {
		t.Errorf("append: %+v", res)
	}
}

func TestTornLine(t *testing.T) {
	for name, test := range map[string]struct {
		tail string
		kept bool
	}{
		"torn":             {`{"name":"user","content":[{"type":"te`, false},
		"torn in a string": {`{"role":"user","content":"The wom`, false},
		"whole":            {`{"role":"user","content":"The wombat.","id":"w"}`, true},
		"zeros":            {strings.Repeat("\x00", 4096), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openAt(t, t.TempDir(), noon)
			s := testSession("s0")
			mustAppend(t, w, s, testTurn(0, "hello", "there")...)
			f, err := os.OpenFile(w.abs(dialogPath(s)), os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			f.WriteString(test.tail)
			f.Close()
			if items := mustRecall(t, w, "wombat"); len(items) != 0 {
				t.Errorf("a line without an end was indexed: %+v", items)
			}
			res := mustAppend(t, w, s, testTurn(1, "hello", "again")...)
			want := 4
			if test.kept {
				want = 5
			}
			if res.Total != want {
				t.Errorf("total %d, want %d", res.Total, want)
			}
			text := readFile(t, w, dialogPath(s))
			if strings.Count(text, "\n") != want || strings.Contains(text, test.tail+"\n") != test.kept {
				t.Errorf("the file is now\n%s", text)
			}
			for line := range strings.Lines(text) {
				if _, ok := parseRow([]byte(line), w.loc); !ok {
					t.Errorf("bad row %s", line)
				}
			}
			if items := mustRecall(t, w, "wombat"); (len(items) == 1) != test.kept {
				t.Errorf("items: %+v", items)
			}
		})
	}
}

func TestLongDialogIsIndexedInBatches(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), noon)
	s := testSession("s0")
	var events []client.Event
	const turns = 40
	for n := range turns {
		events = append(events, testTurn(n, fmt.Sprint("question ", n), strings.Repeat(fmt.Sprintf("word%d ", n), 10_000))...)
	}
	mustAppend(t, w, s, events...)
	w.Close()
	os.RemoveAll(w.abs(privateDir))
	ctx := context.Background()
	done := true
	err := w.use(ctx, func(x *index) error {
		return x.write(ctx, func(tx *tx) error {
			room := int64(indexBatch)
			var err error
			done, err = w.indexFile(tx, dialogPath(s), &room)
			return err
		})
	})
	if err != nil || done {
		t.Fatalf("the first batch: done %v, %v", done, err)
	}
	// Someone ran out of time after the first batch; the next goes on.
	if items := mustRecall(t, w, fmt.Sprint("word", turns-1)); len(items) != 1 {
		t.Errorf("items: %+v", items)
	}
	if st := mustStats(t, w); st.Turns != turns {
		t.Errorf("stats: %+v", st)
	}
	wantFingerprint(t, w)
}
