package cmd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/gateway"
	"github.com/agentscope-ai/reme-hook/install"
	"github.com/agentscope-ai/reme-hook/internal/config"
	"github.com/agentscope-ai/reme-hook/internal/doctor"
	"github.com/agentscope-ai/reme-hook/internal/link"
	"github.com/agentscope-ai/reme-hook/internal/remote"
	"github.com/agentscope-ai/reme-hook/spool"
	"github.com/agentscope-ai/reme-hook/state"
	"github.com/agentscope-ai/reme-hook/upstream"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// patient is a machine that doctor looks at, with hosts that are connected and
// well.
type patient struct {
	*testing.T
	home     string
	doctor   doctor.Doctor
	hosts    []doctor.Host
	programs map[string]string // on the PATH
}

var patientClock = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// wards are homes in which one host was connected, from which patients are
// copied: to install costs syncs.
type wards struct {
	*testing.T
	dir     string
	program string // what stands for this program: a script that calls it
	beds    atomic.Int64
	mu      sync.Mutex
	made    map[client.Host]func() string
}

func newWards(t *testing.T) *wards {
	t.Helper()
	real, err := exec.LookPath("reme-hook")
	if err != nil {
		t.Fatal(err)
	}
	w := &wards{T: t, dir: t.TempDir(), made: map[client.Host]func() string{}}
	w.program = filepath.Join(w.dir, "program")
	w.write(w.program, "#!/bin/sh\nexec '"+real+"' \"$@\"\n", 0o700)
	return w
}

func (w *wards) write(path, text string, mode fs.FileMode) {
	w.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		w.Fatal(err)
	}
}

// home is that of a host which was connected.
func (w *wards) home(h host) string {
	w.mu.Lock()
	once, ok := w.made[h.Adapter.Host]
	if !ok {
		once = sync.OnceValue(func() string {
			home := filepath.Join(w.dir, string(h.Adapter.Host))
			if _, err := install.Install(context.Background(), h.Target, envOf(home, nil), install.Options{}); err != nil {
				w.Error(err)
			}
			return home
		})
		w.made[h.Adapter.Host] = once
	}
	w.mu.Unlock()
	return once()
}

// envOf is a machine whose programs are given, and no others.
func envOf(home string, programs map[string]string) install.Env {
	return install.Env{
		Home: home, IntegrationsDir: filepath.Join(home, ".reme", "integrations"),
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TEST_NOW=" + patientClock.Format(time.RFC3339), "REME_UPSTREAM=off"},
		LookPath: func(name string) (string, error) {
			if path, ok := programs[name]; ok {
				return path, nil
			}
			return "", exec.ErrNotFound
		},
	}
}

// noMemory is a memory that is well.
type noMemory struct{ client.Service }

func (noMemory) Stats(context.Context) (workspace.Stats, error) { return workspace.Stats{}, nil }

