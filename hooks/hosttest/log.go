package hosttest

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

// Pieces writes a log line by line, each in two halves, and reads on after each.
// What is told more than once counts as it was told last.
func Pieces(t *testing.T, path string, text []byte, read func(cursor string) (hooks.LogPage, error)) (turns []hooks.LogTurn) {
	t.Helper()
	write(t, path, "", 0o600)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cursor := ""
	for line := range bytes.Lines(text) {
		for _, piece := range [][]byte{line[:len(line)/2], line[len(line)/2:]} {
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
