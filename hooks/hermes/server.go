package hermes

import (
	"fmt"
	"strings"

	"github.com/agentscope-ai/reme-hook/install"
	"gopkg.in/yaml.v3"
)

// serverSetting makes our MCP server one of Hermes'.
func serverSetting(s install.Server) setting {
	return setting{
		section: "mcp_servers", key: install.ServerName,
		value:  "{command: " + quote(s.Command) + ", args: [" + strings.Join(s.Args, ", ") + "]}",
		byHand: "put the server in by hand",
	}
}

// quote makes a single-quoted scalar, in which only the quote is special.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// server is the MCP server of our name, as far as it can be read.
func (c *config) server() install.Server {
	n := c.node(serverSetting(install.Server{}))
	var s install.Server
	if command := value(n, "command"); command != nil && command.Kind == yaml.ScalarNode {
		s.Command = command.Value
	}
	if args := value(n, "args"); args != nil {
		for _, a := range args.Content {
			s.Args = append(s.Args, a.Value)
		}
	}
	return s
}

// servers is the MCP server of our name, nothing if there is none.
func (c *config) servers(env install.Env, o install.Options) []install.Registered {
	n := c.node(serverSetting(install.Server{}))
	if n == nil || isNull(n) {
		return nil
	}
	enabled := value(n, "enabled")
	return []install.Registered{env.Registered(o, Host, c.server(), configFile(env), enabled != nil && enabled.Value == "false")}
}

// upsertServer puts our MCP server into a config.yaml. What is there of ours
// keeps all but its command, unless it has other arguments.
func upsertServer(src []byte, want install.Server) ([]byte, error) {
	if strings.Contains(want.Command, "${") {
		return nil, fmt.Errorf("in the path %q Hermes would look for a variable", want.Command)
	}
	if err := want.Valid(); err != nil {
		return nil, err
	}
	c, err := parse(src)
	if err != nil {
		return nil, err
	}
	s := serverSetting(want)
	if err := c.once(s); err != nil {
		return nil, err
	}
	done := func(q *config) bool { return q.server().Equal(want) }
	n := c.node(s)
	switch {
	case done(c):
		return src, nil
	case n == nil || isNull(n):
		if c, err = c.set(s, done); err != nil {
			return nil, err
		}
		return c.Bytes(), nil
	case !c.server().Ours():
		return nil, install.ErrForeignServer
	}
	if q, err := c.edited(s, c.over(value(n, "command"), quote(want.Command))); err == nil && done(q) {
		return q.Bytes(), nil
	}
	text, err := removeServer(src, src, true)
	if err != nil {
		return nil, s.refused()
	}
	return upsertServer(text, want)
}

// removeServer takes our MCP server out again. It returns nil if nothing is left
// in a file that was not there before.
func removeServer(now, original []byte, known bool) ([]byte, error) {
	c, err := parse(now)
	if now == nil || err != nil || !c.server().Ours() {
		return now, err
	}
	s := serverSetting(c.server())
	q, err := c.unset(s, original, known, func(q *config) bool { return q.node(s) == nil })
	if err != nil {
		return nil, fmt.Errorf("%w; run `hermes mcp remove %s`", err, install.ServerName)
	}
	return q.left(original, known), nil
}
