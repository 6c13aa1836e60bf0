// Package config reads the one configuration file of reme-hook.
//
// It promises that no configuration, however broken, stops a hook: what cannot
// be used is reported and the default stands in for it. The order is
// environment, file, default.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/redact"
)

// Config is the configuration in force.
type Config struct {
	Service         string        // Embedded, or the URL of a service
	Token           string        // secret between a memory service and its callers; "" means none
	Workspace       string        // folder of the embedded workspace
	Recall          bool          // recall memory before prompts
	Capture         bool          // capture turns
	RecallLimit     int           // memories a prompt, 1 to 20
	RecallMaxChars  int           // of all memories of a prompt, in Unicode code points
	RecallTimeout   time.Duration // for one recall
	ProjectContext  bool          // tell a session once what was last said in its project
	CompactionNotes bool          // keep the summaries of compactions as notes
	Exclude         []string      // folders whose sessions are left alone
	Listen          string        // where serve listens, host:port
	Upstream        string        // the ReMe that makes notes: auto, off, or its address
}

// Embedded is the service that is a folder and needs no other process.
const Embedded = "embedded"

// URL is where the service is; empty if it is the embedded workspace.
func (c Config) URL() string {
	if c.Service == Embedded {
		return ""
	}
	return c.Service
}

// Key describes one key of the file.
type Key struct {
	Name    string
	Env     string
	Doc     string
	Allowed string
	Default any
	set     func(*Config, any) error
	get     func(*Config) any
}

// Value is a key as it is in force.
type Value struct {
	Name   string `json:"name"`
	Value  any    `json:"value"`
	Origin string `json:"origin"` // default, the file's name, or the name of an environment variable
}

// Problem is something in the configuration that was not used.
type Problem struct {
	Key    string `json:"key,omitempty"`
	Origin string `json:"origin"`
	Reason string `json:"reason"`
}

// Error implements error.
func (p Problem) Error() string {
	if p.Key == "" {
		return p.Origin + ": " + p.Reason
	}
	return fmt.Sprintf("%s (%s): %s", p.Key, p.Origin, p.Reason)
}

// Keys lists all keys, in the order of the documentation.
func Keys() []Key {
	return []Key{
		{Name: "service", Env: "REME_SERVICE", Doc: "What keeps the memory: a folder on this machine, or a service that `reme-hook serve` runs here or elsewhere.", Allowed: "\"embedded\" or an http:// or https:// URL", Default: Embedded,
			set: func(c *Config, v any) error { return setURL(&c.Service, v, Embedded) }, get: func(c *Config) any { return c.Service }},
		{Name: "token", Env: "REME_TOKEN", Doc: "Secret between a service and its callers: what `reme-hook serve` asks for, and what a service at a URL is shown. Better a reference than the secret itself.", Allowed: "ASCII characters without spaces", Default: "",
			set: func(c *Config, v any) error { return setToken(&c.Token, v) }, get: func(c *Config) any { return hidden(c.Token) }},
		{Name: "workspace", Env: "REME_WORKSPACE", Doc: "Folder of the embedded memory.", Allowed: "a path from the root or from ~", Default: "~/.reme/workspace",
			set: func(c *Config, v any) error { return setFolder(&c.Workspace, v) }, get: func(c *Config) any { return c.Workspace }},
		{Name: "recall", Env: "REME_RECALL", Doc: "Recall memories before each prompt.", Allowed: "true or false", Default: true,
			set: func(c *Config, v any) error { return setBool(&c.Recall, v) }, get: func(c *Config) any { return c.Recall }},
		{Name: "capture", Env: "REME_CAPTURE", Doc: "Remember finished turns.", Allowed: "true or false", Default: true,
			set: func(c *Config, v any) error { return setBool(&c.Capture, v) }, get: func(c *Config) any { return c.Capture }},
		{Name: "recall_limit", Env: "REME_RECALL_LIMIT", Doc: "Memories shown with a prompt, at most.", Allowed: "1 to 20", Default: int64(5),
			set: func(c *Config, v any) error { return setInt(&c.RecallLimit, v, 1, 20) }, get: func(c *Config) any { return c.RecallLimit }},
		{Name: "recall_max_chars", Env: "REME_RECALL_MAX_CHARS", Doc: "Length of all memories of a prompt, in characters; a host's own limit wins.", Allowed: "200 to 20000", Default: int64(4000),
			set: func(c *Config, v any) error { return setInt(&c.RecallMaxChars, v, 200, 20000) }, get: func(c *Config) any { return c.RecallMaxChars }},
		{Name: "recall_timeout", Env: "REME_RECALL_TIMEOUT", Doc: "How long a prompt waits for memories, at most.", Allowed: "100ms to 2.5s", Default: "1.5s",
			set: func(c *Config, v any) error {
				return setDuration(&c.RecallTimeout, v, 100*time.Millisecond, 2500*time.Millisecond)
			}, get: func(c *Config) any { return c.RecallTimeout.String() }},
		{Name: "project_context", Env: "REME_PROJECT_CONTEXT", Doc: "Tell a new session what its project's newest notes say and what was last said in it, and one that was compacted where it was.", Allowed: "true or false", Default: false,
			set: func(c *Config, v any) error { return setBool(&c.ProjectContext, v) }, get: func(c *Config) any { return c.ProjectContext }},
		{Name: "compaction_notes", Env: "REME_COMPACTION_NOTES", Doc: "Keep what a host makes of a conversation when it compacts it, as a note.", Allowed: "true or false", Default: true,
			set: func(c *Config, v any) error { return setBool(&c.CompactionNotes, v) }, get: func(c *Config) any { return c.CompactionNotes }},
		{Name: "exclude", Env: "REME_EXCLUDE", Doc: "Folders whose sessions are neither recalled to nor captured; below them too. * matches within a name.", Allowed: "a list of paths from the root or from ~", Default: []any{},
			set: func(c *Config, v any) error { return setStrings(&c.Exclude, v) }, get: func(c *Config) any { return c.Exclude }},
		{Name: "listen", Env: "REME_LISTEN", Doc: "Where `reme-hook serve` listens; beyond this machine only with a token.", Allowed: "host:port", Default: "127.0.0.1:2334",
			set: func(c *Config, v any) error { return setAddress(&c.Listen, v) }, get: func(c *Config) any { return c.Listen }},
		{Name: "upstream", Env: "REME_UPSTREAM", Doc: "The real ReMe that makes notes of what was said, and whose notes are recalled as well; auto is the address in REME_URL, or 127.0.0.1:2333.", Allowed: "auto, off, or an http(s) address", Default: "auto",
			set: func(c *Config, v any) error { return setURL(&c.Upstream, v, "auto", "off") }, get: func(c *Config) any { return c.Upstream }},
	}
}

