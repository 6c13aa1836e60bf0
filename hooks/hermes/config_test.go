package hermes

import (
	"bytes"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/install"
	"gopkg.in/yaml.v3"
)

// edits are files and what an install makes of them.
var edits = map[string]struct{ before, after string }{
	"empty":              {"", "memory:\n  provider: reme\n"},
	"blank":              {"\n\n", "\n\nmemory:\n  provider: reme\n"},
	"only comments":      {"# nothing\n# yet", "# nothing\n# yet\nmemory:\n  provider: reme\n"},
	"no final newline":   {"a: 1", "a: 1\nmemory:\n  provider: reme\n"},
	"windows":            {"a: 1 # one\r\nb: 2\r\n", "a: 1 # one\r\nb: 2\r\nmemory:\r\n  provider: reme\r\n"},
	"byte order mark":    {"\ufeffa: 1\n", "\ufeffa: 1\nmemory:\n  provider: reme\n"},
	"mark and nothing":   {"\ufeff", "\ufeffmemory:\n  provider: reme\n"},
	"indented root":      {"  a: 1\n  b: 2\n", "  a: 1\n  b: 2\n  memory:\n    provider: reme\n"},
	"document marks":     {"---\na: 1\n", "---\na: 1\nmemory:\n  provider: reme\n"},
	"document end":       {"---\n# of a\na: 1\n...\n", "---\nmemory:\n  provider: reme\n# of a\na: 1\n...\n"},
	"only a mark":        {"---\n", "---\nmemory:\n  provider: reme\n"},
	"block scalar":       {"a: |\n  text", "memory:\n  provider: reme\na: |\n  text"},
	"kept block scalar":  {"a: |+\n  text\n\n", "a: |+\n  text\n\nmemory:\n  provider: reme\n"},
	"commented section":  {"a: 1\n# memory:\n#   provider: honcho\n", "a: 1\n# memory:\n#   provider: honcho\nmemory:\n  provider: reme\n"},
	"section":            {"memory:\n  # the limit\n  user_char_limit: 1\nb: 2\n", "memory:\n  provider: reme\n  # the limit\n  user_char_limit: 1\nb: 2\n"},
	"section, deep":      {"memory:   # mine\n\n        limit: 1\n", "memory:   # mine\n        provider: reme\n\n        limit: 1\n"},
	"section last":       {"a: 1\nmemory:\n  limit: 1", "a: 1\nmemory:\n  provider: reme\n  limit: 1"},
	"empty section":      {"memory:\nb: 2\n", "memory:\n  provider: reme\nb: 2\n"},
	"empty section last": {"b: 2\nmemory:", "b: 2\nmemory:\n  provider: reme\n"},
	"empty and comment":  {"memory: # none\n# b\nb: 2\n", "memory: # none\n  provider: reme\n# b\nb: 2\n"},
	"null section":       {"memory: ~ # none\nb: 2\n", "memory: {provider: reme} # none\nb: 2\n"},
	"spelt null":         {"memory: null\n", "memory: {provider: reme}\n"},
	"empty map":          {"memory: {}\n", "memory: {provider: reme}\n"},
	"flow section":       {"memory: { limit: 1 } # x\n", "memory: {provider: reme,  limit: 1 } # x\n"},
	"flow over lines":    {"memory: {\n  limit: 1,\n}\n", "memory: {provider: reme, \n  limit: 1,\n}\n"},
	"flow root":          {"{a: 1, b: [2, 3]}\n", "{memory: {provider: reme}, a: 1, b: [2, 3]}\n"},
	"empty flow root":    {"{}", "{memory: {provider: reme}}"},
	"json":               {"{\n  \"a\": \"b\"\n}\n", "{memory: {provider: reme}, \n  \"a\": \"b\"\n}\n"},
	"json section":       {"{\"memory\": {\"limit\": 1}}", "{\"memory\": {provider: reme, \"limit\": 1}}"},
	"off":                {"memory:\n  limit: 1\n  provider: '' # none\n", "memory:\n  limit: 1\n  provider: reme # none\n"},
	"off, double quotes": {"memory:\n  provider: \"\"\n", "memory:\n  provider: reme\n"},
	"off, nothing":       {"memory:\n  provider: # off\n  limit: 1\n", "memory:\n  provider: reme # off\n  limit: 1\n"},
	"off, flow":          {"memory: {provider: '', limit: 1}\n", "memory: {provider: reme, limit: 1}\n"},
	"off, flow null":     {"memory: {provider: null}", "memory: {provider: reme}"},
	"quoted keys":        {"'memory':\n  \"provider\": ''\n", "'memory':\n  \"provider\": reme\n"},
	"quoted empty":       {"\"memory\":\n", "\"memory\":\n  provider: reme\n"},
	"other words":        {"x:\n  memory:\n    provider: mem0\ny: \"memory: {}\"\n", "x:\n  memory:\n    provider: mem0\ny: \"memory: {}\"\nmemory:\n  provider: reme\n"},
	"not ASCII":          {"名前: 値 # ü\nmemory: {名: 値}\n", "名前: 値 # ü\nmemory: {provider: reme, 名: 値}\n"},
	"variables":          {"model: ${MODEL}\nkey: \"${KEY:-x}\"\n", "model: ${MODEL}\nkey: \"${KEY:-x}\"\nmemory:\n  provider: reme\n"},
	"tag":                {"memory: !!map\n  limit: 1\n", "memory: !!map\n  provider: reme\n  limit: 1\n"},
	"there":              {"memory:\n  provider: reme\n", "memory:\n  provider: reme\n"},
	"there, quoted":      {"memory: {provider: \"reme\"}\n", "memory: {provider: \"reme\"}\n"},
}

