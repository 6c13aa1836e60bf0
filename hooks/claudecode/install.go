package claudecode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"runtime"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/install"
	"github.com/tailscale/hujson"
)

// Target installs hooks into Claude Code's settings.
type Target struct{}

var _ install.Target = Target{}

// configured is what an install puts into the settings. SessionEnd needs its
// own timeout: without one, all its hooks share 1.5 s.
var configured = install.JSONHost{
	Host: Host, Shell: install.PosixShell, SameRunsOnce: true, Accepts: plain,
	Hooks: []install.Hook{
		{HostEvent: "SessionStart", Event: "session-start", Timeout: 5},
		{HostEvent: "UserPromptSubmit", Event: "user-prompt-submit", Timeout: 5},
		{HostEvent: "Stop", Event: "stop", Timeout: 5},
		{HostEvent: "StopFailure", Event: "stop-failure", Timeout: 5},
		{HostEvent: "PreCompact", Event: "pre-compact", Timeout: 5},
		{HostEvent: "PostCompact", Event: "post-compact", Timeout: 5},
		{HostEvent: "SessionEnd", Event: "session-end", Timeout: 3},
		{HostEvent: "PreToolUse", Event: "pre-tool-use", Timeout: 5, Matcher: "Read|Edit|MultiEdit|Write|NotebookEdit|Glob|Grep|LS"},
	},
}

// plain finds what Claude Code 2.1.332 was seen to ignore a whole settings file
// for. It accepts a byte order mark.
func plain(text []byte) error {
	if json.Valid(bytes.TrimPrefix(text, install.BOM)) {
		return nil
	}
	return errors.New("not plain JSON, so Claude Code ignores the whole file; remove its comments and trailing commas")
}

// Host implements [install.Target].
func (Target) Host() client.Host { return Host }

// Title implements [install.Target].
func (Target) Title() string { return "Claude Code" }

func configDir(env install.Env) string { return env.Folder("CLAUDE_CONFIG_DIR", ".claude") }

// Find implements [install.Target].
func (Target) Find(ctx context.Context, env install.Env, o install.Options) install.Found {
	return env.Find(ctx, o.Program("claude"), configDir(env))
}

// settings is the file that an install edits.
func settings(env install.Env, o install.Options) (string, error) {
	return o.In(filepath.Join(configDir(env), "settings.json"), filepath.Join(".claude", "settings.json"))
}

// stateFile is where Claude Code keeps its own state, and the MCP servers for all
// projects. It writes the file all the time, and keeps what it finds there.
func stateFile(env install.Env) string {
	dir := env.Home
	if other := env.Getenv("CLAUDE_CONFIG_DIR"); other != "" {
		dir = other
	}
	return filepath.Join(dir, ".claude.json")
}

// Files implements [install.Target].
func (Target) Files(env install.Env, o install.Options) ([]install.File, error) {
	path, err := settings(env, o)
	if err != nil {
		return nil, err
	}
	var files []install.File
	if o.Hooks() {
		hooks, err := configured.File(path, env.CommandPath(o))
		if err != nil {
			return nil, err
		}
		files = append(files, hooks)
	}
	if o.Server() {
		files = append(files, env.Server(o, Host).File(stateFile(env)))
	}
	return files, nil
}

// Check implements [install.Target].
func (Target) Check(env install.Env, o install.Options) install.Report {
	files := []string{filepath.Join(configDir(env), "settings.json")}
	if o.ProjectDir != "" {
		dir := filepath.Join(o.ProjectDir, ".claude")
		if shared := filepath.Join(dir, "settings.json"); !install.SameFile(shared, files[0]) {
			files = append(files, shared)
		}
		files = append(files, filepath.Join(dir, "settings.local.json"))
	}
	r := configured.Report(env.CommandPath(o), files...)
	r.Servers = env.JSONServers(o, Host, stateFile(env))
	for id, dir := range plugins(env, files) {
		r.Add(Host, configured.Plugin(env, o, dir, "claude plugin uninstall "+id))
	}
	r.Problems = append(r.Problems, silenced(env, files, managedFile(runtime.GOOS))...)
	return r
}

// plugins are those that are switched on: their ids and folders. settings are in
// the order in which a later file overrides an earlier one.
func plugins(env install.Env, settings []string) map[string]string {
	enabled := map[string]bool{}
	for _, path := range settings {
		var s struct {
			EnabledPlugins map[string]any `json:"enabledPlugins"`
		}
		readJSON(path, &s)
		for id, on := range s.EnabledPlugins {
			enabled[id] = on == true
		}
	}
	var installed struct {
		Plugins map[string][]struct {
			InstallPath string `json:"installPath"`
		} `json:"plugins"`
	}
	readJSON(filepath.Join(configDir(env), "plugins", "installed_plugins.json"), &installed)
	out := map[string]string{}
	for id, places := range installed.Plugins {
		if enabled[id] && len(places) > 0 {
			out[id] = places[len(places)-1].InstallPath
		}
	}
	return out
}

// readJSON reads what a file has of v, nothing if it cannot be read.
func readJSON(path string, v any) {
	if b, err := install.ReadFile(path); err == nil {
		if std, err := hujson.Standardize(bytes.TrimPrefix(b, install.BOM)); err == nil {
			_ = json.Unmarshal(std, v)
		}
	}
}

// OtherPlugins implements [install.PluginLister].
func (Target) OtherPlugins(env install.Env) []string {
	return install.OtherPlugins(plugins(env, []string{filepath.Join(configDir(env), "settings.json")}))
}

// Trust implements [install.Target]: Claude Code asks for no approval of hooks.
func (Target) Trust(context.Context, install.Env, install.Options) error { return nil }

// Trusted implements [install.Target].
func (Target) Trusted(context.Context, install.Env, install.Options) (install.TrustState, error) {
	return install.TrustState{}, nil
}