// admit copies hosts from the wards into a home of their own.
func (w *wards) admit(t *testing.T, names ...client.Host) *patient {
	t.Helper()
	p := &patient{T: t, home: filepath.Join(w.dir, fmt.Sprintf("p%d", w.beds.Add(1))), programs: map[string]string{}}
	env := envOf(p.home, p.programs)
	now := func() time.Time { return patientClock }
	dir := env.IntegrationsDir
	cfg, _, problems := config.Load(filepath.Join(dir, "config.toml"), p.home, func(string) string { return "" })
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	cfg.Listen = "127.0.0.1:1"
	p.doctor = doctor.Doctor{
		Now: now, Env: env, Config: cfg, Program: w.program, Log: filepath.Join(dir, "log", "hook.jsonl"), Temp: filepath.Join(p.home, "tmp"),
		Spool: spool.Spool{Dir: filepath.Join(dir, "spool"), Now: now}, State: state.Store{Dir: filepath.Join(dir, "state"), Now: now},
		Link: link.File{Path: filepath.Join(dir, "service.json")}, Upstream: upstream.New(filepath.Join(dir, "upstream"), cfg.Workspace, now),
		Memory: func(context.Context) (doctor.Memory, error) { return noMemory{}, nil },
		Free:   func(string) (uint64, error) { return 1 << 40, nil },
		Probe:  func(context.Context, []string, doctor.Side, doctor.Side) doctor.Loop { return doctor.Loop{} },
		Tools:  func(context.Context, []string, install.Server) ([]string, error) { return []string{"search"}, nil },
	}
	p.write(".reme/integrations/log/hook.jsonl", "")
	p.write(".reme/integrations/"+tidyMark, "") // as on a machine that is in use
	p.check(os.Chtimes(filepath.Join(dir, tidyMark), patientClock, patientClock))
	p.copyFile(w.program, env.BinaryPath())
	if err := os.Chmod(env.BinaryPath(), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, h := range knownHosts() {
		if !slices.Contains(names, h.Adapter.Host) {
			continue
		}
		p.copyTree(w.home(h), p.home)
		p.hosts = append(p.hosts, doctor.Host{Adapter: h.Adapter, Target: h.Target})
		p.see(h.Adapter.Host, patientClock.Add(-time.Minute))
		if h.Adapter.Host == "codex" {
			p.approve(nil)
		}
	}
	return p
}

func (p *patient) check(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// see notes a hook of a host.
func (p *patient) see(host client.Host, at time.Time) {
	p.Helper()
	s := p.doctor.State
	s.Now = func() time.Time { return at }
	p.check(s.Update(p.Context(), client.Session{Host: host, ID: "s"}, func(s *state.Session) error { s.Event = "Stop"; return nil }))
	p.log(fmt.Sprintf(`{"time":%q,"level":"INFO","msg":"handled","host":%q,"ms":7}`, at.Format(time.RFC3339), host))
}

func (p *patient) log(line string) {
	p.write(".reme/integrations/log/hook.jsonl", p.read(".reme/integrations/log/hook.jsonl")+line+"\n")
}

func (p *patient) path(name string) string { return filepath.Join(p.home, filepath.FromSlash(name)) }

func (p *patient) read(name string) string {
	p.Helper()
	text, err := os.ReadFile(p.path(name))
	p.check(err)
	return string(text)
}

func (p *patient) write(name, text string) {
	p.Helper()
	p.check(os.MkdirAll(filepath.Dir(p.path(name)), 0o700))
	p.check(os.WriteFile(p.path(name), []byte(text), 0o600))
}

// edit replaces a text that must be in a file, everywhere.
func (p *patient) edit(name, old, now string) {
	p.Helper()
	text := p.read(name)
	if !strings.Contains(text, old) {
		p.Fatalf("%q is not in %s:\n%s", old, name, text)
	}
	p.write(name, strings.ReplaceAll(text, old, now))
}

func (p *patient) remove(name string) {
	p.Helper()
	if _, err := os.Lstat(p.path(name)); err != nil {
		p.Fatal(err)
	}
	p.check(os.RemoveAll(p.path(name)))
}

// occupy puts a file where a folder is or should be.
func (p *patient) occupy(name string) {
	p.Helper()
	p.check(os.RemoveAll(p.path(name)))
	p.write(name, "")
}

// program puts a script on the PATH.
func (p *patient) program(name, script string) {
	p.Helper()
	path := p.path("bin/" + name)
	p.write("bin/"+name, "#!/bin/sh\n"+script+"\n")
	p.check(os.Chmod(path, 0o700))
	p.programs[name] = path
}

func (p *patient) copyFile(from, to string) {
	p.Helper()
	text, err := os.ReadFile(from)
	p.check(err)
	p.check(os.MkdirAll(filepath.Dir(to), 0o700))
	p.check(os.WriteFile(to, text, 0o600))
}

// copyTree copies a home; what it says of itself is made true.
func (p *patient) copyTree(from, to string) {
	p.Helper()
	p.check(filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(from, path)
		if err != nil || relErr != nil {
			return errors.Join(err, relErr)
		}
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), bytes.ReplaceAll(text, []byte(from), []byte(to)), 0o600)
	}))
}

// plugin puts what the plugin of a marketplace has into a folder.
func (p *patient) plugin(host, dir string, names ...string) {
	for _, name := range names {
		p.copyFile(filepath.Join("..", "plugins", host, filepath.FromSlash(name)), p.path(dir+"/"+name))
	}
}

// approve writes what Codex writes once its user has approved hooks.json, for the
// hooks as change leaves them.
func (p *patient) approve(change func(command string) string) {
	p.Helper()
	var file struct {
		Hooks map[string][]struct {
			Matcher string `json:"matcher"`
			Hooks   []struct {
				Command string `json:"command"`
				Timeout int    `json:"timeout"`
			} `json:"hooks"`
		} `json:"hooks"`
	}
	p.check(json.Unmarshal([]byte(p.read(".codex/hooks.json")), &file))
	text := "[hooks.state]\n"
	for event, groups := range file.Hooks {
		for g, group := range groups {
			for h, hook := range group.Hooks {
				if change != nil {
					hook.Command = change(hook.Command)
				}
				var snake strings.Builder
				for i, r := range event {
					if i > 0 && r >= 'A' && r <= 'Z' {
						snake.WriteByte('_')
					}
					snake.WriteRune(r)
				}
				name := strings.ToLower(snake.String())
				v := map[string]any{"event_name": name, "hooks": []any{map[string]any{"async": false, "command": hook.Command, "timeout": hook.Timeout, "type": "command"}}}
				if group.Matcher != "" {
					v["matcher"] = group.Matcher
				}
				var b bytes.Buffer
				enc := json.NewEncoder(&b) // of maps, with their keys in order
				enc.SetEscapeHTML(false)
				p.check(enc.Encode(v))
				sum := sha256.Sum256(bytes.TrimSpace(b.Bytes()))
				text += fmt.Sprintf("\n[hooks.state.%q]\ntrusted_hash = \"sha256:%s\"\n", fmt.Sprintf("%s:%s:%d:%d", p.path(".codex/hooks.json"), name, g, h), hex.EncodeToString(sum[:]))
			}
		}
	}
	config := ""
	if _, err := os.Stat(p.path(".codex/config.toml")); err == nil {
		config, _, _ = strings.Cut(p.read(".codex/config.toml"), "[hooks.state]")
	}
	p.write(".codex/config.toml", config+text)
}

