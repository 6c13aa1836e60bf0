package install

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestLinksStay: the configuration is often a link into a repository of
// dotfiles.
func TestLinksStay(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a privilege there")
	}
	const src = "{ /* dotfiles */ }"
	for name, tc := range map[string]struct {
		links  [][2]string // name, target
		target string      // relative to the root
		exists bool
	}{
		"relative":          {[][2]string{{"home/settings.json", "../dots/s.json"}}, "dots/s.json", true},
		"absolute":          {[][2]string{{"home/settings.json", "ROOT/dots/s.json"}}, "dots/s.json", true},
		"chain":             {[][2]string{{"home/settings.json", "b"}, {"home/b", "../dots/c"}, {"dots/c", "s.json"}}, "dots/s.json", true},
		"folder":            {[][2]string{{"home", "deep/er/home"}}, "deep/er/home/settings.json", true},
		"up from a folder":  {[][2]string{{"home", "deep/er"}, {"deep/er/settings.json", "../s.json"}}, "deep/s.json", true},
		"dangling":          {[][2]string{{"home/settings.json", "../dots/s.json"}}, "dots/s.json", false},
		"dangling chain":    {[][2]string{{"home/settings.json", "b"}, {"home/b", "ROOT/dots/s.json"}}, "dots/s.json", false},
		"dangling, no dir":  {[][2]string{{"home/settings.json", "../gone/s.json"}}, "gone/s.json", false},
		"dangling, via dir": {[][2]string{{"home", "deep/er"}, {"deep/er/settings.json", "../s.json"}}, "deep/s.json", false},
	} {
		t.Run(name, func(t *testing.T) {
			env, root := testEnv(t)
			for _, dir := range []string{"dots", "deep/er/home"} {
				if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for _, l := range tc.links {
				from := filepath.Join(root, l[0])
				if err := os.MkdirAll(filepath.Dir(from), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(strings.ReplaceAll(l[1], "ROOT", root), from); err != nil {
					t.Fatal(err)
				}
			}
			want := []byte(nil)
			real := filepath.Join(root, tc.target)
			if tc.exists {
				want = []byte(src)
				write(t, real, want)
			}
			target := testTarget{file: filepath.Join(root, "home", "settings.json")}
			check := func(when string) {
				for _, l := range tc.links {
					if got, err := os.Readlink(filepath.Join(root, l[0])); err != nil || got != strings.ReplaceAll(l[1], "ROOT", root) {
						t.Errorf("%s: the link %s is %q, %v", when, l[0], got, err)
					}
				}
			}
			must(t)(Install(t.Context(), target, env, Options{}))
			check("install")
			if st, err := os.Lstat(real); err != nil || !st.Mode().IsRegular() {
				t.Errorf("the target was not written: %v", err)
			}
			must(t)(Uninstall(t.Context(), target, env, Options{}))
			check("uninstall")
			if got := get(t, real); !same(got, want) {
				t.Errorf("got %q", got)
			}
			if _, err := os.Stat(filepath.Join(root, "gone")); err == nil {
				t.Error("a folder is left")
			}
		})
	}
}

func TestModesStay(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such modes")
	}
	for _, mode := range []os.FileMode{0o600, 0o644, 0o666, 0o640, 0o755, 0o444} {
		env, dir := testEnv(t)
		target := testTarget{file: filepath.Join(dir, "settings.json")}
		write(t, target.file, []byte("{}"))
		if err := os.Chmod(target.file, mode); err != nil {
			t.Fatal(err)
		}
		if os.Getuid() == 0 {
			if err := os.Chown(target.file, 1234, 2345); err != nil {
				t.Fatal(err)
			}
		}
		before, err := os.Stat(target.file)
		if err != nil {
			t.Fatal(err)
		}
		must(t)(Install(t.Context(), target, env, Options{}))
		must(t)(Uninstall(t.Context(), target, env, Options{}))
		after, err := os.Stat(target.file)
		if err != nil {
			t.Fatal(err)
		}
		if after.Mode() != before.Mode() || !sameOwner(before, after) {
			t.Errorf("%v became %v, owner kept: %v", before.Mode(), after.Mode(), sameOwner(before, after))
		}
	}
}

