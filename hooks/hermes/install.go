package hermes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/install"
	"github.com/agentscope-ai/reme-hook/plugins/hermes"
)

// Target installs our memory provider into Hermes, for the profile that hermes
// itself would take. Hermes asks for no approval, and has no configuration in
// projects.
type Target struct {
	Version string // of this program, which the provider bears
}

var _ install.Target = Target{}

// childTime is what the provider allows a child.
const childTime = 3 * time.Second

// statusTime bounds how long Hermes may take to say what it makes of its
// configuration: 2 s on a machine that has nothing else to do.
const statusTime = 20 * time.Second

// Host implements [install.Target].
func (Target) Host() client.Host { return Host }

// Title implements [install.Target].
func (Target) Title() string { return "Hermes" }

// hermesHome is the folder of the profile in use: what HERMES_HOME says, and the
// profile that `hermes profile use` has chosen if that is not one itself.
func hermesHome(env install.Env) string {
	root := filepath.Join(env.Home, ".hermes")
	if dir := env.Getenv("LOCALAPPDATA"); runtime.GOOS == "windows" && dir != "" {
		root = filepath.Join(dir, "hermes")
	}
	if dir, err := filepath.Abs(strings.TrimSpace(env.Getenv("HERMES_HOME"))); err == nil && strings.TrimSpace(env.Getenv("HERMES_HOME")) != "" {
		root = dir
	}
	if filepath.Base(filepath.Dir(root)) == "profiles" {
		return root
	}
	chosen, _ := os.ReadFile(filepath.Join(root, "active_profile"))
	if name := strings.TrimSpace(string(chosen)); name != "" && name != "default" && filepath.Base(name) == name {
		dir := filepath.Join(root, "profiles", name)
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			return dir
		}
	}
	return root
}

func configFile(env install.Env) string { return filepath.Join(hermesHome(env), "config.yaml") }

// pluginDir is where the provider lies.
func pluginDir(env install.Env) string {
	return filepath.Join(hermesHome(env), "plugins", providerName)
}

// Find implements [install.Target].
func (Target) Find(ctx context.Context, env install.Env, o install.Options) install.Found {
	return env.Find(ctx, o.Program("hermes"), hermesHome(env))
}

// pycache is a file in the place of the folder in which Python would leave
// something that an uninstall does not know of. Python does without then.
const pycache = "__pycache__"

// wanted are the files of the provider as they should be.
func (t Target) wanted(env install.Env, o install.Options) (map[string][]byte, error) {
	if o.Scope != "" && o.Scope != install.UserScope {
		return nil, install.UnknownScope(o.Scope)
	}
	program := env.CommandPath(o)
	literal, err := json.Marshal(program)
	if err != nil || !utf8.ValidString(program) || strings.ContainsFunc(program, unicode.IsControl) {
		return nil, fmt.Errorf("the path %q cannot be put into a program in Python", program)
	}
	files := hermes.Files(t.Version, string(literal))
	if st, err := os.Stat(filepath.Join(pluginDir(env), pycache)); err != nil || !st.IsDir() {
		files[pycache] = []byte("Keeps Python from leaving files here.\n")
	}
	return files, nil
}

// Files implements [install.Target]. The provider comes first, as Hermes does
// without a word if it is not there.
func (t Target) Files(env install.Env, o install.Options) ([]install.File, error) {
	wanted, err := t.wanted(env, o)
	if err != nil {
		return nil, err
	}
	if init, err := os.ReadFile(filepath.Join(pluginDir(env), "__init__.py")); err == nil && !isOurs(init) {
		return nil, fmt.Errorf("%s holds another plugin; move it away and run the command again", pluginDir(env))
	}
	var files []install.File
	for name, text := range wanted {
		files = append(files, install.File{
			Path: filepath.Join(pluginDir(env), name),
			Upsert: func(old []byte) ([]byte, error) {
				if bytes.Equal(old, text) {
					return old, nil
				}
				return text, nil
			},
			Remove: func([]byte, []byte, bool) ([]byte, error) { return nil, nil },
		})
	}
	slices.SortFunc(files, func(a, b install.File) int { return strings.Compare(a.Path, b.Path) })
	config := install.File{Path: configFile(env), Upsert: upsert, Remove: remove}
	if o.MCP {
		config.Upsert = func(old []byte) ([]byte, error) {
			text, err := upsert(old)
			if err != nil {
				return nil, err
			}
			return upsertServer(text, env.Server(o))
		}
		config.Remove = func(now, original []byte, known bool) ([]byte, error) {
			text, err := remove(now, original, known)
			if err != nil {
				return nil, err
			}
			return removeServer(text, original, known)
		}
	}
	return append(files, config), nil
}

