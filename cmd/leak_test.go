package cmd

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/klauspost/compress/zstd"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
)

// plant is what the payloads of the leak test carry: a text that may be kept in
// the memory and nowhere else, and secrets that may be kept nowhere.
var plant = struct {
	text    string
	secrets []string
	env     string // the value of a variable of the environment
	token   string // of a service, in the environment
}{
	text: "zygomorphic wombats",
	secrets: []string{
		"sk-" + "ant-api03-9fK2mQ7xLr4vTz8wBn5cYd1gHj6pSs3e",
		"gh" + "p_q8Wn3LkZr5Tb7Yx2Vc9Mj4Hd6Fs1Ga0PoIuE",
		"n0rthern1ights",
		"elm street twelve",
	},
	env:   "sk-" + "proj-Vb7Nq2Zx9Lm4Kj8Hg3Fd6Sa1Pw5Er0Ty",
	token: "quokka-in-the-header",
}

func planted() string {
	s := plant.secrets
	return plant.text + " " + s[0] + "\ntoken: " + s[1] + "\nDB_PASSWORD=" + s[2] + "\n<private>" + s[3] + "</private> " + plant.env
}

// structure names the members of payloads that say what an event is about, not
// what was said: they are kept as the host has them.
var structure = []string{
	"session_id", "turn_id", "turn", "prompt_id", "message_id", "cwd", "hook_event_name", "event", "transcript_path", "agent_transcript_path", "type", "trigger", "source", "reason",
	"action", "agent_context", "platform", "agent_identity", "hermes_home", "execution_context", "client_type", "role", "role_id", "id",
	"hook", "sessionId", "sessionKey", "runId", "agentId", "workspaceDir", "stopReason",
}

// plantIn puts the planted text behind each string of a payload that is not
// structure.
func plantIn(v any) any {
	switch v := v.(type) {
	case string:
		return v + " " + planted()
	case []any:
		for i := range v {
			v[i] = plantIn(v[i])
		}
	case map[string]any:
		for key := range v {
			if !slices.Contains(structure, key) {
				v[key] = plantIn(v[key])
			}
		}
	}
	return v
}

