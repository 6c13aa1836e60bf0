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
	Area  string `json:"area"` // "service" or a host
	Level Level  `json:"level"`
	What  string `json:"what"`
	Do    string `json:"do,omitempty"` // one line: what helps
}

// Host is a host as doctor sees it.
type Host struct {
	Adapter *hooks.Adapter
	Target  install.Target
}

// Doctor holds what is examined.
type Doctor struct {
	Now     func() time.Time
	Env     install.Env
	Options install.Options
	Config  []config.Problem
	// Memory opens the service, which is known to be one if there is no error.
	Memory  func(context.Context) (Memory, error)
	Spool   spool.Spool
	State   state.Store
	Link    link.File
	Recall  time.Duration // what a prompt waits for memories
	Program string        // the running one
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
	out := slices.Concat(d.configuration(), d.memory(ctx), d.backlog(), d.upstream(ctx))
	for _, h := range hosts {
		out = append(out, d.host(ctx, h)...)
	}
	return out
}

const serviceArea = "service"

func (d Doctor) configuration() []Finding {
	var out []Finding
	for _, p := range d.Config {
		out = append(out, Finding{serviceArea, Problem, "configuration: " + p.Error(), "correct it; `reme-hook config show` tells what is in force"})
	}
	if st, err := os.Stat(d.Env.IntegrationsDir); err == nil && st.Mode().Perm()&0o077 != 0 && filepath.Separator == '/' {
		out = append(out, Finding{serviceArea, Problem, d.Env.IntegrationsDir + " can be read by others", "chmod 700 " + d.Env.IntegrationsDir})
	}
	return out
}

func (d Doctor) memory(ctx context.Context) []Finding {
	url := d.Link.URL
	problem := func(what string, err error) []Finding {
		do := "make the workspace's folder usable, or name another one: `reme-hook config show`"
		if url != "" {
			do = "start it (`reme-hook serve` there), or correct the key service; until then turns wait in the spool"
		}
		if client.ClassOf(err) == client.Configuration {
			do = "do what it says (`reme-hook config show` tells what is in force); until then turns wait in the spool"
		}
		return []Finding{{serviceArea, Problem, what + ": " + err.Error(), do}}
	}
	m, err := d.Memory(ctx)
	if err != nil {
		return problem("the memory cannot be used", err)
	}
	st, err := m.Stats(ctx)
	if err != nil {
		return problem("the memory cannot be read", err)
	}
	where := "embedded workspace"
	if p := d.Link.Load().Probe; p != nil {
		where = fmt.Sprintf("%s, %s %s", url, p.Name, p.Version)
	}
	out := []Finding{{serviceArea, OK, fmt.Sprintf("%s: %s in %s, %s", where, count(st.Turns, "turn"), count(st.Sessions, "session"), count(st.Notes, "note")), ""}}
	if st.Index == workspace.IndexUnavailable {
		out = append(out, Finding{serviceArea, Problem, "the search index is unavailable: " + st.Why, "turns are kept all the same; make the workspace's metadata folder writable"})
	}
	if url != "" {
		out = append(out, d.recall(ctx, m)...)
	}
	return out
}

// recall asks a service at a URL as a prompt does.
func (d Doctor) recall(ctx context.Context, m Memory) []Finding {
	ctx, cancel := context.WithTimeout(ctx, d.Recall)
	defer cancel()
	if _, err := m.Recall(ctx, client.RecallRequest{Query: "doctor", Limit: 1}); err != nil {
		return []Finding{{serviceArea, Problem, fmt.Sprintf("a recall fails within %s: %v", d.Recall, err), "if it is only slow: a longer recall_timeout; prompts do without memories meanwhile"}}
	}
	if u, err := url.Parse(d.Link.URL); err == nil && u.Scheme == "http" && !client.IsLocal(ctx, u.Hostname()) {
		return []Finding{{serviceArea, Note, "what is said goes to " + u.Host + " unencrypted", "use https:// unless the network between is yours"}}
	}
	return nil
}

func (d Doctor) backlog() []Finding {
	entries, err := d.Spool.List()
	if err != nil {
		return []Finding{{serviceArea, Problem, "the spool cannot be read: " + err.Error(), "make " + d.Spool.Dir + " readable and writable"}}
	}
	states := spool.Count(entries)
	due, quarantined := states[spool.Pending], states[spool.Quarantined]
	var out []Finding
	b := d.Link.Load().Delivery
	if b.Failures > 0 {
		out = append(out, Finding{serviceArea, Problem, fmt.Sprintf("delivery failed, %s in a row (%s): %s", count(b.Failures, "time"), b.Class, b.Reason), "mend the cause, then `reme-hook spool replay`"})
	}
	if d.Spool.Full() {
		out = append(out, Finding{serviceArea, Problem, "the spool is full: what is there stays, what is said now is lost unless the memory takes it at once", "mend the cause, then `reme-hook spool replay`; `reme-hook spool export` saves what waits, `reme-hook spool drop` makes room"})
	}
	if due > 0 {
		out = append(out, Finding{serviceArea, Note, count(due, "record") + " waiting for delivery", "any later hook delivers; `reme-hook spool replay` does it now"})
	}
	if quarantined > 0 {
		out = append(out, Finding{serviceArea, Problem, count(quarantined, "record") + " in quarantine", "`reme-hook spool list` tells why, `reme-hook spool replay` tries again"})
	}
	if len(out) == 0 {
		out = append(out, Finding{serviceArea, OK, "spool: nothing waits", ""})
	}
	return out
}

