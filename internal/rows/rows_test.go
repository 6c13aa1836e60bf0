package rows

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// host is a program that has a database open.
func host(t *testing.T, path, mode string) *sql.DB {
	t.Helper()
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: "_pragma=journal_mode(" + mode + ")"}
	db, err := sql.Open("sqlite", u.String())
	if err == nil {
		_, err = db.Exec("CREATE TABLE IF NOT EXISTS t (a); INSERT INTO t VALUES (1)")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func count(t *testing.T, db *DB) (n int) {
	t.Helper()
	if err := db.QueryRow("SELECT count(*) FROM t").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// files are the names and contents of what is beside a database.
func files(t *testing.T, path string) (out []string) {
	t.Helper()
	found, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f, "-shm") { // where readers say what they look at
			text = nil
		}
		out = append(out, filepath.Base(f)+"\x00"+string(text))
	}
	return out
}

// A database is read as its host sees it, and no file changes by that, whether the
// host runs, has ended or was killed.
func TestOpen(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(t *testing.T, path string) (rows int){
		"running": func(t *testing.T, path string) int {
			host(t, path, "wal")
			return 1
		},
		"ended": func(t *testing.T, path string) int {
			host(t, path, "wal").Close()
			return 1
		},
		"killed": func(t *testing.T, path string) int {
			db := host(t, path, "wal")
			saved := map[string][]byte{}
			for _, suffix := range []string{"", "-wal", "-shm"} {
				saved[suffix], _ = os.ReadFile(path + suffix)
			}
			db.Close()
			for suffix, text := range saved {
				if err := os.WriteFile(path+suffix, text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			return 1
		},
		"without a log": func(t *testing.T, path string) int {
			db := host(t, path, "delete")
			db.Exec("INSERT INTO t VALUES (2)")
			return 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "a b?.db")
			want := leave(t, path)
			before := files(t, path)
			db, err := Open(context.Background(), path)
			if err != nil {
				t.Fatal(err)
			}
			if alone := name == "ended"; alone != (db.lone != nil) {
				t.Errorf("read without locks: %v", !alone)
			}
			if got := count(t, db); got != want {
				t.Errorf("%d rows, want %d", got, want)
			}
			if _, err := db.Exec("INSERT INTO t VALUES (3)"); err == nil {
				t.Error("it can be written")
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
			if after := files(t, path); !slices.Equal(after, before) {
				t.Errorf("files were\n%q, are\n%q", before, after)
			}
		})
	}
}

// A host writes while its database is read, and what is read stays what it was.
func TestWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	running := host(t, path, "wal")
	db, err := Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := running.Exec("INSERT INTO t VALUES (2), (3)"); err != nil {
		t.Fatal(err)
	}
	found, err := db.Query("SELECT a FROM t")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for found.Next() {
		n++
		if _, err := running.Exec("INSERT INTO t VALUES (4)"); err != nil {
			t.Fatal(err)
		}
	}
	if err := found.Err(); err != nil || n != 3 {
		t.Errorf("%d rows, %v", n, err)
	}
	if got := count(t, db); got != 6 {
		t.Errorf("%d rows", got)
	}
}

// A host that begins to write into a database that nobody had open is noticed.
func TestWoken(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	host(t, path, "wal").Close()
	db, err := Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	host(t, path, "wal").Close()
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err == nil || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("got %v", err)
	}
}

func TestOpenFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "x.db")
	if _, err := Open(context.Background(), path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v was made", left)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("no database", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := Open(context.Background(), path)
	if err == nil {
		err = db.QueryRow("SELECT 1 FROM sqlite_master").Scan(new(int))
		db.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "not a database") {
		t.Errorf("another file: %v", err)
	}
}

func TestCursors(t *testing.T) {
	t.Parallel()
	failed := errors.New("x")
	before := func(at int64) (string, error) {
		if at == 13 {
			return "", failed
		}
		return map[int64]string{8: "seven", 100: "ninety"}[at], nil
	}
	for cursor, want := range map[string]int64{
		"": 0, "8": 0, "x-1": 0, "-8-0": 0, "8-0": 0, Cursor(8, "six"): 0, Cursor(99, "ninety"): 0,
		Cursor(8, "seven"): 8, Cursor(1, ""): 1, Cursor(100, "ninety"): 100,
	} {
		if got, err := At(cursor, before); got != want || err != nil {
			t.Errorf("%q leads to %d, %v, want %d", cursor, got, err, want)
		}
	}
	if _, err := At(Cursor(13, ""), before); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}
