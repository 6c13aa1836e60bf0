//go:build unix

package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/internal/link"
)

// What hosts are told is one line of whole JSON, or bare text where the host wants that,
// whatever a memory begins with; and never a carriage return, which some refuse.
func TestOutputs(t *testing.T) {
	t.Parallel()
	for _, h := range knownHosts() {
		for _, memory := range []string{"[1] first", "{not json", "plain", "a\r\nb", "\u202eright to left", "\"", "`", "</script>", "\u2028"} {
			res := client.RecallResult{Items: []client.Item{{ID: "m", Path: "p", Snippet: memory}}}
			text, _ := hooks.Frame(res, h.MaxContext, h.Size)
			out := string(h.Encode(hooks.Event{Kind: hooks.Prompt, Name: "UserPromptSubmit"}, hooks.Outcome{Context: text}))
			switch {
			case strings.HasPrefix(out, "{"):
				if !json.Valid([]byte(out)) || strings.Count(out, "\n") != 1 || !strings.HasSuffix(out, "\n") {
					t.Errorf("%s: %q", h.Adapter.Host, out)
				}
			case !strings.HasPrefix(out, "<reme-context") || !strings.HasSuffix(out, "</reme-context>\n"):
				t.Errorf("%s: %q", h.Adapter.Host, out)
			}
			if strings.ContainsAny(out, "\r\u202e") {
				t.Errorf("%s: what should not be seen in %q", h.Adapter.Host, out)
			}
		}
	}
}

// Claude Code shows the model a preview of a longer text than 10,000 characters, and Codex
// cuts the middle out of one of 2,500 tokens of four bytes. Neither gets as much, whatever
// there is to recall, and what they get is whole.
func TestBelowTheLimitsOfHosts(t *testing.T) {
	t.Parallel()
	for host, most := range map[string]func(string) int{"claude-code": hooks.UTF16, "codex": hooks.Bytes} {
		h, _ := (&app{hosts: knownHosts()}).host(host)
		for _, letter := range []string{"x", "\n", "é", "漢", "😀", "<", "\""} {
			var res client.RecallResult
			for i := range 40 {
				res.Items = append(res.Items, client.Item{ID: fmt.Sprint(i), Path: "p", Snippet: "a" + strings.Repeat(letter, 1+i*40) + "z"})
			}
			text, _ := hooks.Frame(res, h.MaxContext, h.Size)
			var out struct {
				HookSpecificOutput struct{ AdditionalContext string }
			}
			if err := json.Unmarshal(h.Encode(hooks.Event{Kind: hooks.Prompt, Name: "UserPromptSubmit"}, hooks.Outcome{Context: text}), &out); err != nil {
				t.Fatal(err)
			}
			got := out.HookSpecificOutput.AdditionalContext
			if n := most(got); n >= 10_000 || n < 7000 || got != text || !strings.HasSuffix(got, "</reme-context>") || strings.Count(got, "<reme-memory ") != strings.Count(got, "</reme-memory>") {
				t.Errorf("%s, %q: %d of at most 10,000", host, letter, n)
			}
		}
	}
}

// A host that does not read what a hook says sees no failure.
func TestNobodyReads(t *testing.T) {
	t.Parallel()
	home := newHome(t)
	run := func(session, event string, e hooks.Event, broken bool) {
		t.Helper()
		e.Session, e.Turn, e.Cwd = client.Session{ID: session}, client.TurnID(session), "/p"
		h, _ := (&app{hosts: knownHosts()}).host("codex")
		cmd := exec.Command("reme-hook", "codex", event)
		cmd.Env = append(os.Environ(), "HOME="+home, "TEST_NOW="+at(0))
		cmd.Stdin = strings.NewReader(string(h.Sample(e)))
		if broken {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			defer w.Close()
			cmd.Stdout = w
		}
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v", event, err)
		}
	}
	run("a", "user-prompt-submit", hooks.Event{Kind: hooks.Prompt, Prompt: "The lighthouse is called Quillfeather."}, false)
	run("a", "stop", hooks.Event{Kind: hooks.TurnEnd, Reply: "Noted."}, false)
	run("b", "user-prompt-submit", hooks.Event{Kind: hooks.Prompt, Prompt: "What is the lighthouse called?"}, true)
}

