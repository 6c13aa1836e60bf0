package install

import (
	"fmt"
	"slices"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

// Report is what is configured for us at a host.
type Report struct {
	Hooks    []Configured
	Missing  []string     // events that an install would configure and that are not
	Servers  []Registered // MCP servers of our name
	OwnTools bool         // what calls our hooks gives the model the tools, without a server
	OnPath   bool         // all of it runs the reme-hook on the PATH, as plugins of a host do
	Problems []Problem
	Notes    []string // what users should know of and cannot mend
}

// Configured is one hook of ours in a host's configuration.
type Configured struct {
	Event   string // as on our command line: session-start, stop …
	Command string // the very string that the host runs
	Shell   Shell  // what the host runs it with
	File    string
	Timeout time.Duration
	Current bool // what an install would write now
}

// Problem is something that keeps hooks from working as they should.
type Problem struct {
	Code  Code
	What  string // one sentence
	Do    string // what the user can do about it
	Off   bool   // because of it hooks do not run at all
	Again bool   // an install mends it, and takes nothing away that the user has chosen
}

// Code names a kind of problem for programs.
type Code string

// The kinds of problems that a host's files show.
const (
	BadPath   Code = "bad-path"   // our program lies where the host cannot be told of
	BadFile   Code = "bad-file"   // the host does not read a file that we are in, or need
	Off       Code = "off"        // a switch of the user's
	Denied    Code = "denied"     // the host's lists of what may run lack us, or name us
	Twice     Code = "twice"      // something of ours runs twice
	Missing   Code = "missing"    // what the configuration names is not there
	NotChosen Code = "not-chosen" // the host uses another memory, or none
	NotLoaded Code = "not-loaded" // the host itself says that it does not run us
	OldHost   Code = "old-host"   // a release of the host that is known not to work
	HostSays  Code = "host-says"  // a warning of the host's
)

// Plugin is one that a host has got from elsewhere, and that does what an
// install configures. Its updates are the host's business.
type Plugin struct {
	Dir     string
	Remove  string // what takes it out
	Hooks   []Configured
	Servers []Registered
}

// Add puts a plugin of a host into its report. What an install has configured
// too is then there twice.
func (r *Report) Add(host client.Host, p Plugin) {
	if len(p.Hooks)+len(p.Servers) == 0 {
		return
	}
	r.OnPath = len(r.Hooks) == 0 && !r.HasServer()
	var twice string
	switch hooks, tools := len(r.Hooks) > 0 && len(p.Hooks) > 0, r.HasServer() && len(p.Servers) > 0; {
	case hooks && tools:
		twice = "each hook runs twice, and the model has the tools twice"
	case hooks:
		twice = "each hook runs twice"
	case tools:
		twice = "the model has the tools twice"
	}
	if twice != "" {
		r.Problems = append(r.Problems, Problem{
			Code: Twice,
			What: fmt.Sprintf("%s: the plugin in %s is there beside what reme-hook installed", twice, p.Dir),
			Do:   "remove one: " + p.Remove + ", or reme-hook uninstall " + string(host),
		})
	}
	if len(p.Hooks) > 0 {
		r.Missing = nil
	}
	r.Hooks, r.Servers = append(r.Hooks, p.Hooks...), append(r.Servers, p.Servers...)
}

// HasServer tells whether the host starts our MCP server.
func (r Report) HasServer() bool {
	return slices.ContainsFunc(r.Servers, func(s Registered) bool { return s.Ours() && !s.Off })
}

// Foreign is the file in which another's MCP server has the name of ours, ""
// if there is none.
func (r Report) Foreign() string {
	for _, s := range r.Servers {
		if !s.Ours() {
			return s.File
		}
	}
	return ""
}