// embed lets the memory be the workspace.
func (p *patient) embed() {
	p.doctor.Memory = func(context.Context) (doctor.Memory, error) {
		ws, err := workspace.Open(p.doctor.Config.Workspace, workspace.Options{Now: p.doctor.Now, Location: time.UTC})
		if err != nil {
			return nil, err
		}
		p.Cleanup(func() { ws.Close() })
		return ws, nil
	}
}

// serve lets the memory be a service at a URL.
func (p *patient) serve(url string) {
	p.doctor.Link.URL, p.doctor.Config.Service, p.doctor.Config.RecallTimeout = url, url, time.Second
	p.doctor.Memory = func(ctx context.Context) (doctor.Memory, error) {
		m, err := remote.New(url, "", gateway.Caller{})
		if err == nil {
			_, err = m.Info(ctx)
		}
		return m, err
	}
}

// listen has somebody answer on a port of this machine.
func (p *patient) listen(h http.HandlerFunc) (url string) {
	s := httptest.NewServer(h)
	p.Cleanup(s.Close)
	return s.URL
}

// put puts a record into the spool at a time.
func (p *patient) put(at time.Time, text string) {
	p.Helper()
	s := p.doctor.Spool
	s.Now = func() time.Time { return at }
	p.check(s.Put(spool.Turn{Session: client.Session{Host: "codex", ID: "s"}, Turn: "t", Events: []client.Event{{ID: "t:user", Role: client.User, Content: text, CreatedAt: at}}}))
}

// bad are the codes of all findings but those that say that something is well.
func bad(findings []doctor.Finding) []string {
	var out []string
	for _, f := range findings {
		if code := string(f.Code); f.Level != doctor.OK && !slices.Contains(out, code) {
			out = append(out, code)
		}
	}
	slices.Sort(out)
	return out
}

// ailment is something that is wrong, and what doctor has to say of it: all codes,
// in order.
type ailment struct {
	host  client.Host // "" if it is the machine's
	name  string
	begin func(*patient)
	want  string // codes
	fixed string // what is left of them after Fix, "-" if it has nothing to do
	whole bool   // the configured commands are run
}

const integrations = ".reme/integrations/"

