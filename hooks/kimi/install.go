package kimi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/install"
)

// Target installs hooks into Kimi's config.toml.
type Target struct{}

var (
	_ install.Target    = Target{}
	_ install.Validator = Target{}
)

// configured is what an install puts into config.toml. A single entry that Kimi
// does not accept switches all hooks off, the user's too.
var configured = []install.Hook{
	{HostEvent: "SessionStart", Event: "session-start", Timeout: 5},
	{HostEvent: "UserPromptSubmit", Event: "user-prompt-submit", Timeout: 5},
	{HostEvent: "Stop", Event: "stop", Timeout: 5},
	{HostEvent: "StopFailure", Event: "stop-failure", Timeout: 5},
	{HostEvent: "Interrupt", Event: "interrupt", Timeout: 5},
	{HostEvent: "PreCompact", Event: "pre-compact", Timeout: 5},
	{HostEvent: "SessionEnd", Event: "session-end", Timeout: 5},
	{HostEvent: "PreToolUse", Event: "pre-tool-use", Timeout: 5, Matcher: "^(Read|Write|Edit|Glob|Grep|ReadMediaFile)$"},
}

// since is the release that brought an event, for those of configured that not
// every release knows.
var since = map[string]string{"Interrupt": "0.14.0"}

// checkTime bounds Kimi's check of its configuration. It took 0.6 s here.
const checkTime = 20 * time.Second

// Host implements [install.Target].
func (Target) Host() client.Host { return Host }

// Title implements [install.Target].
func (Target) Title() string { return "Kimi Code" }

// kimiHome is Kimi's folder. Kimi does not tell its hooks where that is.
func kimiHome(env install.Env) string { return env.Folder("KIMI_CODE_HOME", ".kimi-code") }

func configFile(env install.Env) string { return filepath.Join(kimiHome(env), "config.toml") }

// serversFile lists MCP servers.
func serversFile(env install.Env) string { return filepath.Join(kimiHome(env), "mcp.json") }

// Find implements [install.Target].
func (Target) Find(ctx context.Context, env install.Env, o install.Options) install.Found {
	return env.Find(ctx, o.Program("kimi"), kimiHome(env))
}

// Files implements [install.Target].
func (t Target) Files(env install.Env, o install.Options) ([]install.File, error) {
	switch o.Scope {
	case "", install.UserScope:
	case install.ProjectScope:
		return nil, errors.New("hooks of a project are not read by Kimi Code; leave out --scope")
	default:
		return nil, install.UnknownScope(o.Scope)
	}
	entries, err := entriesFor(env.CommandPath(o))
	if err != nil {
		return nil, err
	}
	var files []install.File
	if o.Hooks() {
		files = append(files, install.File{
			Path: configFile(env),
			Upsert: func(old []byte) ([]byte, error) {
				return upsert(old, known(entries, t.Find(context.Background(), env, o).Version))
			},
			Remove: remove,
		})
	}
	if o.Server() {
		files = append(files, env.Server(o, Host).File(serversFile(env)))
	}
	return files, nil
}

// shell is what Kimi runs commands with.
func shell() install.Shell {
	if runtime.GOOS == "windows" {
		return install.CmdShell
	}
	return install.PosixShell
}

// entriesFor are the hooks as they stand in config.toml, for our program at a
// path.
func entriesFor(program string) ([]entry, error) {
	var out []entry
	for _, h := range configured {
		command, err := install.Command(shell(), program, Host, h.Event)
		if err != nil {
			return nil, err
		}
		if !ours(command) || strings.ToValidUTF8(command, "") != command {
			return nil, fmt.Errorf("hooks have to call a program named reme-hook in a folder with a plain name, not %q", program)
		}
		out = append(out, entry{h.HostEvent, h.Matcher, command, h.Timeout})
	}
	return out, nil
}

// known leaves out what a release does not accept. One that does not say its
// version is taken for the oldest.
func known(entries []entry, version string) []entry {
	var out []entry
	for _, e := range entries {
		if first := since[e.Event]; first == "" || !older(version, first) {
			out = append(out, e)
		}
	}
	return out
}

