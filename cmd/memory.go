package cmd

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/spool"
	"github.com/agentscope-ai/reme-hook/upstream"
	"github.com/agentscope-ai/reme-hook/workspace"
)

type recallOptions struct {
	limit    int
	maxChars int
	json     bool
	explain  bool
}

func newRecallCommand(a *app) *cobra.Command {
	var o recallOptions
	c := &cobra.Command{
		Use:     "recall <query>...",
		Short:   "Find what was said",
		GroupID: groupMemory,
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, words []string) error {
			return a.runRecall(c.Context(), o, strings.Join(words, " "))
		},
	}
	c.Flags().IntVar(&o.limit, "limit", 5, "memories, at most")
	c.Flags().IntVar(&o.maxChars, "max-chars", 4000, "length of all memories, in characters")
	c.Flags().BoolVar(&o.json, "json", false, "print the service's answer as JSON")
	c.Flags().BoolVar(&o.explain, "explain", false, "take the query for a prompt, and show why each memory would be put before it or not")
	return c
}

func (a *app) runRecall(ctx context.Context, o recallOptions, query string) error {
	if o.limit < 1 || o.maxChars < 1 {
		return usageError{fmt.Errorf("--limit and --max-chars must be 1 or more")}
	}
	a.pokeIfDue()
	cwd, _ := os.Getwd()
	req := client.RecallRequest{Query: hooks.Clean(query), Limit: o.limit, MaxChars: o.maxChars, Cwd: cwd}
	if o.explain {
		if url := a.config.URL(); url != "" {
			return fmt.Errorf("the service at %s does not explain what it recalls; only the embedded workspace does", url)
		}
		req.Purpose = client.ForPrompt
		return a.explainRecall(ctx, req, o.json)
	}
	return a.withMemory(ctx, func(m memory) error {
		res, err := m.Recall(ctx, req)
		if err != nil {
			return err
		}
		if o.json {
			return a.printJSON(map[string]any{"success": true, "answer": fmt.Sprintf("%d memories", len(res.Items)), "metadata": res})
		}
		if len(res.Items) == 0 {
			fmt.Fprintln(a.stdout, "nothing found")
		}
		for i, it := range res.Items {
			if i > 0 {
				fmt.Fprintln(a.stdout)
			}
			fmt.Fprintf(a.stdout, "%s  %s  %.2f  %s\n%s\n", it.Date, it.Host, it.Score, hooks.URI(it), it.Snippet)
		}
		return nil
	})
}

func (a *app) explainRecall(ctx context.Context, req client.RecallRequest, asJSON bool) error {
	return a.withWorkspace(func(ws *workspace.Workspace) error {
		_, why, err := ws.Explain(ctx, req)
		if err != nil {
			return err
		}
		if asJSON {
			return a.printJSON(map[string]any{"version": 1, "explanation": why})
		}
		fmt.Fprintln(a.stdout, "terms, by weight:")
		for _, t := range why.Terms {
			meant := ""
			if t.For != "" {
				meant = fmt.Sprintf("  for %q", t.For)
			}
			fmt.Fprintf(a.stdout, "  %5.2f  %s  in %d memories%s\n", t.Weight, t.Text, t.Docs, meant)
		}
		if why.Task {
			fmt.Fprintln(a.stdout, "it wants something done: a memory must have more of it than of a question")
		}
		if len(why.Candidates) == 0 {
			fmt.Fprintln(a.stdout, "no memory has enough of them")
		}
		for _, c := range why.Candidates {
			var factors []string
			for _, f := range c.Factors {
				factors = append(factors, fmt.Sprintf("%s %.2f", f.Name, f.Value))
			}
			fmt.Fprintf(a.stdout, "\n%s\n  %s  %s  %s\n  score %.2f = %s; chance %.2f\n  has %s\n", c.Verdict, c.Date, c.Host,
				hooks.URI(client.Item{Path: c.Path, StartLine: c.StartLine, EndLine: c.EndLine}), c.Score, strings.Join(factors, " × "), c.Chance, strings.Join(c.Terms, ", "))
		}
		return nil
	})
}

