package codex

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentscope-ai/reme-hook/install"
	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// Codex keeps the user's approval of a hook in config.toml:
//
//	[hooks.state."<hooks file>:<event>:<group>:<handler>"]
//	trusted_hash = "sha256:…"
//
// The numbers are positions, and the hash is over what the hook is.

// approval is the body of such a table.
type approval struct {
	TrustedHash string `toml:"trusted_hash"`
	Enabled     *bool  `toml:"enabled"`
}

// snake is an event's name in keys and hashes.
func snake(hostEvent string) string {
	var b strings.Builder
	for i, r := range hostEvent {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// place is the part of a key behind the file's path.
func place(hostEvent string, group, handler int) string {
	return fmt.Sprintf(":%s:%d:%d", snake(hostEvent), group, handler)
}

// placeOf is the place in a key.
func placeOf(key string) string {
	i := len(key)
	for range 3 {
		i = strings.LastIndexByte(key[:max(i, 0)], ':')
	}
	return key[max(i, 0):]
}

// hash is what Codex computes for a hook of the form that we install. The
// command for Windows is no part of it on other systems.
func hash(g install.Group) string {
	type handler struct { // keys in alphabetical order, as Codex sorts them
		Async   bool   `json:"async"`
		Command string `json:"command"`
		Timeout int    `json:"timeout"`
		Type    string `json:"type"`
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		Event   string    `json:"event_name"`
		Hooks   []handler `json:"hooks"`
		Matcher string    `json:"matcher,omitempty"`
	}{snake(g.Event), []handler{{false, g.Handler.Command, g.Handler.Timeout, g.Handler.Type}}, g.Matcher})
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	sum := sha256.Sum256(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// spellings are the paths by which Codex may name a file in keys: it resolves
// links in CODEX_HOME, but not in ~/.codex.
func spellings(file string) []string {
	out := []string{file}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil && dir != filepath.Dir(file) {
		out = append(out, filepath.Join(dir, filepath.Base(file)))
	}
	return out
}

// approvals reads what config.toml holds.
func approvals(config []byte) (map[string]approval, error) {
	var c struct {
		Hooks struct {
			State map[string]approval `toml:"state"`
		} `toml:"hooks"`
	}
	err := toml.Unmarshal(config, &c)
	return c.Hooks.State, err
}

// storedTrust tells from config.toml alone what the user approved of our hooks
// in a file.
func storedTrust(config []byte, file string) ([]install.HookTrust, error) {
	placed, err := configured.Placed(file)
	if err != nil {
		return nil, err
	}
	state, err := approvals(config)
	if err != nil {
		return nil, fmt.Errorf("config.toml cannot be read: %w", err)
	}
	var out []install.HookTrust
	for _, p := range placed {
		t := install.HookTrust{Event: install.EventOf(p.Handler.Command, Host), File: file, State: install.TrustNo}
		for _, path := range spellings(file) {
			a, ok := state[path+place(p.Event, p.GroupIndex, p.HandlerIndex)]
			switch {
			case !ok:
				continue
			case a.Enabled != nil && !*a.Enabled:
				t.State = install.TrustDisabled
			case a.TrustedHash == hash(p.Group):
				t.State = install.TrustYes
			case a.TrustedHash != "":
				t.State = install.TrustModified
			}
			break
		}
		out = append(out, t)
	}
	return out, nil
}

// forget takes the approvals of our hooks in a hooks file out of config.toml,
// and moves those of hooks that change their place when ours go. An approval
// with the hash of one of groups is ours too: the hook may be gone already.
// What forget does not understand it leaves as it is.
func forget(config, original []byte, file string, groups []install.Group) []byte {
	placed, err := configured.Placed(file)
	if err != nil {
		return config
	}
	ours := map[string]bool{}
	for _, g := range groups {
		ours[hash(g)] = true
	}
	state, err := approvals(config)
	if err != nil {
		return config
	}
	rename := map[string]string{} // key → new key, "" if it goes
	for _, path := range spellings(file) {
		for key, a := range state {
			at, ok := strings.CutPrefix(key, path)
			if !ok {
				continue
			}
			switch moved := afterRemoval(at, placed); {
			case moved == "" || ours[a.TrustedHash]:
				rename[key] = ""
			case moved != at:
				rename[key] = path + moved
			}
		}
	}
	before, _ := approvals(original)
	out := rewriteTables(config, rename, before == nil)
	if _, err := approvals(out); err != nil {
		return config // a table of somebody's own making stands in the way
	}
	return out
}

// afterRemoval is where the hook at a place is once ours are taken out, "" for
// ours.
func afterRemoval(at string, placed []install.Placed) string {
	parts := strings.Split(at, ":")
	if len(parts) != 4 {
		return at
	}
	var group, handler int
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "%d %d", &group, &handler); err != nil {
		return at
	}
	g, h := group, handler
	for _, p := range placed {
		switch {
		case snake(p.Event) != parts[1]:
		case p.GroupIndex == group && p.HandlerIndex == handler:
			return ""
		case p.Alone && p.GroupIndex < group:
			g--
		case p.GroupIndex == group && p.HandlerIndex < handler:
			h--
		}
	}
	return fmt.Sprintf(":%s:%d:%d", parts[1], g, h)
}

// stateTable is a table [hooks.state."<key>"], or [hooks.state] itself, as
// offsets into the text.
type stateTable struct {
	key              string
	bare             bool // [hooks.state] itself
	start, end       int  // from the line of its header to behind its last line
	keyStart, keyEnd int  // of the last name in its header, with its quotes
	empty            bool
	plain            bool // nothing in it but what Codex writes
}

// stateTables finds these tables; none if the text is no TOML.
func stateTables(text []byte) []stateTable {
	lineEnd := func(at uint32) int {
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			return int(at) + i + 1
		}
		return len(text)
	}
	var tables []stateTable
	inside := false
	p := unstable.Parser{}
	p.Reset(text)
	for p.NextExpression() {
		e := p.Expression()
		var names []string
		var last unstable.Range
		for it := e.Key(); it.Next(); {
			names, last = append(names, string(it.Node().Data)), it.Node().Raw
		}
		if e.Kind == unstable.Table || e.Kind == unstable.ArrayTable {
			inside = e.Kind == unstable.Table && (len(names) == 2 || len(names) == 3) && names[0] == "hooks" && names[1] == "state"
			if inside {
				t := stateTable{end: lineEnd(last.Offset), keyStart: int(last.Offset), keyEnd: int(last.Offset + last.Length), bare: len(names) == 2, empty: true, plain: true}
				t.start = bytes.LastIndexByte(text[:t.keyStart], '\n') + 1
				if !t.bare {
					t.key = names[2]
				}
				tables = append(tables, t)
			}
		} else if inside && e.Kind == unstable.KeyValue {
			t, v := &tables[len(tables)-1], e.Value()
			t.end, t.empty = lineEnd(last.Offset), false
			known := len(names) == 1 && (names[0] == "trusted_hash" && v.Kind == unstable.String || names[0] == "enabled" && v.Kind == unstable.Bool)
			t.plain = t.plain && known && !bytes.ContainsRune(p.Raw(v.Raw), '\n')
		}
	}
	if p.Error() != nil {
		return nil
	}
	return tables
}

// rewriteTables renames or removes tables [hooks.state."<key>"]. With tidy, an
// empty [hooks.state] that is left alone goes too.
func rewriteTables(text []byte, rename map[string]string, tidy bool) []byte {
	if len(rename) == 0 {
		return text
	}
	tables := stateTables(text)
	goes := func(t stateTable) bool {
		to, ok := rename[t.key]
		return !t.bare && ok && to == "" && t.plain
	}
	left := slices.ContainsFunc(tables, func(t stateTable) bool { return !t.bare && !goes(t) })
	var out []byte
	done := 0
	for _, t := range tables {
		switch to := rename[t.key]; {
		case goes(t), t.bare && t.empty && tidy && !left:
			from := t.start
			if blankBefore(text[done:from]) { // Codex puts an empty line before each table
				from = bytes.LastIndexByte(text[:from-1], '\n') + 1
			}
			out = append(out, text[done:from]...)
			done = t.end
		case to != "" && !t.bare:
			if i := bytes.LastIndex(text[t.keyStart:t.keyEnd], []byte(placeOf(t.key))); i >= 0 {
				out = append(append(out, text[done:t.keyStart+i]...), placeOf(to)...)
				done = t.keyStart + i + len(placeOf(t.key))
			}
		}
	}
	return append(out, text[done:]...)
}

// blankBefore tells whether text ends in an empty line.
func blankBefore(text []byte) bool {
	line := text[bytes.LastIndexByte(bytes.TrimSuffix(text, []byte("\n")), '\n')+1:]
	return len(line) > 0 && len(bytes.TrimSpace(line)) == 0
}

// readConfig reads config.toml; none is nothing.
func readConfig(env install.Env) []byte {
	b, err := install.ReadFile(configFile(env))
	if err != nil {
		return nil
	}
	return b
}
