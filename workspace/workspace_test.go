package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/client/servicetest"
)

func TestService(t *testing.T) {
	servicetest.Run(t, func(t *testing.T) client.Ledger {
		w := open(t, t.TempDir())
		t.Cleanup(func() { w.Close() })
		return w
	})
}

// noon is the clock of the tests.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// openAt opens a workspace whose clock stands still.
func openAt(t *testing.T, dir string, now time.Time) *Workspace {
	t.Helper()
	w, err := Open(dir, Options{Now: func() time.Time { return now }, Location: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func testSession(id string) client.Session {
	return client.Session{Host: "codex", Scope: "default", ID: id}
}

func testTurn(n int, user, assistant string) []client.Event {
	at := noon.Add(time.Duration(n-60) * time.Minute)
	id := client.TurnID(fmt.Sprint(n))
	return []client.Event{
		{ID: client.NewEventID(id, client.User, 1), Role: client.User, Content: user, CreatedAt: at},
		{ID: client.NewEventID(id, client.Assistant, 1), Role: client.Assistant, Content: assistant, CreatedAt: at.Add(5 * time.Second)},
	}
}

func mustAppend(t *testing.T, w *Workspace, s client.Session, events ...client.Event) client.AppendResult {
	t.Helper()
	res, err := w.Append(context.Background(), client.AppendRequest{Session: s, Cwd: "/src/osprey", Events: events})
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return res
}

func mustRecall(t *testing.T, w *Workspace, query string) []client.Item {
	t.Helper()
	res, err := w.Recall(context.Background(), client.RecallRequest{Query: query})
	if err != nil {
		t.Fatalf("recall: %v", err)
	}
	return res.Items
}

// mustPrompt recalls as the hook of a prompt does.
func mustPrompt(t *testing.T, w *Workspace, prompt string) []client.Item {
	t.Helper()
	res, err := w.Recall(context.Background(), client.RecallRequest{Query: prompt, Purpose: client.ForPrompt})
	if err != nil {
		t.Fatalf("recall: %v", err)
	}
	return res.Items
}

func mustStats(t *testing.T, w *Workspace) Stats {
	t.Helper()
	s, err := w.Stats(context.Background())
	if err != nil {
		t.Fatalf("stats: %v", err)
	}
	return s
}

func writeFile(t *testing.T, w *Workspace, rel, text string) {
	t.Helper()
	path := w.abs(rel)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, w *Workspace, rel string) string {
	t.Helper()
	text, err := os.ReadFile(w.abs(rel))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
