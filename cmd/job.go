package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/gateway"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/internal/remote"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// jobTime bounds a job: a model waits for it.
const jobTime = 8 * time.Second

// errTold ends a command whose output says already what went wrong.
var errTold = errors.New("told in the output")

func newJobCommand(a *app) *cobra.Command {
	var host hostFlag
	var names []string
	var about strings.Builder
	for _, j := range gateway.Tools() {
		names = append(names, j.Name)
		fmt.Fprintf(&about, "  %-10s  %s\n", j.Name, j.Title)
	}
	c := &cobra.Command{
		Use:     "job <name>",
		Short:   "Do what a tool of a model asks for (JSON on stdin and stdout)",
		GroupID: groupHosts,
		Long: fmt.Sprintf(`Do one job of the memory, for plugins of agents and for scripts. Its arguments are
a JSON object on stdin; nothing is the same as {}. The answer is one line of JSON:

  {"answer": a text for a model, "success": true, "metadata": {}}

The jobs, which take what 'reme-hook mcp' says of its tools of the same name:

%s
It ends after %v at the latest. Exit status: 0 the job was done; 1 it was not, and
the answer says why; 2 there is no such job.`, about.String(), jobTime),
		Example:   `  echo '{"query":"staging port"}' | reme-hook job search`,
		Args:      args(cobra.ExactArgs(1)),
		ValidArgs: names,
		RunE: func(c *cobra.Command, given []string) error {
			if !slices.Contains(names, given[0]) {
				return usageError{fmt.Errorf("unknown job %q; known: %s", given[0], strings.Join(names, ", "))}
			}
			return a.runJob(c.Context(), host, given[0])
		},
	}
	host.add(c)
	return c
}

func (a *app) runJob(ctx context.Context, host hostFlag, name string) error {
	ctx, cancel := context.WithTimeout(ctx, jobTime)
	defer cancel()
	a.pokeIfDue()
	done := make(chan gateway.Answer, 1)
	go func() {
		answer, err := a.doJob(ctx, host, name)
		if err != nil {
			answer = gateway.Failure(err)
		}
		done <- answer
	}()
	var answer gateway.Answer
	select {
	case answer = <-done:
	case <-ctx.Done(): // of a disk that hangs
		answer = gateway.Failure(fmt.Errorf("no answer within %v; try again", jobTime))
	}
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(answer); err != nil {
		return err
	}
	if !answer.Success {
		return errTold
	}
	return nil
}

// doJob does a job on the memory, wherever that is.
func (a *app) doJob(ctx context.Context, host hostFlag, name string) (answer gateway.Answer, err error) {
	arguments, err := a.readArguments()
	if err != nil {
		return answer, err
	}
	raw, err := json.Marshal(arguments)
	if err != nil {
		return answer, err
	}
	if a.config.URL() == "" {
		err = a.withWorkspace(func(ws *workspace.Workspace) error {
			answer = gateway.New(ws, caller(host)).Do(ctx, a.log(), "job", name, raw)
			return nil
		})
		return answer, err
	}
	m, err := remote.New(a.config.URL(), a.config.Token, caller(host))
	if err != nil {
		return answer, err
	}
	defer m.Close()
	told, err := m.Tool(ctx, name, raw)
	answer = gateway.Answer{Answer: told.Answer, Success: told.Success, Metadata: map[string]any{}}
	_ = json.Unmarshal(told.Metadata, &answer.Metadata) // what is no object is left out
	return answer, err
}

// readArguments reads the arguments of a job: a JSON object, or nothing.
func (a *app) readArguments() (hooks.Payload, error) {
	if isatty.IsTerminal(a.stdin.Fd()) {
		return hooks.Payload{}, nil
	}
	arguments, err := hooks.ReadPayload(a.stdin)
	switch {
	case errors.Is(err, io.EOF):
		return hooks.Payload{}, nil
	case err != nil:
		return nil, &client.Error{Class: client.Permanent, Field: "arguments", Reason: "must be a JSON object on stdin"}
	}
	return arguments, nil
}

// hostFlag is the flag that says which agent asks.
type hostFlag client.Host

func (h *hostFlag) add(c *cobra.Command) {
	c.Flags().Var(h, "host", "the agent that asks, which notes will bear as their author")
}

// String implements pflag.Value.
func (h *hostFlag) String() string { return string(*h) }

// Type implements pflag.Value.
func (h *hostFlag) Type() string { return "name" }

// Set implements pflag.Value.
func (h *hostFlag) Set(name string) error {
	if !client.Host(name).IsName() {
		return errors.New("must be a short name of letters, digits and dashes")
	}
	*h = hostFlag(name)
	return nil
}

// caller is an agent that works in this process's folder.
func caller(host hostFlag) gateway.Caller {
	cwd, _ := os.Getwd()
	return gateway.Caller{Host: client.Host(host), Cwd: cwd}
}
