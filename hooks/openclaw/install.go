package openclaw

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/install"
	"github.com/agentscope-ai/reme-hook/plugins/openclaw"
)

// Target installs our plugin into OpenClaw, for the profile that the environment
// names. OpenClaw asks for no approval of plugins that lie in its folder, and
// has no configuration in projects.
type Target struct {
	Version string // of this program, which the plugin bears
}

var _ install.Target = Target{}

// childTime is what the plugin allows a child.
const childTime = 3 * time.Second

// tested is the oldest release that the plugin was seen to work in.
const tested = "2026.9.6"

// Host implements [install.Target].
func (Target) Host() client.Host { return Host }

// Title implements [install.Target].
func (Target) Title() string { return "OpenClaw" }

// pluginDir is where the plugin lies.
func pluginDir(env install.Env) string { return filepath.Join(stateDir(env), "extensions", pluginID) }

// Find implements [install.Target].
func (Target) Find(ctx context.Context, env install.Env, o install.Options) install.Found {
	return env.Find(ctx, o.Program("openclaw"), stateDir(env))
}

// plugin is the plugin as it should be.
func (t Target) plugin(env install.Env, o install.Options) (install.Folder, error) {
	p := install.Folder{Dir: pluginDir(env), Main: mainFile}
	if o.Scope != "" && o.Scope != install.UserScope {
		return p, install.UnknownScope(o.Scope)
	}
	literal, err := install.Literal(env.CommandPath(o))
	if err != nil {
		return p, err
	}
	p.Files = openclaw.Files(t.Version, literal)
	return p, nil
}

// mainFile is the file of the plugin that OpenClaw loads.
const mainFile = "index.js"

// Files implements [install.Target]. The plugin comes first: an entry without a
// plugin is an error to OpenClaw.
func (t Target) Files(env install.Env, o install.Options) ([]install.File, error) {
	if !o.Hooks() {
		return nil, errors.New("the tools come with the plugin; leave out --mcp-only")
	}
	plugin, err := t.plugin(env, o)
	if err != nil {
		return nil, err
	}
	if err := plugin.Foreign(); err != nil {
		return nil, err
	}
	path := configFile(env)
	return append(plugin.InstallFiles(), install.File{
		Path: path,
		Upsert: func(old []byte) ([]byte, error) {
			if !editable(old) || nix(env) {
				return old, nil // Check says what to do
			}
			return upsert(old, filepath.Dir(path))
		},
		Remove: func(now, original []byte, known bool) ([]byte, error) {
			if !editable(now) || nix(env) {
				return now, byHand(now, filepath.Dir(path))
			}
			return remove(now, original, known)
		},
	}), nil
}

// nix tells whether the configuration is made by Nix, and cannot be written.
func nix(env install.Env) bool { return env.Getenv("OPENCLAW_NIX_MODE") == "1" }

// upsert puts our entry into a configuration. What the user has decided about it
// stays.
func upsert(old []byte, dir string) ([]byte, error) {
	c, err := parseConfig(old, dir)
	if err != nil {
		return nil, err
	}
	text := old
	for _, path := range []install.JSONPath{enabledPath, accessPath} {
		if text, err = path.Set(text, true); err != nil {
			return nil, err
		}
	}
	if c.allows(pluginID) {
		return text, nil
	}
	return allowPath.Add(text, pluginID)
}

// remove takes our entry out again. It returns nil if nothing is left in a file
// that was not there before.
func remove(now, original []byte, known bool) ([]byte, error) {
	text, err := allowPath.Drop(now, pluginID)
	if err != nil {
		return nil, err
	}
	if text, err = entryPath.Unset(text, original); err != nil {
		return nil, err
	}
	if known && original == nil && string(bytes.TrimSpace(text)) == "{}" {
		return nil, nil
	}
	return text, nil
}

// byHand is how to take our entry out of a configuration that is not rewritten.
// One that cannot be read has none if it has neither our name nor an include.
func byHand(now []byte, dir string) error {
	c, err := parseConfig(now, dir)
	if _, ok := c.ours(); err == nil && !ok && !slices.Contains(c.Plugins.Allow, pluginID) {
		return nil
	}
	if err != nil && !bytes.Contains(now, []byte(pluginID)) && !bytes.Contains(now, []byte(includeName)) {
		return nil
	}
	return fmt.Errorf("it is not strict JSON or includes other files, and is not rewritten; run `openclaw config unset %s`, take %s out of plugins.allow if it is there, and run the command again", strings.Join(entryPath, "."), pluginID)
}