func TestUpsert(t *testing.T) {
	for name, e := range edits {
		got, err := upsert([]byte(e.before))
		if err != nil || string(got) != e.after {
			t.Errorf("%s: %q, %v, want %q", name, got, err, e.after)
			continue
		}
		if again, err := upsert(got); err != nil || !bytes.Equal(again, got) {
			t.Errorf("%s: the second time %q, %v", name, again, err)
		}
		// As if the host had touched the file: the receipt does not help with the bytes.
		left, err := remove(got, []byte(e.before), true)
		if err != nil || !means(t, left, e.before) {
			t.Errorf("%s: without us %q, %v, was %q", name, left, err, e.before)
		}
	}
}

// means tells whether two files say the same, where nothing and an empty section
// are the same.
func means(t *testing.T, a []byte, b string) bool {
	t.Helper()
	x, err := parse(a)
	if err != nil {
		t.Errorf("%q: %v", a, err)
		return false
	}
	y, err := parse([]byte(b))
	return err == nil && (x.provider() == "" || x.provider() == y.provider()) && install.SameYAML(x.others(choice), y.others(choice))
}

func TestUpsertRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, why string }{
		"another":         {"memory:\n  provider: honcho\n", `the memory provider "honcho" is active`},
		"another, quoted": {"memory: {provider: 'mem0'}\n", `"mem0"`},
		"a variable":      {"memory:\n  provider: ${P}\n", `"${P}"`},
		"an alias":        {"p: &p honcho\nmemory:\n  provider: *p\n", `"honcho"`},
		"a list":          {"memory:\n  provider: [a]\n", "active"},
		"twice":           {"memory:\n  provider: reme\nmemory:\n  provider: honcho\n", "twice"},
		"provider twice":  {"memory:\n  provider: ''\n  provider: honcho\n", "twice"},
		"merged":          {"x: &x {provider: honcho}\nmemory:\n  <<: *x\n", "by hand"},
		"section alias":   {"x: &x {limit: 1}\nmemory: *x\n", "by hand"},
		"section anchor":  {"memory: &m\n  limit: 1\nother: *m\n", "by hand"},
		"section text":    {"memory: yes please\n", "by hand"},
		"section list":    {"memory:\n- a\n", "by hand"},
		"list":            {"- a\n", "not a list of settings"},
		"text":            {"hello\n", "not a list of settings"},
		"broken":          {"a: [1\n", "cannot be read"},
		"tab":             {"a:\n\tb: 1\n", "cannot be read"},
		"two documents":   {"a: 1\n---\nb: 1\n", "more than one"},
		"latin-1":         {"a: \xe4\n", "not UTF-8"},
		"utf-16":          {"\xff\xfea\x00", "not UTF-8"},
		"old mac":         {"a: 1\rb: 2\r", "line breaks"},
	} {
		if got, err := upsert([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %q, %v, want an error with %q", name, got, err, c.why)
		}
	}
}

func TestRemove(t *testing.T) {
	const none = "\x00" // no such file before
	for name, c := range map[string]struct{ now, before, want string }{
		"ours alone":           {"memory:\n  provider: reme\n", none, none},
		"ours, a comment came": {"# mine\nmemory:\n  provider: reme\n", none, "# mine\n"},
		"ours, a setting came": {"memory:\n  provider: reme\n  limit: 1\n", none, "memory:\n  limit: 1\n"},
		"rewritten by Hermes":  {"a: 1\nmemory:\n  limit: 5\n  provider: reme\nz: 1\n", "a: 1 # one\n", "a: 1\nmemory:\n  limit: 5\nz: 1\n"},
		"it was off before":    {"memory:\n  provider: reme\nb: 1\n", "memory:\n  provider: ''\n", "memory:\n  provider: ''\nb: 1\n"},
		"empty before":         {"memory:\n  provider: reme\nb: 1\n", "memory:\n", "memory:\nb: 1\n"},
		"another since":        {"memory:\n  provider: honcho\n", none, "memory:\n  provider: honcho\n"},
		"off since":            {"memory:\n  provider: ''\n", none, "memory:\n  provider: ''\n"},
		"in braces":            {"memory: {limit: 1, provider: reme}\n", none, "memory: {limit: 1}\n"},
		"first in braces":      {"memory: {provider: reme, limit: 1}\n", none, "memory: {limit: 1}\n"},
		"alone in braces":      {"a: 1\nmemory: {provider: reme}\n", "a: 1\n", "a: 1\n"},
		"root in braces":       {"{memory: {provider: reme}, a: 1}\n", "{a: 1}\n", "{a: 1}\n"},
	} {
		original := []byte(c.before)
		if c.before == none {
			original = nil
		}
		got, err := remove([]byte(c.now), original, true)
		if err != nil || (got == nil) != (c.want == none) || got != nil && string(got) != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

// FuzzConfig checks that an edit adds the provider and nothing else, and that it
// can be taken back.
func FuzzConfig(f *testing.F) {
	for _, e := range edits {
		f.Add([]byte(e.before))
	}
	f.Fuzz(func(t *testing.T, before []byte) {
		after, err := upsert(before)
		if err != nil {
			return
		}
		var read struct{ Memory struct{ Provider string } }
		if err := yaml.Unmarshal(after, &read); err == nil && strings.TrimSpace(read.Memory.Provider) != providerName {
			t.Fatalf("%q became %q, in which the provider is %q", before, after, read.Memory.Provider)
		}
		left, err := remove(after, before, true)
		if err == nil && !means(t, left, string(before)) {
			t.Fatalf("%q became %q and then %q", before, after, left)
		}
	})
}
