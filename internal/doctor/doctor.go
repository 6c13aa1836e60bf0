// Package doctor looks for whatever keeps the memory from working and says, for
// each thing it finds, what to do about it.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/install"
	"github.com/agentscope-ai/reme-hook/internal/config"
	"github.com/agentscope-ai/reme-hook/internal/link"
	"github.com/agentscope-ai/reme-hook/spool"
	"github.com/agentscope-ai/reme-hook/state"
	"github.com/agentscope-ai/reme-hook/upstream"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// Level says how bad a finding is.
type Level string

// The levels. Problem means that something does not work until the user has
// acted.
const (
	OK      Level = "ok"
	Note    Level = "note"
	Problem Level = "problem"
)

// Finding is one thing that was looked at.
type Finding struct {
	Area  string       `json:"area"` // "service" or a host
	Code  install.Code `json:"code"` // what kind of thing it is, for programs
	Level Level        `json:"level"`
	What  string       `json:"what"`
	Do    string       `json:"do,omitempty"`  // one line: what helps
	Fix   bool         `json:"fix,omitempty"` // [Doctor.Fix] can do it

	mend *mend
}

// Host is a host as doctor sees it.
type Host struct {
	Adapter *hooks.Adapter
	Target  install.Target
}

// Doctor holds what is examined.
type Doctor struct {
	Now      func() time.Time
	Env      install.Env
	Options  install.Options
	Config   config.Config
	Problems []config.Problem // what of the configuration could not be used
	// Memory opens the service, which is known to be one if there is no error.
	Memory  func(context.Context) (Memory, error)
	Spool   spool.Spool
	State   state.Store
	Link    link.File
	Program string // the running one
	Log     string // the file that hooks write to
	Temp    string // the folder of temporary files
	// Free is the space that is left where a path is, in bytes. An error means that
	// it is not known.
	Free func(path string) (uint64, error)
	// Probe is [Probe], and Tools is [ListTools]; tests do without processes.
	Probe func(ctx context.Context, environ []string, teach, ask Side) Loop
	Tools func(ctx context.Context, environ []string, s install.Server) ([]string, error)
	// Upstream is the real ReMe that takes part.
	Upstream *upstream.Upstream
}

// Memory is a service as doctor looks at it.
type Memory interface {
	client.Service
	Stats(context.Context) (workspace.Stats, error)
}

// Healthy tells whether no finding asks the user for anything.
func Healthy(findings []Finding) bool {
	return !slices.ContainsFunc(findings, func(f Finding) bool { return f.Level == Problem })
}

// Examine looks at everything, and at the given hosts.
func (d Doctor) Examine(ctx context.Context, hosts []Host) []Finding {
	log := readLog(d.Log)
	out := slices.Concat(d.configuration(), d.machine(hosts), d.memory(ctx), d.port(ctx), d.backlog(), d.lost(log), d.upstream(ctx))
	for _, h := range hosts {
		out = append(out, d.host(ctx, h, log)...)
	}
	return out
}

const serviceArea = "service"

// configCode is of what cannot be used of the configuration.
const configCode install.Code = "config"

// problem is something about the memory or the machine that needs the user.
func problem(code install.Code, what, do string) Finding {
	return Finding{Area: serviceArea, Code: code, Level: Problem, What: what, Do: do}
}

// note is something about the memory or the machine that is worth knowing.
func note(code install.Code, what, do string) Finding {
	return Finding{Area: serviceArea, Code: code, Level: Note, What: what, Do: do}
}

func (d Doctor) configuration() []Finding {
	var out []Finding
	for _, p := range d.Problems {
		out = append(out, problem(configCode, "configuration: "+p.Error(), "correct it; `reme-hook config show` tells what is in force"))
	}
	const do = "`reme-hook config show` tells where that is from"
	if !d.Config.Recall {
		out = append(out, note("recall-off", "recall is switched off: prompts get no memories", do))
	}
	if !d.Config.Capture {
		out = append(out, note("capture-off", "capture is switched off: turns are not kept", do))
	}
	if d.Options.ProjectDir != "" && hooks.LeftAlone(d.Config, d.Options.ProjectDir) {
		out = append(out, note("excluded", "sessions in this folder have no memory: it is excluded, or in the workspace", do))
	}
	for _, name := range []string{hooks.BypassEnv, hooks.GuardEnv} {
		if d.Env.Getenv(name) != "" {
			out = append(out, note("bypass", name+" is set here: agents that are started from this shell have no memory", "unset "+name))
		}
	}
	return out
}

