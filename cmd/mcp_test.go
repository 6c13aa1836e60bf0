package cmd

import (
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Two servers and a hook share one memory: each finds what the others wrote, and
// servers end with status 0 when their client goes.
func TestMCPProcesses(t *testing.T) {
	t.Parallel()
	home := newHome(t)
	var commands []*exec.Cmd
	connect := func() *mcp.ClientSession {
		c := program(home, "mcp")
		commands = append(commands, c)
		s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: c}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	call := func(s *mcp.ClientSession, tool string, arguments map[string]any) string {
		t.Helper()
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil || r.IsError {
			t.Fatalf("%s: %+v, %v", tool, r, err)
		}
		return r.Content[0].(*mcp.TextContent).Text
	}
	one, two := connect(), connect()
	call(one, "remember", map[string]any{"content": "The staging quokka listens on port 6543."})
	if got := call(two, "search", map[string]any{"query": "staging quokka"}); !strings.Contains(got, "6543") {
		t.Errorf("the other server finds %s", got)
	}
	hook := func(event, payload string) string {
		c := program(home, "codex", event)
		c.Stdin = strings.NewReader(payload)
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if got := hook("user-prompt-submit", `{"session_id":"s","turn_id":"t1","hook_event_name":"UserPromptSubmit","prompt":"Where does the staging quokka listen?"}`); !strings.Contains(got, "6543") {
		t.Errorf("the hook shows %s", got)
	}
	hook("stop", `{"session_id":"s","turn_id":"t1","hook_event_name":"Stop","last_assistant_message":"Ask the wombat."}`)
	if got := call(one, "search", map[string]any{"query": "wombat"}); !strings.Contains(got, "Ask the wombat.") {
		t.Errorf("the server does not see the hook's turn: %s", got)
	}
	for i, s := range []*mcp.ClientSession{one, two} {
		if err := s.Close(); err != nil || commands[i].ProcessState.ExitCode() != 0 {
			t.Errorf("%v, %v", err, commands[i].ProcessState)
		}
	}
}

// SIGTERM ends the server with status 0 although its client still holds the pipe.
func TestMCPTerminated(t *testing.T) {
	t.Parallel()
	c := program(t.TempDir(), "mcp")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	// Once it answers, it handles signals.
	io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		in.Close()
		t.Skip(err) // Windows has no such signal
	}
	io.Copy(io.Discard, out)
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}
