package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/install"
	"github.com/agentscope-ai/reme-hook/internal/durable"
	"github.com/pelletier/go-toml/v2"
)

// Target installs hooks into Codex's hooks.json.
type Target struct{}

var _ install.Target = Target{}

// configured is what an install puts into hooks.json. Codex clamps SessionEnd
// and Interrupt to 3 s and warns at every start about more. Of the tools that
// Codex 0.171.0 has, two take paths of files.
var configured = install.JSONHost{
	Host: Host, Shell: install.LoginShell, Windows: true, Accepts: acceptable, Refuse: true,
	Hooks: []install.Hook{
		{HostEvent: "SessionStart", Event: "session-start", Timeout: 5},
		{HostEvent: "UserPromptSubmit", Event: "user-prompt-submit", Timeout: 5},
		{HostEvent: "Stop", Event: "stop", Timeout: 5},
		{HostEvent: "Interrupt", Event: "interrupt", Timeout: 3},
		{HostEvent: "PreCompact", Event: "pre-compact", Timeout: 5},
		{HostEvent: "SessionEnd", Event: "session-end", Timeout: 3},
		{HostEvent: "PreToolUse", Event: "pre-tool-use", Timeout: 5, Matcher: "apply_patch|view_image"},
	},
}

// knownEvents are the events whose hooks Codex 0.171.0 reads; it ignores others.
var knownEvents = []string{
	"PreModelRequest", "PostModelRequest", "PreToolUse", "PermissionRequest", "PostToolUse", "PreCompact", "PostCompact",
	"SessionStart", "SessionEnd", "UserPromptSubmit", "SubagentStart", "SubagentStop", "Stop", "Interrupt",
}

// Host implements [install.Target].
func (Target) Host() client.Host { return Host }

// Title implements [install.Target].
func (Target) Title() string { return "Codex" }

func codexHome(env install.Env) string { return env.Folder("CODEX_HOME", ".codex") }

// Find implements [install.Target].
func (Target) Find(ctx context.Context, env install.Env, o install.Options) install.Found {
	return env.Find(ctx, o.Program("codex"), codexHome(env))
}

// hooksFile is the file that an install edits.
func hooksFile(env install.Env, o install.Options) (string, error) {
	return o.In(filepath.Join(codexHome(env), "hooks.json"), filepath.Join(".codex", "hooks.json"))
}

// configFile is where Codex keeps what the user approved, for all scopes.
func configFile(env install.Env) string { return filepath.Join(codexHome(env), "config.toml") }

// Files implements [install.Target]. config.toml holds our MCP server, and the
// approvals that are not ours to write; uninstall takes both out.
func (Target) Files(env install.Env, o install.Options) ([]install.File, error) {
	path, err := hooksFile(env, o)
	if err != nil {
		return nil, err
	}
	hooks, err := configured.File(path, env.CommandPath(o))
	if err != nil {
		return nil, err
	}
	groups, err := configured.Groups(env.CommandPath(o))
	if err != nil {
		return nil, err
	}
	config := install.File{
		Path:   configFile(env),
		Upsert: func(old []byte) ([]byte, error) { return old, nil },
		Remove: func(now, original []byte, _ bool) ([]byte, error) { return forget(now, original, path, groups), nil },
	}
	if o.Server() {
		config.Upsert = func(old []byte) ([]byte, error) { return upsertServer(old, env.Server(o, Host)) }
		config.Remove = func(now, original []byte, known bool) ([]byte, error) {
			return removeServer(forget(now, original, path, groups), original, known)
		}
	}
	if !o.Hooks() {
		return []install.File{config}, nil
	}
	return []install.File{hooks, config}, nil
}

