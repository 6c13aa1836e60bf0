package hermes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/install"
	"github.com/agentscope-ai/reme-hook/plugins/hermes"
)

// Target installs our memory provider into Hermes, or else shell hooks, for the
// profile that hermes itself would take. Hermes has no configuration in projects.
type Target struct {
	Version string // of this program, which the provider bears
}

var _ install.ShellHooker = Target{}

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
	chosen, _ := install.ReadFile(filepath.Join(root, "active_profile"))
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

// plugin is the provider as it should be.
func (t Target) plugin(env install.Env, o install.Options) (install.Folder, error) {
	p := install.Folder{Dir: pluginDir(env), Main: "__init__.py"}
	if o.Scope != "" && o.Scope != install.UserScope {
		return p, install.UnknownScope(o.Scope)
	}
	literal, err := install.Literal(env.CommandPath(o))
	if err != nil {
		return p, err
	}
	p.Files = hermes.Files(t.Version, literal)
	if st, err := os.Stat(filepath.Join(p.Dir, pycache)); err != nil || !st.IsDir() {
		p.Files[pycache] = []byte("Keeps Python from leaving files here.\n")
	}
	return p, nil
}

// ShellHooks implements [install.ShellHooker].
func (Target) ShellHooks() {}

// Files implements [install.Target]. The provider comes first, as Hermes does
// without a word if it is not there. It gives the model the tools: our MCP server
// is for those who want no provider. Once connected by shell hooks, Hermes stays
// so until an uninstall.
func (t Target) Files(env install.Env, o install.Options) ([]install.File, error) {
	plugin, err := t.plugin(env, o)
	if err != nil {
		return nil, err
	}
	now, err := readConfig(env)
	shell := o.ShellHooks || err == nil && len(now.hooks()) > 0
	config := install.File{
		Path:   configFile(env),
		Upsert: func(old []byte) ([]byte, error) { return configured(old, env, o, shell) },
		Remove: func(now, original []byte, known bool) ([]byte, error) {
			text, err := remove(now, original, known)
			if err != nil {
				return nil, err
			}
			if text, err = removeHooks(text, original, known); err != nil {
				return nil, err
			}
			return removeServer(text, original, known)
		},
	}
	if !o.Hooks() {
		return []install.File{config}, nil
	}
	files := []install.File{{Path: approvalsFile(env), Upsert: keep, Remove: removeApprovals}}
	switch foreign := plugin.Foreign(); {
	case foreign == nil:
		files = slices.Concat(providerFiles(plugin, shell), files)
	case !shell:
		return nil, foreign
	}
	return append(files, config), nil
}

// configured puts into a config.yaml what o asks for.
func configured(old []byte, env install.Env, o install.Options, shell bool) ([]byte, error) {
	text, err := old, error(nil)
	switch {
	case !o.Hooks():
		return upsertServer(old, env.Server(o, Host))
	case shell:
		text, err = upsertHooks(old, env.CommandPath(o))
	default:
		text, err = upsert(old)
	}
	switch {
	case err != nil:
		return nil, err
	case !shell: // the provider has the tools
		return removeServer(text, nil, false)
	case !o.Server():
		return text, nil
	}
	with, err := upsertServer(text, env.Server(o, Host))
	if errors.Is(err, install.ErrForeignServer) {
		return text, nil
	}
	return with, err
}

// keep leaves a file as it is.
func keep(old []byte) ([]byte, error) { return old, nil }

// providerFiles are the files of the provider, which shell hooks do without.
func providerFiles(plugin install.Folder, shell bool) []install.File {
	files := plugin.InstallFiles()
	for i := range files {
		if shell {
			files[i].Upsert = keep
		}
	}
	return files
}

// readConfig reads the config.yaml; an empty one if there is none.
func readConfig(env install.Env) (*config, error) {
	text, err := install.ReadFile(configFile(env))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &config{}, err
	}
	c, err := parse(text)
	if err != nil {
		return &config{}, fmt.Errorf("%s: %w", configFile(env), err)
	}
	return c, nil
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
	c, err := readConfig(env)
	if err != nil {
		add(install.BadFile, "repair the file", "%v", err)
	}
	report.Servers = c.servers(env, o)
	placed := plugin.Placed()
	if placedHooks := c.hooks(); len(placedHooks) > 0 {
		if c.provider() == providerName && plugin.Foreign() == nil {
			add(install.Twice, "reme-hook uninstall hermes, then install it one way", "%s has both shell hooks and the memory provider of reme-hook: everything is remembered twice", configFile(env))
		}
		if st, err := c.trusted(env, placedHooks); err != nil || !st.OK() {
			report.Notes = append(report.Notes, "Hermes skips these hooks until you approve them, one by one when it is started at a terminal, or with reme-hook install hermes --trust")
		}
		return withShellHooks(report, env, o, placedHooks)
	}
	switch selected := c.provider(); {
	case !placed && selected != providerName:
		return report
	case !placed:
		add(install.Missing, "reme-hook install hermes", "Hermes looks for the memory provider in %s, where it is not, and does without", pluginDir(env))
		report.Problems[len(report.Problems)-1].Again = true
	case selected == "":
		add(install.NotChosen, "reme-hook install hermes", "no memory provider is chosen in %s", configFile(env))
	case selected != providerName:
		add(install.NotChosen, "hermes memory off, then reme-hook install hermes; or reme-hook uninstall hermes", "%s has another memory provider, %q", configFile(env), selected)
	}
	report.OwnTools = true
	cli, _ := install.ReadFile(filepath.Join(plugin.Dir, "cli.py"))
	program := ""
	if json.Unmarshal([]byte(hermes.Program(cli)), &program) != nil {
		program = env.CommandPath(o)
	}
	report.Hooks = install.PluginHooks(Host, providerEvents, program, plugin.Dir, childTime, plugin.Current())
	return report
}

