package durable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestFilesArePrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(string, []byte) error{"synced": WriteFile, "replaced": ReplaceFile} {
		path := filepath.Join(dir, name)
		for _, content := range []string{"one", "", "two"} {
			if err := write(path, []byte(content)); err != nil {
				t.Fatal(err)
			}
			if data, err := os.ReadFile(path); err != nil || string(data) != content {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		}
		if st, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && st.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
	if st, err := os.Stat(dir); err != nil || runtime.GOOS != "windows" && st.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestFailedWritesLeaveNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(target, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(string, []byte) error{"synced": WriteFile, "replaced": ReplaceFile} {
		if err := write(target, []byte("x")); err == nil {
			t.Errorf("%s: a folder was replaced", name)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// What is in the place of a folder is no folder of ours, and keeps its mode: a home may
// be /dev/null, and the user root.
func TestNoFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", link); err != nil {
		t.Skip(err)
	}
	for path, want := range map[string]string{file: "not a directory", link: "a link to a folder that is not there"} {
		for _, below := range []string{path, filepath.Join(path, "a", "b")} {
			if err := MkdirAll(below); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", below, err)
			}
		}
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

func TestLocks(t *testing.T) {
	t.Parallel()
	s := Stripes(filepath.Join(t.TempDir(), "locks"))
	var busy atomic.Bool
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			unlock, err := s.Lock(context.Background(), "name")
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			if !busy.CompareAndSwap(false, true) {
				t.Error("two hold the lock")
			}
			runtime.Gosched()
			busy.Store(false)
		})
	}
	wg.Wait()

	unlock, err := s.Lock(t.Context(), "name")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.Lock(ctx, "name"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("taken twice: %v", err)
	}
	unlock()
	if unlock, err = s.Lock(t.Context(), "name"); err != nil {
		t.Error(err)
	}
	unlock()

	// What a dead process has left in a lock's file, and when, says nothing, whoever has
	// its number now.
	path := filepath.Join(string(s), "one.lock")
	if err := os.WriteFile(path, fmt.Append(nil, os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(365*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	unlock, ok, err := TryLock(path)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, ok, err := TryLock(path); ok || err != nil {
		t.Errorf("taken twice: %v, %v", ok, err)
	}
	unlock()
}

// What killed writers left goes; what live ones write stays, and so do the files of
// others.
func TestSweep(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "a", "b")
	if err := MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(dir, tempPrefix+"0123456789abcdef"+tempSuffix)
	theirs := filepath.Join(dir, "settings.json.tmp")
	for _, path := range []string{dead, theirs} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	live := filepath.Join(dir, tempPrefix+"fedcba9876543210"+tempSuffix)
	f, held, err := makeHeld(live)
	if err != nil {
		t.Fatal(err)
	}
	there := func() (names []string) {
		t.Helper()
		if err := SweepAll(root); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if got := there(); len(got) != 2 {
		t.Errorf("beside a live writer there are %v", got)
	}
	f.Close()
	held.Close()
	if got := there(); len(got) != 1 || got[0] != "settings.json.tmp" {
		t.Errorf("left are %v", got)
	}
	if err := SweepAll(filepath.Join(root, "none")); err != nil {
		t.Error(err)
	}
}

// Sweepers do not come in the way of writers.
func TestSweepBesideWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				if err := ReplaceFile(filepath.Join(dir, string(rune('a'+i))), []byte("x")); err != nil {
					t.Error(err)
				}
				if err := Sweep(dir); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 8 {
		t.Errorf("%d files, %v", len(entries), err)
	}
}
