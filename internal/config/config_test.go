package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var defaults = Config{Workspace: "/home/u/.reme/workspace", Recall: true, Capture: true, RecallLimit: 5, RecallMaxChars: 4000, RecallTimeout: 1500 * time.Millisecond, CompactionNotes: true, Exclude: []string{}, Listen: "127.0.0.1:2334"}

func load(t *testing.T, content string, env map[string]string) (Config, []Problem) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.toml")
	if content != "" {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, _, problems := Load(file, "/home/u", func(k string) string { return env[k] })
	return c, problems
}

func TestLoad(t *testing.T) {
	t.Parallel()
	with := func(change func(*Config)) Config { c := defaults; change(&c); return c }
	for name, c := range map[string]struct {
		file     string
		env      map[string]string
		want     Config
		problems int
	}{
		"nothing":            {"", nil, defaults, 0},
		"template":           {Template(), nil, defaults, 0},
		"template in use":    {uncommented(), nil, defaults, 0},
		"file":               {"recall_limit = 7\nrecall = false\nexclude = [\"~/x\", \"/y/*\"]", nil, with(func(c *Config) { c.RecallLimit = 7; c.Recall = false; c.Exclude = []string{"/home/u/x", "/y/*"} }), 0},
		"BOM and CRLF":       {"\ufeffrecall_limit = 7\r\n", nil, with(func(c *Config) { c.RecallLimit = 7 }), 0},
		"env over file":      {"recall_limit = 7", map[string]string{"REME_RECALL_LIMIT": "9", "REME_CAPTURE": "0", "REME_EXCLUDE": "/a" + string(os.PathListSeparator) + "~/b"}, with(func(c *Config) { c.RecallLimit = 9; c.Capture = false; c.Exclude = []string{"/a", "/home/u/b"} }), 0},
		"listen and token":   {"listen = \"[::1]:0\"\ntoken = \" ${A}\"", map[string]string{"A": "sesame"}, with(func(c *Config) { c.Listen = "[::1]:0"; c.Token = "sesame" }), 0},
		"bad address":        {"listen = \"2334\"\ntoken = 5", map[string]string{"REME_LISTEN": "localhost:http"}, defaults, 3},
		"references":         {"workspace = \"${A}/${B:b}/$$\"\nexclude = [\"${A}\"]", map[string]string{"A": "/a"}, with(func(c *Config) { c.Workspace = "/a/b/$"; c.Exclude = []string{"/a"} }), 0},
		"missing references": {"workspace = \"${A}\"\nexclude = [\"${A:?name a folder}\"]", nil, defaults, 2},
		"bad env":            {"recall_limit = 7", map[string]string{"REME_RECALL_LIMIT": "many"}, with(func(c *Config) { c.RecallLimit = 7 }), 1},
		"out of range":       {"recall_limit = 0\nrecall_max_chars = 1\nrecall_timeout = \"1h\"", nil, defaults, 3},
		"wrong types":        {"workspace = 5\nrecall = 1\ncapture = \"x\"\nrecall_limit = \"x\"\nrecall_max_chars = 1.5\nrecall_timeout = true\nexclude = [1]", nil, defaults, 7},
		"unknown":            {"recal = true\n[section]\nx = 1", nil, defaults, 2},
		"no TOML":            {"recall = = 1\nrecall_limit = 7", nil, defaults, 1},
		"doubled":            {"recall_limit = 7\nrecall_limit = 8", nil, defaults, 1},
		"binary":             {"\x00\xff", nil, defaults, 1},
	} {
		got, problems := load(t, c.file, c.env)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
		if len(problems) != c.problems {
			t.Errorf("%s: problems %v", name, problems)
		}
		for _, p := range problems {
			if p.Origin == "" || p.Reason == "" {
				t.Errorf("%s: empty problem %+v", name, p)
			}
		}
	}
	// A folder in place of the file.
	if _, _, problems := Load(t.TempDir(), "/home/u", func(string) string { return "" }); len(problems) != 1 {
		t.Errorf("a folder: %v", problems)
	}
}

// uncommented is the template with every key in force.
func uncommented() string {
	var b strings.Builder
	for line := range strings.Lines(Template()) {
		for _, k := range Keys() {
			line = strings.TrimPrefix(line, "# "+k.Name+" = ")
			if !strings.HasPrefix(line, "#") && line != "\n" {
				line = k.Name + " = " + line
				break
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

func FuzzLoad(f *testing.F) {
	f.Add(Template())
	f.Add("exclude = [[]]\nrecall_timeout = -1")
	f.Fuzz(func(t *testing.T, content string) {
		got, problems := load(t, content, nil)
		if got.RecallLimit < 1 || got.RecallLimit > 20 || got.RecallTimeout <= 0 || got.Workspace == "" {
			t.Errorf("%+v with %v", got, problems)
		}
	})
}
