package cmd

import (
	"database/sql"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agentscope-ai/reme-hook/install"
	"github.com/agentscope-ai/reme-hook/internal/crash"
)

var update = flag.Bool("update", false, "write what the scripts printed into their golden files")

func TestMain(m *testing.M) {
	// Whatever listens on this machine is not for the tests.
	if os.Getenv("REME_UPSTREAM") == "" {
		os.Setenv("REME_UPSTREAM", "off")
	}
	testscript.Main(m, map[string]func(){
		"reme-hook": func() {
			if at := os.Getenv(crashEnv); at != "" {
				points, _ := strconv.Atoi(at)
				var passed atomic.Int32
				crash.Point = func(name string) {
					if name != at && (points == 0 || passed.Add(1) != int32(points)) {
						return
					}
					if self, err := os.FindProcess(os.Getpid()); err == nil {
						self.Kill()
						select {}
					}
				}
			}
			if at := os.Getenv(panicEnv); at != "" {
				crash.Point = func(name string) {
					if name == at {
						panic(os.Getenv(panicTextEnv))
					}
				}
			}
			if os.Getenv(aloneEnv) != "" && len(os.Args) > 1 && os.Args[1] == deliverCommand {
				return
			}
			lifetime = time.Minute
			if d, err := time.ParseDuration(os.Getenv(lifetimeEnv)); err == nil {
				lifetime = d
			}
			status := run(scriptClock)
			if path := os.Getenv(peakEnv); path != "" {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				os.WriteFile(path, fmt.Append(nil, m.Sys), 0o600)
			}
			os.Exit(status)
		},
		// upgrade puts two versions of a program in each other's place until its stdin ends.
		"upgrade": func() {
			var ended atomic.Bool
			go func() {
				io.Copy(io.Discard, os.Stdin)
				ended.Store(true)
			}()
			for i := 0; !ended.Load(); i++ {
				if err := install.SelfCopy(os.Args[1+i%2], os.Args[3]); err != nil {
					panic(err)
				}
			}
		},
	})
}

const (
	crashEnv     = "TEST_CRASH_AT"   // the point at which the program kills itself, or how many it passes until then
	panicEnv     = "TEST_PANIC_AT"   // the point at which it panics
	panicTextEnv = "TEST_PANIC_TEXT" // with what
	lifetimeEnv  = "TEST_LIFETIME"   // of a hook, a minute if nothing is said
	aloneEnv     = "TEST_ALONE"      // deliverers end at once
	peakEnv      = "TEST_PEAK"       // where it writes how much memory it has taken, in bytes
	longEnv      = "TEST_LONG"       // run the long forms of tests
)

func mustLookPath(t *testing.T, name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// scriptClock is the time that a script has set.
func scriptClock() time.Time {
	t, err := time.Parse(time.RFC3339, os.Getenv("TEST_NOW"))
	if err != nil {
		panic(err)
	}
	return t
}

// tools makes a folder with the few programs that scripts use and nothing else:
// a real host on the developer's PATH must not be found.
func tools(t *testing.T) string {
	dir := t.TempDir()
	for _, name := range []string{"sh", "cat", "chmod", "getent", "grep", "head", "ls", "mkdir", "mkfifo", "rm", "sed", "sort", "tr", "uniq"} {
		if path, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// TestScripts runs the scripts in testdata/script: the program as users and
// hosts see it. PAYLOADS is where the real payloads are, and the command now sets
// the clock.
func TestScripts(t *testing.T) {
	t.Parallel()
	payloads, err := filepath.Abs(filepath.Join("..", "testdata", "payloads"))
	if err != nil {
		t.Fatal(err)
	}
	toolDir := tools(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			own, _, _ := strings.Cut(e.Getenv("PATH"), string(os.PathListSeparator)) // where reme-hook is
			e.Setenv("PATH", own+string(os.PathListSeparator)+toolDir)
			e.Setenv("HOME", home)
			e.Setenv("USERPROFILE", home)
			e.Setenv("TZ", "UTC")
			e.Setenv("PAYLOADS", payloads)
			e.Setenv("TEST_NOW", "2026-11-30T09:00:00Z")
			setUpMemory(e)
			e.Setenv("REME_UPSTREAM", "off")
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"memory": runMemory,
			"now":    setClock,
			"sqlite": runSQL,
		},
	})
}

// runSQL is "sqlite <database> <file of statements>...".
func runSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: sqlite database statements...")
	}
	path := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o700))
	db, err := sql.Open("sqlite", path)
	ts.Check(err)
	defer db.Close()
	for _, file := range args[1:] {
		_, err := db.Exec(ts.ReadFile(file))
		ts.Check(err)
	}
}

// setClock is "now <RFC 3339 time>" or "now +<duration>".
func setClock(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: now time | now +duration")
	}
	t, err := time.Parse(time.RFC3339, args[0])
	if d, derr := time.ParseDuration(args[0]); derr == nil {
		t, err = time.Parse(time.RFC3339, ts.Getenv("TEST_NOW"))
		t = t.Add(d)
	}
	ts.Check(err)
	ts.Setenv("TEST_NOW", t.Format(time.RFC3339))
}