// Check implements [install.Target].
func (t Target) Check(env install.Env, o install.Options) install.Report {
	var report install.Report
	add := func(code install.Code, do, what string, args ...any) {
		report.Problems = append(report.Problems, install.Problem{Code: code, What: fmt.Sprintf(what, args...), Do: do, Off: true})
	}
	o.Scope = install.UserScope
	plugin, err := t.plugin(env, o)
	if err != nil {
		add(install.BadPath, "use another folder for the integrations", "%v", err)
	}
	path := configFile(env)
	c, unread := readConfig(path)
	e, entered := c.ours()
	if !plugin.Placed() && (!entered || plugin.Foreign() != nil) { // then the entry is another's
		return report
	}
	if !plugin.Placed() {
		add(install.Missing, "reme-hook install openclaw, or openclaw config unset "+strings.Join(entryPath, "."), "%s has our plugin, which is not in %s", path, plugin.Dir)
	}
	set := func(p install.JSONPath) string { return "openclaw config set " + strings.Join(p, ".") + " true" }
	switch lacks := c.lacks(); {
	case errors.Is(unread, fs.ErrPermission):
		add(install.BadFile, "make the file readable", "%v", unread)
	case unread != nil:
		add(install.BadFile, strings.Join(config{}.lacks(), " && "), "%s is written in a way that reme-hook cannot read, so it is not changed: %v", path, unread)
	case len(lacks) > 0:
		add(install.Denied, strings.Join(lacks, " && "), "%s does not let OpenClaw use the plugin", path)
	}
	if isFalse(c.Plugins.Enabled) {
		add(install.Off, set(install.JSONPath{"plugins", "enabled"}), "all plugins are switched off in %s", path)
	}
	if slices.Contains(c.Plugins.Deny, pluginID) {
		add(install.Denied, "take "+pluginID+" out of plugins.deny", "%s denies the plugin", path)
	}
	if isFalse(e.Enabled) {
		add(install.Off, set(enabledPath), "the plugin is switched off in %s", path)
	}
	if isFalse(e.Hooks.Conversation) {
		add(install.Off, set(accessPath), "capture and recall are off: %s keeps conversations from the plugin, %s is false", path, strings.Join(accessPath, "."))
	}
	if isFalse(e.Hooks.Injection) {
		injection := append(entryPath[:3:3], "hooks", "allowPromptInjection")
		add(install.Off, set(injection), "recall is off: %s is false in %s", strings.Join(injection, "."), path)
	}
	index, _ := install.ReadFile(filepath.Join(plugin.Dir, mainFile))
	program := ""
	if json.Unmarshal([]byte(openclaw.Program(index)), &program) != nil {
		program = env.CommandPath(o)
	}
	report.OwnTools = true
	report.Hooks = install.PluginHooks(Host, Adapter().Events, program, plugin.Dir, childTime, plugin.Current())
	return report
}

// Trust implements [install.Target]: OpenClaw asks for no approval.
func (Target) Trust(context.Context, install.Env, install.Options) error { return nil }

// Trusted implements [install.Target]. It looks at the release only: what
// OpenClaw makes of the plugin, `openclaw plugins doctor` tells in half a minute.
func (t Target) Trusted(ctx context.Context, env install.Env, o install.Options) (install.TrustState, error) {
	var st install.TrustState
	if v := t.Find(ctx, env, o).Version; v != "" && older(v, tested) {
		st.Problems = []install.Problem{{
			Code: install.OldHost,
			What: fmt.Sprintf("OpenClaw %s is older than %s, the first release that the plugin is known to work in", v, tested),
			Do:   "openclaw update",
		}}
	}
	return st, nil
}

// older compares releases, number by number.
func older(a, b string) bool {
	numbers := func(s string) []int {
		var out []int
		for f := range strings.FieldsFuncSeq(s, func(r rune) bool { return !unicode.IsDigit(r) }) {
			n, _ := strconv.Atoi(f)
			out = append(out, n)
		}
		return out
	}
	return slices.Compare(numbers(a), numbers(b)) < 0
}
