package cmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/gateway"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/install"
	"github.com/agentscope-ai/reme-hook/internal/config"
	"github.com/agentscope-ai/reme-hook/internal/detach"
	"github.com/agentscope-ai/reme-hook/internal/home"
	"github.com/agentscope-ai/reme-hook/internal/link"
	"github.com/agentscope-ai/reme-hook/internal/logfile"
	"github.com/agentscope-ai/reme-hook/internal/remote"
	"github.com/agentscope-ai/reme-hook/spool"
	"github.com/agentscope-ai/reme-hook/state"
	"github.com/agentscope-ai/reme-hook/upstream"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// integrationsEnv moves the folder of state, spool, log and configuration.
const integrationsEnv = "REME_INTEGRATIONS_DIR"

// app is what all commands share.
type app struct {
	stdin          *os.File
	stdout, stderr io.Writer
	now            func() time.Time
	home           string
	dir            string // integrations
	hosts          []host
	config         config.Config
	values         []config.Value
	problems       []config.Problem
	upstream       *upstream.Upstream
	// workspace opens the embedded workspace once, memory the configured service.
	workspace func() (*workspace.Workspace, error)
	memory    func() (memory, error)
}

// memory is a service as people use it: what hooks need, and what commands show.
type memory interface {
	client.Ledger
	Sessions(ctx context.Context, limit int) ([]workspace.SessionSummary, error)
	Read(ctx context.Context, name string, start, end int) (string, error)
	Stats(context.Context) (workspace.Stats, error)
	Drain(context.Context, time.Duration) error
	Close() error
}

func newApp(now func() time.Time) *app {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, now: now, home: home.Dir(), hosts: knownHosts()}
	if a.home == "" {
		// Without a home there is still a memory, until the machine is restarted. It is
		// nobody else's: their folder could not be made private.
		a.home = filepath.Join(os.TempDir(), fmt.Sprintf("reme-hook-%d", os.Getuid()))
		os.Mkdir(a.home, 0o700)
		if st, err := os.Lstat(a.home); err != nil || !st.IsDir() || os.Chmod(a.home, 0o700) != nil {
			a.home = os.DevNull
		}
	}
	a.dir = os.Getenv(integrationsEnv)
	switch {
	case a.dir == "":
		a.dir = filepath.Join(a.home, ".reme", "integrations")
	case !filepath.IsAbs(a.dir): // the folder in which a hook is called is another for each project
		a.dir = filepath.Join(a.home, strings.TrimPrefix(a.dir, "~"))
	}
	a.config, a.values, a.problems = config.Load(a.configFile(), a.home, os.Getenv)
	a.upstream = upstream.New(filepath.Join(a.dir, "upstream"), a.config.Workspace, a.now)
	if a.config.URL() == "" { // a service at a URL sees to its notes itself
		a.upstream.Use(a.config.Upstream, os.Getenv)
	}
	a.workspace = sync.OnceValues(func() (*workspace.Workspace, error) {
		return workspace.Open(a.config.Workspace, workspace.Options{Now: a.now, Location: time.Local, Version: version, Elsewhere: a.upstream})
	})
	a.memory = sync.OnceValues(func() (memory, error) {
		if url := a.config.URL(); url != "" {
			return remote.New(url, a.config.Token, gateway.Caller{})
		}
		return a.workspace()
	})
	return a
}

func (a *app) configFile() string { return filepath.Join(a.dir, "config.toml") }

func (a *app) host(name string) (host, bool) {
	for _, h := range a.hosts {
		if string(h.Adapter.Host) == name {
			return h, true
		}
	}
	return host{}, false
}

func (a *app) state() state.Store { return state.Store{Dir: filepath.Join(a.dir, "state"), Now: a.now} }

func (a *app) spool() spool.Spool { return spool.Spool{Dir: filepath.Join(a.dir, "spool"), Now: a.now} }

func (a *app) link() link.File {
	return link.File{Path: filepath.Join(a.dir, "service.json"), URL: a.config.URL()}
}

func (a *app) service() (client.Service, error) { return a.memory() }

// meetWait bounds the question to a service what it is.
const meetWait = 5 * time.Second

// meet asks a service at a URL what it is, and notes that for all hooks. It is an
// error if it cannot be used.
func (a *app) meet(ctx context.Context, m memory) error {
	if a.config.URL() == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, meetWait)
	defer cancel()
	info, err := m.Info(ctx)
	if err != nil {
		return err
	}
	if err := a.link().Probed(info, a.now()); err != nil {
		return err
	}
	return info.Compatible()
}

func (a *app) logFile() string { return filepath.Join(a.dir, "log", "hook.jsonl") }

// log writes to the log file, which is rotated by size. No text of a prompt or
// a reply may be given to it.
func (a *app) log() *slog.Logger {
	return slog.New(slog.NewJSONHandler(logfile.Path(a.logFile()), nil))
}

func (a *app) runner() *hooks.Runner {
	log := a.log()
	return &hooks.Runner{
		Now: a.now, Getenv: os.Getenv, Config: a.config, State: a.state(), Spool: a.spool(), Link: a.link(),
		Ease: int(lifetime / usualLifetime), Service: a.service, Log: log, Due: a.due,
		Behind: func() bool {
			if a.config.URL() != "" {
				return false
			}
			ws, err := a.workspace()
			return err == nil && ws.Behind()
		},
		Poke: func() {
			if err := a.poke(); err != nil {
				log.Error("start deliverer", "err", err)
			}
		},
	}
}

// poke starts the detached deliverer. If one is running, the new one ends at
// once.
func (a *app) poke() error {
	return detach.Self([]string{hooks.GuardEnv + "=1"}, deliverCommand)
}

// pokeIfDue is what every command does in passing: it starts the deliverer when
// turns are waiting for one.
func (a *app) pokeIfDue() {
	if !a.link().Load().Delivers(a.now()) {
		return
	}
	if neglected, _ := a.spool().Neglected(""); neglected || a.due() {
		a.poke()
	}
}

func (a *app) installEnv() install.Env {
	return install.Env{Home: a.home, Environ: os.Environ(), IntegrationsDir: a.dir, LookPath: exec.LookPath}
}

// terminal tells whether people read what is printed.
func (a *app) terminal() bool {
	f, ok := a.stdout.(*os.File)
	return ok && (isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()))
}

// asked tells whether people can answer questions.
func (a *app) asked() bool {
	return a.terminal() && isatty.IsTerminal(a.stdin.Fd())
}

// withWorkspace lends the embedded workspace to f.
func (a *app) withWorkspace(f func(*workspace.Workspace) error) error {
	private()
	ws, err := a.workspace()
	if err != nil {
		return fmt.Errorf("open the workspace %s: %w", a.config.Workspace, err)
	}
	defer ws.Close()
	return f(ws)
}

// withMemory lends the memory to f, once it is known to be one.
func (a *app) withMemory(ctx context.Context, f func(memory) error) error {
	private()
	m, err := a.memory()
	if err != nil {
		return fmt.Errorf("open the memory %s: %w", cmp.Or(a.config.URL(), a.config.Workspace), err)
	}
	defer m.Close()
	if err := a.meet(ctx, m); err != nil {
		return err
	}
	return f(m)
}

// installOptions are those for looking at what is installed.
func (a *app) installOptions() install.Options {
	cwd, _ := os.Getwd()
	return install.Options{ProjectDir: cwd}
}