var ailments = []ailment{
	{"codex", "a hook was taken out", func(p *patient) {
		p.write(".codex/hooks.json", changed(p, p.read(".codex/hooks.json"), "Stop", 0))
		p.approve(nil)
	}, "hook-missing", "-", false},
	{"codex", "a hook is there twice", func(p *patient) {
		p.write(".codex/hooks.json", changed(p, p.read(".codex/hooks.json"), "Stop", 2))
		p.approve(nil)
	}, "twice", "", false},
	{"codex", "hooks in the project too", func(p *patient) {
		p.doctor.Options.ProjectDir = p.path("work")
		p.write("work/.codex/hooks.json", p.read(".codex/hooks.json"))
	}, "twice", "-", false},
	{"codex", "hooks.json is broken", func(p *patient) { p.write(".codex/hooks.json", `{"hooks": `) }, "bad-file gone", "-", false},
	{"codex", "hooks.json has another key", func(p *patient) { p.edit(".codex/hooks.json", `"hooks": {`, `"version": 1, "hooks": {`) }, "bad-file", "-", false},
	{"codex", "hooks.json has a comment", func(p *patient) { p.write(".codex/hooks.json", "// mine\n"+p.read(".codex/hooks.json")) }, "bad-file", "-", false},
	{"codex", "hooks are switched off", func(p *patient) {
		p.write(".codex/config.toml", "[features]\nhooks = false\n\n"+p.read(".codex/config.toml"))
	}, "off", "-", false},
	{"codex", "hooks in config.toml too", func(p *patient) {
		p.write(".codex/config.toml", p.read(".codex/config.toml")+"\n[[hooks.Stop]]\nhooks = []\n")
	}, "host-says", "-", false},
	{"codex", "config.toml is broken", func(p *patient) { p.write(".codex/config.toml", "= 1\n"+p.read(".codex/config.toml")) }, "bad-file server-none trust", "-", false},
	{"codex", "nobody approved the hooks", func(p *patient) {
		text, _, _ := strings.Cut(p.read(".codex/config.toml"), "[hooks.state]")
		p.write(".codex/config.toml", text)
	}, "trust", "-", false},
	{"codex", "other hooks were approved", func(p *patient) { p.approve(func(c string) string { return c + " # old" }) }, "trust", "-", false},
	{"codex", "the hooks are switched off in /hooks", func(p *patient) { p.edit(".codex/config.toml", "trusted_hash", "enabled = false\ntrusted_hash") }, "trust", "-", false},
	{"codex", "the hooks call another program", func(p *patient) {
		p.edit(".codex/hooks.json", p.path(integrations+"bin"), "/opt/old")
		p.approve(nil)
	}, "hook-outdated", "trust", false},
	{"codex", "the MCP server is an old one", func(p *patient) { p.edit(".codex/config.toml", `"--host", `, "") }, "server-outdated", "", false},
	{"codex", "the plugin beside the install", func(p *patient) {
		p.plugin("codex", ".codex/plugins/cache/reme-hook/reme/0.1.0", "hooks/hooks.json", ".mcp.json")
		p.write(".codex/config.toml", p.read(".codex/config.toml")+"\n[plugins.\"reme@reme-hook\"]\nenabled = true\n")
	}, "twice", "-", false},
	{"codex", "another memory beside it", func(p *patient) {
		p.write(".codex/plugins/cache/openviking/memory/1/x", "")
		p.write(".codex/config.toml", p.read(".codex/config.toml")+"\n[plugins.\"memory@openviking\"]\nenabled = true\n")
	}, "other-memory", "-", false},
	{"codex", "everything is gone", func(p *patient) { p.remove(".codex/hooks.json"); p.remove(".codex/config.toml") }, "gone", "-", false},

	{"claude-code", "all hooks are switched off", func(p *patient) { p.edit(".claude/settings.json", `"hooks": {`, `"disableAllHooks": true, "hooks": {`) }, "off", "-", false},
	{"claude-code", "a project switches all hooks off", func(p *patient) {
		p.doctor.Options.ProjectDir = p.path("work")
		p.write("work/.claude/settings.local.json", `{"disableAllHooks": true}`)
	}, "off", "-", false},
	{"claude-code", "bare by the environment", func(p *patient) { p.doctor.Env.Environ = append(p.doctor.Env.Environ, "CLAUDE_CODE_SIMPLE=1") }, "off", "-", false},
	{"claude-code", "bare by an alias", func(p *patient) { p.write(".zshrc", "export A=1\nalias claude='claude --bare'\n") }, "off", "-", false},
	{"claude-code", "the settings have a comment", func(p *patient) { p.write(".claude/settings.json", "// mine\n"+p.read(".claude/settings.json")) }, "bad-file", "-", false},
	{"claude-code", "the plugin beside the settings", func(p *patient) {
		p.plugin("claude-code", "plugins/reme", "hooks/hooks.json", ".mcp.json")
		p.write(".claude/plugins/installed_plugins.json", `{"version":2,"plugins":{"reme@reme-hook":[{"installPath":"`+p.path("plugins/reme")+`"}]}}`)
		p.edit(".claude/settings.json", `"hooks": {`, `"enabledPlugins": {"reme@reme-hook": true}, "hooks": {`)
	}, "twice", "-", false},
	{"claude-code", "a hook is there twice", func(p *patient) {
		p.write(".claude/settings.json", changed(p, p.read(".claude/settings.json"), "Stop", 2))
	}, "twice", "", false},
	{"claude-code", "a hook has another timeout", func(p *patient) { p.edit(".claude/settings.json", `"timeout": 3`, `"timeout": 1`) }, "hook-outdated", "", false},
	{"claude-code", "the MCP server is an old one", func(p *patient) { p.edit(".claude.json", p.path(integrations+"bin"), "/opt/old") }, "server-outdated", "", false},
	{"claude-code", "the MCP server does not start", func(p *patient) {
		p.doctor.Tools = func(context.Context, []string, install.Server) ([]string, error) {
			return nil, errors.New("connection closed")
		}
	}, "server", "server", false},
	{"claude-code", "the MCP server is another's", func(p *patient) { p.write(".claude.json", `{"mcpServers": {"reme": {"command": "theirs"}}}`) }, "server-foreign", "-", false},
	{"claude-code", "no MCP server", func(p *patient) { p.remove(".claude.json") }, "server-none", "-", false},
	{"claude-code", "another memory beside it", func(p *patient) {
		p.write(".claude/plugins/installed_plugins.json", `{"version":2,"plugins":{"reme@reme":[{"installPath":"/theirs"}]}}`)
		p.edit(".claude/settings.json", `"hooks": {`, `"enabledPlugins": {"reme@reme": true}, "hooks": {`)
	}, "other-memory", "-", false},
	{"claude-code", "the settings were restored from before", func(p *patient) { p.write(".claude/settings.json", "{}"); p.remove(".claude.json") }, "gone", "-", false},

	{"kimi", "config.toml is broken", func(p *patient) { p.write(".kimi-code/config.toml", "= 1\n"+p.read(".kimi-code/config.toml")) }, "bad-file gone", "-", false},
	{"kimi", "a hook is there twice", func(p *patient) {
		p.write(".kimi-code/config.toml", p.read(".kimi-code/config.toml")+"\n[[hooks]]\nevent = \"Stop\"\ncommand = \"/x/reme-hook kimi stop\"\n")
	}, "hook-outdated twice", "", false},
	{"kimi", "a hook was taken out", func(p *patient) {
		before, rest, _ := strings.Cut(p.read(".kimi-code/config.toml"), "[[hooks]]\nevent = 'Stop'\n")
		_, after, _ := strings.Cut(rest, "\n\n")
		p.write(".kimi-code/config.toml", before+after)
	}, "hook-missing", "-", false},
	{"kimi", "the plugin beside the install", func(p *patient) {
		p.plugin("kimi", "plugins/reme", "kimi.plugin.json")
		p.write(".kimi-code/plugins/installed.json", `{"version":1,"plugins":[{"id":"reme","root":"`+p.path("plugins/reme")+`","enabled":true}]}`)
	}, "twice", "-", false},
	{"kimi", "a program that answers everything with its help, and a hook that is not run", func(p *patient) {
		p.program("kimi", "echo 'Usage: kimi [options]'")
		p.write(integrations+"bin/reme-hook", "#!/bin/sh\nexit 0\n")
	}, "capture program-stale recall", "", true},

	{"dsh", "our row is disabled", func(p *patient) { p.edit(".dsh/cordis.patch.yml", "!!js", "true # !!js") }, "off", "-", false},
	{"dsh", "our row is disabled by another", func(p *patient) {
		p.write(".dsh/cordis.patch.yml", p.read(".dsh/cordis.patch.yml")+"- id: reme-hook\n  disabled: true\n")
	}, "off", "-", false},
	{"dsh", "our row is there twice", func(p *patient) { p.write(".dsh/cordis.patch.yml", strings.Repeat(p.read(".dsh/cordis.patch.yml"), 2)) }, "twice", "", false},
	{"dsh", "the plugin is missing", func(p *patient) { p.remove(integrations + "dsh/reme-hook.mjs") }, "hook-outdated missing", "", false},
	{"dsh", "the plugin is another version", func(p *patient) {
		p.write(integrations+"dsh/reme-hook.mjs", p.read(integrations+"dsh/reme-hook.mjs")+"// old\n")
	}, "hook-outdated", "", false},
	{"dsh", "the patch has no rows", func(p *patient) { p.write(".dsh/cordis.patch.yml", "# mine\n") }, "bad-file gone", "-", false},
	{"dsh", "the bundle beside the install", func(p *patient) {
		p.write(".dsh/profiles/web/package.json", `{"dsh":{"profile":{"bundles":["reme-hook-dsh"]}}}`)
	}, "twice", "-", false},

	{"hermes", "another provider is chosen", func(p *patient) { p.edit(".hermes/config.yaml", "provider: reme", "provider: honcho") }, "not-chosen", "-", false},
	{"hermes", "no provider is chosen", func(p *patient) { p.edit(".hermes/config.yaml", "provider: reme", "provider: ''") }, "not-chosen", "-", false},
	{"hermes", "the provider is missing", func(p *patient) { p.remove(".hermes/plugins/reme") }, "hook-outdated missing", "", false},
	{"hermes", "a file of the provider is another version", func(p *patient) { p.remove(".hermes/plugins/reme/plugin.yaml") }, "hook-outdated", "", false},
	{"hermes", "config.yaml is broken", func(p *patient) { p.write(".hermes/config.yaml", "memory: [") }, "bad-file not-chosen trust", "-", false},
	{"hermes", "Hermes cannot load the provider", func(p *patient) { p.program("hermes", "echo 'Plugin:    not installed'") }, "not-loaded", "-", false},
	{"hermes", "shell hooks beside the provider", func(p *patient) {
		p.write(".hermes/config.yaml", p.read(".hermes/config.yaml")+"hooks:\n  pre_llm_call: [{command: "+p.path(integrations+"bin/reme-hook")+" hermes pre-llm-call, timeout: 5}]\n")
	}, "hook-missing limit server-none trust twice", "-", false},

	{"openclaw", "all plugins are switched off", func(p *patient) { p.edit(".openclaw/openclaw.json", `"plugins": {`, `"plugins": {"enabled": false,`) }, "off", "-", false},
	{"openclaw", "the plugin is denied", func(p *patient) { p.edit(".openclaw/openclaw.json", `"plugins": {`, `"plugins": {"deny": ["reme"],`) }, "denied", "-", false},
	{"openclaw", "the plugin is not on the list", func(p *patient) { p.edit(".openclaw/openclaw.json", `"plugins": {`, `"plugins": {"allow": ["else"],`) }, "denied", "-", false},
	{"openclaw", "the plugin is switched off", func(p *patient) { p.edit(".openclaw/openclaw.json", `"enabled": true`, `"enabled": false`) }, "off", "-", false},
	{"openclaw", "the plugin may not see conversations", func(p *patient) {
		p.edit(".openclaw/openclaw.json", `"allowConversationAccess": true`, `"allowConversationAccess": false`)
	}, "off", "-", false},
	{"openclaw", "the plugin may not inject", func(p *patient) {
		p.edit(".openclaw/openclaw.json", `"allowConversationAccess": true`, `"allowConversationAccess": true, "allowPromptInjection": false`)
	}, "off", "-", false},
	{"openclaw", "the plugin is missing", func(p *patient) { p.remove(".openclaw/extensions/reme") }, "hook-outdated missing", "", false},
	{"openclaw", "the configuration is broken", func(p *patient) { p.write(".openclaw/openclaw.json", `{"plugins": `) }, "bad-file", "-", false},
	{"openclaw", "an old release", func(p *patient) { p.program("openclaw", "echo 'OpenClaw 2026.1.5'") }, "old-host", "-", false},

	{"claude-code", "the program is missing", func(p *patient) { p.remove(integrations + "bin/reme-hook") }, "capture program-missing recall", "", true},
	{"claude-code", "the program is another version", func(p *patient) {
		p.write(integrations+"bin/reme-hook", p.read(integrations+"bin/reme-hook")+"# old\n")
		p.check(os.Chmod(p.path(integrations+"bin/reme-hook"), 0o700))
	}, "program-stale", "", false},
	{"kimi", "the program may not be run", func(p *patient) { p.check(os.Chmod(p.path(integrations+"bin/reme-hook"), 0o600)) }, "capture program-mode recall", "", true},
	{"hermes", "the program fails", func(p *patient) {
		p.write(integrations+"bin/reme-hook", "#!/bin/sh\necho no >&2\nexit 1\n")
		p.check(os.Chmod(p.path(integrations+"bin/reme-hook"), 0o700))
	}, "capture program-stale recall", "", true},
	{"claude-code", "only turns' ends are lost", func(p *patient) {
		p.write(integrations+"bin/reme-hook", "#!/bin/sh\n[ \"$2\" = stop ] || exec '"+p.doctor.Program+"' \"$@\"\n")
		p.check(os.Chmod(p.path(integrations+"bin/reme-hook"), 0o700))
	}, "capture program-stale", "", true},
	{"dsh", "its state cannot be read", func(p *patient) { p.occupy(integrations + "state/dsh") }, "state", "-", false},
	{"openclaw", "no hook was seen", func(p *patient) { p.remove(integrations + "state/openclaw") }, "seen", "-", false},

	{"codex", "a pipe lies where hooks.json was", pipe(".codex/hooks.json"), "bad-file gone", "-", false},
	{"codex", "a pipe lies where config.toml was", pipe(".codex/config.toml"), "bad-file server-none trust", "-", false},
	{"claude-code", "a pipe lies where the settings were", pipe(".claude/settings.json"), "bad-file gone", "-", false},
	{"kimi", "a pipe lies where config.toml was", pipe(".kimi-code/config.toml"), "bad-file gone", "-", false},
	{"dsh", "a pipe lies where the patch was", pipe(".dsh/cordis.patch.yml"), "bad-file gone", "-", false},
	{"hermes", "a pipe lies where config.yaml was", pipe(".hermes/config.yaml"), "bad-file not-chosen trust", "-", false},
	{"openclaw", "a pipe lies where openclaw.json was", pipe(".openclaw/openclaw.json"), "bad-file", "-", false},

	{"", "others can read what is kept", func(p *patient) { p.check(os.Chmod(p.path(integrations+"log/hook.jsonl"), 0o644)) }, "modes", "", false},
	{"", "others can enter the folder", func(p *patient) { p.check(os.Chmod(p.path(integrations), 0o755)) }, "modes", "", false},
	{"kimi", "temporary files of crashes", func(p *patient) {
		const temp = ".reme-hook-0123456789abcdef.tmp"
		for _, name := range []string{integrations + temp, integrations + "state/kimi/" + temp, ".kimi-code/" + temp, "tmp/reme-hook-probe-7/integrations/x"} {
			p.write(name, "")
			old := patientClock.Add(-2 * time.Hour)
			p.check(os.Chtimes(p.path(strings.TrimSuffix(name, "/integrations/x")), old, old))
		}
		p.write(integrations+"spool/pending/x/"+temp, "") // of a writer at work
		p.check(os.Chtimes(p.path(integrations+"spool/pending/x/"+temp), patientClock, patientClock))
	}, "leftovers", "", false},
	{"", "the disk is full", func(p *patient) { p.doctor.Free = func(string) (uint64, error) { return 1 << 20, nil } }, "disk", "-", false},
	{"codex", "the clock was set back", func(p *patient) { p.see("codex", patientClock.Add(365*24*time.Hour)) }, "clock", "-", false},
	{"", "the clock was set back, and turns wait", func(p *patient) { p.put(patientClock.Add(365*24*time.Hour), "x") }, "backlog clock", "-", false},
	{"", "a file lies where the state should be", func(p *patient) { p.occupy(integrations + "state") }, "unwritable", "-", false},
	{"", "a file lies where the log should be", func(p *patient) { p.occupy(integrations + "log") }, "unwritable", "-", false},
	{"", "a file lies where the spool should be", func(p *patient) { p.occupy(integrations + "spool") }, "spool unwritable", "-", false},
	{"", "a key of the configuration is out of range", func(p *patient) {
		p.doctor.Problems = []config.Problem{{Key: "recall_limit", Origin: "config.toml", Reason: "99 is out of range"}}
	}, "config", "-", false},
	{"", "recall is switched off", func(p *patient) { p.doctor.Config.Recall = false }, "recall-off", "-", false},
	{"", "capture is switched off", func(p *patient) { p.doctor.Config.Capture = false }, "capture-off", "-", false},
	{"", "the folder is excluded", func(p *patient) {
		p.doctor.Options.ProjectDir, p.doctor.Config.Exclude = p.path("work/x"), []string{p.path("work")}
	}, "excluded", "-", false},
	{"", "the environment bypasses hooks", func(p *patient) { p.doctor.Env.Environ = append(p.doctor.Env.Environ, "REME_HOOK_BYPASS=1") }, "bypass", "-", false},
	{"", "a file lies where the memory should be", func(p *patient) { p.occupy(".reme/workspace"); p.embed() }, "index unwritable", "-", false},
	{"", "a file lies where the index should be", func(p *patient) { p.occupy(".reme/workspace/metadata/reme-hook"); p.embed() }, "index", "-", false},
	{"", "nothing listens at the memory's URL", func(p *patient) { p.serve("http://127.0.0.1:1") }, "memory", "-", false},
	{"", "another program listens at the memory's URL", func(p *patient) {
		p.serve(p.listen(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }))
	}, "memory", "-", false},
	{"", "another program listens where serve would", func(p *patient) {
		url := p.listen(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
		p.doctor.Config.Listen = strings.TrimPrefix(url, "http://")
	}, "port", "-", false},
	{"", "turns wait", func(p *patient) { p.put(patientClock.Add(-time.Minute), "x") }, "backlog", "-", false},
	{"", "turns wait for days", func(p *patient) { p.put(patientClock.Add(-72*time.Hour), "x") }, "backlog", "-", false},
	{"", "the spool is full", func(p *patient) {
		p.put(patientClock.Add(-time.Minute), "x")
		p.doctor.Spool.MaxRecords = 1
	}, "backlog spool-full", "-", false},
	{"", "a damaged record", func(p *patient) {
		p.put(patientClock.Add(-time.Minute), "x")
		names, err := filepath.Glob(p.path(integrations + "spool/pending/*/*.json"))
		p.check(err)
		p.check(os.MkdirAll(p.path(integrations+"spool/quarantine/"+filepath.Base(filepath.Dir(names[0]))), 0o700))
		p.check(os.Rename(names[0], strings.Replace(names[0], "pending", "quarantine", 1)))
	}, "quarantine", "-", false},
	{"", "delivery fails", func(p *patient) { p.check(p.doctor.Link.Delivered(errors.New("refused"), patientClock)) }, "delivery", "-", false},
	{"", "turns were lost", func(p *patient) {
		p.log(`{"time":"2026-11-30T08:00:00Z","level":"ERROR","msg":"turn lost: neither the spool nor the service took it","host":"codex"}`)
	}, "turns-lost", "-", false},
	{"", "a hook met a mistake of ours", func(p *patient) {
		p.log(`{"time":"2026-11-30T08:00:00Z","level":"ERROR","msg":"panic","host":"codex"}`)
	}, "panic", "-", false},
	{"", "the named ReMe does not answer", func(p *patient) {
		p.doctor.Upstream.Use("http://127.0.0.1:1", func(string) string { return "" })
	}, "upstream", "-", false},
}