// Whatever hangs, a hook ends by itself, with status 0 and without a word: the service,
// the host that does not say all, a file of ours on a file system that does not answer.
func TestHooksEnd(t *testing.T) {
	t.Parallel()
	service := newHangingService(t)
	for name, hang := range map[string]func(t *testing.T, dir string, cmd *exec.Cmd){
		"the service": func(t *testing.T, dir string, cmd *exec.Cmd) {
			l := link.File{Path: filepath.Join(dir, "service.json"), URL: service.url}
			if err := l.Probed(client.Info{Name: "x", Version: "1", APIVersion: client.APIVersion}, time.Now()); err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(cmd.Env, "REME_SERVICE="+service.url)
		},
		"the host": func(t *testing.T, _ string, cmd *exec.Cmd) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Close(); w.Close() })
			if _, err := w.WriteString(`{"session_id":"s",`); err != nil {
				t.Fatal(err)
			}
			cmd.Stdin = r
		},
		"the state":         func(t *testing.T, dir string, _ *exec.Cmd) { mkfifo(t, dir, "state", "codex", sessionA+".json") },
		"service.json":      func(t *testing.T, dir string, _ *exec.Cmd) { mkfifo(t, dir, "service.json") },
		"the configuration": func(t *testing.T, dir string, _ *exec.Cmd) { mkfifo(t, dir, "config.toml") },
		"the log":           func(t *testing.T, dir string, _ *exec.Cmd) { mkfifo(t, dir, "log", "hook.jsonl") },
		"the lock":          func(t *testing.T, dir string, _ *exec.Cmd) { mkfifo(t, dir, "service.json.lock") },
		"the index": func(t *testing.T, dir string, _ *exec.Cmd) {
			mkfifo(t, dir, "..", "workspace", "metadata", "reme-hook", "index.sqlite")
		},
		"the rows": func(t *testing.T, dir string, _ *exec.Cmd) {
			mkfifo(t, dir, "..", "workspace", "session", "dialog", "codex", sessionA+".jsonl")
		},
	} {
		for _, event := range []struct{ name, said string }{{"user-prompt-submit", "prompt"}, {"stop", "last_assistant_message"}} {
			t.Run(name+", "+event.name, func(t *testing.T) {
				t.Parallel()
				home := newHome(t)
				cmd := exec.Command("reme-hook", "codex", event.name)
				cmd.Env = append(os.Environ(), "HOME="+home, "TEST_NOW="+at(0), lifetimeEnv+"=600ms", aloneEnv+"=1")
				cmd.Stdin = strings.NewReader(`{"session_id":"a","turn_id":"t","` + event.said + `":"What is the lighthouse called?"}`)
				dir := filepath.Join(home, ".reme", "integrations")
				hang(t, dir, cmd)
				if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
					t.Errorf("%s, %v", out, err)
				}
			})
		}
	}
}

func mkfifo(t *testing.T, elements ...string) {
	t.Helper()
	path := filepath.Join(elements...)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), syscall.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// A host's log that is a turn behind when the turn ends, or has none of it yet, does not
// come into what is kept: what the host says is kept, once.
func TestLogIsBehind(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"codex", "claude-code"} {
		h, _ := (&app{hosts: knownHosts()}).host(host)
		home := newHome(t)
		log := filepath.Join(home, "log.jsonl")
		behind := `{"type":"user","uuid":"u1","sessionId":"s","promptId":"t1","message":{"role":"user","content":"question t1"}}
{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s","message":{"role":"assistant","content":[{"type":"text","text":"answer t1"}]}}
`
		tell := func(event string, e hooks.Event) {
			t.Helper()
			e.Session, e.Cwd = client.Session{ID: "s"}, "/p"
			payload := map[string]any{}
			if err := json.Unmarshal(h.Sample(e), &payload); err != nil {
				t.Fatal(err)
			}
			payload["transcript_path"] = log
			data, err := json.Marshal(payload)
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("reme-hook", host, event)
			cmd.Env = append(os.Environ(), "HOME="+home, "TEST_NOW="+at(0))
			cmd.Stdin = bytes.NewReader(data)
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 && !json.Valid(out) {
				t.Errorf("%s %s: %s, %v", host, event, out, err)
			}
		}
		for _, turn := range []string{"t1", "t2", "t3"} {
			tell("user-prompt-submit", hooks.Event{Kind: hooks.Prompt, Turn: client.TurnID(turn), Prompt: "question " + turn})
			if turn == "t2" {
				if err := os.WriteFile(log, []byte(behind), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			tell("stop", hooks.Event{Kind: hooks.TurnEnd, Turn: client.TurnID(turn), Reply: "answer " + turn})
		}
		show := exec.Command("reme-hook", "show", "s")
		show.Env = append(os.Environ(), "HOME="+home, "TEST_NOW="+at(0))
		const want = "user: question t1\nassistant: answer t1\nuser: question t2\nassistant: answer t2\nuser: question t3\nassistant: answer t3\n"
		if out, err := show.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%s: kept is\n%s%v", host, out, err)
		}
	}
}

// Homes with names that mean something to shells, patterns, URLs or file systems are
// homes like any other, and an odd umask keeps nobody out and lets nobody in.
func TestOddHomes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"é", "e\u0301", "🙂 home", `a[b]\c*?`, "100%25#x?y=1", "it's"} {
		for _, umask := range []string{"0000", "0777"} {
			if umask == "0777" && name != "é" {
				continue
			}
			home := filepath.Join(newHome(t), name)
			if err := os.Mkdir(home, 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-ec", "umask "+umask+"\n"+lab+`
prompt 1; stop 1
later 1
hook user-prompt-submit 2 '"prompt":"What was question 1?"' >/dev/null
reme-hook recall question 1 | grep -o 'answer 1'
find "$HOME/.reme" ! -perm 600 -type f
find "$HOME/.reme" ! -perm 700 -type d
`)
			cmd.Env = append(os.Environ(), "HOME="+home, "TEST_NOW="+at(0))
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "answer 1\n" {
				t.Errorf("%s with umask %s: %s, %v", name, umask, out, err)
			}
		}
	}
}
