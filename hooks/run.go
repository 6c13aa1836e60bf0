package hooks

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/config"
	"github.com/agentscope-ai/reme-hook/internal/link"
	"github.com/agentscope-ai/reme-hook/spool"
	"github.com/agentscope-ai/reme-hook/state"
)

// GuardEnv marks the processes of the memory itself; hooks in them do nothing.
const GuardEnv = "REME_HOOK_GUARD"

// BypassEnv switches every hook off.
const BypassEnv = "REME_HOOK_BYPASS"

// Runner runs the pipeline. Everything it touches is injected.
type Runner struct {
	Now    func() time.Time
	Getenv func(string) string
	Config config.Config
	State  state.Store
	Spool  spool.Spool
	Link   link.File
	// Ease is how many times longer than usual all may take that keeps the agent
	// waiting; 0 means once. Tests count what hooks keep on machines that have nothing to
	// spare.
	Ease int
	// Service opens the service on first use.
	Service func() (client.Service, error)
	// Poke starts the detached deliverer, if it is not running.
	Poke func()
	// Due tells whether the deliverer has anything to do beside delivering.
	Due func() bool
	// Behind tells whether a recall came across something that is for the deliverer.
	Behind func() bool
	Log    *slog.Logger
}

// Run handles one hook call and returns the bytes for stdout. It never fails:
// whatever goes wrong is logged, and the agent goes on without us.
func (r *Runner) Run(ctx context.Context, a *Adapter, name string, stdin io.Reader) (out []byte) {
	name = strings.ReplaceAll(name, "_", "-") // hosts spell names either way
	log := r.Log.With("host", a.Host, "event", name)
	defer func() {
		if recover() != nil {
			log.Error("panic", "where", panicSite())
			out = nil
		}
	}()
	kind, ok := a.Events[name]
	if !ok {
		log.Warn("unknown event")
		return nil
	}
	if r.Getenv(GuardEnv) != "" {
		return nil
	}
	payload, err := readPayload(stdin, r.wait(stdinIdle))
	if err != nil {
		// The members that did arrive may still end a turn.
		log.Warn("bad payload", "err", err)
	}
	ev := a.Decode(kind, payload)
	ev.Kind = kind
	ev.Session.Host = a.Host
	ev.Name = cmp.Or(ev.Name, pascal(name))
	if ev.Session.ID == "" {
		log.Warn("no session in the payload")
		return nil
	}
	if LeftAlone(r.Config, ev.Cwd) {
		return nil
	}
	log = log.With("session", ev.Session.Key())
	c := call{Runner: r, ctx: ctx, host: a, ev: ev, log: log, fingerprint: fingerprint(name, payload)}
	if r.Getenv(BypassEnv) != "" {
		c.bypass()
		return nil
	}
	start := r.Now()
	o := c.handle()
	log.Info("handled", "ms", r.Now().Sub(start).Milliseconds(), "kept", c.kept, "context", len(o.Context), "denied", o.Deny != "")
	return a.Encode(ev, o)
}

// wait is a limit as it is on this machine.
func (r *Runner) wait(usual time.Duration) time.Duration {
	return usual * time.Duration(cmp.Or(r.Ease, 1))
}

// LeftAlone tells sessions that are none of our business by the folder they work
// in: those of the memory service itself, and those that the user excluded.
func LeftAlone(cfg config.Config, cwd string) bool {
	if cwd == "" {
		return false
	}
	return InFolder(cwd, cfg.Workspace) ||
		slices.ContainsFunc(cfg.Exclude, func(pattern string) bool {
			pattern = filepath.Clean(pattern)
			return within(cwd, pattern, func(dir string) bool {
				ok, _ := filepath.Match(pattern, dir)
				return ok || dir == pattern
			})
		})
}

// InFolder tells whether a path leads to a folder or below it, whatever names both
// are given by.
func InFolder(path, folder string) bool {
	folder = filepath.Clean(folder)
	return within(path, folder, func(dir string) bool { return dir == folder })
}

// within tells whether a path leads to a folder or below it: to one that is called so,
// or that is the same folder. It has other names, too: those of links, and others where
// the file system does not tell upper case from lower, or é from e with an accent.
func within(path, folder string, called func(dir string) bool) bool {
	names := []string{filepath.Clean(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != names[0] {
		names = append(names, real)
	}
	same, _ := os.Stat(folder)
	for _, dir := range names {
		for {
			if called(dir) {
				return true
			}
			if st, err := os.Stat(dir); same != nil && err == nil && os.SameFile(same, st) {
				return true
			}
			parent := filepath.Dir(dir)
			if parent == dir {
				break
			}
			dir = parent
		}
	}
	return false
}

// pascal spells an event of the command line as payloads do.
func pascal(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// fingerprint tells the same event from another one.
func fingerprint(name string, p Payload) string {
	h := sha256.New()
	io.WriteString(h, name)
	for _, key := range sortedKeys(p) {
		fmt.Fprintf(h, "\x00%s\x00%s", key, p[key])
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}
