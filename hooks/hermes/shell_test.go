package hermes

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/install"
)

const testProgram = "/home/u/.reme/integrations/bin/reme-hook"

// What Hermes writes to shell hooks.
func TestRealShellPayloads(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "payloads", "hermes", "shell")
	wants := map[string]func(hooks.Event) bool{
		"pre_llm_call": func(e hooks.Event) bool {
			return e.Prompt == "after new" && e.Turn == "20261129_202041_392932:20261129_202041_392932:932bb250" && e.ContextLost && !e.Subagent
		},
		"pre_llm_call.second": func(e hooks.Event) bool { return e.Prompt == "two" && !e.ContextLost && !e.Subagent },
		"post_llm_call": func(e hooks.Event) bool {
			return slices.Equal(e.Answered, []string{"after new"}) && e.Reply == "RF2" && e.Turn == "20261129_202041_392932:20261129_202041_392932:932bb250" && !e.Subagent
		},
		"pre_tool_call":                   func(e hooks.Event) bool { return e.Paths[0] == "reme://daily/x.md" && !e.Subagent },
		"on_session_finalize":             func(e hooks.Event) bool { return !e.Subagent },
		"pre_llm_call.subagent":           func(e hooks.Event) bool { return e.Subagent },
		"post_llm_call.cron":              func(e hooks.Event) bool { return e.Subagent },
		"post_llm_call.background_review": func(e hooks.Event) bool { return e.Subagent },
	}
	for name, want := range wants {
		text, err := os.ReadFile(filepath.Join(dir, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		event, _, _ := strings.Cut(name, ".")
		e := decode(Adapter().Events[strings.ReplaceAll(event, "_", "-")], read(t, string(text)))
		if e.Name != event || e.Session.ID == "" || e.Session.Scope != "default" || e.Cwd != "/home/dev/project" || !want(e) {
			t.Errorf("%s reads as %+v", name, e)
		}
	}
}

// Hermes asks itself about a session in one of three ways; users may begin alike.
func TestReviews(t *testing.T) {
	for asked, review := range map[string]bool{
		"Review the conversation above and consider saving to memory if appropriate.\n\nFocus on:": true,
		"Review the conversation above and update the skill library. Be ACTIVE — most":             true,
		"Review the conversation above and update two things:\n\n**Memory**: who the user is.":     true,
		"Review the conversation above and update the readme.":                                     false,
		"Review the conversation above and update two things: the readme and the list of changes.": false,
	} {
		p := hooks.Payload{"hook_event_name": []byte(`"pre_llm_call"`), "session_id": []byte(`"s"`), "extra": hooks.JSONLine(map[string]string{"user_message": asked})}
		if e := decode(hooks.Prompt, p); e.Subagent != review {
			t.Errorf("%q: %v", asked, e.Subagent)
		}
	}
}

const (
	preLLM   = "{command: '" + testProgram + " hermes pre-llm-call', timeout: 5}"
	preTool  = "{matcher: 'read_file|write_file|patch|search_files', command: '" + testProgram + " hermes pre-tool-call', timeout: 5}"
	postLLM  = "{command: '" + testProgram + " hermes post-llm-call', timeout: 5}"
	finalize = "{command: '" + testProgram + " hermes on-session-finalize', timeout: 5}"
)

// hookEdits are files and what an install of shell hooks makes of them.
var hookEdits = map[string]struct{ before, after string }{
	"empty": {"", "hooks:\n  pre_llm_call: [" + preLLM + "]\n  pre_tool_call: [" + preTool + "]\n  post_llm_call: [" + postLLM + "]\n  on_session_finalize: [" + finalize + "]\n"},
	"another provider": {"memory:\n  provider: honcho # mine\n",
		"memory:\n  provider: honcho # mine\nhooks:\n  pre_llm_call: [" + preLLM + "]\n  pre_tool_call: [" + preTool + "]\n  post_llm_call: [" + postLLM + "]\n  on_session_finalize: [" + finalize + "]\n"},
	"a block list": {"hooks:\n  pre_llm_call:\n  # the first\n  - command: mine.sh # x\n    timeout: 9\n  # none\n  post_llm_call:\nz: 1\n",
		"hooks:\n  pre_tool_call: [" + preTool + "]\n  on_session_finalize: [" + finalize + "]\n  pre_llm_call:\n  # the first\n  - command: mine.sh # x\n    timeout: 9\n  - " + preLLM + "\n  # none\n  post_llm_call: [" + postLLM + "]\nz: 1\n"},
	"indented list, windows": {"hooks:\r\n    pre_llm_call:\r\n      - {command: mine.sh}\r\n    pre_tool_call: []\r\n    post_llm_call: [{command: a}, {command: b}] # two\r\n    on_session_finalize: ~",
		"hooks:\r\n    pre_llm_call:\r\n      - {command: mine.sh}\r\n      - " + preLLM + "\r\n    pre_tool_call: [" + preTool + "]\r\n    post_llm_call: [" + postLLM + ", {command: a}, {command: b}] # two\r\n    on_session_finalize: [" + finalize + "]"},
	"a block scalar last": {"hooks:\n  output_spill: {enabled: true}\n  pre_tool_call:\n  - matcher: terminal\n    command: |\n      mine.sh\n\n",
		"hooks:\n  pre_llm_call: [" + preLLM + "]\n  post_llm_call: [" + postLLM + "]\n  on_session_finalize: [" + finalize + "]\n  output_spill: {enabled: true}\n  pre_tool_call:\n  - " + preTool + "\n  - matcher: terminal\n    command: |\n      mine.sh\n\n"},
	"flow root": {"{hooks: {pre_llm_call: [{command: mine}]}}",
		"{hooks: {pre_tool_call: [" + preTool + "], post_llm_call: [" + postLLM + "], on_session_finalize: [" + finalize + "], pre_llm_call: [" + preLLM + ", {command: mine}]}}"},
	"an older place": {"hooks:\n  pre_llm_call:\n  - {command: mine.sh}\n  - {command: \"/old/reme-hook hermes pre-llm-call\", timeout: 9} # ours\n  pre_tool_call: [" + preTool + "]\n  post_llm_call: [" + postLLM + "]\n  on_session_finalize: [" + finalize + "]\n",
		"hooks:\n  pre_llm_call:\n  - {command: mine.sh}\n  - {command: '" + testProgram + " hermes pre-llm-call', timeout: 9} # ours\n  pre_tool_call: [" + preTool + "]\n  post_llm_call: [" + postLLM + "]\n  on_session_finalize: [" + finalize + "]\n"},
}

func TestUpsertHooks(t *testing.T) {
	for name, e := range hookEdits {
		got, err := upsertHooks([]byte(e.before), testProgram)
		if err != nil || string(got) != e.after {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, e.after)
			continue
		}
		if again, err := upsertHooks(got, testProgram); err != nil || !bytes.Equal(again, got) {
			t.Errorf("%s: the second time %q, %v", name, again, err)
		}
		if strings.Contains(e.before, "reme-hook") {
			continue
		}
		left, err := removeHooks(got, []byte(e.before), true)
		if err != nil || !sameHooks(left, []byte(e.before)) {
			t.Errorf("%s: without us %q, %v, was %q", name, left, err, e.before)
		}
	}
	for name, e := range edits {
		if got, err := upsertHooks([]byte(e.before), testProgram); err == nil == strings.HasPrefix(name, "there") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// sameHooks tells whether two files say the same, where no list, an empty one and
// an empty section are the same.
func sameHooks(a, b []byte) bool {
	meaning := func(text []byte) string {
		var all map[string]any
		if yaml.Unmarshal(text, &all) != nil {
			return "broken"
		}
		lists, _ := all["hooks"].(map[string]any)
		for event, list := range lists {
			if l, ok := list.([]any); list == nil || ok && len(l) == 0 {
				delete(lists, event)
			}
		}
		if len(lists) == 0 {
			delete(all, "hooks")
		}
		out, _ := yaml.Marshal(all)
		return string(out)
	}
	return meaning(a) == meaning(b)
}

func TestUpsertHooksRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, why string }{
		"our provider":   {"memory: {provider: reme}\n", "remember everything twice"},
		"no list":        {"hooks:\n  pre_llm_call: mine.sh\n", "by hand"},
		"an alias":       {"x: &x [{command: a}]\nhooks:\n  pre_llm_call: *x\n", "by hand"},
		"an anchor":      {"hooks:\n  pre_llm_call: &x [{command: a}]\n  post_llm_call: *x\n", "by hand"},
		"section alias":  {"x: &x {pre_llm_call: []}\nhooks: *x\n", "by hand"},
		"section text":   {"hooks: none\n", "by hand"},
		"an event twice": {"hooks:\n  pre_llm_call: []\n  pre_llm_call: []\n", "twice"},
		"broken":         {"hooks: [\n", "cannot be read"},
	} {
		if got, err := upsertHooks([]byte(c.text), testProgram); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %q, %v, want an error with %q", name, got, err, c.why)
		}
	}
	if _, err := upsertHooks(nil, "/${X}/reme-hook"); err == nil {
		t.Error("a variable was taken")
	}
}

