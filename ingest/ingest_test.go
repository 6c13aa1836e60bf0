package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
	"github.com/agentscope-ai/reme-hook/internal/frames"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// logDir is the log folder of a fake host: a file for each session, a line for
// each message: "<turn> <role> <text>". "<turn> cd <folder>" says where a turn is at
// work, "<turn> end" ends it. The lines of a file named .zstd are in frames,
// one named .old is of the same session as that without.
type logDir string

func (d logDir) Places() []string { return []string{string(d)} }

func (d logDir) List(context.Context) iter.Seq2[hooks.Log, error] {
	return func(yield func(hooks.Log, error) bool) {
		files, err := os.ReadDir(string(d))
		if err != nil {
			yield(hooks.Log{}, err)
			return
		}
		for _, f := range files {
			path := filepath.Join(string(d), f.Name())
			st, err := os.Stat(path)
			if err != nil {
				panic(err)
			}
			l := hooks.Log{Session: client.Session{Host: "h", Scope: "default", ID: strings.TrimSuffix(f.Name(), ".old")}, Cwd: "/src/" + f.Name(), Path: path, Size: st.Size(), Modified: st.ModTime()}
			if !yield(l, nil) {
				return
			}
		}
	}
}

func (d logDir) Read(l hooks.Log, cursor string) (hooks.LogPage, error) {
	f := hooks.Follower{New: func() hooks.Fold { return &fold{} }, Each: hooks.Lines}
	if strings.HasSuffix(l.Path, ".zstd") {
		f.Each = frames.Each
	}
	return f.Page(l.Path, cursor)
}

type fold struct {
	turns []hooks.LogTurn
	from  int64
}

func (f *fold) Turns() []hooks.LogTurn { return f.turns }

func (f *fold) Open() (int64, bool) {
	return f.from, len(f.turns) > 0 && !f.turns[len(f.turns)-1].Ended
}

func (f *fold) Take(line []byte, at int64) (bool, error) {
	words := strings.SplitN(string(line), " ", 3)
	switch {
	case words[0] == "version":
		return false, &hooks.VersionError{Found: words[1], Known: "1"}
	case len(words) == 2 && words[1] == "end":
		f.turns[len(f.turns)-1].Ended = true
		return true, nil
	case len(words) < 3:
		return false, nil
	}
	if n := len(f.turns); n == 0 || string(f.turns[n-1].ID) != words[0] {
		f.turns = append(f.turns, hooks.LogTurn{ID: client.TurnID(words[0])})
		f.from = at
	}
	var day int
	fmt.Sscanf(words[0], "t%d", &day)
	last := &f.turns[len(f.turns)-1]
	if words[1] == "cd" {
		last.Cwd = words[2]
		return true, nil
	}
	last.Messages = append(last.Messages, hooks.LogMessage{Role: client.Role(words[1]), Text: words[2], At: time.Date(2026, 1, day, 12, 0, 0, 0, time.Local)})
	return true, nil
}

// world is a host with logs, and a memory.
type world struct {
	*testing.T
	logs, memory string
	host         *hooks.Adapter
	leftAlone    func(client.Session, string) bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, logs: t.TempDir(), memory: filepath.Join(t.TempDir(), "memory")}
	w.host = fakeHost(w.logs)
	w.leftAlone = func(client.Session, string) bool { return false }
	return w
}

func fakeHost(logs string) *hooks.Adapter { return &hooks.Adapter{Host: "h", Logs: logDir(logs)} }

func (w *world) write(session string, lines ...string) {
	w.Helper()
	f, err := os.OpenFile(filepath.Join(w.logs, session), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		w.Fatal(err)
	}
	defer f.Close()
	text := strings.Join(lines, "\n") + "\n"
	if strings.HasSuffix(session, ".zstd") {
		text = string(hosttest.Frame(text))
	}
	if _, err := f.WriteString(text); err != nil {
		w.Fatal(err)
	}
}

