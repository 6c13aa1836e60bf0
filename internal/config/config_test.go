package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var defaults = Config{Service: Embedded, Workspace: "/home/u/.reme/workspace", Recall: true, Capture: true, RecallLimit: 5, RecallMaxChars: 4000, RecallTimeout: 1500 * time.Millisecond, CompactionNotes: true, Exclude: []string{}, Listen: "127.0.0.1:2334", Upstream: "auto"}

func load(t *testing.T, content string, env map[string]string) (Config, []Problem) {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, "config.toml")
	if err := os.WriteFile(filepath.Join(home, "token"), []byte("s3same\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if content != "" {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, values, problems := Load(file, home, func(k string) string { return env[k] })
	for _, v := range values {
		if v.Name == "token" && v.Value != "(hidden)" && v.Value != "(not set)" {
			t.Errorf("the token is shown: %v", v.Value)
		}
	}
	c.Workspace = strings.Replace(c.Workspace, home, "/home/u", 1)
	for i, dir := range c.Exclude {
		c.Exclude[i] = strings.Replace(dir, home, "/home/u", 1)
	}
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
		"upstream":           {"upstream = \"https://reme.example/x\"", nil, with(func(c *Config) { c.Upstream = "https://reme.example/x" }), 0},
		"upstream off":       {"upstream = \"http://a\"", map[string]string{"REME_UPSTREAM": "off"}, with(func(c *Config) { c.Upstream = "off" }), 0},
		"no address":         {"upstream = \"127.0.0.1:2333\"", map[string]string{"REME_UPSTREAM": "ftp://x"}, defaults, 2},
		"listen and token":   {"listen = \"[::1]:0\"\ntoken = \"${A}\"", map[string]string{"A": "sesame"}, with(func(c *Config) { c.Listen = "[::1]:0"; c.Token = "sesame" }), 0},
		"bad address":        {"listen = \"2334\"\ntoken = 5", map[string]string{"REME_LISTEN": "localhost:http"}, defaults, 3},
		"references":         {"workspace = \"${A}/${B:b}/$$\"\nexclude = [\"${A}\"]", map[string]string{"A": "/a"}, with(func(c *Config) { c.Workspace = "/a/b/$"; c.Exclude = []string{"/a"} }), 0},
		"relative folders":   {"workspace = \"memory\"\nexclude = [\"~bob/x\"]", nil, defaults, 2},
		"missing references": {"workspace = \"${A}\"\nexclude = [\"${A:?name a folder}\"]", nil, defaults, 2},
		"bad env":            {"recall_limit = 7", map[string]string{"REME_RECALL_LIMIT": "many"}, with(func(c *Config) { c.RecallLimit = 7 }), 1},
		"out of range":       {"recall_limit = 0\nrecall_max_chars = 1\nrecall_timeout = \"1h\"", nil, defaults, 3},
		"service":            {"service = \"HTTP://Localhost.:2334/\"\ntoken = \"s3same\"", nil, with(func(c *Config) { c.Service = "http://localhost:2334"; c.Token = "s3same" }), 0},
		"service, env":       {"service = \"https://memory.example/reme\"", map[string]string{"REME_SERVICE": "embedded", "REME_TOKEN": "s3same"}, with(func(c *Config) { c.Token = "s3same" }), 0},
		"bad service":        {"service = \"ftp://s3same@memory.example\"\ntoken = \"s3same \"", map[string]string{"REME_SERVICE": "http://u:s3same@memory.example", "REME_TOKEN": "s3\nsame"}, defaults, 4},
		"a file":             {"token = \"${file:~/token}\"\nworkspace = \"/${file:~/token}/x\"", nil, with(func(c *Config) { c.Token = "s3same"; c.Workspace = "/s3same/x" }), 0},
		"a missing file":     {"token = \"${file:/none/token}\"", nil, defaults, 1},
		"a folder as a file": {"token = \"${file:~}\"", nil, defaults, 1},
		"wrong types":        {"service = 5\ntoken = 5\nworkspace = 5\nrecall = 1\ncapture = \"x\"\nrecall_limit = \"x\"\nrecall_max_chars = 1.5\nrecall_timeout = true\nexclude = [1]", nil, defaults, 9},
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
			if p.Origin == "" || p.Reason == "" || strings.Contains(p.Reason, "s3") {
				t.Errorf("%s: problem %+v", name, p)
			}
		}
	}
	// What cannot be a file in place of it.
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

