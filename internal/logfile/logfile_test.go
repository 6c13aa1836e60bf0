package logfile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Many writers at once, over several rotations: no line is torn, and all files
// together stay below six times the size.
func TestBounded(t *testing.T) {
	t.Parallel()
	p := Path(filepath.Join(t.TempDir(), "log", "hook.jsonl"))
	line := append(bytes.Repeat([]byte("x"), 64<<10-1), '\n')
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				p.Write(line) // one that comes while nobody can rotate is dropped
			}
		})
	}
	wg.Wait()
	for n, path := range []string{string(p), p.predecessor(1), p.predecessor(2), p.predecessor(3)} {
		data, err := os.ReadFile(path)
		if (err != nil) != (n > kept) {
			t.Fatal(err)
		}
		if int64(len(data)) > 2*maxSize+8*int64(len(line)) {
			t.Errorf("%s has %d bytes", path, len(data))
		}
		for l := range bytes.Lines(data) {
			if !bytes.Equal(l, line) {
				t.Fatalf("a torn line of %d bytes in %s", len(l), path)
			}
		}
	}
}

// A log that cannot be rotated stays bounded all the same.
func TestStuck(t *testing.T) {
	t.Parallel()
	p := Path(filepath.Join(t.TempDir(), "hook.jsonl"))
	for n := 1; n <= kept; n++ {
		if err := os.MkdirAll(filepath.Join(p.predecessor(n), fmt.Sprint("not empty ", n)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	line := make([]byte, 1<<20)
	for range 20 {
		p.Write(line)
	}
	if st, err := os.Stat(string(p)); err != nil || st.Size() > 2*maxSize+int64(len(line)) {
		t.Errorf("%d bytes, %v", st.Size(), err)
	}
}
