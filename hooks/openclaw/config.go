package openclaw

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentscope-ai/reme-hook/install"
	"github.com/tailscale/hujson"
)

// pluginID is our plugin's name in the configuration, and that of its folder.
const pluginID = "reme"

// Where our plugin is in the configuration.
var (
	entryPath   = install.JSONPath{"plugins", "entries", pluginID}
	enabledPath = append(entryPath[:3:3], "enabled")
	accessPath  = append(entryPath[:3:3], "hooks", "allowConversationAccess")
	allowPath   = install.JSONPath{"plugins", "allow"}
)

// stateDir is the folder of the profile in use, as OpenClaw finds it.
func stateDir(env install.Env) string {
	if dir := env.Getenv("OPENCLAW_STATE_DIR"); strings.TrimSpace(dir) != "" {
		return expand(env, dir)
	}
	name := ".openclaw"
	if profile := strings.TrimSpace(env.Getenv("OPENCLAW_PROFILE")); profile != "" && profile != "default" {
		name += "-" + profile
	}
	return filepath.Join(home(env), name)
}

// configFile is the configuration of the profile in use.
func configFile(env install.Env) string {
	if file := env.Getenv("OPENCLAW_CONFIG_PATH"); strings.TrimSpace(file) != "" {
		return expand(env, file)
	}
	return filepath.Join(stateDir(env), "openclaw.json")
}

func home(env install.Env) string {
	dir := strings.TrimSpace(env.Getenv("OPENCLAW_HOME"))
	if rest, ok := strings.CutPrefix(dir, "~"); ok {
		dir = filepath.Join(env.Home, rest)
	}
	if dir, err := filepath.Abs(dir); err == nil && strings.TrimSpace(env.Getenv("OPENCLAW_HOME")) != "" {
		return dir
	}
	return env.Home
}

func expand(env install.Env, path string) string {
	path = strings.TrimSpace(path)
	if rest, ok := strings.CutPrefix(path, "~"); ok {
		return filepath.Join(home(env), rest)
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// config is the part of a configuration that plugins are about.
type config struct {
	Plugins struct {
		Enabled *bool             `json:"enabled"`
		Allow   []string          `json:"allow"`
		Deny    []string          `json:"deny"`
		Entries map[string]entry  `json:"entries"`
		Slots   map[string]string `json:"slots"`
	} `json:"plugins"`
}

// entry is what a configuration says of one plugin.
type entry struct {
	Enabled *bool `json:"enabled"`
	Hooks   struct {
		Conversation *bool `json:"allowConversationAccess"`
		Injection    *bool `json:"allowPromptInjection"`
	} `json:"hooks"`
	Config struct {
		Scope string `json:"scope"`
	} `json:"config"`
}

// ours is the entry of our plugin, and whether there is one.
func (c config) ours() (entry, bool) {
	e, ok := c.Plugins.Entries[pluginID]
	return e, ok
}

// allows tells whether the user's list of plugins, if there is one, has one.
func (c config) allows(id string) bool {
	return len(c.Plugins.Allow) == 0 || slices.Contains(c.Plugins.Allow, id)
}

// isFalse tells whether a switch is off, and not only left alone.
func isFalse(b *bool) bool { return b != nil && !*b }

// lacks lists the commands that give the configuration what our plugin needs.
// What the user has decided is not among it.
func (c config) lacks() []string {
	var out []string
	e, _ := c.ours()
	if e.Enabled == nil {
		out = append(out, "openclaw config set "+strings.Join(enabledPath, ".")+" true")
	}
	if e.Hooks.Conversation == nil {
		out = append(out, "openclaw config set "+strings.Join(accessPath, ".")+" true")
	}
	if !c.allows(pluginID) {
		list, _ := json.Marshal(append(slices.Clone(c.Plugins.Allow), pluginID))
		out = append(out, "openclaw config set "+strings.Join(allowPath, ".")+" '"+string(list)+"'")
	}
	return out
}

// maxIncludes is how deep OpenClaw follows includes.
const maxIncludes = 10

// readConfig reads a configuration with what it includes. A missing file is an
// empty one.
func readConfig(path string) (config, error) {
	var c config
	text, err := install.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	return parseConfig(text, filepath.Dir(path))
}

// parseConfig is readConfig for the text of a file in a folder.
func parseConfig(text []byte, dir string) (config, error) {
	var c config
	v, err := parseJSON(text)
	if err != nil {
		return c, err
	}
	if v, err = include(v, dir, maxIncludes); err != nil {
		return c, err
	}
	std, err := json.Marshal(v)
	if err != nil {
		return c, err
	}
	_ = json.Unmarshal(std, &c) // a member of another type than it should be is OpenClaw's to complain about
	return c, nil
}

// parseJSON reads JSON that may have comments and trailing commas.
func parseJSON(text []byte) (any, error) {
	text = bytes.TrimPrefix(text, install.BOM)
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	std, err := hujson.Standardize(bytes.Clone(text))
	if err != nil {
		return nil, install.Unquoted(err)
	}
	var v any
	err = json.Unmarshal(std, &v)
	return v, err
}

// include puts what an object includes into its place: later ones win, and what
// the object says itself.
func include(v any, dir string, depth int) (any, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return v, nil
	}
	if depth == 0 {
		return nil, errors.New("it includes too deep")
	}
	var merged any
	for _, name := range included(object) {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		text, err := install.ReadFile(path)
		if err != nil {
			return nil, err
		}
		part, err := parseJSON(text)
		if err != nil {
			return nil, errors.Join(errors.New(path), err)
		}
		if part, err = include(part, filepath.Dir(path), depth-1); err != nil {
			return nil, err
		}
		merged = merge(merged, part)
	}
	own := map[string]any{}
	for name, member := range object {
		if name == includeName {
			continue
		}
		m, err := include(member, dir, depth-1)
		if err != nil {
			return nil, err
		}
		own[name] = m
	}
	return merge(merged, own), nil
}

const includeName = "$include"

// included are the files that an object includes.
func included(object map[string]any) []string {
	switch v := object[includeName].(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, name := range v {
			if s, ok := name.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

// merge lays one value over another. Members of objects are merged, all else is
// replaced.
func merge(under, over any) any {
	a, ok := under.(map[string]any)
	b, both := over.(map[string]any)
	if !ok || !both {
		return over
	}
	out := maps.Clone(a)
	for name, v := range b {
		out[name] = merge(a[name], v)
	}
	return out
}

// editable tells whether a file's text can be spliced: strict JSON, with no
// include where our entry would be.
func editable(text []byte) bool {
	text = bytes.TrimPrefix(text, install.BOM)
	if len(bytes.TrimSpace(text)) == 0 {
		return true
	}
	var v any
	if json.Unmarshal(text, &v) != nil {
		return false
	}
	for _, name := range append(slices.Clone(entryPath), "") {
		object, _ := v.(map[string]any)
		if _, ok := object[includeName]; ok {
			return false
		}
		v = object[name]
	}
	return true
}
