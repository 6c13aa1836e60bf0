package workspace

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestImport(t *testing.T) {
	t.Parallel()
	w := openAt(t, t.TempDir(), time.Now())
	at := time.Date(2026, 11, 2, 12, 0, 0, 0, time.Local)
	put := func(content string, write bool) (path string, state ImportState) {
		t.Helper()
		n, state, err := w.Import(t.Context(), Imported{Source: "/home/u/[x]/CLAUDE.md", Content: content, Cwd: "/src/app", Host: "claude-code", At: at}, write)
		if err != nil {
			t.Fatal(err)
		}
		at = at.AddDate(0, 0, 1)
		return w.abs(n.Path), state
	}
	get := func(path string) string {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	path, state := put("# Tabs\n\nUse tabs.", false)
	if _, err := os.Stat(path); err == nil || state != ImportNew {
		t.Errorf("only looked at: %s, written %v", state, err == nil)
	}
	if path, state = put("# Tabs\n\nUse tabs.", true); state != ImportNew || !strings.Contains(path, "2026-11-03") {
		t.Errorf("first: %s in %s", state, path)
	}
	if text := get(path); !strings.HasPrefix(text, "---\ncwd: '/src/app'\ndescription: Tabs\nhost: claude-code\nname: ") || !strings.Contains(text, "\nsource: '/home/u/[x]/CLAUDE.md'\n---\n\n# Tabs\n\nUse tabs.\n") {
		t.Errorf("the note is\n%s", text)
	}
	before, _ := os.Stat(path)
	again, state := put("# Tabs\n\nUse tabs.\n", true)
	if after, _ := os.Stat(path); state != ImportSame || again != path || after.ModTime() != before.ModTime() {
		t.Errorf("again: %s in %s", state, again)
	}
	if again, state = put("# Spaces\n\nUse spaces.", true); state != ImportChanged || again != path || !strings.Contains(get(path), "Use spaces.\n") {
		t.Errorf("changed: %s in %s\n%s", state, again, get(path))
	}
	edited := strings.Replace(get(path), "Use spaces.", "Use both.", 1)
	if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, state = put("# Spaces\n\nUse spaces.", true); state != ImportSame {
		t.Errorf("edited, and the same: %s", state)
	}
	if _, state = put("# None\n", true); state != ImportEdited || get(path) != edited {
		t.Errorf("edited: %s\n%s", state, get(path))
	}
	list := get(w.abs("daily/2026-11-03.md"))
	if !strings.Contains(list, "description: Spaces") || strings.Count(list, "[[daily/") != 1 {
		t.Errorf("the list of the day:\n%s", list)
	}
}