func newRememberCommand(a *app) *cobra.Command {
	var title string
	var asJSON bool
	c := &cobra.Command{
		Use:     "remember <text>...",
		Short:   "Write a note that lasts",
		GroupID: groupMemory,
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, words []string) error {
			cwd, _ := os.Getwd()
			return a.withMemory(c.Context(), func(m memory) error {
				note, err := m.Remember(c.Context(), client.RememberRequest{Content: hooks.Clean(strings.Join(words, " ")), Title: hooks.Clean(title), Cwd: cwd})
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(note)
				}
				fmt.Fprintf(a.stdout, "remembered in reme://%s\n", note.Path)
				return nil
			})
		},
	}
	c.Flags().StringVar(&title, "title", "", "title of the note (default: its first words)")
	c.Flags().BoolVar(&asJSON, "json", false, "print the note's place as JSON")
	return c
}

func newSessionsCommand(a *app) *cobra.Command {
	var limit int
	var asJSON bool
	c := &cobra.Command{
		Use:     "sessions",
		Short:   "List what was captured, newest first",
		GroupID: groupMemory,
		Args:    args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withMemory(c.Context(), func(m memory) error {
				list, err := m.Sessions(c.Context(), limit)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(map[string]any{"version": 1, "sessions": list})
				}
				for _, s := range list {
					fmt.Fprintf(a.stdout, "%s  %-11s  %4d turns  %s\n    %s\n", s.Last.Local().Format("2006-01-02 15:04"), s.Host, s.Turns, s.Key, s.Title)
				}
				return nil
			})
		},
	}
	c.Flags().IntVar(&limit, "limit", 20, "sessions, at most")
	c.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	return c
}

func newShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show <session | reme://path>",
		Short:   "Print a session, a note or a memory",
		GroupID: groupMemory,
		Long: `Print what a reme:// address of a recalled memory points to, a file of the
workspace, or a whole session, named by its key (see 'reme-hook sessions'), the
host's own session id, or an unambiguous beginning of either.`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, names []string) error {
			return a.withMemory(c.Context(), func(m memory) error {
				text, err := show(c.Context(), m, names[0])
				if err != nil {
					return err
				}
				fmt.Fprintln(a.stdout, strings.TrimRight(text, "\n"))
				return nil
			})
		},
	}
}

func show(ctx context.Context, m memory, name string) (string, error) {
	if strings.HasPrefix(name, "reme://") || strings.Contains(name, "/") {
		return m.Read(ctx, name, 0, 0)
	}
	list, err := m.Sessions(ctx, 0)
	if err != nil {
		return "", err
	}
	list = slices.DeleteFunc(list, func(s workspace.SessionSummary) bool {
		return !strings.HasPrefix(string(s.Key), name) && !strings.HasPrefix(s.ID, name)
	})
	switch len(list) {
	case 0:
		return "", fmt.Errorf("no session is named %q; 'reme-hook sessions' lists them", name)
	case 1:
		return m.Read(ctx, list[0].Path, 0, 0)
	}
	return "", fmt.Errorf("%d sessions begin with %q; 'reme-hook sessions' lists them", len(list), name)
}

func newStatusCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "status",
		Short:   "Show at a glance what is remembered and what waits",
		GroupID: groupSetup,
		Args:    args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.runStatus(c.Context(), asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the status as JSON")
	return c
}

// status is the output of status --json.
type status struct {
	Version     int             `json:"version"`
	Service     string          `json:"service"`
	Workspace   string          `json:"workspace,omitempty"` // of the embedded service
	Problem     string          `json:"problem,omitempty"`   // why the memory cannot be used
	Memory      workspace.Stats `json:"memory"`
	Pending     int             `json:"pending"`
	Unfinished  int             `json:"unfinished"`
	Quarantined int             `json:"quarantined"`
	Failures    int             `json:"failures"`
	Upstream    upstream.Status `json:"upstream"`
	Hosts       []hostStatus    `json:"hosts"`
}

