package dsh

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/install"
	"github.com/agentscope-ai/reme-hook/plugins/dsh"
	"gopkg.in/yaml.v3"
)

// Target installs our plugin into DSH, for all of its profiles. DSH asks for no
// approval, and has no configuration in projects.
type Target struct{}

var (
	_ install.Target    = Target{}
	_ install.Validator = Target{}
)

// shimDir is where the plugin lies, in the folder of the integrations.
const shimDir = "dsh"

// bundle is the package of the same plugin for `dsh plugin add`.
const bundle = "reme-hook-dsh"

// childTime is what the plugin allows a child.
const childTime = 3 * time.Second

// dumpTime bounds how long DSH may take to print its configuration: 0.3 s on a
// machine that has nothing else to do.
const dumpTime = 15 * time.Second

// Host implements [install.Target].
func (Target) Host() client.Host { return Host }

// Title implements [install.Target].
func (Target) Title() string { return "DSH" }

func dshHome(env install.Env) string { return env.Folder("DSH_HOME", ".dsh") }

// patchFile holds the rows for all profiles.
func patchFile(env install.Env) string { return filepath.Join(dshHome(env), "cordis.patch.yml") }

// profiles lists the folders of the profiles that were used so far.
func profiles(env install.Env) []string {
	root := filepath.Join(dshHome(env), "profiles")
	entries, _ := os.ReadDir(root)
	var out []string
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		if _, err := os.Stat(filepath.Join(dir, "package.json")); err == nil {
			out = append(out, dir)
		}
	}
	return out
}

// Find implements [install.Target]. Another program of this name, the dancer's
// shell, has its folder in the same place.
func (Target) Find(ctx context.Context, env install.Env, o install.Options) install.Found {
	f := env.Find(ctx, o.Program("dsh"), dshHome(env))
	if real, err := filepath.EvalSymlinks(f.Binary); err != nil || !strings.Contains(filepath.ToSlash(real), "/@deepseek-ai/dsh/") {
		f.Present = len(profiles(env)) > 0
	}
	return f
}

// plugin is the folder that DSH loads the plugin from.
func plugin(env install.Env) install.Folder {
	return install.Folder{Dir: filepath.Join(env.IntegrationsDir, shimDir), Main: dsh.ShimName, Files: dsh.Files()}
}

// shimFile is what DSH loads.
func shimFile(env install.Env) string { return filepath.Join(plugin(env).Dir, dsh.ShimName) }

// wanted is our row: of the plugin, which has the tools too, or of the MCP server.
func wanted(env install.Env, o install.Options) (row, error) {
	if o.Scope != "" && o.Scope != install.UserScope {
		return row{}, install.UnknownScope(o.Scope)
	}
	if err := validate(shimFile(env), env.CommandPath(o)); err != nil {
		return row{}, err
	}
	if !o.Hooks() {
		return serverRow(env.Server(o, Host)), nil
	}
	return pluginRow(shimFile(env), env.CommandPath(o)), nil
}

// Files implements [install.Target]. The plugin comes first: DSH watches the
// other file.
func (Target) Files(env install.Env, o install.Options) ([]install.File, error) {
	r, err := wanted(env, o)
	if err != nil {
		return nil, err
	}
	patch := install.File{
		Path: patchFile(env),
		Upsert: func(old []byte) ([]byte, error) {
			if p, err := parse(old); err == nil && r.id == serverID && len(p.ours(rowID)) > 0 {
				return old, nil // the plugin has the tools
			}
			return upsert(old, r)
		},
		Remove: remove,
	}
	if !o.Hooks() {
		return []install.File{patch}, nil
	}
	return append(plugin(env).InstallFiles(), patch), nil
}

