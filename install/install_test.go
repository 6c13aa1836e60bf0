package install

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

// testTarget is a host with one JSON file, and one that its approval is written
// to.
type testTarget struct{ file, approvals string }

func (testTarget) Host() client.Host                        { return testHost.Host }
func (testTarget) Title() string                            { return "Test" }
func (testTarget) Find(context.Context, Env, Options) Found { return Found{} }
func (t testTarget) Files(env Env, o Options) ([]File, error) {
	f, err := testHost.File(t.file, env.CommandPath(o))
	if err != nil || t.approvals == "" {
		return []File{f}, err
	}
	return []File{f, {
		Path:   t.approvals,
		Upsert: func(old []byte) ([]byte, error) { return old, nil },
		Remove: func(now, _ []byte, _ bool) ([]byte, error) {
			return bytes.ReplaceAll(now, []byte("approved\n"), nil), nil
		},
	}}, nil
}
func (t testTarget) Check(env Env, o Options) Report {
	return testHost.Report(env.CommandPath(o), t.file)
}
func (t testTarget) Trust(context.Context, Env, Options) error {
	b, err := read(t.approvals)
	if err != nil {
		return err
	}
	return os.WriteFile(t.approvals, append(b, "approved\n"...), 0o600)
}
func (testTarget) Trusted(context.Context, Env, Options) (TrustState, error) {
	return TrustState{}, nil
}

func testEnv(t *testing.T) (Env, string) {
	dir := t.TempDir()
	return Env{Home: dir, IntegrationsDir: filepath.Join(dir, "integrations"), LookPath: func(string) (string, error) { return "", errors.ErrUnsupported }}, dir
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o640); err != nil {
		t.Fatal(err)
	}
}