// isOurs tells our provider from another one of the same name.
func isOurs(init []byte) bool { return bytes.Contains(init, []byte("Made by reme-hook")) }

// Check implements [install.Target].
func (t Target) Check(env install.Env, o install.Options) install.Report {
	var report install.Report
	add := func(do, what string, args ...any) {
		report.Problems = append(report.Problems, install.Problem{What: fmt.Sprintf(what, args...), Do: do, Off: true})
	}
	o.Scope = install.UserScope
	wanted, err := t.wanted(env, o)
	if err != nil {
		add("use another folder for the integrations", "%v", err)
	}
	text, err := os.ReadFile(configFile(env))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		add("make the file readable", "%v", err)
	}
	c, err := parse(text)
	if err != nil {
		add("repair the file", "%s: %v", configFile(env), err)
		c = &config{}
	}
	report.Problems = append(report.Problems, c.server().Stale(env, o, Host, configFile(env))...)
	current, program := true, ""
	for name, text := range wanted {
		now, err := os.ReadFile(filepath.Join(pluginDir(env), name))
		current = current && err == nil && bytes.Equal(now, text)
		if name == "cli.py" && json.Unmarshal([]byte(hermes.Program(now)), &program) != nil {
			program = ""
		}
	}
	init, err := os.ReadFile(filepath.Join(pluginDir(env), "__init__.py"))
	placed := err == nil && isOurs(init)
	switch selected := c.provider(); {
	case !placed && selected != providerName:
		return report
	case !placed:
		add("reme-hook install hermes", "Hermes looks for the memory provider in %s, where it is not, and does without", pluginDir(env))
	case selected == "":
		add("reme-hook install hermes", "no memory provider is chosen in %s", configFile(env))
	case selected != providerName:
		add("hermes memory off, then reme-hook install hermes; or reme-hook uninstall hermes", "%s has another memory provider, %q", configFile(env), selected)
	}
	for event := range Adapter().Events {
		report.Hooks = append(report.Hooks, install.Configured{
			Event: event, Command: command(cmp.Or(program, env.CommandPath(o)), event), Shell: install.PosixShell,
			File: pluginDir(env), Timeout: childTime, Current: current,
		})
	}
	slices.SortFunc(report.Hooks, func(a, b install.Configured) int { return strings.Compare(a.Event, b.Event) })
	return report
}

// command is what the provider runs for an event, as a shell would be told.
func command(program, event string) string {
	quoted := "'" + strings.ReplaceAll(program, "'", `'\''`) + "'"
	if runtime.GOOS == "windows" {
		quoted = `"` + program + `"`
	}
	return quoted + " " + string(Host) + " " + event
}

// Trust implements [install.Target]: Hermes asks for no approval.
func (Target) Trust(context.Context, install.Env, install.Options) error { return nil }

// Trusted implements [install.Target]. It asks Hermes what it makes of its
// configuration: an error in the import of a provider is otherwise silent.
func (Target) Trusted(ctx context.Context, env install.Env, o install.Options) (install.TrustState, error) {
	var st install.TrustState
	binary, err := env.LookPath(o.Program("hermes"))
	if err != nil {
		return st, nil
	}
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "memory", "status")
	cmd.Env = env.Environ
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	st.Source = "hermes memory status"
	const look = "run `hermes memory status`, and look into logs/agent.log in Hermes' folder"
	switch status := string(out); {
	case err != nil:
		st.Problems = []install.Problem{{What: fmt.Sprintf("Hermes cannot say which memory it uses: %v", err), Do: look, Off: true}}
	case !strings.Contains(status, "Plugin:    installed"):
		st.Problems = []install.Problem{{What: "Hermes cannot load the memory provider, and does without", Do: look, Off: true}}
	case !strings.Contains(status, "Status:    available"):
		st.Problems = []install.Problem{{What: "the memory provider in Hermes does not find reme-hook", Do: "reme-hook install hermes", Off: true}}
	}
	return st, nil
}
