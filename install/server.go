package install

import (
	"errors"
	"fmt"
	"slices"
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

// ErrForeignServer is for a server of another's that has our server's name. An
// install of hooks leaves it alone and goes on.
var ErrForeignServer = errors.New("there is another MCP server named " + ServerName + "; rename it and run the command again")

// Server is how a host starts our MCP server. What its tools write down says
// which host it was.
func (e Env) Server(o Options, host client.Host) Server {
	return Server{e.CommandPath(o), []string{"mcp", "--host", string(host)}}
}

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

// Equal tells whether two servers are started alike.
func (s Server) Equal(t Server) bool { return s.Command == t.Command && slices.Equal(s.Args, t.Args) }

// Registered is a server of our name in a host's configuration. It is another's
// if it is not [Server.Ours].
type Registered struct {
	Server
	File    string
	Off     bool // switched off by the user
	Current bool // what an install would write now
}

// Registered is a server of our name as a file has it.
func (e Env) Registered(o Options, host client.Host, s Server, file string, off bool) Registered {
	return Registered{s, file, off, s.Equal(e.Server(o, host))}
}