func (d Doctor) memory(ctx context.Context) []Finding {
	url := d.Link.URL
	broken := func(what string, err error) []Finding {
		do := "make the workspace's folder usable, or name another one: `reme-hook config show`"
		if url != "" {
			do = "start it (`reme-hook serve` there), or correct the key service; until then turns wait in the spool"
		}
		if client.ClassOf(err) == client.Configuration {
			do = "do what it says (`reme-hook config show` tells what is in force); until then turns wait in the spool"
		}
		return []Finding{problem("memory", what+": "+err.Error(), do)}
	}
	m, err := d.Memory(ctx)
	if err != nil {
		return broken("the memory cannot be used", err)
	}
	st, err := m.Stats(ctx)
	if err != nil {
		return broken("the memory cannot be read", err)
	}
	where := "embedded workspace"
	if p := d.Link.Load().Probe; p != nil {
		where = fmt.Sprintf("%s, %s %s", url, p.Name, p.Version)
	}
	out := []Finding{{Area: serviceArea, Code: "memory", Level: OK, What: fmt.Sprintf("%s: %s in %s, %s", where, count(st.Turns, "turn"), count(st.Sessions, "session"), count(st.Notes, "note"))}}
	if st.Index == workspace.IndexUnavailable {
		out = append(out, problem("index", "the search index is unavailable: "+st.Why, "turns are kept all the same; make the workspace's metadata folder writable"))
	}
	if url != "" {
		out = append(out, d.recall(ctx, m)...)
	}
	return out
}

// recall asks a service at a URL as a prompt does.
func (d Doctor) recall(ctx context.Context, m Memory) []Finding {
	ctx, cancel := context.WithTimeout(ctx, d.Config.RecallTimeout)
	defer cancel()
	if _, err := m.Recall(ctx, client.RecallRequest{Query: "doctor", Limit: 1}); err != nil {
		return []Finding{problem("slow-memory", fmt.Sprintf("a recall fails within %s: %v", d.Config.RecallTimeout, err), "if it is only slow: a longer recall_timeout; prompts do without memories meanwhile")}
	}
	var out []Finding
	if u, err := url.Parse(d.Link.URL); err == nil && u.Scheme == "http" && !client.IsLocal(ctx, u.Hostname()) {
		out = append(out, note("unencrypted", "what is said goes to "+u.Host+" unencrypted", "use https:// unless the network between is yours"))
	}
	if b := d.Link.Load().Recall; b.Failures > 0 && b.NotBefore.After(d.Now()) {
		out = append(out, note("breaker", fmt.Sprintf("recall has failed %s in a row (%s): prompts do without memories until %s", count(b.Failures, "time"), b.Class, b.NotBefore.Format(time.TimeOnly)), "nothing: it is tried again then, and it answers now"))
	}
	return out
}

// waitsLong is how old a turn may get in the spool while nothing is known to be
// in its way.
const waitsLong = 24 * time.Hour

func (d Doctor) backlog() []Finding {
	entries, err := d.Spool.List()
	if err != nil {
		return []Finding{problem("spool", "the spool cannot be read: "+err.Error(), "make "+d.Spool.Dir+" readable and writable")}
	}
	states := spool.Count(entries)
	due, quarantined := states[spool.Pending], states[spool.Quarantined]
	var oldest time.Duration
	for _, e := range entries {
		if e.State == spool.Pending && !e.Turn.UpdatedAt.IsZero() {
			oldest = max(oldest, d.Now().Sub(e.Turn.UpdatedAt).Round(time.Second))
		}
	}
	const now = "`reme-hook spool replay` delivers now"
	var out []Finding
	b := d.Link.Load().Delivery
	if b.Failures > 0 {
		out = append(out, problem("delivery", fmt.Sprintf("delivery failed, %s in a row (%s): %s", count(b.Failures, "time"), b.Class, b.Reason), "mend the cause, then `reme-hook spool replay`"))
	}
	if d.Spool.Full() {
		out = append(out, problem("spool-full", "the spool is full: what is there stays, what is said now is lost unless the memory takes it at once", "mend the cause, then `reme-hook spool replay`; `reme-hook spool export` saves what waits, `reme-hook spool drop` makes room"))
	}
	switch {
	case oldest > waitsLong:
		out = append(out, problem("backlog", fmt.Sprintf("%s waiting for delivery, for up to %s", count(due, "record"), oldest), now))
	case due > 0:
		out = append(out, note("backlog", count(due, "record")+" waiting for delivery", "any later hook delivers; "+now))
	}
	if quarantined > 0 {
		out = append(out, problem("quarantine", count(quarantined, "record")+" in quarantine", "`reme-hook spool list` tells why, `reme-hook spool replay` tries again"))
	}
	if len(out) == 0 {
		out = append(out, Finding{Area: serviceArea, Code: "spool", Level: OK, What: "spool: nothing waits"})
	}
	return out
}