type hostStatus struct {
	Host      client.Host `json:"host"`
	Hooks     int         `json:"hooks"` // configured
	Tools     bool        `json:"tools"` // the model has them
	LastEvent string      `json:"last_event,omitempty"`
	LastSeen  *time.Time  `json:"last_seen,omitempty"`
}

func (a *app) runStatus(ctx context.Context, asJSON bool) error {
	a.pokeIfDue()
	st := status{Version: 1, Service: a.config.Service, Hosts: []hostStatus{}}
	if a.config.URL() == "" {
		st.Workspace = a.config.Workspace
	}
	err := a.withMemory(ctx, func(m memory) (err error) {
		st.Memory, err = m.Stats(ctx)
		return err
	})
	if st.Memory.Behind {
		a.poke()
	}
	if err != nil { // what waits for it is to be seen all the same
		st.Problem = err.Error()
	}
	st.Failures = a.link().Load().Delivery.Failures
	entries, err := a.spool().List()
	if err != nil {
		return err
	}
	states := spool.Count(entries)
	st.Pending, st.Unfinished, st.Quarantined = states[spool.Pending], states[spool.Unfinished], states[spool.Quarantined]
	if st.Upstream, err = a.upstream.Status(); err != nil {
		return err
	}
	for _, h := range a.hosts {
		r := h.Check(a.installEnv(), a.installOptions())
		hs := hostStatus{Host: h.Adapter.Host, Hooks: len(r.Hooks), Tools: r.HasServer() || r.OwnTools && len(r.Hooks) > 0}
		last, ok, err := a.state().Last(h.Adapter.Host)
		if err != nil {
			return err
		}
		if ok {
			hs.LastEvent, hs.LastSeen = last.Event, &last.UpdatedAt
		}
		st.Hosts = append(st.Hosts, hs)
	}
	if asJSON {
		err = a.printJSON(st)
	} else {
		a.printStatus(st)
	}
	if err == nil && (st.Quarantined > 0 || st.Failures > 0 || st.Problem != "" || st.Upstream.NeedsUser()) {
		return errNeedsUser
	}
	return err
}

func (a *app) printStatus(st status) {
	if st.Problem != "" {
		fmt.Fprintf(a.stdout, "memory  cannot be used: %s\n", st.Problem)
	} else {
		fmt.Fprintf(a.stdout, "memory  %d turns, %d sessions, %d notes in %s\n", st.Memory.Turns, st.Memory.Sessions, st.Memory.Notes, cmp.Or(st.Workspace, st.Service))
		if st.Memory.Behind {
			fmt.Fprintln(a.stdout, "        and more, which is being indexed; recall finds more and more of it")
		}
	}
	fmt.Fprintf(a.stdout, "spool   %d waiting, %d unfinished, %d in quarantine\n", st.Pending, st.Unfinished, st.Quarantined)
	if st.Failures > 0 {
		fmt.Fprintln(a.stdout, "        the last delivery failed: see 'reme-hook doctor'")
	}
	fmt.Fprintf(a.stdout, "reme    %s\n", st.Upstream.Summary())
	for _, line := range st.Upstream.Lines() {
		fmt.Fprintln(a.stdout, "       ", line)
	}
	for _, h := range st.Hosts {
		seen := "no hook seen yet"
		if h.LastSeen != nil {
			seen = fmt.Sprintf("last %s %s ago", h.LastEvent, a.now().Sub(*h.LastSeen).Round(time.Second))
		}
		switch {
		case h.Hooks > 0 && h.Tools:
			fmt.Fprintf(a.stdout, "%-11s  connected, %s\n", h.Host, seen)
		case h.Hooks > 0:
			fmt.Fprintf(a.stdout, "%-11s  connected, no tools, %s\n", h.Host, seen)
		case h.Tools:
			fmt.Fprintf(a.stdout, "%-11s  tools only\n", h.Host)
		default:
			fmt.Fprintf(a.stdout, "%-11s  not connected, %s\n", h.Host, seen)
		}
	}
}
