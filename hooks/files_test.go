package hooks

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "a [folder]*")
	for _, name := range []string{"log/1/x.jsonl", "log/1/x.txt", "log/2/y.jsonl/z", "log/.3/w.jsonl", "top.jsonl", "deep/a/memories/b/c/n.md", "deep/memories/m.md", "deep/memories/.hidden/h.md", "deep/memories/.h.md", "deep/other/o.md"} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Symlink(filepath.Join(root, "top.jsonl"), filepath.Join(root, "log", "1", "link.jsonl")) // leads elsewhere
	for pattern, want := range map[string][]string{
		"log/*/*.jsonl":                {"log/.3/w.jsonl", "log/1/x.jsonl"},
		"log/1/x.jsonl":                {"log/1/x.jsonl"},
		"log/*/z":                      nil,
		"top.jsonl":                    {"top.jsonl"},
		"gone/*/x":                     nil,
		"gone":                         nil,
		"deep/**/memories/**/[^.]*.md": {"deep/a/memories/b/c/n.md", "deep/memories/m.md"},
	} {
		f := Files{Root: func() string { return root }, Patterns: []string{pattern}, Describe: func(l *Log) (bool, error) { l.Cwd = "c"; return true, nil }}
		var got []string
		for l, err := range f.List(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if ok, err := l.Complete(); !ok || err != nil || l.Cwd != "c" || l.Size == 0 || l.Modified.IsZero() {
				t.Errorf("%+v, %v", l, err)
			}
			rel, _ := filepath.Rel(root, l.Path)
			got = append(got, filepath.ToSlash(rel))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}

func TestFilesEnd(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := Files{Root: func() string { return root }, Patterns: []string{"*", "*"}}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	for range f.List(ctx) {
		n++
		break
	}
	cancel()
	var last error
	for _, err := range f.List(ctx) {
		last = err
		n++
	}
	if n < 2 || last != context.Canceled {
		t.Errorf("%d files, %v", n, last)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	f := Files{Root: func() string { return "h" }, Patterns: []string{"sessions/*/*/x.jsonl", "old/rollout-*.jsonl", "one"}}
	want := []string{filepath.Join("h", "sessions"), filepath.Join("h", "old"), "h"}
	if got := f.Places(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
