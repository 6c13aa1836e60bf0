package codex

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentscope-ai/reme-hook/install"
	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// Our MCP server stands at the end of config.toml as Codex itself would write it:
//
//	[mcp_servers.reme]
//	command = "…"
//	args = ["mcp", "--host", "codex"]
//
// There are no marks around it: Codex writes tables of its own in front of a
// comment at the end. Codex also adds tables below this one, for tools that the
// user has approved. An edit is by the text, and is checked by what the text
// means: our server is there, or gone, and all else is as it was.

// servers is what a config.toml means.
type servers struct {
	ours   install.Server // as far as the server of our name can be read
	named  bool           // there is a server of our name
	off    bool           // the user has switched it off
	others map[string]any // all else
}

func parseServers(text []byte) (servers, error) {
	var s servers
	if err := toml.Unmarshal(text, &s.others); err != nil {
		return s, fmt.Errorf("the file cannot be read as TOML (%w); repair it and run the command again", err)
	}
	list, ok := s.others["mcp_servers"].(map[string]any)
	var entry any
	entry, s.named = list[install.ServerName]
	delete(list, install.ServerName)
	if ok && len(list) == 0 {
		delete(s.others, "mcp_servers")
	}
	table, _ := entry.(map[string]any)
	s.off = table["enabled"] == false
	s.ours.Command, _ = table["command"].(string)
	args, _ := table["args"].([]any)
	for _, a := range args {
		arg, _ := a.(string)
		s.ours.Args = append(s.ours.Args, arg)
	}
	return s, nil
}

// upsertServer puts our server into a config.toml. What is there of ours keeps
// all but its command and arguments.
func upsertServer(old []byte, server install.Server) ([]byte, error) {
	if err := server.Valid(); err != nil {
		return nil, err
	}
	text, marked := bytes.CutPrefix(old, install.BOM)
	before, err := parseServers(text)
	if err != nil {
		return nil, err
	}
	switch {
	case !before.named:
		text = withServer(text, server)
	case !before.ours.Ours():
		return nil, install.ErrForeignServer
	case before.ours.Equal(server):
		return old, nil
	default:
		text = splice(text, serverSpans(text).command, quote(server.Command))
		text = splice(text, serverSpans(text).args, quoteAll(server.Args))
	}
	after, err := parseServers(text)
	if err != nil || !after.ours.Equal(server) || !install.Same(before.others, after.others) {
		return nil, errors.New("the MCP servers are written in a way that is not edited; leave ours out with --no-mcp, and run `codex mcp add " +
			install.ServerName + " -- " + server.Command + " " + strings.Join(server.Args, " ") + "`")
	}
	return install.WithBOM(text, marked), nil
}

// removeServer takes our server out of a config.toml. What it does not
// understand it leaves as it is, unless our server is in it. It returns nil if
// nothing is left in a file that was not there before.
func removeServer(now, original []byte, known bool) ([]byte, error) {
	text, marked := bytes.CutPrefix(now, install.BOM)
	before, err := parseServers(text)
	if err != nil || !before.ours.Ours() {
		return now, nil
	}
	text = withoutServer(text)
	after, err := parseServers(text)
	if err != nil || after.named || !install.Same(before.others, after.others) {
		return nil, errors.New("the MCP servers are written in a way that is not edited; run `codex mcp remove " + install.ServerName + "` first")
	}
	if known && original == nil && len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	return install.WithBOM(text, marked), nil
}

// withServer adds our table at the end of a text.
func withServer(text []byte, server install.Server) []byte {
	nl := "\n"
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		nl = "\r\n"
	}
	out := bytes.Clone(text)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, nl...)
	}
	if len(out) > 0 {
		out = append(out, nl...)
	}
	body := "[mcp_servers." + install.ServerName + "]\ncommand = " + quote(server.Command) + "\nargs = [" + quoteAll(server.Args) + "]\n"
	return append(out, strings.ReplaceAll(body, "\n", nl)...)
}

// quote writes a string of TOML.
func quote(s string) string {
	b, err := toml.Marshal(map[string]string{"x": s})
	if err != nil {
		panic(err) // strings always encode
	}
	return strings.TrimSpace(strings.TrimPrefix(string(b), "x = "))
}