// TestLeaks plants secrets in everything that hosts send, and in the environment,
// and then looks for them in every file and every output.
func TestLeaks(t *testing.T) {
	t.Parallel()
	for _, h := range knownHosts() {
		t.Run(string(h.Adapter.Host), func(t *testing.T) {
			t.Parallel()
			home := newHome(t)
			var crashing []string
			run := func(stdin []byte, args ...string) (stdout, stderr string) {
				c := exec.Command("reme-hook", args...)
				c.Env = append(os.Environ(), "HOME="+home, "USERPROFILE="+home, "TEST_NOW=2026-11-30T09:00:00Z", "TEST_API_KEY="+plant.env, "TEST_SERVICE_TOKEN="+plant.token)
				c.Env = append(c.Env, crashing...)
				c.Stdin = bytes.NewReader(stdin)
				var out, errs bytes.Buffer
				c.Stdout, c.Stderr = &out, &errs
				if err := c.Run(); err != nil && len(stdin) > 0 {
					t.Errorf("%v: %v", args, err)
				}
				return out.String(), errs.String()
			}
			hook := func(event string, payload []byte) {
				out, errs := run(payload, string(h.Adapter.Host), event)
				if errs != "" {
					t.Errorf("%s wrote to stderr: %s", event, errs)
				}
				if h.Adapter.Events[strings.ReplaceAll(event, "_", "-")] == hooks.PreToolUse {
					return // names the address that it was asked for
				}
				hidden(t, event+" on stdout", out, plant.secrets...)
				hidden(t, event+" on stdout", out, plant.env)
			}
			kept := 0
			for _, e := range payloads(t, h.Adapter.Host) {
				hook(e.name, e.payload)
				kept++
			}
			if kept == 0 {
				t.Fatal("no payloads")
			}
			// A session of which everything is told, and a broken payload.
			tell := func(session client.Session) {
				for event, kind := range h.Adapter.Events {
					switch kind {
					case hooks.Prompt:
						hook(event, h.Adapter.Sample(hooks.Event{Kind: kind, Session: session, Turn: "t1", Cwd: "/p", Prompt: planted()}))
						hook(event, []byte(`{"session_id":"broken","prompt":"`+strings.ReplaceAll(planted(), "\n", `\n`)))
					case hooks.TurnEnd:
						hook(event, h.Adapter.Sample(hooks.Event{Kind: kind, Session: session, Turn: "t1", Cwd: "/p", Reply: planted()}))
					}
				}
			}
			tell(client.Session{Host: h.Adapter.Host, ID: "leaks"})
			run(nil, "remember", "--title", planted(), planted())

			hiddenInFiles(t, home)
			configure := func(config string) {
				file := filepath.Join(home, ".reme", "integrations", "config.toml")
				if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			look := func(config string) {
				configure(config)
				for _, args := range [][]string{{"doctor"}, {"doctor", "--json"}, {"status"}, {"status", "--json"}, {"spool", "list"}, {"spool", "list", "--json"}, {"config", "show"}, {"config", "show", "--json"}} {
					out, errs := run(nil, args...)
					if out+errs == "" {
						t.Errorf("%v says nothing", args)
					}
					for what, text := range map[string]string{"stdout": out, "stderr": errs} {
						what = strings.Join(args, " ") + " on " + what
						hidden(t, what, text, plant.secrets...)
						hidden(t, what, text, plant.env, plant.text, plant.token)
					}
				}
			}
			look("recall_limit = \"${TEST_API_KEY}\"\nexclude = [\"${TEST_API_KEY}\"]\ntoken = \"two words ${TEST_SERVICE_TOKEN}\"\n")
			// A service that is down, as nothing listens there.
			look("service = \"http://127.0.0.1:1\"\ntoken = \"${TEST_SERVICE_TOKEN}\"\n")
			tell(client.Session{Host: h.Adapter.Host, ID: "down"})
			run(nil, "spool", "replay")
			look("service = \"http://127.0.0.1:1\"\ntoken = \"${TEST_SERVICE_TOKEN}\"\n")
			hiddenInFiles(t, home)

			// A mistake of ours that has the text in its hands.
			crashing = []string{panicEnv + "=put.begin", panicTextEnv + "=" + planted()}
			tell(client.Session{Host: h.Adapter.Host, ID: "crash"})
			crashing = nil
			hiddenInFiles(t, home)
			if log, err := os.ReadFile(filepath.Join(home, ".reme", "integrations", "log", "hook.jsonl")); err != nil || !bytes.Contains(log, []byte(`"msg":"panic"`)) {
				t.Errorf("no panic was logged: %v", err)
			}

			// What is sent to those who are to help has not even the names of sessions.
			tell(client.Session{Host: h.Adapter.Host, ID: plant.text})
			configure("recall_limit = \"" + plant.env + "\"\n" + strings.ReplaceAll(plant.text, " ", "_") + " = 1\nexclude = [\"~/" + plant.text + "\"]\n")
			bundle := filepath.Join(home, "bundle.zip")
			if out, errs := run(nil, "doctor", "--bundle", bundle); !strings.Contains(out, "wrote") {
				t.Fatal(out, errs)
			}
			hiddenInBundle(t, bundle, home)
		})
	}
}

// hiddenInBundle looks for what must not be in an archive, and for what must.
func hiddenInBundle(t *testing.T, path, home string) {
	t.Helper()
	want := map[string]string{
		"version.json": `"reme_hook"`, "doctor.json": `"code": "panic"`, "config.json": `"recall_timeout"`, "spool.json": `"records"`,
		"files.txt": "integrations/state", "hook.jsonl": `"msg":"handled"`,
	}
	for name, text := range bundled(t, path) {
		for _, s := range append([]string{plant.text, strings.ReplaceAll(plant.text, " ", "_"), plant.env, plant.token, home}, plant.secrets...) {
			hidden(t, name+" in the bundle", text, s)
		}
		if !strings.Contains(text, want[name]) {
			t.Errorf("%s lacks %s:\n%s", name, want[name], text)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("the bundle lacks %v", want)
	}
}

// bundled are the files of an archive.
func bundled(t *testing.T, path string) map[string]string {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(f.Name)] = string(text)
	}
	return files
}