func (d Doctor) host(ctx context.Context, h Host) []Finding {
	area := string(h.Adapter.Host)
	found := h.Target.Find(ctx, d.Env, d.Options)
	report := h.Target.Check(d.Env, d.Options)
	var out []Finding
	add := func(level Level, what, do string) { out = append(out, Finding{area, level, what, do}) }
	tools := d.tools(ctx, area, report)
	switch {
	case len(report.Hooks) > 0:
		add(OK, "found"+version(found)+", connected", "")
	case report.HasServer():
		add(OK, "found"+version(found)+", has the memory as tools; without hooks nothing is recalled or captured by itself", "")
		return slices.Concat(out, d.program(area, report), tools)
	case found.Present:
		add(Note, "found"+version(found)+", not connected", "reme-hook install "+area)
		return append(out, tools...)
	default:
		add(Note, "not on this machine", "")
		return out
	}
	for _, p := range report.Problems {
		add(Problem, p.What, p.Do)
	}
	for _, note := range report.Notes {
		add(Note, note, "")
	}
	if lister, ok := h.Target.(install.PluginLister); ok {
		for _, name := range lister.OtherPlugins(d.Env) {
			if otherMemory(name) {
				add(Problem, name+" is another memory: turns are kept and recalled twice", "keep one of them: switch that one off in "+h.Adapter.Title+", or reme-hook uninstall "+area)
			}
		}
	}
	if len(report.Missing) > 0 {
		add(Problem, "no hook for "+strings.Join(report.Missing, ", "), "reme-hook install "+area)
	}
	for _, c := range report.Hooks {
		if !c.Current {
			add(Problem, "the hook for "+c.Event+" in "+c.File+" is not as this version installs it", "reme-hook install "+area)
		}
	}
	out = slices.Concat(out, tools, d.program(area, report), d.trust(ctx, h, report))
	if err := d.probe(ctx, h.Adapter, report.Hooks); err != nil {
		add(Problem, err.Error(), "reme-hook install "+area+"; if that does not help, look into "+filepath.Join(d.Env.IntegrationsDir, "log", "hook.jsonl"))
	} else {
		add(OK, "recall works, capture works (ran the configured commands)", "")
	}
	last, ok, err := d.State.Last(h.Adapter.Host)
	switch {
	case err != nil:
		add(Problem, "the state cannot be read: "+err.Error(), "make "+d.State.Dir+" readable and writable")
	case ok:
		add(OK, fmt.Sprintf("last hook seen: %s, %s ago", last.Event, d.Now().Sub(last.UpdatedAt).Round(time.Second)), "")
	default:
		add(Note, "no hook was seen from it yet", "start a session in it; one that was open before the install must be started again")
	}
	return out
}

func (d Doctor) program(area string, report install.Report) []Finding {
	if report.OnPath {
		if _, err := d.Env.LookPath("reme-hook"); err != nil {
			return []Finding{{area, Problem, "the plugin calls reme-hook, which is not on the PATH", "put a folder that has it on the PATH"}}
		}
		return nil
	}
	installed := d.Env.CommandPath(d.Options)
	if _, err := os.Stat(installed); err != nil {
		return []Finding{{area, Problem, "the program that it calls is missing: " + installed, again(area, report)}}
	}
	if !install.SameProgram(d.Program, installed) {
		return []Finding{{area, Problem, installed + " is another version than this program", again(area, report)}}
	}
	return nil
}

// again is the command that makes anew what is installed.
func again(area string, report install.Report) string {
	if len(report.Hooks) == 0 {
		return "reme-hook install " + area + " --mcp-only"
	}
	return "reme-hook install " + area
}

func (d Doctor) trust(ctx context.Context, h Host, report install.Report) []Finding {
	area := string(h.Adapter.Host)
	st, err := h.Target.Trusted(ctx, d.Env, d.Options)
	if err != nil {
		return []Finding{{area, Problem, "cannot tell whether the hooks are trusted: " + err.Error(), "open " + h.Adapter.Title + " and look at its /hooks screen"}}
	}
	var out []Finding
	for _, p := range st.Problems {
		out = append(out, Finding{area, Problem, p.What, p.Do})
	}
	if !st.Needed {
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
		return append(out, Finding{area, Problem, "configured, not trusted: " + h.Adapter.Title + " skips " + strings.Join(events, ", "), do})
	}
	return append(out, Finding{area, OK, "all hooks are trusted", ""})
}

// probe runs the very command strings that the host is configured with.
func (d Doctor) probe(ctx context.Context, a *hooks.Adapter, configured []install.Configured) error {
	side := Side{a, func(ctx context.Context, env []string, kind hooks.Kind, payload []byte) ([]byte, error) {
		for _, c := range configured {
			if a.Events[c.Event] == kind {
				shell := c.Shell.Argv(c.Command)
				return Exec(ctx, env, payload, shell[0], shell[1:]...)
			}
		}
		return nil, errors.New("no hook is configured for it")
	}}
	return Probe(ctx, side, side)
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
