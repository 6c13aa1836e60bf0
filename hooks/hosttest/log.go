package hosttest

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/agentscope-ai/reme-hook/hooks"
)

// Turns writes turns as lines: "id! user: text | assistant: text", without the !
// while they go on, with a + while a subagent is at work for them.
func Turns(turns []hooks.LogTurn) string {
	var out []string
	for _, t := range turns {
		line := string(t.ID)
		if t.Ended {
			line += "!"
		}
		if t.Delegated {
			line += "+"
		}
		sep := " "
		for _, m := range t.Messages {
			line += sep + string(m.Role) + ": " + m.Text
			sep = " | "
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// Whole reads a log page by page, each from a new start.
func Whole(t *testing.T, read func(cursor string) (hooks.LogPage, error)) (turns []hooks.LogTurn, damaged int) {
	t.Helper()
	for cursor := ""; ; {
		page, err := read(cursor)
		if err != nil {
			t.Fatal(err)
		}
		turns, damaged = Merge(turns, page.Turns), damaged+page.Damaged
		if cursor = page.Next; !page.More {
			return turns, damaged
		}
	}
}

// Logs are the logs of users' sessions, complete.
func Logs(t *testing.T, logs hooks.Logs) iter.Seq2[hooks.Log, error] {
	return func(yield func(hooks.Log, error) bool) {
		for l, err := range logs.List(t.Context()) {
			ok := true
			if err == nil {
				ok, err = l.Complete()
			}
			if (ok || err != nil) && !yield(l, err) {
				return
			}
		}
	}
}

// Pieces writes a log line by line, each in two halves, and reads on after each;
// see [Growing].
func Pieces(t *testing.T, path string, text []byte, read func(cursor string) (hooks.LogPage, error)) (turns []hooks.LogTurn) {
	t.Helper()
	return Growing(t, path, slices.Collect(bytes.Lines(text)), read)
}

// Reads checks that a sample of a log is read as some turns, see [Turns]: at once,
// in pieces, and whatever the order of the keys in its lines.
func Reads(t *testing.T, sample, want string, read func(path string) func(cursor string) (hooks.LogPage, error)) {
	t.Helper()
	text := Get(t, sample)
	turns, damaged := Whole(t, read(sample))
	if got := Turns(turns); got != want || damaged != 0 {
		t.Errorf("%d damaged, got\n%s\nwant\n%s", damaged, got, want)
	}
	path := filepath.Join(t.TempDir(), filepath.Base(sample))
	if got := Turns(Pieces(t, path, []byte(text), read(path))); got != want {
		t.Errorf("in pieces:\n%s\nwant\n%s", got, want)
	}
	for seed := range uint64(5) {
		if err := os.WriteFile(path, shuffled(t, text, rand.New(rand.NewPCG(seed, 0))), 0o600); err != nil {
			t.Fatal(err)
		}
		turns, damaged := Whole(t, read(path))
		if got := Turns(turns); got != want || damaged != 0 {
			t.Errorf("in another order, seed %d: %d damaged, got\n%s\nwant\n%s", seed, damaged, got, want)
		}
	}
}

// shuffled puts the members of all objects in lines of JSON into another order.
func shuffled(t *testing.T, text string, random *rand.Rand) []byte {
	t.Helper()
	var out bytes.Buffer
	write := func(v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(raw)
	}
	var value func(v any)
	value = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			keys := slices.Sorted(maps.Keys(v))
			random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			for i, key := range keys {
				out.WriteByte("{,"[min(i, 1)])
				write(key)
				out.WriteByte(':')
				value(v[key])
			}
			out.WriteString(map[bool]string{true: "{}", false: "}"}[len(keys) == 0])
		case []any:
			for i, e := range v {
				out.WriteByte("[,"[min(i, 1)])
				value(e)
			}
			out.WriteString(map[bool]string{true: "[]", false: "]"}[len(v) == 0])
		default:
			write(v)
		}
	}
	for line := range strings.Lines(text) {
		var v any
		dec := json.NewDecoder(strings.NewReader(line))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		value(v)
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// Fold gives a fold the lines of a text, some of which share an offset, and checks
// what it promises whatever they are.
func Fold(t *testing.T, f hooks.Fold, text []byte, shared int) []hooks.LogTurn {
	t.Helper()
	n, at := 0, int64(0)
	for line := range bytes.Lines(text) {
		if n%shared == 0 {
			at = int64(n)
		}
		if _, err := f.Take(bytes.TrimSuffix(line, []byte("\n")), at); err != nil {
			t.Fatal(err)
		}
		if begin, open := f.Open(); open && (begin < 0 || begin > at) {
			t.Errorf("at %d, a turn begins at %d", at, begin)
		}
		n++
	}
	turns := f.Turns()
	for _, turn := range turns {
		if turn.ID == "" || len(turn.Messages) == 0 {
			t.Errorf("a turn without a name or words: %+v", turn)
		}
	}
	return turns
}

// Growing writes a log part by part, each in two halves, and reads on after each.
// What is told more than once counts as it was told last.
func Growing(t *testing.T, path string, parts [][]byte, read func(cursor string) (hooks.LogPage, error)) (turns []hooks.LogTurn) {
	t.Helper()
	write(t, path, "", 0o600)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cursor := ""
	for _, part := range parts {
		for _, piece := range [][]byte{part[:len(part)/2], part[len(part)/2:]} {
			if _, err := f.Write(piece); err != nil {
				t.Fatal(err)
			}
			page, err := read(cursor)
			if err != nil {
				t.Fatal(err)
			}
			turns, cursor = Merge(turns, page.Turns), page.Next
		}
	}
	return turns
}

// Frame compresses text as one zstd frame.
func Frame(text string) []byte {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	return w.EncodeAll([]byte(text), nil)
}

// Refused checks that nothing of a database is read, and that the reason says want.
func Refused(t *testing.T, name string, logs hooks.Logs, path, want string) {
	t.Helper()
	for log, err := range logs.List(context.Background()) {
		if err == nil || !strings.Contains(err.Error(), want) || log.Path != path {
			t.Errorf("%s: %+v, %v", name, log, err)
		}
	}
	if _, err := logs.Read(hooks.Log{Path: path}, ""); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v", name, err)
	}
}

// Damaged cuts a database at each of its pages, and spoils each. That is noticed
// somewhere, and nothing worse comes of it.
func Damaged(t *testing.T, logs hooks.Logs, path string) {
	t.Helper()
	text := Get(t, path)
	failed := 0
	for at := 0; at < len(text); at += 4096 {
		for _, damaged := range []string{text[:at], text[:at] + strings.Repeat("\xff", 4096) + text[min(len(text), at+4096):]} {
			if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
				t.Fatal(err)
			}
			for log, err := range logs.List(context.Background()) {
				if err == nil {
					_, err = logs.Read(log, "")
				}
				if err != nil {
					failed++
				}
			}
		}
	}
	if failed == 0 {
		t.Error("no damage was noticed")
	}
}

// Merge adds turns to those that were told before. What is told more than once
// counts as it was told last.
func Merge(turns, more []hooks.LogTurn) []hooks.LogTurn {
	for _, t := range more {
		if i := slices.IndexFunc(turns, func(o hooks.LogTurn) bool { return o.ID == t.ID }); i >= 0 {
			turns[i] = t
		} else {
			turns = append(turns, t)
		}
	}
	return turns
}

// Database makes a database, or changes it, by SQL.
func Database(t *testing.T, path string, statements ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
}
