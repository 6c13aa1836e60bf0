package dsh

import (
	"bytes"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/install"
	"github.com/agentscope-ai/reme-hook/plugins/dsh"
	"gopkg.in/yaml.v3"
)

// The ids of our row: of the plugin, or of the MCP server. Every row of a
// composed tree needs its own: DSH does not start with an id that is there twice.
const (
	rowID    = "reme-hook"
	serverID = "reme-hook-mcp"
)

// serverModule is DSH's own client of MCP servers.
const serverModule = "@deepseek-ai/dsh-mcp-client"

// The comments around and in our row.
const (
	beginMark = "# >>> reme-hook: the shared memory; `reme-hook uninstall dsh` takes it out >>>"
	guardNote = "# A plugin or program that is gone must not keep DSH from starting."
	endMark   = "# <<< reme-hook <<<"
)

// row is a row of ours in a patch file.
type row struct {
	id      string
	module  string   // its name, as DSH takes it
	needs   []string // files without which DSH has to skip it, absolute
	program string   // what it calls, absolute; the command in its config
	args    []string // of an MCP server
}

// pluginRow loads our plugin.
func pluginRow(shim, program string) row {
	return row{id: rowID, module: fileURL(shim), needs: []string{shim, program}, program: program}
}

// serverRow gives the memory to the model as tools.
func serverRow(server install.Server) row {
	return row{id: serverID, module: serverModule, needs: []string{server.Command}, program: server.Command, args: server.Args}
}

// validate refuses paths that cannot be written down so that YAML and
// JavaScript agree on them.
func validate(shim, program string) error {
	for _, path := range []string{shim, program} {
		if !filepath.IsAbs(path) || !utf8.ValidString(path) || strings.ContainsFunc(path, unicode.IsControl) || strings.ContainsAny(path, "\u2028\u2029\ufeff") {
			return fmt.Errorf("the path %q cannot be put into a configuration of DSH", path)
		}
	}
	if filepath.Separator == '/' && strings.Contains(shim, `\`) {
		return fmt.Errorf("the path %q has a backslash: Node loads no module from there", shim)
	}
	return nil
}

// guard is the JavaScript that tells whether DSH has to skip the row. A row
// whose module is gone would keep it from starting.
func (r row) guard() string {
	var files []string
	for _, path := range r.needs {
		files = append(files, quoteJS(path))
	}
	return "![" + strings.Join(files, ", ") + "].every(path => process.getBuiltinModule(\"node:fs\").existsSync(path))"
}

// fileURL is the name of a module in a file. DSH takes the name for the path of a
// URL: with a bare path that has a %, a # or a ? in it, it was seen not to start.
func fileURL(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

func quoteJS(s string) string { return string(encodeJSON(s)) }

// encodeJSON keeps < and > as they are.
func encodeJSON(v any) []byte { return bytes.TrimSpace(hooks.JSONLine(v)) }

// quoteYAML makes a single-quoted scalar, in which only the quote is special.
func quoteYAML(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// The values as they stand in a row of block style.
func (r row) nameYAML() string     { return quoteYAML(r.module) }
func (r row) disabledYAML() string { return "!!js " + quoteYAML(r.guard()) }
func (r row) commandYAML() string  { return quoteYAML(r.program) }
func (r row) argsYAML() string     { return string(encodeJSON(r.args)) } // JSON is YAML

// block is the row for a list in block style.
func (r row) block(indent, newline string) string {
	lines := []string{
		beginMark,
		"- insert:",
		"    - id: " + r.id,
		"      name: " + r.nameYAML(),
		"      " + guardNote,
		"      disabled: " + r.disabledYAML(),
		"      config:",
		"        command: " + r.commandYAML(),
	}
	if r.args != nil {
		lines = append(lines, "        serverName: "+install.ServerName, "        transport: stdio", "        args: "+r.argsYAML())
	}
	var b strings.Builder
	for _, line := range append(lines, endMark) {
		b.WriteString(indent + line + newline)
	}
	return b.String()
}

// flow is the row for a list in flow style. It is JSON, as such a list may be;
// the object for disabled is what DSH makes of the tag !!js.
func (r row) flow() string {
	config := map[string]any{"command": r.program}
	if r.args != nil {
		config["serverName"], config["transport"], config["args"] = install.ServerName, "stdio", r.args
	}
	type expr struct {
		JS string `json:"__jsExpr"`
	}
	type entry struct {
		ID       string         `json:"id"`
		Name     string         `json:"name"`
		Disabled expr           `json:"disabled"`
		Config   map[string]any `json:"config"`
	}
	return string(encodeJSON(map[string][]entry{"insert": {{r.id, r.module, expr{r.guard()}, config}}}))
}

// placed is a row of ours as it was found. Nodes that are not there are nil.
type placed struct {
	item, row                     *yaml.Node
	others                        bool // the item inserts rows of others too
	name, disabled, command, args *yaml.Node
}

// off tells whether the user has switched the row off.
func (p placed) off() bool { return isTrue(p.disabled) }

func isTrue(n *yaml.Node) bool { return n != nil && n.ShortTag() == "!!bool" && n.Value == "true" }

// guarded tells whether a row will be skipped when its files are gone, also if
// the user has added conditions.
func (p placed) guarded(r row) bool {
	js := p.disabled
	if js != nil && js.Kind == yaml.MappingNode {
		js = member(js, "__jsExpr")
	}
	return p.off() || js != nil && strings.Contains(js.Value, r.guard())
}

// current tells whether the row does what r would do.
func (p placed) current(r row) bool {
	return value(member(p.row, "id")) == r.id && value(p.name) == r.module && p.guarded(r) && value(p.command) == r.program &&
		slices.Equal(values(p.args), r.args)
}

func value(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	return n.Value
}

// member is the value of a key of a mapping, nil if there is none.
func member(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// ourID tells which of our rows a row is, "" if it is another's. One whose id was
// changed is known by what it does.
func ourID(row *yaml.Node) string {
	id, name := value(member(row, "id")), value(member(row, "name"))
	switch {
	case id == rowID, strings.HasSuffix(name, "/"+shimDir+"/"+dsh.ShimName):
		return rowID
	case id == serverID, name == serverModule && serverOf(row).Ours():
		return serverID
	}
	return ""
}

// serverOf is the MCP server that a row starts.
func serverOf(row *yaml.Node) install.Server {
	config := member(row, "config")
	return install.Server{Command: value(member(config, "command")), Args: values(member(config, "args"))}
}

// values are those of a list.
func values(n *yaml.Node) []string {
	if n == nil {
		return nil
	}
	var out []string
	for _, v := range n.Content {
		out = append(out, v.Value)
	}
	return out
}