func TestWhatIsNoFile(t *testing.T) {
	env, dir := testEnv(t)
	for name, make := range noFiles {
		target := testTarget{file: filepath.Join(dir, name, "settings.json")}
		if err := os.MkdirAll(filepath.Dir(target.file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := make(target.file); err != nil {
			t.Fatal(err)
		}
		before, err := os.Lstat(target.file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Install(t.Context(), target, env, Options{}); err == nil {
			t.Errorf("%s passed", name)
		}
		if after, err := os.Lstat(target.file); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s was touched: %v", name, err)
		}
	}
}

// TestLargeFiles: the files in which hosts keep their own state grow.
func TestLargeFiles(t *testing.T) {
	env, dir := testEnv(t)
	path := filepath.Join(dir, "state.json")
	target := testTarget{file: path}
	large := []byte("{\"a\": \"" + strings.Repeat("x", 4<<20) + "\"}\n")
	write(t, path, large)
	must(t)(Install(t.Context(), target, env, Options{}))
	must(t)(Uninstall(t.Context(), target, env, Options{}))
	if !bytes.Equal(get(t, path), large) {
		t.Error("it is not as it was")
	}
	for _, text := range []string{strings.Repeat("[", maxOpen), strings.Repeat("[", maxOpen+1), strings.Repeat("x", maxFile+1)} {
		write(t, path, []byte(text))
		if c, err := Install(t.Context(), target, env, Options{}); err == nil {
			t.Errorf("%d changes to a file of %d bytes", len(c), len(text))
		}
	}
}

func TestApplyIsAllOrNothing(t *testing.T) {
	_, dir := testEnv(t)
	a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
	write(t, a, []byte("old"))
	write(t, c, []byte("theirs"))
	err := Apply([]Change{
		{a, []byte("old"), []byte("new")},
		{b, nil, []byte("made")},
		{c, []byte("expected"), []byte("new")},
	})
	if !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), c) {
		t.Errorf("got %v", err)
	}
	if string(get(t, a)) != "old" || get(t, b) != nil || string(get(t, c)) != "theirs" {
		t.Error("something was left changed")
	}
	if err := Apply([]Change{{a, []byte("old"), nil}}); err != nil || get(t, a) != nil {
		t.Errorf("remove: %v", err)
	}
	if err := Apply([]Change{{b, []byte{}, []byte("x")}}); !errors.Is(err, ErrChanged) {
		t.Errorf("an absent file passed for an empty one: %v", err)
	}
}

func TestSelfCopy(t *testing.T) {
	_, dir := testEnv(t)
	src, dst := filepath.Join(dir, "new"), filepath.Join(dir, "x", "bin", "reme-hook")
	write(t, src, []byte("program 1"))
	check := func(want string) {
		t.Helper()
		if err := SelfCopy(src, dst); err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(dst)
		if err != nil || string(get(t, dst)) != want || runtime.GOOS != "windows" && st.Mode().Perm() != 0o700 {
			t.Fatalf("%q, %v, %v", get(t, dst), st.Mode(), err)
		}
	}
	check("program 1")
	before, err := os.Stat(dst)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dst, 0o755); err != nil {
		t.Fatal(err)
	}
	check("program 1")
	if after, err := os.Stat(dst); err != nil || !os.SameFile(before, after) {
		t.Error("the same program was copied again")
	}
	open, err := os.Open(dst) // a hook that runs keeps its file
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	write(t, src, []byte("program 2"))
	check("program 2")
	old := make([]byte, 16)
	if n, err := open.Read(old); err != nil || string(old[:n]) != "program 1" {
		t.Errorf("the running program changed to %q, %v", old[:n], err)
	}
	if err := SelfCopy(dst, dst); err != nil || string(get(t, dst)) != "program 2" {
		t.Errorf("onto itself: %v", err)
	}
	if err := SelfCopy(filepath.Join(dir, "none"), dst); err == nil || string(get(t, dst)) != "program 2" {
		t.Errorf("a missing source: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(dst)); err != nil || len(entries) != 1 {
		t.Errorf("%d files, %v", len(entries), err)
	}
}