type call struct {
	name    string
	payload []byte
}

// payloads are all that a real host sent, with what is planted.
func payloads(t *testing.T, host client.Host) []call {
	files, err := filepath.Glob(filepath.Join("..", "testdata", "payloads", string(host), "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var out []call
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		payload, err := json.Marshal(plantIn(v))
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		out = append(out, call{kebab(name), payload})
	}
	return out
}

// kebab spells PascalCase as the command line does.
func kebab(s string) string {
	var b strings.Builder
	for i, r := range s {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// hiddenInFiles looks for what must not be in any file, and for any text in the
// logs.
func hiddenInFiles(t *testing.T, home string, more ...string) {
	t.Helper()
	texts := 0
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		hidden(t, path, string(data), plant.secrets...)
		hidden(t, path, string(data), plant.env, plant.token)
		hidden(t, path, string(data), more...)
		if filepath.Base(filepath.Dir(path)) == "log" || filepath.Base(path) == "service.json" {
			hidden(t, path, string(data), plant.text)
		} else if bytes.Contains(data, []byte(plant.text)) {
			texts++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if texts == 0 {
		t.Error("nothing at all was kept")
	}
}

// hidden tells of what is shown but must not be.
func hidden(t *testing.T, where, text string, secrets ...string) {
	t.Helper()
	for _, s := range secrets {
		if strings.Contains(text, s) || strings.Contains(text, slug(s)) {
			t.Errorf("%s has %q", where, s)
		}
	}
}

// slug spells a text as names of files do.
func slug(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "-") }

// toolSays stands in what agents' logs have of tools: it may be kept nowhere.
const toolSays = "cassowary-from-a-tool"

var (
	logText = regexp.MustCompile(`("(?:text|content|message|last_agent_message|title|summary)":\s*"(?:[^"\\]|\\.)*)"`)
	logTool = regexp.MustCompile(`("(?:output|arguments|argumentsDelta|stdout|stderr|command|cmd|description|system|systemPrompt|thinking)":\s*"(?:[^"\\]|\\.)*)"`)
	// aboutTool are lines that tell nothing of the conversation.
	aboutTool = regexp.MustCompile(`"(tool_result|function_call_output|CommandExecution|tool/result|tool\.result|compacted|request/header)"`)
)

// plantInLog puts what is planted behind the texts of a log, and toolSays behind
// those of tools.
func plantInLog(log []byte) []byte {
	quoted, err := json.Marshal(" " + planted())
	if err != nil {
		panic(err)
	}
	text := strings.Trim(string(quoted), `"`)
	var out []byte
	for line := range bytes.Lines(log) {
		more := text
		if aboutTool.Match(line) {
			more += " " + toolSays
		}
		line = logText.ReplaceAll(line, []byte("${1}"+more+`"`))
		out = append(out, logTool.ReplaceAll(line, []byte("${1}"+text+" "+toolSays+`"`))...)
	}
	return out
}

// TestLeaksFromLogs plants secrets, and words of tools, in what agents wrote to
// their own logs, and looks for them in every file after these were read.
func TestLeaksFromLogs(t *testing.T) {
	t.Parallel()
	plain := func(b []byte) []byte { return b }
	compress := func(b []byte) []byte {
		w, err := zstd.NewWriter(nil)
		if err != nil {
			panic(err)
		}
		return w.EncodeAll(b, nil)
	}
	for host, c := range map[string]struct {
		variable, log, sample string
		encode                func([]byte) []byte
	}{
		"codex":       {"CODEX_HOME", "sessions/2026/11/29/rollout-x.jsonl", "../hooks/codex/testdata/rollout.jsonl", plain},
		"claude-code": {"CLAUDE_CONFIG_DIR", "projects/-p/2c19abc9-fd74-4631-bf85-4d0ff668dd55.jsonl", "../hooks/claudecode/testdata/transcript.2.1.332.jsonl", plain},
		"kimi":        {"KIMI_CODE_HOME", "sessions/wd_p/s/agents/main/wire.jsonl", "../testdata/payloads/kimi/wire/tool-two-turns.jsonl", plain},
		"dsh":         {"DSH_HOME", "sessions/--p--/s/session.jsonl.zstd", "../hooks/dsh/testdata/session.jsonl", compress},
	} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			sample, err := os.ReadFile(c.sample)
			if err != nil {
				t.Fatal(err)
			}
			log := plantInLog(sample)
			if n := bytes.Count(log, []byte(toolSays)); n < 2 {
				t.Fatalf("tools say %d times what they are not to", n)
			}
			logs, home := t.TempDir(), newHome(t)
			file := filepath.Join(logs, filepath.FromSlash(c.log))
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, c.encode(log), 0o600)); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"ingest", "backfill", host, "--yes"}, {"ingest", "list-sources", host, "--json"}, {"deliver"}} {
				run := exec.Command("reme-hook", args...)
				run.Env = append(os.Environ(), "HOME="+home, "USERPROFILE="+home, c.variable+"="+logs, "TEST_NOW=2026-11-30T09:00:00Z", "TEST_API_KEY="+plant.env)
				out, err := run.CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %v\n%s", args, err, out)
				}
				hidden(t, strings.Join(args, " "), string(out), append(plant.secrets, toolSays)...)
				if slices.Contains(args, "list-sources") && !bytes.Contains(out, []byte(`"turns": 2`)) {
					t.Errorf("not two turns:\n%s", out)
				}
			}
			rest(t, filepath.Join(home, ".reme", "integrations"))
			hiddenInFiles(t, home, toolSays)
		})
	}
}