// Load reads the file and the environment. A missing file is no problem.
func Load(file, home string, getenv func(string) string) (Config, []Value, []Problem) {
	var problems []Problem
	name := filepath.Base(file)
	table := map[string]any{}
	data, err := readFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		problems = append(problems, Problem{Origin: name, Reason: "cannot be read: " + err.Error()})
	default:
		if err := toml.Unmarshal([]byte(strings.TrimPrefix(string(data), "\ufeff")), &table); err != nil {
			problems = append(problems, Problem{Origin: name, Reason: "is not TOML, none of it is used: " + err.Error()})
			table = map[string]any{}
		}
	}
	var c Config
	var values []Value
	for _, k := range Keys() {
		origin := "default"
		try := func(v any, from string) bool {
			if err := k.set(&c, v); err != nil {
				problems = append(problems, Problem{Key: k.Name, Origin: from, Reason: redact.Text(fmt.Sprintf("%v; allowed: %s; using %s", err, k.Allowed, literal(k.Default)))})
				return false
			}
			origin = from
			return true
		}
		try(k.Default, "default")
		if v, ok := table[k.Name]; ok {
			referred, err := refer(v, home, getenv)
			if err != nil {
				problems = append(problems, Problem{Key: k.Name, Origin: name, Reason: err.Error()})
			} else if !try(referred, name) && fmt.Sprint(v) != fmt.Sprint(referred) {
				// What a reference stands for may be a secret.
				problems[len(problems)-1].Reason = fmt.Sprintf("what its references stand for cannot be used; allowed: %s; using %s", k.Allowed, literal(k.Default))
			}
			delete(table, k.Name)
		}
		if v := getenv(k.Env); v != "" {
			try(v, k.Env)
		}
		values = append(values, Value{k.Name, k.get(&c), origin})
	}
	for key := range table {
		problems = append(problems, Problem{Key: key, Origin: name, Reason: "unknown key; known: " + names()})
	}
	slices.SortFunc(problems, func(a, b Problem) int { return strings.Compare(a.Error(), b.Error()) })
	c.Workspace = expand(c.Workspace, home)
	for i := range c.Exclude {
		c.Exclude[i] = expand(c.Exclude[i], home)
	}
	return c, values, problems
}

// fileRef begins a reference to a file.
const fileRef = "file:"

// maxFile bounds the configuration file, and files that it refers to, in bytes.
const maxFile = 64 << 10

// refer replaces the references in a value of the file, so that no secret need
// stand there: ${NAME}, ${NAME:default} and ${NAME:?message if it is not set} to
// the environment, ${file:PATH} to the text of a file. "$$" is a dollar sign.
func refer(v any, home string, getenv func(string) string) (any, error) {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			var err error
			if out[i], err = refer(e, home, getenv); err != nil {
				return nil, err
			}
		}
		return out, nil
	case string:
		var failed error
		out := os.Expand(v, func(ref string) string {
			if path, ok := strings.CutPrefix(ref, fileRef); ok {
				text, err := readText(expand(path, home))
				if err != nil {
					failed = err
				}
				return text
			}
			name, rest, found := strings.Cut(ref, ":")
			value := getenv(name)
			message, required := strings.CutPrefix(rest, "?")
			switch {
			case ref == "$":
				return "$"
			case value != "":
				return value
			case required:
				failed = fmt.Errorf("%s: %s", name, message)
			case !found:
				failed = fmt.Errorf("the environment variable %s is not set", name)
			}
			return rest
		})
		return out, failed
	}
	return v, nil
}