func (w *world) open() (*Ingester, *workspace.Workspace) {
	w.Helper()
	ws, err := workspace.Open(w.memory, workspace.Options{})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { ws.Close() })
	return &Ingester{Memory: ws, LeftAlone: w.leftAlone, Dir: filepath.Join(w.memory, "metadata", "reme-hook", "ingest"), Now: time.Now}, ws
}

func (w *world) run(o Options) Report {
	w.Helper()
	in, ws := w.open()
	defer ws.Close()
	r, err := in.Run(w.Context(), w.host, o)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// rows are the messages that the memory holds, by session.
func (w *world) rows(sessions ...string) string {
	w.Helper()
	var b strings.Builder
	for _, s := range sessions {
		key := client.Session{Host: "h", Scope: "default", ID: s}.Key()
		text, err := os.ReadFile(filepath.Join(w.memory, "session", "dialog", "h", string(key)+".jsonl"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasSuffix(line, "\n") {
				break // it is being written
			}
			var row struct {
				ID      string
				Content []struct{ Text string }
			}
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				w.Fatal(err)
			}
			fmt.Fprintf(&b, "%s %s %s\n", s, row.ID, row.Content[0].Text)
		}
	}
	return b.String()
}

func (w *world) expect(want ...string) {
	w.Helper()
	if got := w.rows("a", "b"); got != strings.Join(want, "\n")+"\n" {
		w.Errorf("got\n%swant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestBackfill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "t1 user how", "t1 assistant so", "t1 end", "nonsense", "t2 user and")
	w.write("b", "t3 user where", "t3 assistant there", "t3 end")
	now := time.Now()
	in, _ := w.open()
	in.Now = func() time.Time { now = now.Add(checkpoint); return now }
	survey, err := in.Run(t.Context(), w.host, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(w.memory); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a survey made a memory: %v", err)
	}
	want := Missing{Sessions: 2, Turns: 3, Messages: 5}
	if survey.Missing != want || survey.Sessions != 2 || survey.Turns != 3 || survey.Messages != 5 || survey.Damaged != 1 || len(survey.Problems) != 0 || survey.Extractions != 3 {
		t.Errorf("survey: %+v", survey)
	}
	if got := w.run(Options{Write: true}); got.Missing != want {
		t.Errorf("backfill: %+v", got)
	}
	all := []string{"a t1:user how", "a t1:assistant so", "a t2:user and", "b t3:user where", "b t3:assistant there"}
	w.expect(all...)

	if got := w.run(Options{Write: true}); got.Unchanged != 2 || got.Turns != 0 {
		t.Errorf("again: %+v", got)
	}
	// A turn that had begun ends, and another one follows.
	w.write("a", "t2 assistant also", "t2 end", "t4 user next")
	if got := w.run(Options{Write: true}); got.Missing != (Missing{1, 2, 2}) || got.Unchanged != 1 {
		t.Errorf("more: %+v", got)
	}
	all = slices.Insert(all, 3, "a t2:assistant also", "a t4:user next")
	w.expect(all...)
	if got := w.run(Options{Whole: true}); got.Missing.Turns != 0 || got.Turns != 4 {
		t.Errorf("gaps: %+v", got)
	}
}

// onePage is a memory that names one event at a time.
type onePage struct{ client.Ledger }

func (m onePage) SessionEvents(ctx context.Context, req client.SessionEventsRequest) (client.SessionEventsResult, error) {
	req.Limit = 1
	return m.Ledger.SessionEvents(ctx, req)
}

// All that the memory holds is asked for, page by page, and what waits for delivery
// is on its way.
func TestHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "t1 user how", "t1 assistant so", "t1 end")
	w.run(Options{Write: true})
	w.write("a", "t2 user and", "t2 assistant also", "t2 end", "t3 user when", "t3 assistant now", "t3 end")
	in, _ := w.open()
	in.Memory = onePage{in.Memory}
	in.Waiting = func(s client.Session) ([]client.Event, error) {
		if s.ID != "a" {
			return nil, nil
		}
		return []client.Event{{ID: "t1:user", Content: "how"}, {ID: "t3:user"}, {ID: "t3:assistant"}}, nil
	}
	r, err := in.Run(t.Context(), w.host, Options{Whole: true})
	if err != nil || len(r.Gaps) != 1 || !slices.Equal(r.Gaps[0].Turns, []client.TurnID{"t2"}) {
		t.Errorf("%+v, %v", r.Gaps, err)
	}
}

func TestGaps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "t1 user how", "t1 assistant so", "t1 end", "t2 user and", "t2 assistant also", "t2 end")
	_, ws := w.open()
	_, err := ws.Append(t.Context(), client.AppendRequest{Session: client.Session{Host: "h", Scope: "default", ID: "a"}, Events: []client.Event{{ID: "t2:user", Role: client.User, Content: "and"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, fix := range []bool{false, true} {
		r := w.run(Options{Whole: true, Write: fix})
		if len(r.Gaps) != 1 || !slices.Equal(r.Gaps[0].Turns, []client.TurnID{"t1", "t2"}) || r.Gaps[0].Messages != 3 {
			t.Errorf("fix %v: %+v", fix, r.Gaps)
		}
	}
	w.expect("a t2:user and", "a t1:user how", "a t1:assistant so", "a t2:assistant also")
	if r := w.run(Options{Whole: true}); len(r.Gaps) != 0 {
		t.Errorf("after the fix: %+v", r.Gaps)
	}
}

func TestWhatIsNotBroughtIn(t *testing.T) {
	t.Parallel()
	day := func(d int) time.Time { return time.Date(2026, 1, d, 0, 0, 0, 0, time.Local) }
	for name, c := range map[string]struct {
		o         Options
		leftAlone string
		want      []string
	}{
		"all":       {Options{}, "", []string{"a t1:user x", "a t2:user y", "b t3:user z"}},
		"since":     {Options{Filter: Filter{Since: day(2)}}, "", []string{"a t2:user y", "b t3:user z"}},
		"until":     {Options{Filter: Filter{Until: day(2)}}, "", []string{"a t1:user x"}},
		"a project": {Options{Filter: Filter{Project: "/src/b"}}, "", []string{"b t3:user z"}},
		"above":     {Options{Filter: Filter{Project: "/src"}}, "", []string{"a t1:user x", "a t2:user y", "b t3:user z"}},
		"excluded":  {Options{}, "a", []string{"b t3:user z"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.leftAlone = func(s client.Session, cwd string) bool {
				return s.ID == c.leftAlone && cwd == "/src/"+s.ID || cwd == "/excluded"
			}
			w.write("a", "t1 user x", "t2 user y", "t4 user <private>p</private>", "t4 assistant q")
			w.write("b", "t3 user z", "t4 cd /excluded", "t4 user w")
			c.o.Write = true
			r := w.run(c.o)
			w.expect(c.want...)
			if r.LeftAlone != len(c.leftAlone) {
				t.Errorf("left alone: %d", r.LeftAlone)
			}
		})
	}
}

// A project is the same folder by whatever name it is given, and by whatever name the
// agent was told of it.
func TestProjectByAnotherName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	real, link := filepath.Join(t.TempDir(), "real"), filepath.Join(t.TempDir(), "link")
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	w.write("a", "t1 cd "+real, "t1 user x")
	w.write("b", "t3 cd "+link, "t3 user z")
	for _, project := range []string{real, link, link + string(filepath.Separator), filepath.Dir(real)} {
		if r := w.run(Options{Filter: Filter{Project: project}}); r.Turns != 2 {
			t.Errorf("%s: %d turns", project, r.Turns)
		}
	}
}

// What was narrowed down does not count as read.
func TestFilterLeavesTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "t1 user x", "t2 user y")
	w.run(Options{Write: true, Filter: Filter{Since: time.Date(2026, 1, 2, 0, 0, 0, 0, time.Local)}})
	w.expect("a t2:user y")
	w.run(Options{Write: true})
	w.expect("a t2:user y", "a t1:user x")
}