func (d Doctor) host(ctx context.Context, h Host, log []logLine) []Finding {
	area := string(h.Adapter.Host)
	found := h.Target.Find(ctx, d.Env, d.Options)
	report := h.Target.Check(d.Env, d.Options)
	again := d.again(h, report)
	was, hadHooks := install.Installed(h.Target, d.Env, d.Options)
	var out []Finding
	add := func(code install.Code, level Level, what, do string) {
		out = append(out, Finding{Area: area, Code: code, Level: level, What: what, Do: do})
	}
	problems := func() {
		for _, p := range report.Problems {
			f := Finding{Area: area, Code: p.Code, Level: Problem, What: p.What, Do: p.Do}
			if p.Again {
				f = f.with(again)
			}
			out = append(out, f)
		}
	}
	tools := d.tools(ctx, area, report, again)
	switch {
	case len(report.Hooks) > 0:
		add("host", OK, "found"+version(found)+", connected", "")
	case report.HasServer() && !hadHooks:
		add("host", OK, "found"+version(found)+", has the memory as tools; without hooks nothing is recalled or captured by itself", "")
		return slices.Concat(out, d.program(area, report, again), tools)
	case was:
		add("gone", Problem, "was connected"+version(found)+", and its hooks are gone", "reme-hook install "+area+", or reme-hook uninstall "+area)
		problems()
		return append(out, tools...)
	case found.Present:
		add("host", Note, "found"+version(found)+", not connected", "reme-hook install "+area)
		return append(out, tools...)
	default:
		add("host", Note, "not on this machine", "")
		return out
	}
	problems()
	for _, what := range report.Notes {
		add("limit", Note, what, "")
	}
	if lister, ok := h.Target.(install.PluginLister); ok {
		for _, name := range lister.OtherPlugins(d.Env) {
			if otherMemory(name) {
				add("other-memory", Problem, name+" is another memory: turns are kept and recalled twice", "keep one of them: switch that one off in "+h.Adapter.Title+", or reme-hook uninstall "+area)
			}
		}
	}
	if len(report.Missing) > 0 {
		add("hook-missing", Problem, "no hook for "+strings.Join(report.Missing, ", "), "reme-hook install "+area)
	}
	for _, c := range report.Hooks {
		if !c.Current {
			out = append(out, Finding{Area: area, Code: "hook-outdated", Level: Problem, What: "the hook for " + c.Event + " in " + c.File + " is not as this version installs it", Do: "reme-hook install " + area}.with(again))
		}
	}
	out = slices.Concat(out, tools, d.program(area, report, again), d.trust(ctx, h, report))
	loop := d.probe(ctx, h.Adapter, report.Hooks)
	for _, half := range []struct {
		code  install.Code
		works string
		err   error
	}{{"recall", "recall works", loop.Recall}, {"capture", "capture works", loop.Capture}} {
		if half.err != nil {
			add(half.code, Problem, half.err.Error(), "reme-hook install "+area+"; if that does not help, look into "+d.Log)
		} else {
			add(half.code, OK, half.works+" (ran the configured command)", "")
		}
	}
	add("size", OK, fmt.Sprintf("a prompt gets at most %d characters of memories (recall_max_chars), in a frame that %s passes on whole, of at most %d", d.Config.RecallMaxChars, h.Adapter.Title, h.Adapter.MaxContext), "")
	last, ok, err := d.State.Last(h.Adapter.Host)
	switch {
	case err != nil:
		add("state", Problem, "the state cannot be read: "+err.Error(), "make "+d.State.Dir+" readable and writable")
	case ok:
		what := fmt.Sprintf("last hook seen: %s, %s ago", last.Event, d.Now().Sub(last.UpdatedAt).Round(time.Second))
		if ms, ok := took(log, h.Adapter.Host); ok {
			what += fmt.Sprintf("; the last one in the log took %d ms", ms)
		}
		add("seen", OK, what, "")
	default:
		add("seen", Note, "no hook was seen from it yet", "start a session in it; one that was open before the install must be started again")
	}
	return out
}

