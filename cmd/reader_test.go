package cmd

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/spool"
)

// row is a line of a dialog file, whichever host it is of.
type row struct {
	Name    string
	Content []struct {
		Type, Text, ID string
		CreatedAt      string `json:"created_at"`
		FinishedAt     any    `json:"finished_at"`
	}
	Role     client.Role
	ID       client.EventID
	Metadata struct {
		Host    client.Host
		Scope   string        `json:"scope_id"`
		Session string        `json:"session_id"`
		Turn    client.TurnID `json:"turn_id"`
		Cwd     string
	}
	CreatedAt        string `json:"created_at"`
	Usage            any
	FinishedAt       any `json:"finished_at"`
	FinishedReason   any `json:"finished_reason"`
	StructuredOutput any `json:"structured_output"`
	Error            any
}

// TestOneReader gives every host's real payloads to its hooks while the memory is
// out of reach, and then lets it have them. One reader reads what lies in the
// spool of all hosts, and one the dialog files.
func TestOneReader(t *testing.T) {
	t.Parallel()
	payloads := filepath.Join("..", "testdata", "payloads")
	home := newHome(t)
	memory := filepath.Join(home, "memory")
	if err := os.WriteFile(memory, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	program := func(stdin []byte, args ...string) {
		t.Helper()
		c := exec.Command("reme-hook", args...)
		c.Env = append(os.Environ(), "HOME="+home, "USERPROFILE="+home, "REME_WORKSPACE="+memory, "TEST_NOW=2026-11-30T09:00:00Z")
		c.Stdin = bytes.NewReader(stdin)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
	}
	// Kimi Code's turns are in a file of its own.
	wire := filepath.Join(home, ".kimi-code", "sessions", "wd_project_16395282f922", "session_4bd22eed-43af-4b33-abda-42046fa44c36", "agents", "main")
	if err := os.MkdirAll(filepath.Dir(wire), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(wire, os.DirFS(filepath.Join(payloads, "kimi", "wire"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(wire, "tool-two-turns.jsonl"), filepath.Join(wire, "wire.jsonl")); err != nil {
		t.Fatal(err)
	}

	for _, h := range knownHosts() {
		name := string(h.Adapter.Host)
		files, err := filepath.Glob(filepath.Join(payloads, name, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no payloads, %v", name, err)
		}
		for _, file := range files {
			payload, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			event, _, _ := strings.Cut(filepath.Base(file), ".")
			program(payload, name, kebab(event))
		}
	}

	spooled, rows := map[client.Host]int{}, map[client.Host]int{}
	each(t, filepath.Join(home, ".reme", "integrations", "spool", "pending"), func(path string, record []byte) {
		var turn spool.Turn
		strictly(t, path, record, &turn)
		s := turn.Session
		if turn.Version != 1 || s.Scope == "" || s.ID == "" || turn.UpdatedAt.IsZero() || filepath.Base(filepath.Dir(path)) != string(s.Key()) {
			t.Errorf("%s: %s", path, record)
		}
		for _, e := range turn.Events {
			if turn.Turn == "" || e.ID.Turn() != turn.Turn || e.Role != client.User && e.Role != client.Assistant || e.Content == "" || e.CreatedAt.IsZero() {
				t.Errorf("%s: %+v", path, e)
			}
			spooled[s.Host]++
		}
	})
	if err := os.Remove(memory); err != nil {
		t.Fatal(err)
	}
	program(nil, "spool", "replay")
	each(t, filepath.Join(memory, "session", "dialog"), func(path string, text []byte) {
		for line := range bytes.Lines(text) {
			var r row
			strictly(t, path, line, &r)
			m := r.Metadata
			s := client.Session{Host: m.Host, Scope: m.Scope, ID: m.Session}
			at, err := time.Parse(time.RFC3339, r.CreatedAt)
			if filepath.Base(path) != string(s.Key())+".jsonl" || filepath.Base(filepath.Dir(path)) != m.Host.Slug() ||
				m.Turn == "" || r.ID.Turn() != m.Turn || r.Name != string(r.Role) || r.Role != client.User && r.Role != client.Assistant ||
				len(r.Content) != 1 || r.Content[0].Type != "text" || r.Content[0].Text == "" || err != nil || at.IsZero() {
				t.Errorf("%s: %s", path, line)
			}
			rows[m.Host]++
		}
	})
	for _, h := range knownHosts() {
		if name := h.Adapter.Host; spooled[name] < 2 || rows[name] < 2 {
			t.Errorf("%s: %d messages in the spool, %d rows", name, spooled[name], rows[name])
		}
	}
}

// each gives every file below a folder to do.
func each(t *testing.T, dir string, do func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		do(path, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// strictly decodes JSON that has no member that v does not have.
func strictly(t *testing.T, path string, text []byte, v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		t.Errorf("%s: %v: %s", path, err, text)
	}
}
