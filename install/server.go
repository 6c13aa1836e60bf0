package install

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/agentscope-ai/reme-hook/client"
)

// ServerName is the name of our MCP server in the configuration of hosts: they
// call its tools mcp__reme__search and the like.
const ServerName = "reme"

// Server is how a host starts an MCP server.
type Server struct {
	Command string   `json:"command" toml:"command"`
	Args    []string `json:"args" toml:"args"`
}

// ErrForeignServer is for a server of another's that has our server's name.
var ErrForeignServer = errors.New("there is another MCP server named " + ServerName + "; rename it, or leave out --mcp")

// Server is how a host starts our MCP server.
func (e Env) Server(o Options) Server { return Server{e.CommandPath(o), []string{"mcp"}} }

// Valid is an error for a server that cannot be written down, or that nobody
// would find again.
func (s Server) Valid() error {
	if !s.Ours() || !utf8.ValidString(s.Command) {
		return fmt.Errorf("the MCP server has to be a program named reme-hook in a folder with a plain name, not %q", s.Command)
	}
	return nil
}

// Ours tells whether s is our server, from wherever it was installed.
func (s Server) Ours() bool {
	return len(s.Args) > 0 && s.Args[0] == "mcp" && ourProgram().MatchString(s.Command)
}

// Stale is what is wrong with our server as a file has it: nothing if it is the
// one that o asks for, or is not there.
func (s Server) Stale(env Env, o Options, host client.Host, file string) []Problem {
	if !s.Ours() || s.Command == env.CommandPath(o) {
		return nil
	}
	return []Problem{{
		What: fmt.Sprintf("the MCP server in %s is another program, %s", file, s.Command),
		Do:   "reme-hook install " + string(host) + " --mcp",
	}}
}