// withShellHooks adds what is configured of shell hooks to a report.
func withShellHooks(report install.Report, env install.Env, o install.Options, placed []placedHook) install.Report {
	report.Notes = append(report.Notes, shellLimits...)
	for _, h := range shellHooks {
		i := slices.IndexFunc(placed, func(p placedHook) bool { return p.event == h.event })
		if i < 0 {
			report.Missing = append(report.Missing, h.verb())
			continue
		}
		report.Hooks = append(report.Hooks, install.Configured{
			Event: h.verb(), Command: placed[i].command, Shell: install.PosixShell, File: configFile(env), Timeout: shellTime,
			Current: placed[i].command == command(env.CommandPath(o), h.verb()),
		})
	}
	return report
}

// command is how a program is run for an event, as a shell would be told.
func command(program, event string) string {
	switch {
	case runtime.GOOS == "windows":
		program = `"` + program + `"`
	case !plainPath.MatchString(program):
		program = "'" + strings.ReplaceAll(program, "'", `'\''`) + "'"
	}
	return program + " " + string(Host) + " " + event
}

var plainPath = regexp.MustCompile(`^[\w./@%+=:,-]+$`)

// Trust implements [install.Target]: Hermes asks for approval of shell hooks only.
func (Target) Trust(_ context.Context, env install.Env, o install.Options) error {
	c, err := readConfig(env)
	if err != nil {
		return err
	}
	return approveHooks(env, c.hooks(), env.CommandPath(o))
}

// Trusted implements [install.Target]. It asks Hermes what it makes of its
// configuration: an error in the import of a provider is otherwise silent. Of
// shell hooks it knows itself which are approved.
func (Target) Trusted(ctx context.Context, env install.Env, o install.Options) (install.TrustState, error) {
	c, err := readConfig(env)
	if err != nil {
		return install.TrustState{}, err
	}
	if placed := c.hooks(); len(placed) > 0 {
		return c.trusted(env, placed)
	}
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
		st.Problems = []install.Problem{{Code: install.NotLoaded, What: fmt.Sprintf("Hermes cannot say which memory it uses: %v", err), Do: look, Off: true}}
	case !strings.Contains(status, "Plugin:    installed"):
		st.Problems = []install.Problem{{Code: install.NotLoaded, What: "Hermes cannot load the memory provider, and does without", Do: look, Off: true}}
	case !strings.Contains(status, "Status:    available"):
		st.Problems = []install.Problem{{Code: install.NotLoaded, What: "the memory provider in Hermes does not find reme-hook", Do: "reme-hook install hermes", Off: true}}
	}
	return st, nil
}

// trusted tells which shell hooks are approved: those that the user has approved,
// or all.
func (c *config) trusted(env install.Env, placed []placedHook) (install.TrustState, error) {
	st := install.TrustState{Needed: true, Source: approvalsFile(env)}
	text, err := install.ReadFile(st.Source)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return st, err
	}
	a, err := parseApprovals(text)
	if err != nil {
		return st, fmt.Errorf("%s: %w", st.Source, err)
	}
	all := resolved(value(c.Root, "hooks_auto_accept"))
	for _, h := range placed {
		state := install.TrustNo
		if a.has(h.event, h.command) || all != nil && isTrue(all.Value) || isTrue(env.Getenv("HERMES_ACCEPT_HOOKS")) {
			state = install.TrustYes
		}
		st.Hooks = append(st.Hooks, install.HookTrust{Event: strings.ReplaceAll(h.event, "_", "-"), File: configFile(env), State: state})
	}
	return st, nil
}

// isTrue reads a switch as Hermes does.
func isTrue(s string) bool {
	return slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(strings.TrimSpace(s)))
}
