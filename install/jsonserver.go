package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/tailscale/hujson"
)

// jsonServers is the object that lists the MCP servers in a JSON file:
//
//	{"mcpServers": {"<name>": {"command": "…", "args": ["…"]}}}
const jsonServers = "mcpServers"

// File puts our server into the JSON file at path, which lists MCP servers under
// "mcpServers".
func (s Server) File(path string) File {
	return File{
		Path:   path,
		Upsert: func(old []byte) ([]byte, error) { return UpsertServer(old, s) },
		Remove: RemoveServer,
	}
}

// JSONServers is the server of our name in the JSON file at path, nothing if it
// is not there.
func (e Env) JSONServers(o Options, host client.Host, path string) []Registered {
	b, err := read(path)
	if err != nil {
		return nil
	}
	text, _ := bytes.CutPrefix(b, BOM)
	d, err := parseObject(text)
	if err != nil {
		return nil
	}
	p, err := d.server()
	if err != nil || p.index < 0 {
		return nil
	}
	return []Registered{e.Registered(o, host, p.have, path, p.off)}
}

// PluginServers is our server in the JSON file of a plugin, which is as the
// plugin wants it.
func (e Env) PluginServers(o Options, host client.Host, path string) []Registered {
	found := e.JSONServers(o, host, path)
	if len(found) == 0 || !found[0].Ours() {
		return nil
	}
	found[0].Current = true
	return found
}

// UpsertServer makes s the server of our name in src. What is there of ours
// keeps all but its command and arguments, everything else keeps its bytes. nil, nothing and
// null count as {}.
func UpsertServer(src []byte, s Server) ([]byte, error) {
	if err := s.Valid(); err != nil {
		return nil, err
	}
	text, marked := bytes.CutPrefix(src, BOM)
	if blank(text) {
		text = []byte("{}\n")
	}
	d, err := parseObject(text)
	if err != nil {
		return nil, err
	}
	p, err := d.server()
	switch {
	case err != nil:
		return nil, err
	case p.servers == nil:
		text = d.insert(d.root, jsonServers, map[string]Server{ServerName: s})
	case p.index < 0:
		text = d.insert(*p.servers, ServerName, s)
	case !p.have.Ours():
		return nil, ErrForeignServer
	case p.have.Equal(s):
		return src, nil
	default:
		o := p.servers.Value.(*hujson.Object).Members[p.index].Value.Value.(*hujson.Object)
		var edits []edit
		if p.have.Command != s.Command {
			edits = append(edits, d.replacing(o.Members[index(o, "command")].Value, s.Command))
		}
		if !slices.Equal(p.have.Args, s.Args) {
			edits = append(edits, d.replacing(o.Members[index(o, "args")].Value, s.Args))
		}
		text = splice(d.text, edits...)
	}
	return WithBOM(text, marked), nil
}

// RemoveServer takes our server out of src, and the object that lists servers if
// it is empty without it and original (the content before the first install, if
// known) had none. It returns nil if known says that there was no file and
// nothing of anyone else is left in it.
func RemoveServer(src, original []byte, known bool) ([]byte, error) {
	text, marked := bytes.CutPrefix(src, BOM)
	if blank(text) {
		return src, nil
	}
	d, err := parseObject(text)
	if err != nil && known {
		return nil, err
	}
	if err != nil {
		return src, nil // nothing says that we ever touched it
	}
	p, err := d.server()
	if err != nil && known {
		return nil, err
	}
	if err != nil || !p.have.Ours() {
		return src, nil
	}
	if d, err = parseObject(d.remove(*p.servers, p.index)); err != nil {
		return nil, err
	}
	if i, servers := d.servers(); len(servers.Members) == 0 && len(servers.AfterExtra) == 0 && !(known && hasServers(original)) {
		if d, err = parseObject(d.remove(d.root, i)); err != nil {
			return nil, err
		}
	}
	if root := d.root.Value.(*hujson.Object); known && original == nil && len(root.Members) == 0 && d.root.IsStandard() {
		return nil, nil
	}
	return WithBOM(d.text, marked), nil
}

// placedServer is the server of our name as a document has it.
type placedServer struct {
	servers *hujson.Value // the object that lists servers, nil if there is none
	index   int           // of the server's member in it, -1 if it is not there
	have    Server        // as far as it can be read
	off     bool          // the user has switched it off
}

// server finds the server of our name.
func (d *document) server() (placedServer, error) {
	none := placedServer{index: -1}
	top := d.root.Value.(*hujson.Object)
	i, err := find(top, jsonServers)
	if err != nil || i < 0 {
		return none, err
	}
	v := &top.Members[i].Value
	servers, ok := v.Value.(*hujson.Object)
	if !ok {
		return none, fmt.Errorf("%q is not an object; repair it and run the command again", jsonServers)
	}
	p := placedServer{servers: v}
	if p.index, err = find(servers, ServerName); err != nil || p.index < 0 {
		return p, err
	}
	entry := servers.Members[p.index].Value
	std, err := hujson.Standardize(bytes.Clone(d.text[entry.StartOffset:entry.EndOffset]))
	if o, ok := entry.Value.(*hujson.Object); err == nil && ok && doubled(o) == "" && index(o, "command") >= 0 && index(o, "args") >= 0 {
		if json.Unmarshal(std, &p.have) != nil {
			p.have = Server{}
		}
		var more struct{ Enabled any }
		p.off = json.Unmarshal(std, &more) == nil && more.Enabled == false
	}
	return p, nil
}

// servers is the object that lists servers, and which member it is. It is there.
func (d *document) servers() (int, *hujson.Object) {
	top := d.root.Value.(*hujson.Object)
	i := index(top, jsonServers)
	return i, top.Members[i].Value.Value.(*hujson.Object)
}

func hasServers(text []byte) bool {
	text, _ = bytes.CutPrefix(text, BOM)
	d, err := parseObject(text)
	return err == nil && index(d.root.Value.(*hujson.Object), jsonServers) >= 0
}
