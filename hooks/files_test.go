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
	linked := []string{"log/.3/w.jsonl", "log/1/link.jsonl", "log/1/x.jsonl", "log/4/link.jsonl", "log/4/x.jsonl"}
	for link, to := range map[string]string{"1/link.jsonl": "top.jsonl", "4": "log/1", "5": "top.jsonl", "1/gone.jsonl": "gone"} {
		if os.Symlink(filepath.Join(root, filepath.FromSlash(to)), filepath.Join(root, "log", filepath.FromSlash(link))) != nil {
			linked = []string{"log/.3/w.jsonl", "log/1/x.jsonl"} // this system has no links
		}
	}
	for pattern, want := range map[string][]string{
		"log/*/*.jsonl":                linked,
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

// What links lead to counts only where it may be.
func TestFollow(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "root")
	elsewhere := filepath.Join(filepath.Dir(root), "elsewhere")
	for _, dir := range []string{root, elsewhere} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "a.md"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"b.md": filepath.Join(root, "a.md"), "c.md": filepath.Join(elsewhere, "a.md"), "d": elsewhere} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Skip(err)
		}
	}
	f := Files{Root: func() string { return root }, Patterns: []string{"*.md", "d/a.md", "*/a.md"}, Follow: func(path string) bool { return InFolder(path, root) }}
	var got []string
	for l, err := range f.List(t.Context()) {
		got = append(got, filepath.Base(l.Path))
		if err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(got, []string{"a.md", "b.md"}) {
		t.Errorf("%q", got)
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
