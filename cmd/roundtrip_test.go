package cmd

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/install"
)

// bodies are files as users have them, by what the names of files end in. A
// "\t" stands for one step of indentation, where the format allows any.
var bodies = map[string][]string{
	".json": {
		"{}\n",
		"{\n\t\"a\": 1\n}\n",
		"{\n\t\"z\": [1, {\"b\": \",}\"}],\n\t\"env\": {\n\t\t\"A\": \"x && y > z\",\n\t\t\"\\u00e9\": \"\\/\"\n\t},\n\t\"a\": null\n}\n",
		"{\"a\":1,\"b\":{\"c\":[]}}\n",
		"{\n\n\t\"a\": true,\n\n\n\t\"n\": 12345678901234567890.10e-3\n}\n",
		"{\n\t// mine\n\t\"a\": 1, // one\n\t/* last */\n}\n",
		"{\n\t\"a\": [1, 2,],\n}\n",
		"{\n\t\"description\": \"mine\",\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{\n\t\t\t\t\"hooks\": [{\"type\": \"command\", \"command\": \"a && b\"}]\n\t\t\t}\n\t\t]\n\t}\n}\n",
		"{\"hooks\":{\"Stop\":[{\"matcher\":\"\",\"hooks\":[{\"type\":\"command\",\"command\":\"x\",\"timeout\":5}]}],\"Other\":[]}}\n",
		"{\n\t\"hooks\": { \"PreToolUse\": [ { \"matcher\": \"Bash\", \"hooks\": [ { \"type\": \"command\", \"command\": \"',}'\" } ] } ] }\n}\n",
	},
	".toml": {
		"# only a comment\n",
		"a = 1 # one\n",
		"a = 1\n\n[features]\nx = true\n\n# of the table\n[tui.\"it's\"] # x\ny = 'z'\n",
		"notify = [\n\t\"a\", # first\n\n\t\"b\",\n]\n[[agents]]\nname = \"a\"\n",
		"a = \"\"\"\n# [mcp_servers.reme]\n[[hooks]]\n\"\"\"\nb = '\\'\n",
		"[[agents.hooks]]\nx = 2026-11-30T09:00:00Z\n\"ключ\" = \"日本\"\n",
		"[mcp_servers.git]\ncommand = \"uvx\"\n\t[mcp_servers.git.env]\n\tA = \"b\"\n",
		"\n\na = 1\n\n\n",
	},
	".yaml": {
		"# only a comment\n",
		"a: 1 # one\n",
		"model: ${MODEL}\nlist:\n- x\n- {y: [1, 'z']}\n# end\n",
		"memory:\n  # the limit\n  limit: 1\nz: 1\n",
		"memory:\n  provider: '' # off\n  limit: 1\n",
		"a:\n  b: >-\n    one\n\n    two\nc: \"it's\"\n",
		"mcp_servers:\n  git:\n    command: uvx\nhooks: {}\nz: 1\n",
		"'a': 1\n\"ключ\": 日本\n\nx: ~\n\n",
	},
	".yml": {
		"# only a comment\n[]\n",
		"- id: a # one\n  disabled: true\n",
		"- insert:\n    - id: mine\n      name: /opt/mine.mjs\n      config:\n        list: [1, {a: 'b, ]'}]\n# end\n",
		"[{id: a}, {id: b}]\n",
		"- id: a\n  config:\n    text: |\n      - no row\n\n- id: b\n\n",
		"---\n- id: \"ключ\"\n  name: 日本\n",
		"-\n  id: a\n-\n\n  # x\n  id: b\n",
		"- &base\n  id: a\n- *base\n",
	},
}

// traits are all combinations of what files of a format differ in.
func traits(ext string) map[string][]byte {
	out := map[string][]byte{}
	indents := []string{"  "}
	if ext == ".json" {
		indents = []string{"\t", "    "}
	}
	for i, body := range bodies[ext] {
		for _, indent := range indents {
			for _, end := range []string{"\n", "\r\n"} {
				for _, mark := range []string{"", "\ufeff"} {
					for _, last := range []string{"\n", ""} {
						text := strings.TrimSuffix(strings.ReplaceAll(body, "\t", indent), "\n") + last
						out[fmt.Sprintf("%d, indent %q, end %q, mark %q, last %q", i, indent, end, mark, last)] = []byte(mark + strings.ReplaceAll(text, "\n", end))
					}
				}
			}
		}
	}
	return out
}

// TestRoundTripOfTraits puts what every host needs into files with every
// combination of traits, and takes it out as if there were no receipt to give
// them back: the merge is idempotent, line ends and marks stay, and what is left is
// what was there, to the byte, but for an end of the last line.
func TestRoundTripOfTraits(t *testing.T) {
	t.Parallel()
	tried := map[string]int{}
	for _, h := range knownHosts() {
		for _, part := range []install.Part{install.HooksPart, install.ServerPart} {
			files, err := h.Target.Files(envOf(t.TempDir(), nil), install.Options{Part: part})
			if err != nil {
				continue // the tools of this one come with its plugin
			}
			for _, f := range files {
				ext := filepath.Ext(f.Path)
				accepted := 0
				for name, text := range traits(ext) {
					name = fmt.Sprintf("%s, %s, %s: %s", h.Adapter.Host, part, filepath.Base(f.Path), name)
					with, err := f.Upsert(text)
					if err != nil || bytes.Equal(with, text) || isOurs(f) {
						continue // refused, nothing to put into it, or all of it is ours
					}
					accepted++
					if again, err := f.Upsert(with); err != nil || !bytes.Equal(again, with) {
						t.Errorf("%s: a second time changes\n%q to\n%q, %v", name, with, again, err)
					}
					if bytes.HasPrefix(text, []byte("\ufeff")) != bytes.HasPrefix(with, []byte("\ufeff")) || bytes.Count(with, []byte("\ufeff")) > 1 {
						t.Errorf("%s: the mark: %q", name, with)
					}
					if bytes.Contains(text, []byte("\r\n")) && bytes.Count(with, []byte("\r\n")) != bytes.Count(with, []byte("\n")) {
						t.Errorf("%s: mixed line ends: %q", name, with)
					}
					left, err := f.Remove(with, text, true)
					if err != nil || !bytes.Equal(left, text) && strings.TrimRight(string(left), "\r\n") != string(text) {
						t.Errorf("%s: left is\n%q of\n%q, %v", name, left, text, err)
					}
				}
				tried[ext] += accepted
				if accepted > 0 && accepted < 32 {
					t.Errorf("%s, %s, %s: only %d files were accepted", h.Adapter.Host, part, f.Path, accepted)
				}
			}
		}
	}
	tried[".yaml"] += tried[".yml"]
	for _, ext := range []string{".json", ".toml", ".yaml"} {
		if tried[ext] < 60 {
			t.Errorf("only %d files of %s", tried[ext], ext)
		}
	}
}

// isOurs tells whether a file is ours alone: without others' text it goes.
func isOurs(f install.File) bool {
	left, err := f.Remove([]byte("{}"), nil, false)
	return err == nil && left == nil
}