// quoteAll writes the elements of an array.
func quoteAll(list []string) string {
	var out []string
	for _, s := range list {
		out = append(out, strconv.Quote(s)) // plain words of ours
	}
	return strings.Join(out, ", ")
}

// withoutServer takes out the tables of our server with an empty line before
// each, and what else is of it.
func withoutServer(text []byte) []byte {
	var out []byte
	done := 0
	for _, s := range serverSpans(text).lines {
		from := s.start
		if s.table && blankBefore(text[done:from]) {
			from = bytes.LastIndexByte(text[:from-1], '\n') + 1
		}
		out = append(out, text[done:from]...)
		done = s.end
	}
	return append(out, text[done:]...)
}

// span is a part of a text.
type span struct {
	start, end int
	table      bool
}

// spans are where our server stands.
type spans struct {
	lines   []span // whole ones: its tables, and its keys in tables of others
	command span   // the value of its command; empty if it has none
	args    span   // from its first argument to behind the last one; empty if it has none
}

// serverSpans finds our server.
func serverSpans(text []byte) spans {
	var found spans
	var table []string
	open, pending := -1, -1 // where a table of ours, or a key of ours in another one, begins
	close := func(at int) {
		if from := max(open, pending); from >= 0 {
			found.lines = append(found.lines, span{from, from + install.ContentEnd(text[from:at]), open >= 0})
		}
		open, pending = -1, -1
	}
	p := unstable.Parser{}
	p.Reset(text)
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.Table && e.Kind != unstable.ArrayTable && e.Kind != unstable.KeyValue {
			continue
		}
		path, first := keyPath(e)
		start := bytes.LastIndexByte(text[:first], '\n') + 1
		if e.Kind != unstable.KeyValue {
			close(start)
			if table = path; isServer(path) {
				open = start
			}
			continue
		}
		if open < 0 {
			close(start)
		}
		full := append(table[:len(table):len(table)], path...)
		if open < 0 && isServer(full) {
			pending = start
		}
		command(&p, e, full, &found)
	}
	close(len(text))
	return found
}

// command looks for our server's command and arguments in a key and its value.
func command(p *unstable.Parser, e *unstable.Node, path []string, found *spans) {
	switch v := e.Value(); {
	case v.Kind == unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			if kv := it.Node(); kv.Kind == unstable.KeyValue {
				more, _ := keyPath(kv)
				command(p, kv, append(path[:len(path):len(path)], more...), found)
			}
		}
	case len(path) == 3 && isServer(path) && path[2] == "command" && v.Kind == unstable.String:
		found.command = span{start: int(v.Raw.Offset), end: int(v.Raw.Offset + v.Raw.Length)}
	case len(path) == 3 && isServer(path) && path[2] == "args" && v.Kind == unstable.Array:
		for it := v.Children(); it.Next(); {
			raw := it.Node().Raw
			if found.args.end == 0 {
				found.args.start = int(raw.Offset)
			}
			found.args.end = int(raw.Offset + raw.Length)
		}
	}
}

func isServer(path []string) bool {
	return len(path) >= 2 && path[0] == "mcp_servers" && path[1] == install.ServerName
}

// keyPath is the key of an expression, and where it begins.
func keyPath(e *unstable.Node) (path []string, first int) {
	first = -1
	for it := e.Key(); it.Next(); {
		path = append(path, string(it.Node().Data))
		if first < 0 {
			first = int(it.Node().Raw.Offset)
		}
	}
	return path, first
}

func splice(text []byte, at span, value string) []byte {
	return append(append(bytes.Clone(text[:at.start]), value...), text[at.end:]...)
}

// placedServers is the server of our name in config.toml, nothing if it is not
// there.
func placedServers(env install.Env, o install.Options) []install.Registered {
	s, err := parseServers(bytes.TrimPrefix(readConfig(env), install.BOM))
	if err != nil || !s.named {
		return nil
	}
	return []install.Registered{env.Registered(o, Host, s.ours, configFile(env), s.off)}
}
