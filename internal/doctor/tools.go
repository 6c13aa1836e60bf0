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
func (d Doctor) tools(ctx context.Context, area string, report install.Report) []Finding {
	var out []Finding
	add := func(level Level, what, do string) { out = append(out, Finding{area, level, what, do}) }
	for _, s := range report.Servers {
		if !s.Ours() {
			if report.OwnTools {
				continue
			}
			add(Note, fmt.Sprintf("the MCP server named %s in %s is another's: the model has that one, not ours", install.ServerName, s.File), "to have ours rename it, then "+again(area, report))
			continue
		}
		if s.Off {
			add(Note, "our MCP server is switched off in "+s.File, "")
			continue
		}
		if !s.Current {
			add(Problem, fmt.Sprintf("the MCP server in %s is not as this version installs it: %s %s", s.File, s.Command, strings.Join(s.Args, " ")), again(area, report))
		}
		if names, err := listTools(ctx, s.Server); err != nil {
			add(Problem, fmt.Sprintf("the MCP server in %s does not work: %v", s.File, err), again(area, report))
		} else {
			add(OK, "the model has the tools "+strings.Join(names, ", ")+" (asked the MCP server in "+s.File+")", "")
		}
	}
	if len(report.Servers) == 0 && len(report.Hooks) > 0 && !report.OwnTools {
		add(Note, "no MCP server: the model cannot search the memory by itself", again(area, report))
	}
	return out
}

// listTools starts a server as a host would and asks it for its tools.
func listTools(ctx context.Context, s install.Server) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, toolsWait)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "reme-hook doctor"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: exec.CommandContext(ctx, s.Command, s.Args...)}, nil)
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
