package dsh

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
)

const session = "session-11111111-2222-4333-8444-555555555555"

func head(more string) string {
	return fmt.Sprintf(`{"type":"session","version":0,"id":%q,"createdAt":1795984672328,"cwd":"/home/dev/project","delegationDepth":0%s}`, session, more)
}

// said is an event of a log.
func said(kind string, seq int, data string, args ...any) string {
	return fmt.Sprintf(`{"type":%q,"seq":%d,"time":%d,"data":{%s}}`, kind, seq, 1795984672000+seq, fmt.Sprintf(data, args...))
}

func started(seq, turn int) string { return said("turn/start", seq, `"turn":%d`, turn) }

func ended(seq, turn int, reason string) string {
	return said("turn/end", seq, `"turn":%d,"reason":{"kind":%q}`, turn, reason)
}

func asked(seq int, source, text string) string {
	return said("user/message", seq, `"role":"user","content":[{"type":"text","text":%q}],"source":{"kind":%q}`, text, source)
}

func answered(seq, turn int, more, content string) string {
	return said("assistant/message", seq, `"turn":%d,"step":1%s,"message":{"role":"assistant","content":[%s]}`, turn, more, content)
}

func text(s string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, s) }

func readAt(path string) func(string) (hooks.LogPage, error) {
	return func(cursor string) (hooks.LogPage, error) { return logs{}.Read(hooks.Log{Path: path}, cursor) }
}

// files are the two forms of a log: compressed, a frame for each batch of lines,
// and as it is.
func files(t *testing.T, batches [][]string) (paths []string, parts map[string][][]byte) {
	t.Helper()
	dir := t.TempDir()
	paths = []string{filepath.Join(dir, "session.jsonl.zstd"), filepath.Join(dir, "session.jsonl")}
	parts = map[string][][]byte{}
	for _, b := range batches {
		lines := strings.Join(b, "\n") + "\n"
		parts[paths[0]] = append(parts[paths[0]], hosttest.Frame(lines))
		parts[paths[1]] = append(parts[paths[1]], []byte(lines))
	}
	return paths, parts
}

func TestLogs(t *testing.T) {
	t.Parallel()
	const want = "1! user: What colour do we deploy with? | assistant: We deploy with teal.\n2! user: And the second question? | assistant: That is the second answer."
	for _, name := range []string{"session.jsonl.zstd", "session.jsonl"} {
		turns, damaged := hosttest.Whole(t, readAt(filepath.Join("testdata", name)))
		if got := hosttest.Turns(turns); got != want || damaged != 0 {
			t.Errorf("%s: %d damaged, got\n%s\nwant\n%s", name, damaged, got, want)
		}
	}
}

func TestTurnsOfALog(t *testing.T) {
	t.Parallel()
	const tool = `{"type":"tool-call","id":"c1","name":"bash","arguments":"SECRET"}`
	turn := []string{started(1, 1), asked(2, "user", "q"), answered(3, 1, "", text("a")), ended(4, 1, "completed")}
	for name, c := range map[string]struct {
		head    string
		batches [][]string
		want    string
	}{
		"in one batch":            {head(""), [][]string{turn}, "1! user: q | assistant: a"},
		"line by line":            {head(""), [][]string{turn[:1], turn[1:2], turn[2:3], turn[3:]}, "1! user: q | assistant: a"},
		"the next in one batch":   {head(""), [][]string{turn[:3], {turn[3], started(5, 2), asked(6, "user", "r")}}, "1! user: q | assistant: a\n2 user: r"},
		"two parts of it in each": {head(""), [][]string{turn[:2], {turn[2], turn[3], started(5, 2), asked(6, "user", "r")}, {asked(7, "user", "s"), answered(8, 2, "", text("b")), ended(9, 2, "completed"), started(10, 3)}}, "1! user: q | assistant: a\n2! user: r | user: s | assistant: b"},
		"with a tool": {head(""), [][]string{{started(1, 1), asked(2, "user", "q"), answered(3, 1, "", text("let me see")+","+tool), said("tool/call", 4, `"arguments":"SECRET"`),
			said("tool/result", 5, `"message":{"source":{"kind":"tool"},"content":[{"type":"text","text":"SECRET"}]}`), answered(6, 1, "", `{"type":"reasoning","text":"SECRET"},`+text("a")+","+text("b")), ended(7, 1, "completed")}}, "1! user: q | assistant: a\n\nb"},
		"nothing said last":        {head(""), [][]string{{turn[0], turn[1], turn[2], answered(4, 1, "", tool), ended(5, 1, "max-tokens")}}, "1! user: q | assistant: a"},
		"an answer that was cut":   {head(""), [][]string{{turn[0], turn[1], answered(3, 1, `,"interrupted":true`, text("half")), ended(4, 1, "aborted")}}, "1! user: q"},
		"killed":                   {head(""), [][]string{{turn[0], turn[1], answered(3, 1, "", text("let me see")+","+tool)}, {ended(4, 1, "interrupted"), started(5, 2), asked(6, "user", "r")}}, "1! user: q\n2 user: r"},
		"said before a kill":       {head(""), [][]string{{turn[0], turn[1], turn[2]}, {started(5, 2), asked(6, "user", "r"), ended(7, 2, "aborted")}}, "1! user: q\n2! user: r"},
		"killed and not noticed":   {head(""), [][]string{{turn[0], turn[1]}, {started(5, 2), asked(6, "user", "r")}}, "1! user: q\n2 user: r"},
		"what plugins add":         {head(""), [][]string{{turn[0], asked(2, "plugin", "<reme-context>"), turn[1], turn[2], turn[3]}}, "1! user: q | assistant: a"},
		"a checkpoint":             {head(""), [][]string{{turn[0], turn[1], strings.Replace(asked(3, "user", "summary"), `"data"`, `"surfaceOp":{"op":"replace"},"data"`, 1), turn[3]}}, "1! user: q"},
		"a fork's seed":            {head(`,"parentSession":"s","seedLength":5`), [][]string{append(slices.Clone(turn), started(5, 2), asked(6, "user", "r"))}, "2 user: r"},
		"a fork's seed in a batch": {head(`,"parentSession":"s","seedLength":5`), [][]string{turn, {started(5, 2), asked(6, "user", "r"), ended(7, 2, "aborted")}}, "2! user: r"},
		"odd lines":                {head(""), [][]string{{turn[0], `{"type":"turn/start","seq":2,"data":{}}`, `{"type":"user/message","seq":"x"}`, `{"type":"user/message","seq":3,"data":[]}`, turn[1]}}, "1 user: q"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			paths, parts := files(t, append([][]string{{c.head}}, c.batches...))
			for _, path := range paths {
				if got := hosttest.Turns(hosttest.Growing(t, path, parts[path], readAt(path))); got != c.want {
					t.Errorf("%s\ngot\n%s\nwant\n%s", filepath.Base(path), got, c.want)
				}
				turns, _ := hosttest.Whole(t, readAt(path))
				if got := hosttest.Turns(turns); got != c.want {
					t.Errorf("%s at once\ngot\n%s\nwant\n%s", filepath.Base(path), got, c.want)
				}
			}
		})
	}
}