// Two logs of one session, as of an archive and of a copy, count once.
func TestTwoLogsOfASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "t1 user x", "t1 end", "t2 user y", "t2 end")
	w.write("a.old", "t1 user x", "t1 end")
	w.write("b", "t3 user z")
	for _, o := range []Options{{}, {Whole: true}, {Write: true, Later: true}} {
		if r := w.run(o); r.Missing != (Missing{2, 3, 3}) {
			t.Errorf("%+v: %+v", o, r)
		}
	}
	w.expect("a t1:user x", "a t2:user y", "b t3:user z")
}

// What is left for later is in the queue, and its notes are not written.
func TestLater(t *testing.T) {
	t.Parallel()
	for _, later := range []bool{false, true} {
		w := newWorld(t)
		w.write("a", "t1 user x", "t1 assistant y", "t1 end")
		w.run(Options{Write: true, Later: later})
		notes, err := filepath.Glob(filepath.Join(w.memory, "daily", "*", "*.md"))
		if err != nil || (len(notes) == 0) != later {
			t.Errorf("later %v: notes %v, %v", later, notes, err)
		}
		_, ws := w.open()
		if err := ws.Drain(t.Context(), 0); err != nil {
			t.Error(err)
		}
		if notes, _ = filepath.Glob(filepath.Join(w.memory, "daily", "*", "*.md")); len(notes) != 1 {
			t.Errorf("later %v: notes %v after the drain", later, notes)
		}
	}
}

func TestUnknownVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "version 9", "t1 user x")
	w.write("b", "t3 user z")
	r := w.run(Options{Write: true})
	w.expect("b t3:user z")
	if len(r.Problems) != 1 || !strings.HasSuffix(r.Problems[0].Path, "a") || !strings.Contains(r.Problems[0].Reason, `"9"`) {
		t.Errorf("problems: %+v", r.Problems)
	}
}

// A memory that fails ends the run, and nothing of it counts as read.
func TestMemoryFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "t1 user x")
	in, ws := w.open()
	in.Memory = failing{ws}
	if _, err := in.Run(t.Context(), w.host, Options{Write: true}); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
	w.run(Options{Write: true})
	w.expect("a t1:user x")
}

var errFull = errors.New("full")

type failing struct{ *workspace.Workspace }

func (failing) Append(context.Context, client.AppendRequest) (client.AppendResult, error) {
	return client.AppendResult{}, errFull
}

func TestDamagedCursors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("a", "t1 user x")
	w.run(Options{Write: true})
	in, _ := w.open()
	for _, bad := range []string{"", "{", `{"version":9,"logs":{}}`, `{"version":1}`} {
		if err := os.WriteFile(in.file("h"), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := w.run(Options{Write: true}); r.Turns != 1 || r.Missing.Turns != 0 {
			t.Errorf("%q: %+v", bad, r)
		}
	}
	w.expect("a t1:user x")
}

// FuzzCursors: whatever is in a file of cursors, a backfill can go on.
func FuzzCursors(f *testing.F) {
	f.Add([]byte(`{"version":1,"logs":{"p":{"cursor":"12","size":3,"modified":"2026-11-30T09:00:00Z"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := &Ingester{Dir: t.TempDir(), Now: time.Now}
		if err := os.WriteFile(in.file("codex"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		c := in.loadCursors("codex")
		log := hooks.Log{Path: "p", Size: 3}
		if err := c.put(key(log), log, "next", false); err != nil {
			t.Fatal(err)
		}
		if err := c.save(); err != nil {
			t.Fatal(err)
		}
		if c := in.loadCursors("codex"); c.Logs[key(log)].Cursor != "next" || !c.unchanged(key(log), log) {
			t.Errorf("read back %+v", c.Logs)
		}
	})
}
