//go:build unix

package contract

import (
	"strings"
	"testing"
)

// The models of Claude Code and Codex call the tools of a server at a URL, which they add by their own commands.
func TestServedMCP(t *testing.T) {
	w := newWorld(t)
	url := w.server(hostEnv(w.home, w.path(), "")...) + "/mcp"
	w.host(w.claude.Bin, "mcp", "add", "--scope", "user", "--transport", "http", "reme", url)
	w.host(w.codex.Bin, "mcp", "add", "reme", "--url", url)
	if r := w.host(w.claude.Bin, "mcp", "list"); !strings.Contains(r.Stdout, "reme: ") || !strings.Contains(r.Stdout, "Connected") {
		t.Errorf("claude mcp list: %s", r.Stdout)
	}
	r := w.run(w.claude, Turn{Prompt: billing, Args: []string{"--allowedTools", "mcp__reme"}},
		Step{Tool: "mcp__reme__remember", Args: map[string]any{"content": billing, "title": "Billing"}}, Step{Text: "Done."})
	if r.Code != 0 || r.Reply != "Done." {
		t.Fatalf("exit status %d, reply %q\n%s", r.Code, r.Reply, r.Stderr)
	}
	if got := w.results(w.claude, 1); !strings.Contains(got[0], "Remembered in reme://"+w.remembered()) {
		t.Errorf("tool results %q", got)
	}
	r = w.run(w.codex, Turn{Prompt: "Look it up."},
		Step{Tool: "search", Args: map[string]any{"query": "billing"}}, Step{Tool: "read", Args: map[string]any{"path": "daily/none.md"}}, Step{Text: "Done."})
	if r.Code != 0 || r.Reply != "Done." {
		t.Fatalf("exit status %d, reply %q\n%s", r.Code, r.Reply, r.Stderr)
	}
	if got := w.results(w.codex, 2); !strings.Contains(got[0], billing) || !strings.Contains(got[1], "does not exist") {
		t.Errorf("tool results %q", got)
	}
}

// A model whose host has the server that install registers calls the tools of a memory at a URL. The notes bear the host's name
// there too.
func TestBridgedMCP(t *testing.T) {
	w := newWorld(t)
	w.serve()
	w.must("install", "codex", "claude-code", "--trust")
	for _, call := range []struct {
		host   Host
		prefix string
		args   []string
	}{{w.claude, "mcp__reme__", []string{"--allowedTools", "mcp__reme"}}, {w.codex, "", nil}} {
		r := w.run(call.host, Turn{Prompt: "Keep it.", Args: call.args},
			Step{Tool: call.prefix + "remember", Args: map[string]any{"content": billing, "title": call.host.Name()}}, Step{Text: "Done."})
		w.well(call.host, r, "Done.")
		w.signed(call.host, w.results(call.host, 1)[0])
	}
}

// So does the model of Kimi, by the entry that its documentation gives.
func TestKimiServedMCP(t *testing.T) {
	w := newWorld(t)
	k := w.with("kimi")
	w.put(".kimi-code/mcp.json", `{"mcpServers":{"reme":{"url":"`+w.server(hostEnv(w.home, w.path(), "")...)+`/mcp"}}}`, 0o600)
	r := w.run(k, Turn{Prompt: "Keep it."},
		Step{Tool: "mcp__reme__remember", Args: map[string]any{"content": billing, "title": "Billing"}},
		Step{Tool: "mcp__reme__search", Args: map[string]any{"query": "billing"}}, Step{Text: "Done."})
	if r.Code != 0 || r.Reply != "Done." {
		t.Fatalf("exit status %d, reply %q\n%s", r.Code, r.Reply, r.Stderr)
	}
	if got := w.results(k, 2); !strings.Contains(got[0], "Remembered in reme://"+w.remembered()) || !strings.Contains(got[1], billing) {
		t.Errorf("tool results %q", got)
	}
}