// TestLeaksFromConfigs plants secrets into what is broken in the configuration of hosts,
// where parsers stumble over them, and looks for them in what is said of that.
func TestLeaksFromConfigs(t *testing.T) {
	t.Parallel()
	secret := plant.secrets[2]
	home := newHome(t)
	run := func(args ...string) string {
		cmd := exec.Command("reme-hook", args...)
		cmd.Env = append(os.Environ(), "HOME="+home, "USERPROFILE="+home, "TEST_NOW="+at(0), "PATH="+filepath.Dir(mustLookPath(t, "reme-hook")))
		out, _ := cmd.CombinedOutput()
		hidden(t, strings.Join(args, " "), string(out), secret)
		return string(out)
	}
	for _, h := range knownHosts() {
		run("install", string(h.Adapter.Host))
	}
	for name, text := range map[string]string{
		".claude/settings.json":          `{"env": {"PASSWORD": ` + secret + `}}`,
		".claude.json":                   `{"mcpServers": ` + secret + `}`,
		".codex/hooks.json":              `{"hooks": ` + secret + `}`,
		".codex/config.toml":             "password = " + secret + "\n",
		".kimi-code/config.toml":         "password = \"" + secret + "\" " + secret + "\n",
		".kimi-code/mcp.json":            `{"mcpServers": {"reme": ` + secret + `}}`,
		".dsh/cordis.patch.yml":          "- id: x\n  config: {password: *" + secret + "}\n",
		".hermes/config.yaml":            "memory:\n  password: *" + secret + "\n",
		".openclaw/openclaw.json":        `{"plugins": ` + secret + `}`,
		".reme/integrations/config.toml": "token = " + secret + "\n",
	} {
		path := filepath.Join(home, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range knownHosts() {
		name := string(h.Adapter.Host)
		for _, args := range [][]string{{"doctor", name}, {"install", name}, {"uninstall", name}} {
			if out := run(args...); !strings.Contains(out, "config") && !strings.Contains(out, ".json") && !strings.Contains(out, ".yml") {
				t.Errorf("%v does not complain: %s", args, out)
			}
		}
	}
	run("doctor", "--json")
	bundle := filepath.Join(home, "bundle.zip")
	run("doctor", "--bundle", bundle)
	for name, text := range bundled(t, bundle) {
		hidden(t, name+" in the bundle", text, secret)
	}
}