// A turn tells when and where it was, and what is damaged is passed over: a frame, a line, an end that was cut.
func TestDamagedLog(t *testing.T) {
	t.Parallel()
	paths, parts := files(t, [][]string{{head("")}, {started(1, 1), asked(2, "user", "q")}, {"SECRET"}, {answered(3, 1, "", text("a")), `{"type":"turn/en`, "{}"}, {ended(4, 1, "completed")}})
	frames := parts[paths[0]]
	frames[2][len(frames[2])-1] ^= 1
	frames[4] = frames[4][:len(frames[4])-1]
	hosttest.Write(t, paths[0], string(bytes.Join(frames, nil)))
	turns, damaged := hosttest.Whole(t, readAt(paths[0]))
	if got := hosttest.Turns(turns); got != "1 user: q" || damaged != 3 {
		t.Errorf("%d damaged\n%s", damaged, got)
	}
	if at := turns[0].Messages[0].At; !at.Equal(time.UnixMilli(1795984672002)) {
		t.Errorf("said at %v", at)
	}
}

func TestListLogs(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	frame := func(lines string) string { return string(hosttest.Frame(lines + "\n")) }
	for name, content := range map[string]string{
		"--p--/a/session.jsonl.zstd":     frame(head("")) + frame(started(1, 1)),
		"--p--/b/session.jsonl.zstd":     frame(head(`,"origin":"subagent"`)),
		"--p--/c/session.jsonl.zstd":     frame(head(""))[:20], // being written
		"--p--/d/session.jsonl.zstd":     frame(strings.Replace(head(""), `"version":0`, `"version":1`, 1)),
		"--p--/e/session.jsonl":          head("") + "\n",
		"--p--/f/session.jsonl.zstd.tmp": frame(head("")),
		"_no-cwd/g/session.jsonl.zstd":   frame(started(1, 1)),
	} {
		hosttest.Write(t, filepath.Join(home, "sessions", filepath.FromSlash(name)), content)
	}
	l := newLogs(func() string { return home })
	if got := l.Places(); !slices.Equal(got, []string{filepath.Join(home, "sessions")}) {
		t.Errorf("places %v", got)
	}
	var got []string
	for log, err := range hosttest.Logs(t, l) {
		name := filepath.Base(filepath.Dir(log.Path))
		var version *hooks.VersionError
		switch {
		case errors.As(err, &version):
			got = append(got, name+" "+version.Found)
			if _, err := l.Read(log, ""); !errors.As(err, &version) {
				t.Errorf("%s is read: %v", name, err)
			}
		case err != nil || log.Session != (client.Session{Host: Host, Scope: "default", ID: session}) || log.Cwd != "/home/dev/project" || log.Size == 0 || log.Modified.IsZero():
			t.Errorf("%+v, %v", log, err)
		default:
			got = append(got, name)
		}
	}
	if want := "a, d 1, g without a session's header, e"; strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func FuzzLog(f *testing.F) {
	f.Add([]byte(strings.Join([]string{started(1, 1), asked(2, "user", "q"), answered(3, 1, "", text("a")), ended(4, 1, "completed"), started(5, 2), asked(6, "user", "r")}, "\n")+"\n"), uint8(2))
	if sample, err := os.ReadFile("testdata/session.jsonl"); err == nil {
		f.Add(sample, uint8(7))
	}
	f.Fuzz(func(t *testing.T, content []byte, batch uint8) {
		turns := hosttest.Fold(t, &events{}, content, int(batch)+1)
		for i, turn := range turns {
			if !turn.Ended && i != len(turns)-1 {
				t.Errorf("turn %d of %d goes on: %+v", i, len(turns), turn)
			}
		}
	})
}