// older compares versions by their numbers: 0.9.1 is older than 0.14.0. One that
// cannot be read is older than all.
func older(version, than string) bool {
	a, b := numbers(version), numbers(than)
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

func numbers(version string) (n [3]int) {
	_, _ = fmt.Sscanf(version, "%d.%d.%d", &n[0], &n[1], &n[2])
	return n
}

func ours(command string) bool { return install.Ours(command, Host) }

// Validate implements [install.Validator]: it asks Kimi whether it accepts the
// configuration as it is now.
func (Target) Validate(ctx context.Context, env install.Env, o install.Options) error {
	program, err := env.LookPath(o.Program("kimi"))
	if err != nil || !o.Hooks() {
		return nil // nobody to ask, or nothing that Kimi would tell
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "doctor", "config", configFile(env))
	cmd.Env, cmd.WaitDelay = env.Environ, time.Second
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() > 0 {
		return fmt.Errorf("kimi doctor config does not accept the result: %s", strings.TrimSpace(string(out)))
	}
	return nil // it accepts it, or could not be asked
}

// Check implements [install.Target].
func (Target) Check(env install.Env, o install.Options) install.Report {
	var r install.Report
	wanted, err := entriesFor(env.CommandPath(o))
	if err != nil {
		r.Problems = append(r.Problems, install.Problem{Code: install.BadPath, What: err.Error(), Do: "use another folder for the integrations", Off: true})
	}
	path := configFile(env)
	entries, err := readEntries(path)
	if err != nil {
		r.Problems = append(r.Problems, install.Problem{Code: install.BadFile, What: path + ": " + err.Error(), Do: "repair the file: Kimi Code runs none of the hooks in it", Off: true})
	}
	for _, e := range entries {
		if ours(e.Command) {
			r.Hooks = append(r.Hooks, e.configured(path, slices.Contains(wanted, e)))
		}
	}
	r.Servers = env.JSONServers(o, Host, serversFile(env))
	for _, h := range configured {
		found := map[string]bool{}
		for _, c := range r.Hooks {
			if c.Event == h.Event {
				found[c.Command] = true // the same command runs once
			}
		}
		switch {
		case len(found) == 0 && len(r.Hooks) > 0 && since[h.HostEvent] == "":
			r.Missing = append(r.Missing, h.Event)
		case len(found) > 1:
			r.Problems = append(r.Problems, install.Problem{
				Code: install.Twice, Again: true,
				What: fmt.Sprintf("%s is configured %d times in %s", h.Event, len(found), path),
				Do:   "reme-hook install kimi",
			})
		}
	}
	for _, manifest := range manifests(kimiHome(env)) {
		p := install.Plugin{Dir: filepath.Dir(manifest), Remove: "/plugins in Kimi Code", Servers: env.PluginServers(o, Host, manifest)}
		for _, e := range pluginEntries(manifest) {
			p.Hooks = append(p.Hooks, e.configured(manifest, true))
		}
		r.Add(Host, p)
	}
	return r
}

// configured is an entry of ours in a file.
func (e entry) configured(file string, current bool) install.Configured {
	return install.Configured{
		Event: install.EventOf(e.Command, Host), Command: e.Command, Shell: shell(), File: file,
		Timeout: time.Duration(e.Timeout) * time.Second, Current: current,
	}
}

// manifests are those of the plugins that are switched on.
func manifests(home string) []string {
	var installed struct {
		Plugins []struct {
			Root    string
			Enabled *bool
		}
	}
	b, err := install.ReadFile(filepath.Join(home, "plugins", "installed.json"))
	if err != nil || json.Unmarshal(b, &installed) != nil {
		return nil
	}
	var out []string
	for _, p := range installed.Plugins {
		if p.Enabled != nil && !*p.Enabled || p.Root == "" {
			continue
		}
		for _, name := range []string{"kimi.plugin.json", filepath.Join(".kimi-plugin", "plugin.json")} {
			out = append(out, filepath.Join(p.Root, name))
		}
	}
	return out
}

// pluginEntries are the hooks in a manifest that call us.
func pluginEntries(manifest string) []entry {
	var m struct{ Hooks []entry }
	b, err := install.ReadFile(manifest)
	if err != nil || json.Unmarshal(b, &m) != nil {
		return nil
	}
	return slices.DeleteFunc(m.Hooks, func(e entry) bool { return !ours(e.Command) })
}

// Trust implements [install.Target]: Kimi asks for no approval of hooks.
func (Target) Trust(context.Context, install.Env, install.Options) error { return nil }

// Trusted implements [install.Target].
func (Target) Trusted(context.Context, install.Env, install.Options) (install.TrustState, error) {
	return install.TrustState{}, nil
}

// OtherPlugins implements [install.PluginLister].
func (Target) OtherPlugins(env install.Env) []string {
	var installed struct {
		Plugins []struct {
			ID      string `json:"id"`
			Root    string `json:"root"`
			Enabled bool   `json:"enabled"`
		} `json:"plugins"`
	}
	out := map[string]string{}
	if b, err := install.ReadFile(filepath.Join(kimiHome(env), "plugins", "installed.json")); err == nil && json.Unmarshal(b, &installed) == nil {
		for _, p := range installed.Plugins {
			if p.Enabled {
				out[p.ID] = p.Root
			}
		}
	}
	return install.OtherPlugins(out)
}