// readText is the text of a file without the spaces around it.
func readText(path string) (string, error) {
	text, err := readFile(path)
	return strings.TrimSpace(string(text)), err
}

// readFile is os.ReadFile for small files. A pipe would keep a hook waiting.
func readFile(path string) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular() || st.Size() > maxFile:
		return nil, fmt.Errorf("%s is not a file of at most %d KiB", path, maxFile>>10)
	}
	return os.ReadFile(path)
}

func names() string {
	var out []string
	for _, k := range Keys() {
		out = append(out, k.Name)
	}
	return strings.Join(out, ", ")
}

func expand(path, home string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/' || rest[0] == filepath.Separator) {
		return filepath.Join(home, rest)
	}
	return path
}

// Template is a configuration file with every key, documented and commented out.
func Template() string {
	var b strings.Builder
	b.WriteString("# Configuration of reme-hook. Every key may be left out; `reme-hook config show` tells what is in force.\n# Text may refer to the environment: ${NAME}, ${NAME:default}, ${NAME:?message if it is not set}; and to the text of a file:\n# ${file:~/.config/reme/token}. $$ is a dollar sign.\n")
	for _, k := range Keys() {
		fmt.Fprintf(&b, "\n# %s Allowed: %s. Environment: %s.\n# %s = %s\n", k.Doc, k.Allowed, k.Env, k.Name, literal(k.Default))
	}
	return b.String()
}

// literal writes a default as TOML.
func literal(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case []any:
		return "[]"
	}
	return fmt.Sprint(v)
}

// setURL takes the URL of a service or one of some words.
func setURL(to *string, v any, words ...string) error {
	s, _ := v.(string)
	if slices.Contains(words, s) {
		*to = s
		return nil
	}
	u, err := client.ParseURL(s)
	if err != nil {
		return err
	}
	*to = u
	return nil
}

// setToken takes what can stand in a header. Its error does not tell the token.
func setToken(to *string, v any) error {
	s, ok := v.(string)
	if !ok || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("not a token")
	}
	*to = s
	return nil
}

func setFolder(to *string, v any) error {
	s, _ := v.(string)
	if !rooted(s) {
		return notRooted(v)
	}
	*to = s
	return nil
}

// rooted tells a path that is the same in every folder in which a hook is called.
func rooted(path string) bool { return filepath.IsAbs(path) || expand(path, "/") != path }

func notRooted(v any) error { return fmt.Errorf("%v is not a path from the root or from ~", v) }

// hidden stands for a secret.
func hidden(secret string) string {
	if secret == "" {
		return "(not set)"
	}
	return "(hidden)"
}

func setAddress(to *string, v any) error {
	s, _ := v.(string)
	if err := CheckAddress(s); err != nil {
		return err
	}
	*to = s
	return nil
}

// CheckAddress reports what keeps a text from being host:port.
func CheckAddress(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is not host:port", s)
	}
	return nil
}

func setBool(to *bool, v any) error {
	if s, ok := v.(string); ok {
		b, err := strconv.ParseBool(s)
		if err != nil {
			return fmt.Errorf("%q is not true or false", s)
		}
		v = b
	}
	b, ok := v.(bool)
	if !ok {
		return fmt.Errorf("%v is not true or false", v)
	}
	*to = b
	return nil
}

func setInt(to *int, v any, low, high int64) error {
	if s, ok := v.(string); ok {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", s)
		}
		v = n
	}
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("%v is not a whole number", v)
	}
	if n < low || n > high {
		return fmt.Errorf("%d is out of range", n)
	}
	*to = int(n)
	return nil
}

func setDuration(to *time.Duration, v any, low, high time.Duration) error {
	s, ok := v.(string)
	d, err := time.ParseDuration(s)
	if !ok || err != nil {
		return fmt.Errorf("%v is not a duration such as \"1.5s\"", v)
	}
	if d < low || d > high {
		return fmt.Errorf("%s is out of range", d)
	}
	*to = d
	return nil
}

func setStrings(to *[]string, v any) error {
	var list []any
	switch v := v.(type) {
	case string: // from the environment, spelt like PATH
		for _, s := range filepath.SplitList(v) {
			list = append(list, s)
		}
	case []any:
		list = v
	default:
		return fmt.Errorf("%v is not a list", v)
	}
	out := []string{}
	for _, e := range list {
		s, _ := e.(string)
		if !rooted(s) {
			return notRooted(e)
		}
		out = append(out, s)
	}
	*to = out
	return nil
}
