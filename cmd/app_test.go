package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Processes that keep the log open for long leave each other's lines alone.
func TestLogIsShared(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := (&app{dir: dir}).log(), (&app{dir: dir}).log()
	for range 3 {
		one.Info("one")
		two.Info("two, which is longer")
	}
	text, err := os.ReadFile(filepath.Join(dir, "log", "hook.jsonl"))
	if err != nil || strings.Count(string(text), `"msg":"one"}`+"\n") != 3 || strings.Count(string(text), `"msg":"two, which is longer"}`+"\n") != 3 {
		t.Errorf("%s, %v", text, err)
	}
}
