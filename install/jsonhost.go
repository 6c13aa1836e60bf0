package install

import (
	"cmp"
	"fmt"
	"path/filepath"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

// JSONHost is a host that is configured by a file as [UpsertHooks] edits it.
type JSONHost struct {
	Host  client.Host
	Shell Shell
	// Windows adds a second command for cmd.exe to each hook.
	Windows bool
	// SameRunsOnce tells that the host runs a command string once even if several
	// files have it.
	SameRunsOnce bool
	// Accepts tells why the host would not read a file with this content. What is
	// wrong with the whole of JSON or with "hooks" is found without it.
	Accepts func(text []byte) error
	// Refuse leaves files alone that are not accepted. Without it they are edited,
	// and reported.
	Refuse bool
	Hooks  []Hook
}

// Hook is one hook that an install configures.
type Hook struct {
	HostEvent string // in the host's spelling
	Event     string // on our command line
	Matcher   string // "" matches all
	Timeout   int    // seconds
}

func (h JSONHost) ours(command string) bool { return Ours(command, h.Host) }

// Groups are the hooks as they stand in the file, for our program at a path.
func (h JSONHost) Groups(program string) ([]Group, error) {
	var out []Group
	for _, hook := range h.Hooks {
		g := Group{Event: hook.HostEvent, Matcher: hook.Matcher, Handler: Handler{Type: "command", Timeout: hook.Timeout}}
		var err error
		if g.Handler.Command, err = Command(h.Shell, program, h.Host, hook.Event); err != nil {
			return nil, err
		}
		if !h.ours(g.Handler.Command) {
			return nil, fmt.Errorf("hooks have to call a program named reme-hook, not %s", program) // or nobody finds them again
		}
		if h.Windows {
			if g.Handler.CommandWindows, err = Command(CmdShell, program, h.Host, hook.Event); err != nil {
				return nil, err
			}
		}
		out = append(out, g)
	}
	return out, nil
}

// File edits the file at path.
func (h JSONHost) File(path, program string) (File, error) {
	groups, err := h.Groups(program)
	if err != nil {
		return File{}, err
	}
	return File{
		Path: path,
		Upsert: func(old []byte) ([]byte, error) {
			if err := h.accepts(old); err != nil && h.Refuse {
				return nil, err
			}
			return UpsertHooks(old, groups, h.ours)
		},
		Remove: func(now, original []byte, known bool) ([]byte, error) {
			return RemoveHooks(now, original, known, h.ours)
		},
	}, nil
}

func (h JSONHost) accepts(text []byte) error {
	if h.Accepts == nil || blank(text) {
		return nil
	}
	return h.Accepts(text)
}

// Placed returns our hooks in the file at path, none if there is no file.
func (h JSONHost) Placed(path string) ([]Placed, error) {
	placed, _, err := h.list(path)
	return placed, err
}

// list is Placed, and what keeps the host from reading the file.
func (h JSONHost) list(path string) (placed []Placed, ignored, err error) {
	b, err := read(path)
	if err != nil {
		return nil, nil, err
	}
	placed, err = ListHooks(b, h.ours)
	return placed, h.accepts(b), err
}

// Plugin is what a plugin in a folder does of what an install does, as plugins
// of the Claude Code family are laid out. remove takes it out.
func (h JSONHost) Plugin(env Env, o Options, dir, remove string) Plugin {
	p := Plugin{Dir: dir, Remove: remove}
	file := filepath.Join(dir, "hooks", "hooks.json")
	placed, _ := h.Placed(file) // what the host cannot read, it does not run
	for _, g := range placed {
		c := h.configured(g, file)
		c.Current = true
		p.Hooks = append(p.Hooks, c)
	}
	p.Servers = env.PluginServers(o, h.Host, filepath.Join(dir, ".mcp.json"))
	return p
}

// configured is a handler of ours in a file.
func (h JSONHost) configured(p Placed, file string) Configured {
	return Configured{
		Event: EventOf(p.Handler.Command, h.Host), Command: p.Handler.Command, Shell: h.Shell,
		File: file, Timeout: time.Duration(p.Handler.Timeout) * time.Second,
	}
}

// Report tells what the files hold of ours. The first file is the one that an
// install edits.
func (h JSONHost) Report(program string, files ...string) Report {
	var r Report
	groups, err := h.Groups(program)
	if err != nil {
		r.Problems = append(r.Problems, Problem{Code: BadPath, What: err.Error(), Do: "use another folder for the integrations", Off: true})
	}
	for _, path := range files {
		placed, ignored, err := h.list(path)
		if err = cmp.Or(err, ignored); err != nil {
			r.Problems = append(r.Problems, Problem{Code: BadFile, What: path + ": " + err.Error(), Do: "repair the file", Off: true})
		}
		for _, p := range placed {
			c := h.configured(p, path)
			for _, g := range groups {
				c.Current = c.Current || g == p.Group
			}
			r.Hooks = append(r.Hooks, c)
		}
	}
	for _, hook := range h.Hooks {
		var found []Configured
		for _, c := range r.Hooks {
			if c.Event == hook.Event && !(h.SameRunsOnce && hasCommand(found, c)) {
				found = append(found, c)
			}
		}
		switch {
		case len(found) == 0:
			r.Missing = append(r.Missing, hook.Event)
		case len(found) > 1:
			r.Problems = append(r.Problems, Problem{
				Code: Twice, Again: found[0].File == found[1].File,
				What: fmt.Sprintf("%s is configured %d times: in %s and %s", hook.Event, len(found), found[0].File, found[1].File),
				Do:   "install again, or uninstall one of the scopes: each runs on its own",
			})
		}
	}
	return r
}

// hasCommand tells whether another file has the command of c already.
func hasCommand(found []Configured, c Configured) bool {
	for _, f := range found {
		if f.Command == c.Command && f.File != c.File {
			return true
		}
	}
	return false
}
