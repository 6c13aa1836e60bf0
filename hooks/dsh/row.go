package dsh

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// rowID is the id of our row. Every row of a composed tree needs its own: DSH
// does not start with an id that is there twice.
const rowID = "reme-hook"

// The comments around and in our row.
const (
	beginMark = "# >>> reme-hook: the shared memory; `reme-hook uninstall dsh` takes it out >>>"
	guardNote = "# A plugin or program that is gone must not keep DSH from starting."
	endMark   = "# <<< reme-hook <<<"
)

// row is our row in a patch file.
type row struct {
	shim    string // the plugin, absolute
	program string // what it calls, absolute
}

// validate refuses paths that cannot be written down so that YAML and
// JavaScript agree on them.
func (r row) validate() error {
	for _, path := range []string{r.shim, r.program} {
		if !filepath.IsAbs(path) || !utf8.ValidString(path) || strings.ContainsFunc(path, unicode.IsControl) || strings.ContainsAny(path, "\u2028\u2029\ufeff") {
			return fmt.Errorf("the path %q cannot be put into a configuration of DSH", path)
		}
	}
	if filepath.Separator == '/' && strings.Contains(r.shim, `\`) {
		return fmt.Errorf("the path %q has a backslash: Node loads no module from there", r.shim)
	}
	return nil
}

// guard is the JavaScript that tells whether DSH has to skip the row. A row
// whose module is gone would keep it from starting.
func (r row) guard() string {
	return "![" + quoteJS(r.shim) + ", " + quoteJS(r.program) + "].every(path => process.getBuiltinModule(\"node:fs\").existsSync(path))"
}

// url is the name of the plugin's module. DSH takes the name for the path of a
// URL: with a bare path that has a %, a # or a ? in it, it was seen not to start.
func (r row) url() string {
	path := filepath.ToSlash(r.shim)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

func quoteJS(s string) string { return string(encodeJSON(s)) }

// encodeJSON keeps < and > as they are.
func encodeJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil // nothing that this package passes
	}
	return bytes.TrimSpace(b.Bytes())
}

// quoteYAML makes a single-quoted scalar, in which only the quote is special.
func quoteYAML(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// The values as they stand in a row of block style.
func (r row) nameYAML() string     { return quoteYAML(r.url()) }
func (r row) disabledYAML() string { return "!!js " + quoteYAML(r.guard()) }
func (r row) commandYAML() string  { return quoteYAML(r.program) }

// block is the row for a list in block style.
func (r row) block(indent, newline string) string {
	var b strings.Builder
	for _, line := range []string{
		beginMark,
		"- insert:",
		"    - id: " + rowID,
		"      name: " + r.nameYAML(),
		"      " + guardNote,
		"      disabled: " + r.disabledYAML(),
		"      config:",
		"        command: " + r.commandYAML(),
		endMark,
	} {
		b.WriteString(indent + line + newline)
	}
	return b.String()
}

// flow is the row for a list in flow style. It is JSON, as such a list may be;
// the object for disabled is what DSH makes of the tag !!js.
func (r row) flow() string {
	type expr struct {
		JS string `json:"__jsExpr"`
	}
	type config struct {
		Command string `json:"command"`
	}
	type entry struct {
		ID       string `json:"id"`
		Name     string `json:"name"`
		Disabled expr   `json:"disabled"`
		Config   config `json:"config"`
	}
	return string(encodeJSON(map[string][]entry{"insert": {{rowID, r.url(), expr{r.guard()}, config{r.program}}}}))
}

// placed is a row of ours as it was found. Nodes that are not there are nil.
type placed struct {
	item, row               *yaml.Node
	others                  bool // the item inserts rows of others too
	name, disabled, command *yaml.Node
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
	return value(member(p.row, "id")) == rowID && value(p.name) == r.url() && p.guarded(r) && value(p.command) == r.program
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

// isOurs tells our row by its id or, if that was changed, by its module.
func isOurs(row *yaml.Node) bool {
	return value(member(row, "id")) == rowID ||
		strings.HasSuffix(value(member(row, "name")), "/"+shimDir+"/"+shimName)
}
