package jsonl

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func lines(t *testing.T, text string, from int64) (got []string, next int64) {
	t.Helper()
	next, err := Each(strings.NewReader(text), from, func(line []byte, at int64) bool {
		if line == nil {
			got = append(got, fmt.Sprintf("%d: too long", at))
			return true
		}
		got = append(got, fmt.Sprintf("%d: %s", at, line))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return got, next
}

func TestEach(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", chunk+7)
	tooLong := strings.Repeat("y", 2*MaxLine)
	for name, c := range map[string]struct {
		text string
		from int64
		want []string
		next int64
	}{
		"nothing":                {"", 0, nil, 0},
		"lines":                  {"a\n\nbc\n", 0, []string{"0: a", "2: ", "3: bc"}, 6},
		"half a line":            {"a\nbc", 0, []string{"0: a"}, 2},
		"from":                   {"a\nbc\n", 2, []string{"2: bc"}, 5},
		"a long line":            {long + "\nb\n", 0, []string{"0: " + long, fmt.Sprintf("%d: b", len(long)+1)}, int64(len(long) + 3)},
		"too long":               {"a\n" + tooLong + "\nb\nc", 0, []string{"0: a", "2: too long", fmt.Sprintf("%d: b", len(tooLong)+3)}, int64(len(tooLong) + 5)},
		"too long and not whole": {"a\n" + tooLong, 0, []string{"0: a"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, next := lines(t, c.text, c.from)
			if !slices.Equal(got, c.want) || next != c.next {
				t.Errorf("got %.200q, next %d, want %.200q, next %d", got, next, c.want, c.next)
			}
		})
	}
}

func TestEachStops(t *testing.T) {
	t.Parallel()
	next, err := Each(strings.NewReader("a\nb\nc\n"), 0, func(line []byte, _ int64) bool { return string(line) != "b" })
	if err != nil || next != 2 {
		t.Errorf("next %d, %v, want 2: the line that ended it is read again", next, err)
	}
}

func TestCursor(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	write := func(text string) *os.File {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	cursor := Cursor(write("one\ntwo\n"), 8)
	for text, want := range map[string]int64{
		"one\ntwo\nthree\n": 8,
		"one\ntwo\n":        8,
		"one\n":             0, // cut
		"uno\ndos\ntres\n":  0, // replaced
	} {
		f := write(text)
		if got := Offset(f, int64(len(text)), cursor); got != want {
			t.Errorf("%q: offset %d, want %d", text, got, want)
		}
	}
	for _, bad := range []string{"", "x", "-1-0", "9999999999-0", "8", "8-zz"} {
		if got := Offset(bytes.NewReader([]byte("one\ntwo\n")), 8, bad); got != 0 {
			t.Errorf("cursor %q leads to %d", bad, got)
		}
	}
}
