//go:build unix

package contract

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// serve starts the product's server in the fake home and returns its URL.
func (w *world) serve() string {
	w.Helper()
	c := exec.Command(binary, "serve", "--listen", "127.0.0.1:0")
	c.Env = hostEnv(w.home, w.path(), "")
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			w.Errorf("serve: %v", err)
		}
	})
	var url string
	line, err := bufio.NewReader(out).ReadString('\n')
	if _, serr := fmt.Sscanf(line, "ready on %s", &url); serr != nil {
		w.Fatalf("%q: %v, %v", line, err, serr)
	}
	return url
}

// The models of Claude Code and Codex call the tools of a server at a URL, which they add by their own commands.
func TestServedMCP(t *testing.T) {
	w := newWorld(t)
	url := w.serve() + "/mcp"
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