// pipe puts a pipe, which hangs whoever opens it, in the place of a file.
func pipe(name string) func(*patient) {
	return func(p *patient) {
		p.remove(name)
		if out, err := exec.Command("mkfifo", p.path(name)).CombinedOutput(); err != nil {
			p.Fatalf("mkfifo: %v, %s", err, out)
		}
	}
}

// changed is a configuration of hooks in which those of an event are there n
// times.
func changed(p *patient, text, event string, n int) string {
	p.Helper()
	var v map[string]any
	p.check(json.Unmarshal([]byte(text), &v))
	events := v["hooks"].(map[string]any)
	events[event] = slices.Repeat(events[event].([]any), n)
	out, err := json.MarshalIndent(v, "", "  ")
	p.check(err)
	return string(out)
}

// TestDoctorFinds plants what can go wrong, one at a time, and wants doctor to
// name that, and nothing else, and to say what to do. Fix mends what it may, and
// leaves no other mark.
func TestDoctorFinds(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("programs are shell scripts")
	}
	w := newWards(t)
	t.Run("ailments", func(t *testing.T) {
		for _, a := range ailments {
			t.Run(strings.Trim(string(a.host)+", "+a.name, ", "), func(t *testing.T) {
				t.Parallel()
				var hosts []client.Host
				if a.host != "" {
					hosts = append(hosts, a.host)
				}
				p := w.admit(t, hosts...)
				if a.whole {
					p.doctor.Probe = doctor.Probe
				}
				a.begin(p)
				findings := p.doctor.Examine(t.Context(), p.hosts)
				if got := strings.Join(bad(findings), " "); got != a.want {
					t.Errorf("found %q, want %q", got, a.want)
				}
				for _, f := range findings {
					if f.Level != doctor.OK && f.Do == "" && f.Code != "limit" || f.Code == "" || f.What == "" || strings.ContainsAny(f.What+f.Do, "\n\x00") {
						t.Errorf("%+v", f)
					}
				}
				before := tree(t, p.home)
				fixed := p.doctor.Fix(t.Context(), findings)
				if a.fixed == "-" {
					if len(fixed) > 0 || tree(t, p.home) != before {
						t.Errorf("Fix did %+v", fixed)
					}
					return
				}
				if got := strings.Join(bad(p.doctor.Examine(t.Context(), p.hosts)), " "); got != a.fixed || len(fixed) != 1 || fixed[0].Err != "" {
					t.Errorf("after Fix (%+v): %q, want %q", fixed, got, a.fixed)
				}
			})
		}
	})
	if n := len(ailments); n < 40 {
		t.Errorf("only %d ailments", n)
	}
}

