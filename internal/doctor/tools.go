package doctor

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentscope-ai/reme-hook/install"
)

// toolsWait bounds how long an MCP server may take to list its tools. Ours needs
// milliseconds.
const toolsWait = 5 * time.Second

// tools looks at the MCP servers that a host is configured with.
func (d Doctor) tools(ctx context.Context, area string, report install.Report, again *mend) []Finding {
	var out []Finding
	add := func(code install.Code, level Level, what, do string) {
		out = append(out, Finding{Area: area, Code: code, Level: level, What: what, Do: do})
	}
	outdated := func(code install.Code, what string) {
		out = append(out, Finding{Area: area, Code: code, Level: Problem, What: what, Do: command(area, report)}.with(again))
	}
	for _, s := range report.Servers {
		if !s.Ours() {
			if report.OwnTools {
				continue
			}
			add("server-foreign", Note, fmt.Sprintf("the MCP server named %s in %s is another's: the model has that one, not ours", install.ServerName, s.File), "to have ours rename it, then "+command(area, report))
			continue
		}
		if s.Off {
			add("server-off", Note, "our MCP server is switched off in "+s.File, "switch it on there if the model is to have the memory as tools")
			continue
		}
		if !s.Current {
			outdated("server-outdated", "the MCP server in "+s.File+" is not as this version installs it: "+s.Command)
		}
		if names, err := d.Tools(ctx, d.Env.Environ, s.Server); err != nil {
			outdated("server", fmt.Sprintf("the MCP server in %s does not work: %v", s.File, err))
		} else {
			add("server", OK, "the model has the tools "+strings.Join(names, ", ")+" (asked the MCP server in "+s.File+")", "")
		}
	}
	if len(report.Servers) == 0 && len(report.Hooks) > 0 && !report.OwnTools {
		add("server-none", Note, "no MCP server: the model cannot search the memory by itself", command(area, report))
	}
	return out
}

// ListTools starts a server as a host would and asks it for its tools.
func ListTools(ctx context.Context, environ []string, s install.Server) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, toolsWait)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "reme-hook doctor"}, nil)
	cmd := exec.CommandContext(ctx, s.Command, s.Args...)
	cmd.Env = environ
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	list, err := session.ListTools(ctx, nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	return names, nil
}