// content of a file, nil if it is not there.
func get(t *testing.T, path string) []byte {
	t.Helper()
	b, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func must(t *testing.T) func([]Change, error) []Change {
	return func(c []Change, err error) []Change {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

func TestUninstallGivesBackEveryByte(t *testing.T) {
	for name, text := range nasty {
		for variant, src := range variants(text) {
			if variant == ", BOM" || variant == ", no newline" {
				continue // the functions on bytes are tried with them; files cost syncs
			}
			t.Run(name+variant, func(t *testing.T) {
				t.Parallel()
				env, dir := testEnv(t)
				target := testTarget{file: filepath.Join(dir, "settings.json")}
				write(t, target.file, src)
				if c := must(t)(Install(t.Context(), target, env, Options{})); len(c) != 1 {
					t.Fatalf("%d changes", len(c))
				}
				installed := get(t, target.file)
				receipt := get(t, receiptPath(env, target.Host()))
				if c := must(t)(Install(t.Context(), target, env, Options{})); len(c) != 0 {
					t.Fatalf("the second install changes %d files", len(c))
				}
				if !bytes.Equal(get(t, target.file), installed) || !bytes.Equal(get(t, receiptPath(env, target.Host())), receipt) {
					t.Fatal("the second install wrote something")
				}
				if r := target.Check(env, Options{}); len(r.Missing) > 0 || len(r.Problems) > 0 || len(r.Hooks) != 3 || !r.Hooks[0].Current {
					t.Errorf("report %+v", r)
				}
				// An upgrade to another path in between must not lose the original.
				must(t)(Install(t.Context(), target, env, Options{Command: "/elsewhere/reme-hook"}))
				must(t)(Uninstall(t.Context(), target, env, Options{}))
				if got := get(t, target.file); !same(got, src) {
					t.Errorf("want %q\ngot  %q", src, got)
				}
				if st, err := os.Stat(target.file); err != nil || runtime.GOOS != "windows" && st.Mode().Perm() != 0o640 {
					t.Errorf("mode %v, %v", st.Mode(), err)
				}
				if _, err := os.Stat(receiptPath(env, target.Host())); err == nil {
					t.Error("the receipt is still there")
				}
				if c := must(t)(Uninstall(t.Context(), target, env, Options{})); len(c) != 0 {
					t.Error("a second uninstall changes something")
				}
			})
		}
	}
}

func TestUninstallRemovesWhatInstallMade(t *testing.T) {
	env, dir := testEnv(t)
	target := testTarget{file: filepath.Join(dir, "a", "b", "settings.json")}
	must(t)(Install(t.Context(), target, env, Options{}))
	must(t)(Uninstall(t.Context(), target, env, Options{}))
	if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
		t.Error("folders are left")
	}

	must(t)(Install(t.Context(), target, env, Options{}))
	write(t, filepath.Join(dir, "a", "theirs"), nil)
	must(t)(Uninstall(t.Context(), target, env, Options{}))
	if _, err := os.Stat(filepath.Join(dir, "a", "theirs")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a", "b")); err == nil {
		t.Error("an empty folder is left")
	}
}

// TestEditsInBetween: what users and hosts do to the file after an install.
func TestEditsInBetween(t *testing.T) {
	const src = "{\n  \"model\": \"opus\" // mine\n}\n"
	edit := func(old, now string) func(*testing.T, []byte) []byte {
		return func(t *testing.T, b []byte) []byte {
			if !bytes.Contains(b, []byte(old)) {
				t.Fatalf("%q is not in\n%s", old, b)
			}
			return bytes.ReplaceAll(b, []byte(old), []byte(now))
		}
	}
	for name, tc := range map[string]struct {
		src  string
		edit func(*testing.T, []byte) []byte
		want string
	}{
		"another key":           {src, edit(`"opus"`, `"sonnet"`), "{\n  \"model\": \"sonnet\" // mine\n}\n"},
		"our timeout":           {src, edit(`"timeout": 5`, `"timeout": 50`), src},
		"our command":           {src, edit("stop; } 2>/dev/null || true", "stop"), src},
		"own key in our group":  {src, edit(`"matcher": "Read|Edit",`, `"matcher": "Read|Edit", "note": 1,`), src},
		"another hook in event": {src, edit("\"Stop\": [\n", "\"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]},\n"), "{\n  \"model\": \"opus\", // mine\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}\n    ]\n  }\n}\n"},
		"reformatted":           {src, func(_ *testing.T, b []byte) []byte { return bytes.ReplaceAll(b, []byte("  "), []byte("\t")) }, "{\n\t\"model\": \"opus\" // mine\n}\n"},
		"everything gone":       {src, func(*testing.T, []byte) []byte { return []byte("{}") }, "{}"},
		"ours gone":             {src, func(*testing.T, []byte) []byte { return []byte(src) }, src},
		"ours commented out": {src, func(t *testing.T, b []byte) []byte {
			before, rest, _ := strings.Cut(string(b), "    \"Stop\": [\n")
			ours, after, ok := strings.Cut(rest, "    ],\n")
			if !ok {
				t.Fatalf("no other event behind it:\n%s", b)
			}
			return []byte(before + "    \"Stop\": [\n" + strings.ReplaceAll("//"+strings.TrimSuffix(ours, "\n"), "\n", "\n//") + "\n    ],\n" + after)
		}, "{\n  \"model\": \"opus\", // mine\n  \"hooks\": {\n    \"Stop\": [\n//      {\n//        \"hooks\": [\n//          {\n//            \"type\": \"command\",\n//            \"command\": \"{ [ -x 'PROGRAM' ] && 'PROGRAM' claude-code stop; } 2>/dev/null || true\",\n//            \"timeout\": 5\n//          }\n//        ]\n//      }\n    ]\n  }\n}\n"},
		"comment in our event": {src, edit("\"Stop\": [\n", "\"Stop\": [ // keep\n"), "{\n  \"model\": \"opus\", // mine\n  \"hooks\": {\n    \"Stop\": [ // keep\n    ]\n  }\n}\n"},
		"had empty containers": {"{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n", edit("\"timeout\": 5", "\"timeout\": 9"), "{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			env, dir := testEnv(t)
			target := testTarget{file: filepath.Join(dir, "settings.json")}
			write(t, target.file, []byte(tc.src))
			must(t)(Install(t.Context(), target, env, Options{}))
			write(t, target.file, tc.edit(t, get(t, target.file)))
			before := get(t, target.file)

			must(t)(Uninstall(t.Context(), target, env, Options{}))
			left := func() string {
				return strings.ReplaceAll(string(get(t, target.file)), env.BinaryPath(), "PROGRAM")
			}
			if got := left(); got != tc.want {
				t.Errorf("want %s\ngot %s", tc.want, got)
			}

			// The same with a second install after the edit: what it gives back must have
			// the edit too.
			write(t, target.file, before)
			must(t)(Install(t.Context(), target, env, Options{Command: "/elsewhere/reme-hook"}))
			must(t)(Uninstall(t.Context(), target, env, Options{}))
			if got := left(); name != "had empty containers" && got != tc.want {
				t.Errorf("after a second install: want %s\ngot %s", tc.want, got)
			}
		})
	}
}

func TestLostReceipt(t *testing.T) {
	env, dir := testEnv(t)
	target := testTarget{file: filepath.Join(dir, "settings.json")}
	const src = "{\n  \"a\": 1\n}\n"
	for _, damage := range []func() error{
		func() error { return os.Remove(receiptPath(env, target.Host())) },
		func() error { return os.WriteFile(receiptPath(env, target.Host()), []byte("{\"vers"), 0o600) },
	} {
		write(t, target.file, []byte(src))
		must(t)(Install(t.Context(), target, env, Options{}))
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		must(t)(Uninstall(t.Context(), target, env, Options{}))
		if got := string(get(t, target.file)); got != src {
			t.Errorf("got %s", got)
		}
	}

	if err := os.WriteFile(receiptPath(env, target.Host()), []byte(`{"version": 99}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(t.Context(), target, env, Options{}); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("a newer receipt: %v", err)
	}
}

func TestFileGoneAtUninstall(t *testing.T) {
	env, dir := testEnv(t)
	target := testTarget{file: filepath.Join(dir, "settings.json")}
	write(t, target.file, []byte("{}"))
	must(t)(Install(t.Context(), target, env, Options{}))
	if err := os.Remove(target.file); err != nil {
		t.Fatal(err)
	}
	if c := must(t)(Uninstall(t.Context(), target, env, Options{})); len(c) != 0 || get(t, target.file) != nil {
		t.Error("a file that the user removed came back")
	}
}

func TestTrustIsUndone(t *testing.T) {
	for _, src := range [][]byte{nil, []byte("# mine\r\nx = 1")} {
		env, dir := testEnv(t)
		target := testTarget{filepath.Join(dir, "settings.json"), filepath.Join(dir, "config.toml")}
		if src != nil {
			write(t, target.approvals, src)
		}
		if c := must(t)(Install(t.Context(), target, env, Options{Trust: true})); len(c) != 2 {
			t.Errorf("%d changes", len(c))
		}
		must(t)(Uninstall(t.Context(), target, env, Options{}))
		if got := get(t, target.approvals); !same(got, src) {
			t.Errorf("got %q, want %q", got, src)
		}

		must(t)(Install(t.Context(), target, env, Options{Trust: true}))
		write(t, target.approvals, append(get(t, target.approvals), "theirs\n"...))
		must(t)(Uninstall(t.Context(), target, env, Options{}))
		if got, want := string(get(t, target.approvals)), string(src)+"theirs\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRefusedFilesAreUntouched(t *testing.T) {
	for name, src := range refused {
		env, dir := testEnv(t)
		target := testTarget{file: filepath.Join(dir, "settings.json")}
		write(t, target.file, []byte(src))
		for what, do := range map[string]func(context.Context, Target, Env, Options) ([]Change, error){"install": Install, "uninstall": Uninstall} {
			_, err := do(t.Context(), target, env, Options{})
			if err == nil || !strings.Contains(err.Error(), target.file) || !strings.Contains(err.Error(), "nothing was changed") {
				t.Errorf("%s: %s: %v", name, what, err)
			}
			if string(get(t, target.file)) != src {
				t.Errorf("%s: %s changed the file", name, what)
			}
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
			t.Errorf("%s: %d entries, %v", name, len(entries), err)
		}
	}
}

// TestAdvice: what the file system refuses is told with what to do about it.
func TestAdvice(t *testing.T) {
	t.Parallel()
	for advice, place := range map[string]func(dir string) error{
		"put a folder in the place": func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"mend the link":             func(dir string) error { return os.Symlink(dir, dir) },
		"is a link to a folder":     func(dir string) error { return os.Symlink("nowhere", dir) },
	} {
		env, dir := testEnv(t)
		folder := filepath.Join(dir, "folder")
		if err := place(folder); err != nil {
			t.Skip(err)
		}
		_, err := Install(t.Context(), testTarget{file: filepath.Join(folder, "settings.json")}, env, Options{})
		if err == nil || !strings.Contains(err.Error(), advice) || !strings.Contains(err.Error(), folder) {
			t.Errorf("%s: %v", advice, err)
		}
	}
	if err := advised(&os.PathError{Op: "open", Path: "/x", Err: os.ErrPermission}); !errors.Is(err, os.ErrPermission) || !strings.HasSuffix(err.Error(), "let your user read and write it and its folder, and run the command again") {
		t.Error(err)
	}
}

// TestInstallsAtOnce: many installs and uninstalls race; the last one standing
// leaves a file that is either the original or whole.
func TestInstallsAtOnce(t *testing.T) {
	env, dir := testEnv(t)
	target := testTarget{file: filepath.Join(dir, "settings.json")}
	const src = "{\"a\": 1}"
	write(t, target.file, []byte(src))
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			do := Install
			if i%3 == 2 {
				do = Uninstall
			}
			if _, err := do(t.Context(), target, env, Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	must(t)(Install(t.Context(), target, env, Options{}))
	if placed, err := testHost.Placed(target.file); err != nil || len(placed) != 3 {
		t.Errorf("%d hooks, %v", len(placed), err)
	}
	must(t)(Uninstall(t.Context(), target, env, Options{}))
	if got := string(get(t, target.file)); got != src {
		t.Errorf("got %s", got)
	}
}

func TestPlansChangeNothing(t *testing.T) {
	env, dir := testEnv(t)
	target := testTarget{file: filepath.Join(dir, "settings.json")}
	write(t, target.file, []byte("{\n  \"a\": 1\n}"))
	changes := must(t)(PlanInstall(target, env, Options{}))
	var out strings.Builder
	if err := Diff(&out, changes); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--- " + target.file, "+++ " + target.file, "-  \"a\": 1\n", "+  \"a\": 1,\n", "\\ No newline at end of file"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	must(t)(PlanUninstall(target, env, Options{}))
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

func TestProgramUnderAnotherName(t *testing.T) {
	env, dir := testEnv(t)
	target := testTarget{file: filepath.Join(dir, "settings.json")}
	if _, err := Install(t.Context(), target, env, Options{Command: "/tmp/___go_build"}); err == nil || get(t, target.file) != nil {
		t.Errorf("hooks that cannot be found again were installed: %v", err)
	}
}

func TestReportDoubled(t *testing.T) {
	env, dir := testEnv(t)
	user, project := testTarget{file: filepath.Join(dir, "user.json")}, testTarget{file: filepath.Join(dir, "project.json")}
	must(t)(Install(t.Context(), user, env, Options{}))
	must(t)(Install(t.Context(), project, env, Options{}))
	if r := testHost.Report(env.BinaryPath(), user.file, project.file); len(r.Problems) != 3 {
		t.Errorf("%+v", r.Problems)
	}
	once := testHost
	once.SameRunsOnce = true
	if r := once.Report(env.BinaryPath(), user.file, project.file); len(r.Problems) != 0 {
		t.Errorf("%+v", r.Problems)
	}
	r := once.Report("/new/reme-hook", user.file)
	if slices.ContainsFunc(r.Hooks, func(c Configured) bool { return c.Current }) {
		t.Error("hooks that call another program count as current")
	}
	if r := once.Report(env.BinaryPath(), filepath.Join(dir, "none")); len(r.Missing) != 3 {
		t.Errorf("%+v", r)
	}
	if got := r.Hooks[1]; got.Event != "stop" || got.Timeout != 5*time.Second || got.Shell != PosixShell {
		t.Errorf("%+v", got)
	}
}

// FuzzReceipt: whatever is in a receipt, an install and its uninstall work, or refuse
// and change nothing.
func FuzzReceipt(f *testing.F) {
	f.Add([]byte(`{"version":1,"files":{"/x":{"existed":true,"original":"e30=","written_sha256":"00","made_folders":["/x"]}}}`))
	f.Add([]byte(`{"version":99}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		env := Env{Home: dir, IntegrationsDir: filepath.Join(dir, "integrations")}
		target := testTarget{file: filepath.Join(dir, "settings.json")}
		before := []byte("{\"a\": 1}\n")
		for path, text := range map[string][]byte{target.file: before, receiptPath(env, target.Host()): data} {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Install(t.Context(), target, env, Options{})
		if err == nil {
			_, err = Uninstall(t.Context(), target, env, Options{})
		}
		if now, rerr := os.ReadFile(target.file); rerr != nil || string(now) != string(before) {
			t.Errorf("%q, %v after %v", now, rerr, err)
		}
	})
}