// acceptable refuses a hooks.json that Codex itself drops as a whole: hooks put
// into it would never run.
func acceptable(text []byte) error {
	const dropped = "so Codex ignores the whole file; repair it and run the command again"
	var top map[string]json.RawMessage
	if err := json.Unmarshal(text, &top); err != nil {
		return fmt.Errorf("the file is not plain JSON (%w; comments, trailing commas and a byte order mark are not allowed), %s", err, dropped)
	}
	for key := range top {
		if key != "hooks" && key != "description" {
			return fmt.Errorf("the file has the key %q beside \"hooks\" and \"description\", %s", key, dropped)
		}
	}
	if raw, ok := top["description"]; ok {
		var s *string
		if json.Unmarshal(raw, &s) != nil {
			return fmt.Errorf("the description is not a string, %s", dropped)
		}
	}
	if top["hooks"] == nil {
		return nil
	}
	var events map[string]json.RawMessage
	if json.Unmarshal(top["hooks"], &events) != nil || events == nil {
		return fmt.Errorf("\"hooks\" is not an object, %s", dropped)
	}
	for _, event := range knownEvents {
		raw, ok := events[event]
		if !ok {
			continue
		}
		var groups []struct {
			Matcher *string `json:"matcher"`
			Hooks   []struct {
				Type    *string `json:"type"`
				Command *string `json:"command"`
				Timeout *uint64 `json:"timeout"`
			} `json:"hooks"`
		}
		if err := json.Unmarshal(raw, &groups); err != nil || groups == nil {
			return fmt.Errorf("the hooks for %s are malformed, %s", event, dropped)
		}
		for _, g := range groups {
			for _, h := range g.Hooks {
				if h.Type == nil || *h.Type == "command" && h.Command == nil {
					return fmt.Errorf("a hook for %s has no type or no command, %s", event, dropped)
				}
			}
		}
	}
	return nil
}

// Check implements [install.Target].
func (Target) Check(env install.Env, o install.Options) install.Report {
	dirs := []string{codexHome(env)}
	if dir := filepath.Join(o.ProjectDir, ".codex"); o.ProjectDir != "" && !install.SameFile(dir, dirs[0]) {
		dirs = append(dirs, dir)
	}
	var files []string
	for _, dir := range dirs {
		files = append(files, filepath.Join(dir, "hooks.json"))
	}
	r := configured.Report(env.CommandPath(o), files...)
	for _, dir := range dirs {
		r.Problems = append(r.Problems, checkConfig(filepath.Join(dir, "config.toml"))...)
	}
	r.Servers = placedServers(env, o)
	for id, dir := range plugins(env) {
		r.Add(Host, configured.Plugin(env, o, dir, "codex plugin remove "+id))
	}
	return r
}

// OtherPlugins implements [install.PluginLister].
func (Target) OtherPlugins(env install.Env) []string { return install.OtherPlugins(plugins(env)) }

// plugins are those that are switched on: their ids and folders.
func plugins(env install.Env) map[string]string {
	var config struct {
		Plugins map[string]struct {
			Enabled bool `toml:"enabled"`
		} `toml:"plugins"`
	}
	if toml.Unmarshal(readConfig(env), &config) != nil {
		return nil
	}
	out := map[string]string{}
	for id, p := range config.Plugins {
		name, market, _ := strings.Cut(id, "@")
		copies, _ := durable.Glob(filepath.Join(codexHome(env), "plugins", "cache", market, name), "*")
		if p.Enabled && len(copies) > 0 {
			out[id] = copies[len(copies)-1]
		}
	}
	return out
}

// checkConfig finds what in a config.toml keeps hooks from working.
func checkConfig(path string) []install.Problem {
	b, err := install.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return []install.Problem{{Code: install.BadFile, What: err.Error(), Do: "make it a file that Codex can read", Off: true}}
	}
	var config struct {
		Features map[string]any `toml:"features"`
		Hooks    map[string]any `toml:"hooks"`
	}
	if err := toml.Unmarshal(b, &config); err != nil {
		return []install.Problem{{Code: install.BadFile, What: fmt.Sprintf("%s cannot be read: %v", path, err), Do: "repair the file", Off: true}}
	}
	var out []install.Problem
	if config.Features["hooks"] == false {
		out = append(out, install.Problem{Code: install.Off, What: "hooks are switched off in " + path, Do: "remove hooks = false under [features]", Off: true})
	}
	for _, event := range knownEvents {
		if config.Hooks[event] != nil {
			out = append(out, install.Problem{
				Code: install.HostSays,
				What: fmt.Sprintf("%s has hooks too (%s): Codex runs both and warns at every start", path, event),
				Do:   "move them to hooks.json in the same folder",
			})
			break
		}
	}
	return out
}