func (d Doctor) program(area string, report install.Report, again *mend) []Finding {
	if report.OnPath {
		if _, err := d.Env.LookPath("reme-hook"); err != nil {
			return []Finding{{Area: area, Code: "program-missing", Level: Problem, What: "the plugin calls reme-hook, which is not on the PATH", Do: "put a folder that has it on the PATH"}}
		}
		return nil
	}
	installed := d.Env.CommandPath(d.Options)
	found := func(code install.Code, what string) []Finding {
		return []Finding{Finding{Area: area, Code: code, Level: Problem, What: what, Do: command(area, report)}.with(again)}
	}
	st, err := os.Stat(installed)
	switch {
	case err != nil:
		return found("program-missing", "the program that it calls is missing: "+installed)
	case !install.SameProgram(d.Program, installed):
		return found("program-stale", installed+" is another version than this program")
	case filepath.Separator == '/' && st.Mode().Perm()&0o100 == 0:
		return found("program-mode", installed+" may not be run")
	}
	return nil
}

// command makes anew what is installed.
func command(area string, report install.Report) string {
	if len(report.Hooks) == 0 && len(report.Servers) > 0 {
		return "reme-hook install " + area + " --mcp-only"
	}
	return "reme-hook install " + area
}

func (d Doctor) trust(ctx context.Context, h Host, report install.Report) []Finding {
	area := string(h.Adapter.Host)
	st, err := h.Target.Trusted(ctx, d.Env, d.Options)
	if err != nil {
		return []Finding{{Area: area, Code: "trust", Level: Problem, What: "cannot tell whether the hooks are trusted: " + err.Error(), Do: "open " + h.Adapter.Title + " and look at its /hooks screen"}}
	}
	var out []Finding
	for _, p := range st.Problems {
		out = append(out, Finding{Area: area, Code: p.Code, Level: Problem, What: p.What, Do: p.Do})
	}
	if !st.Needed {
		if len(out) == 0 {
			out = append(out, Finding{Area: area, Code: "trust", Level: OK, What: h.Adapter.Title + " asks for no approval of hooks"})
		}
		return out
	}
	var events []string
	for _, t := range st.Hooks {
		if t.State != install.TrustYes {
			events = append(events, t.Event+" ("+string(t.State)+")")
		}
	}
	if len(events) > 0 {
		do := "approve them in " + h.Adapter.Title
		if !report.OnPath {
			do = "reme-hook install " + area + " --trust, or " + do
		}
		return append(out, Finding{Area: area, Code: "trust", Level: Problem, What: "configured, not trusted: " + h.Adapter.Title + " skips " + strings.Join(events, ", "), Do: do})
	}
	return append(out, Finding{Area: area, Code: "trust", Level: OK, What: "all hooks are trusted"})
}

// probe runs the very command strings that the host is configured with.
func (d Doctor) probe(ctx context.Context, a *hooks.Adapter, configured []install.Configured) Loop {
	side := Side{a, func(ctx context.Context, env []string, kind hooks.Kind, payload []byte) ([]byte, error) {
		for _, c := range configured {
			if a.Events[c.Event] == kind {
				return Exec(c.Shell.Cmd(ctx, c.Command), env, payload)
			}
		}
		return nil, errors.New("no hook is configured for it")
	}}
	return d.Probe(ctx, d.Env.Environ, side, side)
}

func version(f install.Found) string {
	if f.Version == "" {
		return ""
	}
	return " (" + f.Version + ")"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// otherMemory tells what is of ReMe itself or of OpenViking, by a part of its name,
// path or command.
func otherMemory(name string) bool {
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("@/\\\"' ", r) })
	return slices.ContainsFunc(parts, func(part string) bool {
		return part == "reme" || strings.HasPrefix(part, "reme-") && !strings.HasPrefix(part, "reme-hook") || strings.Contains(part, "openviking")
	})
}
