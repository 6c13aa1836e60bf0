// Package plugins has tests of what the bundles for hosts have in common.
package plugins

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/install"
)

// marketplaces are the manifests at the top of the repository, and the bundles that they offer.
var marketplaces = map[string]string{".claude-plugin/marketplace.json": "claude-code", ".agents/plugins/marketplace.json": "codex"}

// manifests say what the bundles for people without an install are.
var manifests = map[string]string{
	"claude-code": ".claude-plugin/plugin.json", "codex": ".codex-plugin/plugin.json", "kimi": "kimi.plugin.json", "generic": "plugin.json",
}

// servers are where these bundles have the MCP server.
var servers = map[string]string{"claude-code": ".mcp.json", "codex": ".mcp.json", "kimi": "kimi.plugin.json", "generic": "mcp.json"}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decode(t *testing.T, v any, path ...string) {
	t.Helper()
	if err := json.Unmarshal(read(t, path...), v); err != nil {
		t.Fatalf("%s: %v", filepath.Join(path...), err)
	}
}

func TestMarketplaces(t *testing.T) {
	t.Parallel()
	for file, bundle := range marketplaces {
		var m struct {
			Name    string
			Plugins []struct {
				Name   string
				Source any
			}
		}
		decode(t, &m, "..", filepath.FromSlash(file))
		if m.Name != "reme-hook" || len(m.Plugins) != 1 {
			t.Fatalf("%s: %+v", file, m)
		}
		p := m.Plugins[0]
		source, _ := p.Source.(string)
		if local, ok := p.Source.(map[string]any); ok {
			source, _ = local["path"].(string)
		}
		var plugin struct{ Name string }
		decode(t, &plugin, "..", filepath.FromSlash(source), manifests[bundle])
		if source != "./plugins/"+bundle || p.Name != plugin.Name {
			t.Errorf("%s: %+v", file, p)
		}
	}
}

// Each bundle has a version of its own and the server with the program on the PATH.
func TestManifests(t *testing.T) {
	t.Parallel()
	for bundle, file := range manifests {
		var m struct{ Name, Version, Description, License string }
		decode(t, &m, bundle, filepath.FromSlash(file))
		if m.Name != "reme" || !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(m.Version) || m.License != "Apache-2.0" || !strings.Contains(m.Description, "Needs reme-hook on the PATH") {
			t.Errorf("%s: %+v", bundle, m)
		}
		var mcp struct {
			Servers map[string]install.Server `json:"mcpServers"`
		}
		decode(t, &mcp, bundle, servers[bundle])
		want := install.Env{}.Server(install.Options{Command: install.OnPath}, client.Host(bundle))
		if bundle == "generic" { // who starts it is not known
			want.Args = want.Args[:1]
		}
		if s := mcp.Servers[install.ServerName]; len(mcp.Servers) != 1 || !s.Equal(want) {
			t.Errorf("%s: %+v, want %+v", bundle, mcp.Servers, want)
		}
	}
}

// The portable bundle is one of Agent Plugins 1.0.0, which allows no other keys, and says what it needs.
func TestAgentPlugin(t *testing.T) {
	t.Parallel()
	const schemas = "https://agent-plugins.org/schemas/1.0.0/"
	allowed := []string{"$schema", "name", "version", "description", "author", "homepage", "repository", "license", "keywords", "extensions"}
	var manifest, mcp map[string]any
	decode(t, &manifest, "generic", "plugin.json")
	decode(t, &mcp, "generic", "mcp.json")
	for key := range manifest {
		if !slices.Contains(allowed, key) {
			t.Errorf("plugin.json has %q", key)
		}
	}
	if manifest["$schema"] != schemas+"plugin.schema.json" || mcp["$schema"] != schemas+"mcp.schema.json" || len(mcp) != 2 {
		t.Errorf("%v, %v", manifest["$schema"], mcp)
	}
	server := mcp["mcpServers"].(map[string]any)["reme"].(map[string]any)
	if server["type"] != "stdio" || len(server) != 3 {
		t.Errorf("%v", server)
	}
	needs := map[string]any{"io.github.agentscope-ai.reme-hook": map[string]any{"integration_api_version": ">=" + client.APIVersion}}
	if !reflect.DeepEqual(manifest["extensions"], any(needs)) {
		t.Errorf("it needs %v", manifest["extensions"])
	}
	if text := manifest["description"].(string); !strings.Contains(text, "Nothing is recalled or captured by itself") {
		t.Error(text)
	}
	filepath.WalkDir("generic", func(path string, _ fs.DirEntry, _ error) error {
		if strings.Contains(path, "hook") {
			t.Errorf("%s: hooks are not for hosts without them", path)
		}
		return nil
	})
}

// The skill is one text, with a front matter as skills have it.
func TestSkill(t *testing.T) {
	t.Parallel()
	want := read(t, "generic", "skills", "reme-memory", "SKILL.md")
	for bundle := range manifests {
		if got := read(t, bundle, "skills", "reme-memory", "SKILL.md"); string(got) != string(want) {
			t.Errorf("that of %s is another than that of generic", bundle)
		}
	}
	parts := strings.SplitN(string(want), "---\n", 3)
	var front struct{ Name, Description, License, Compatibility string }
	if err := yaml.Unmarshal([]byte(parts[1]), &front); err != nil {
		t.Fatal(err)
	}
	if front.Name != "reme-memory" || len(front.Description) > 1024 || len(front.Compatibility) > 500 || !strings.Contains(front.Compatibility, "integration API "+client.APIVersion) {
		t.Errorf("%+v", front)
	}
	for _, word := range []string{"`search`", "`read`", "`traverse`", "`daily_list`", "`remember`", "untrusted historical data"} {
		if !strings.Contains(parts[2], word) {
			t.Errorf("it does not speak of %s", word)
		}
	}
}

// A bundle holds what a host loads, and nothing of this machine or of a build.
func TestFiles(t *testing.T) {
	t.Parallel()
	absolute := regexp.MustCompile(`(?:^|[\s"'=>])(/[\w.-]+/[\w./-]+)`)
	for bundle := range manifests {
		err := filepath.WalkDir(bundle, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			if ext := filepath.Ext(path); ext != ".json" && ext != ".md" {
				t.Errorf("%s is not for a host", path)
			}
			for _, m := range absolute.FindAllSubmatch(read(t, path), -1) {
				if p := string(m[1]); p != "/bin/sh" && p != "/dev/null" {
					t.Errorf("%s names the path %s", path, p)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
