package cmd

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/workspace"
)

// TestCrash kills the Stop hook at each named point. What was on the disk by then
// arrives once, with the next hook; a turn is there as a whole or, killed before
// its record was written, with what its prompt hook had kept.
func TestCrash(t *testing.T) {
	t.Parallel()
	for point, whole := range map[string]bool{
		"put.begin": false, "file.made": false, "file.written": false, "file.renamed": true, "put.written": true,
		"append.written": true, "append.synced": true, "index.commit": true, "append.indexed": true,
		"flush.queued": true, "deliver.appended": true, "deliver.removed": true,
		"note.written": true, "note.listed": true, "rotate.moved": true, "rotate.done": true,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			home := newHome(t)
			hook := func(now, crashAt, event, payload string) error {
				c := exec.Command("reme-hook", "codex", event)
				c.Env = append(os.Environ(), "HOME="+home, "TEST_NOW=2026-11-30T"+now+"Z", crashEnv+"="+crashAt)
				c.Stdin = strings.NewReader(payload)
				out, err := c.CombinedOutput()
				if len(out) > 0 {
					t.Errorf("%s said %s", event, out)
				}
				return err
			}
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(hook("09:00:00", "", "user-prompt-submit", `{"session_id":"s","turn_id":"t1","hook_event_name":"UserPromptSubmit","prompt":"first question"}`))
			event, payload := "stop", `{"session_id":"s","turn_id":"t1","hook_event_name":"Stop","last_assistant_message":"first answer"}`
			if strings.HasPrefix(point, "rotate.") {
				log := filepath.Join(home, ".reme", "integrations", "log", "hook.jsonl")
				must(os.Truncate(log, 5<<20))
			}
			if strings.HasPrefix(point, "note.") {
				must(hook("09:00:05", "", event, payload))
				event, payload = "session-end", `{"session_id":"s","hook_event_name":"SessionEnd","reason":"other"}`
			}
			var killed *exec.ExitError
			if err := hook("09:00:10", point, event, payload); !errors.As(err, &killed) {
				t.Fatalf("the hook was not killed: %v", err)
			}
			must(hook("09:01:00", "", "user-prompt-submit", `{"session_id":"s","turn_id":"t2","hook_event_name":"UserPromptSubmit","prompt":"second question"}`))
			must(hook("09:01:10", "", "stop", `{"session_id":"s","turn_id":"t2","hook_event_name":"Stop","last_assistant_message":"second answer"}`))
			must(hook("09:01:20", "", "session-end", `{"session_id":"s","hook_event_name":"SessionEnd","reason":"other"}`))

			want := "user: first question\nassistant: first answer\nuser: second question\nassistant: second answer"
			if !whole {
				want = strings.Replace(want, "assistant: first answer\n", "", 1)
			}
			ws, err := workspace.Open(filepath.Join(home, ".reme", "workspace"), workspace.Options{})
			must(err)
			defer ws.Close()
			sessions, err := ws.Sessions(t.Context(), 0)
			must(err)
			if len(sessions) != 1 {
				t.Fatalf("%d sessions", len(sessions))
			}
			got, err := ws.Read(t.Context(), sessions[0].Path, 0, 0)
			if err != nil || got != want {
				t.Errorf("the memory has\n%s\nwant\n%s\n%v", got, want, err)
			}
			if left, err := os.ReadDir(filepath.Join(home, ".reme", "integrations", "spool", "pending")); err != nil || len(left) > 0 {
				t.Errorf("left in the spool: %v, %v", left, err)
			}
		})
	}
}