// Check implements [install.Target].
func (Target) Check(env install.Env, o install.Options) install.Report {
	var report install.Report
	add := func(code install.Code, off bool, do, what string, args ...any) {
		report.Problems = append(report.Problems, install.Problem{Code: code, What: fmt.Sprintf(what, args...), Do: do, Off: off})
	}
	again := func(code install.Code, what string, args ...any) {
		add(code, true, "reme-hook install dsh", what, args...)
		report.Problems[len(report.Problems)-1].Again = true
	}
	o.Scope = install.UserScope
	o.Part = ""
	row, err := wanted(env, o)
	if err != nil {
		add(install.BadPath, true, "use another folder for the integrations", "%v", err)
	}
	path := patchFile(env)
	text, err := install.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		add(install.BadFile, true, "make the file readable", "%v", err)
	}
	p, err := parse(text)
	if err != nil {
		add(install.BadFile, true, "repair the file", "%s: %v", path, err)
		return report
	}
	if p.Root == nil && text != nil {
		add(install.BadFile, true, "remove the file, or put [] into it", "%s has no list of rows: DSH does not start", path)
	}
	for _, server := range p.servers() {
		report.Servers = append(report.Servers, env.Registered(o, Host, serverOf(server), path, isTrue(member(server, "disabled"))))
	}
	ours := p.ours(rowID)
	if len(ours) > 1 {
		again(install.Twice, "our row is %d times in %s: DSH does not start", len(ours), path)
	}
	for _, profile := range profiles(env) {
		if slices.Contains(bundles(profile), bundle) {
			do := "dsh plugin --profile " + filepath.Base(profile) + " remove " + bundle
			if len(ours) > 0 {
				add(install.Twice, false, do, "the profile %s has the plugin too, as the bundle %s: both run", filepath.Base(profile), bundle)
			} else {
				add(install.HostSays, false, do+"; reme-hook install dsh", "the profile %s has the bundle %s, which no other profile has and which nothing here looks after", filepath.Base(profile), bundle)
			}
		}
	}
	if len(ours) == 0 {
		return report
	}
	if switchedOff(p) {
		add(install.Off, true, "remove `disabled: true` there", "the row is disabled in %s", path)
	}
	if !plugin(env).Placed() {
		again(install.Missing, "the plugin is not in %s, so DSH skips it", plugin(env).Dir)
	}
	current := ours[0].current(row) && plugin(env).Current()
	report.OwnTools = true
	report.Hooks = install.PluginHooks(Host, Adapter().Events, value(ours[0].command), path, childTime, current)
	return report
}

// switchedOff tells whether the user has disabled our row, in itself or in a row
// that changes it.
func switchedOff(p *patch) bool {
	return p.ours(rowID)[0].off() || slices.ContainsFunc(p.items, func(item *yaml.Node) bool {
		return member(item, "insert") == nil && value(member(item, "id")) == rowID && isTrue(member(item, "disabled"))
	})
}

// bundles are those that a profile mounts.
func bundles(profile string) []string {
	b, _ := install.ReadFile(filepath.Join(profile, "package.json"))
	var manifest struct {
		DSH struct {
			Profile struct {
				Bundles []string `json:"bundles"`
			} `json:"profile"`
		} `json:"dsh"`
	}
	_ = json.Unmarshal(b, &manifest) // one that nobody reads is DSH's to complain about
	return manifest.DSH.Profile.Bundles
}

// Trust implements [install.Target]: DSH asks for no approval.
func (Target) Trust(context.Context, install.Env, install.Options) error { return nil }

// Trusted implements [install.Target]. It asks DSH what it makes of its
// configuration.
func (Target) Trusted(ctx context.Context, env install.Env, o install.Options) (install.TrustState, error) {
	st := install.TrustState{Source: "dsh --dump-config"}
	out, err := dump(ctx, env, o)
	switch {
	case err != nil:
		st.Problems = append(st.Problems, install.Problem{Code: install.BadFile, What: "DSH cannot read its configuration: " + err.Error(), Do: "repair what it names", Off: true})
	case out != nil && !bytes.Contains(out, []byte("id: "+rowID+"\n")):
		st.Problems = append(st.Problems, install.Problem{Code: install.NotLoaded, What: "DSH does not see our row in " + patchFile(env), Do: "start DSH with the same $DSH_HOME as reme-hook", Off: true})
	}
	return st, nil
}

// Validate implements [install.Validator]. What DSH says about other files than
// ours was so before.
func (Target) Validate(ctx context.Context, env install.Env, o install.Options) error {
	if _, err := dump(ctx, env, o); err != nil && strings.Contains(err.Error(), patchFile(env)) {
		return fmt.Errorf("DSH does not accept the change: %w", err)
	}
	return nil
}

// dump is the configuration that DSH composes for a profile, without starting
// anything; nil if there is no program or no profile to ask for.
func dump(ctx context.Context, env install.Env, o install.Options) ([]byte, error) {
	binary, err := env.LookPath(o.Program("dsh"))
	known := profiles(env)
	if err != nil || len(known) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dumpTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "--profile", filepath.Base(known[0]), "--dump-config")
	cmd.Env = env.Environ
	cmd.WaitDelay = time.Second // a launcher may leave a child that holds the pipe
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %.500s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