// tree is every file of a home with its mode and content, but for what locks leave.
func tree(t *testing.T, home string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(home, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.Contains(path, "workspace") {
			return err
		}
		st, err := e.Info()
		if err != nil {
			return err
		}
		if !st.Mode().IsRegular() {
			fmt.Fprintln(&b, path, st.Mode())
			return nil
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %s %x\n", path, st.Mode(), sha256.Sum256(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestDoctorOfTheHealthy: six connected hosts, whose configured commands are run,
// and not a word of blame; and nothing is left behind.
func TestDoctorOfTheHealthy(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("programs are shell scripts")
	}
	w := newWards(t)
	var names []client.Host
	for _, h := range knownHosts() {
		names = append(names, h.Adapter.Host)
	}
	p := w.admit(t, names...)
	p.embed()
	p.doctor.Probe, p.doctor.Tools = doctor.Probe, doctor.ListTools
	l, err := net.Listen("tcp", "127.0.0.1:0")
	p.check(err)
	p.check(l.Close())
	p.doctor.Config.Listen = l.Addr().String()
	before := tree(t, p.home)
	findings := p.doctor.Examine(t.Context(), p.hosts)
	for _, f := range findings {
		if f.Level != doctor.OK || f.Do != "" || f.Fix {
			t.Errorf("%+v", f)
		}
	}
	for _, code := range []install.Code{"recall", "capture", "seen"} {
		n := 0
		for _, f := range findings {
			if f.Code == code {
				n++
			}
		}
		if n != len(names) {
			t.Errorf("%d of %d hosts have %q", n, len(names), code)
		}
	}
	if fixed := p.doctor.Fix(t.Context(), findings); len(fixed) > 0 {
		t.Errorf("Fix did %+v", fixed)
	}
	for line := range strings.Lines(tree(t, p.home)) {
		if !strings.Contains(before, line) {
			t.Errorf("left is %s", line)
		}
	}
}