// After `hermes config set` all is written in another way.
func TestRemoveHooks(t *testing.T) {
	const mine = "{command: mine.sh}"
	for name, c := range map[string]struct{ now, before, want string }{
		"rewritten":          {"hooks:\n  on_session_finalize:\n  - command: " + testProgram + " hermes on-session-finalize\n    timeout: 5\n  pre_llm_call:\n  - command: mine.sh\n  - command: " + testProgram + " hermes pre-llm-call\n    timeout: 5\nz: 1\n", "z: 1\n", "hooks:\n  pre_llm_call:\n  - command: mine.sh\nz: 1\n"},
		"first of a list":    {"hooks:\n  pre_llm_call:\n  - " + preLLM + "\n  - " + mine + "\n", "hooks:\n  pre_llm_call:\n  - " + mine + "\n", "hooks:\n  pre_llm_call:\n  - " + mine + "\n"},
		"middle of brackets": {"hooks: {pre_llm_call: [" + mine + ", " + preLLM + ", " + mine + "]}\n", "", "hooks: {pre_llm_call: [" + mine + ", " + mine + "]}\n"},
		"last of brackets":   {"hooks: {pre_llm_call: [" + mine + ", " + preLLM + "]}\n", "", "hooks: {pre_llm_call: [" + mine + "]}\n"},
		"only theirs":        {"hooks: {pre_llm_call: [" + mine + "]}\n", "", "hooks: {pre_llm_call: [" + mine + "]}\n"},
		"other events":       {"hooks:\n  on_session_end: [" + strings.ReplaceAll(finalize, "finalize", "end") + "]\nz: 1\n", "z: 1\n", "z: 1\n"},
	} {
		got, err := removeHooks([]byte(c.now), []byte(c.before), true)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

// Whatever a config.yaml is like, an uninstall of shell hooks gives it and the
// approvals back byte for byte, and leaves nothing in Hermes' folder.
func TestShellInstallAndBack(t *testing.T) {
	t.Parallel()
	const others = `{"approvals":[{"event": "pre_llm_call", "command": "mine.sh ü"}],   "more": 1.50}`
	for name, e := range hookEdits {
		if strings.Contains(e.before, "reme-hook") {
			continue
		}
		for _, approved := range []string{"", others} {
			env := newEnv(t)
			before := map[string]string{configFile(env): e.before}
			if approved != "" {
				before[approvalsFile(env)] = approved
			}
			for path, text := range before {
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			target := Target{Version: "1"}
			for _, o := range []install.Options{{ShellHooks: true, Part: install.HooksPart}, {ShellHooks: true, Trust: true}, {}} {
				if _, err := install.Install(t.Context(), target, env, o); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				r := target.Check(env, install.Options{})
				if len(r.Problems) > 0 || len(r.Missing) > 0 || len(r.Notes) == 0 || len(r.Hooks) != len(shellHooks) || !r.Hooks[0].Current {
					t.Errorf("%s: %+v", name, r)
				}
				st, err := target.Trusted(t.Context(), env, install.Options{})
				if err != nil || !st.Needed || len(st.Hooks) != len(shellHooks) || st.OK() != (o.Part == "") || r.OwnTools || r.HasServer() != (o.Part == "") {
					t.Errorf("%s: %+v, %v", name, st, err)
				}
			}
			if _, err := os.Stat(pluginDir(env)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: the provider came too: %v", name, err)
			}
			if _, err := install.Uninstall(t.Context(), target, env, install.Options{}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for path, text := range before {
				if now, err := os.ReadFile(path); err != nil || string(now) != text {
					t.Errorf("%s: %q, %v, was %q", name, now, err, text)
				}
			}
			if left, _ := os.ReadDir(hermesHome(env)); len(left) != len(before) {
				t.Errorf("%s: left are %v", name, left)
			}
		}
	}
}

// Hermes is told of the approval as it writes it itself.
func TestApprovals(t *testing.T) {
	t.Parallel()
	a, err := parseApprovals([]byte(`{"approvals":[{"command":"mine.sh <ü😀>","event":"pre_llm_call"},{"command":"/old/reme-hook hermes pre-llm-call","event":"pre_llm_call"},5],"n":1.50}`))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 30, 9, 0, 0, 123456789, time.UTC)
	got, err := a.approve([]placedHook{{event: "post_llm_call", command: testProgram + " hermes post-llm-call"}}, "/no/such/reme-hook", at).bytes()
	want := `{
  "approvals": [
    {
      "command": "mine.sh <\u00fc\ud83d\ude00>",
      "event": "pre_llm_call"
    },
    5,
    {
      "approved_at": "2026-11-30T09:00:00.123457Z",
      "command": "` + testProgram + ` hermes post-llm-call",
      "event": "post_llm_call",
      "script_mtime_at_approval": null
    }
  ],
  "n": 1.50
}`
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	rest, err := removeApprovals(got, nil, true)
	if err != nil || bytes.Contains(rest, []byte("reme-hook")) || !bytes.Contains(rest, []byte("mine.sh")) {
		t.Errorf("%s, %v", rest, err)
	}
	for _, text := range []string{"", " ", "null", "{}", `{"approvals": 5}`} {
		if a, err := parseApprovals([]byte(text)); err != nil || len(a.list) > 0 {
			t.Errorf("%q: %+v, %v", text, a, err)
		} else if _, err := a.approve(nil, "", at).bytes(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"[]", "{", "x"} {
		if _, err := parseApprovals([]byte(text)); err == nil || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%q: %v", text, err)
		}
		if now, err := removeApprovals([]byte(text), nil, true); err != nil || string(now) != text {
			t.Errorf("%q: %q, %v", text, now, err)
		}
	}
}

// FuzzHooks checks that an edit adds the hooks and nothing else, and that it can
// be taken back.
func FuzzHooks(f *testing.F) {
	for _, e := range hookEdits {
		f.Add([]byte(e.before))
	}
	f.Fuzz(func(t *testing.T, before []byte) {
		if bytes.Contains(before, []byte("reme-hook")) {
			return
		}
		after, err := upsertHooks(before, testProgram)
		if err != nil {
			return
		}
		left, err := removeHooks(after, before, true)
		if err == nil && !sameHooks(left, before) {
			t.Fatalf("%q became %q and then %q", before, after, left)
		}
	})
}