// unfit are values that a key of no type takes, and those that no key of a type
// takes: the type is that of the default.
var unfit = map[string][]string{
	"":         {"{a = 1}", "[[1]]", "[{}]", "2026-11-30", "nan", "\"${REME_TEST_UNSET}\"", "\"${file:/none}\"", "-1.5"},
	"string":   {"5", "true", "[]"},
	"bool":     {"5", "\"maybe\"", "\"\"", "[true]"},
	"int64":    {"true", "\"many\"", "1.0", "[]", "-1", "0", "9223372036854775807", "99999999999999999999"},
	"duration": {"5", "\"5\"", "\"0s\"", "\"-1s\"", "\"24h\"", "\"1.5\""},
	"list":     {"5", "true", "\"relative/path\"", "[\"relative\"]", "[1]", "[\"\"]"},
}

// TestUnfitValues goes through all keys there are: what cannot be used leaves the
// default in force, and is reported with the key, where it is from, and what is
// allowed. One key's mistake is no other's.
func TestUnfitValues(t *testing.T) {
	t.Parallel()
	fit := "recall_max_chars = 5000\n"
	for _, k := range Keys() {
		kind := fmt.Sprintf("%T", k.Default)
		switch {
		case k.Name == "recall_timeout":
			kind = "duration"
		case kind == "[]interface {}":
			kind = "list"
		}
		if unfit[kind] == nil {
			t.Fatalf("%s has the type %s, for which nothing is tried", k.Name, kind)
		}
		if k.Allowed == "" || k.Doc == "" || k.Env == "" {
			t.Errorf("%s says too little of itself: %+v", k.Name, k)
		}
		for _, value := range append(append([]string{}, unfit[""]...), unfit[kind]...) {
			text := k.Name + " = " + value + "\n"
			if k.Name != "recall_max_chars" {
				text += fit
			}
			got, problems := load(t, text, nil)
			want := defaults
			whole := !strings.Contains(value, "99999999999999999999") // which is no TOML at all
			if k.Name != "recall_max_chars" && whole {
				want.RecallMaxChars = 5000
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v", text, got)
			}
			if len(problems) != 1 {
				t.Errorf("%s: problems %v", text, problems)
				continue
			}
			if p := problems[0]; p.Origin != "config.toml" || whole && (p.Key != k.Name || !strings.Contains(p.Reason, k.Allowed) && !strings.Contains(value, "${")) {
				t.Errorf("%s: problem %+v", text, p)
			}
		}
		// The same from the environment, where all is text.
		for _, value := range unfit[kind] {
			value, quoted := strings.CutPrefix(value, "\"")
			value = strings.TrimSuffix(value, "\"")
			if !quoted && kind == "string" || value == "" || strings.HasPrefix(value, "[") {
				continue
			}
			if value == "1.0" && kind != "int64" || value == "true" && kind == "bool" {
				continue
			}
			got, problems := load(t, "", map[string]string{k.Env: value})
			if !reflect.DeepEqual(got, defaults) || len(problems) != 1 || problems[0].Key != k.Name || problems[0].Origin != k.Env || !strings.Contains(problems[0].Reason, k.Allowed) {
				t.Errorf("%s=%s: %+v, %v", k.Env, value, got, problems)
			}
		}
		// Misspelt, in ways that people do.
		for _, name := range []string{strings.ToUpper(k.Name), strings.ReplaceAll(k.Name, "_", "-") + "x", k.Name + "s"} {
			got, problems := load(t, name+" = "+literal(k.Default)+"\n", nil)
			if !reflect.DeepEqual(got, defaults) || len(problems) != 1 || problems[0].Key != name || !strings.Contains(problems[0].Reason, k.Name) {
				t.Errorf("%s: %+v, %v", name, got, problems)
			}
		}
		// In a section where it does not belong.
		if got, problems := load(t, "[memory]\n"+k.Name+" = "+literal(k.Default)+"\n", nil); !reflect.DeepEqual(got, defaults) || len(problems) != 1 {
			t.Errorf("%s in a section: %+v, %v", k.Name, got, problems)
		}
	}
}
