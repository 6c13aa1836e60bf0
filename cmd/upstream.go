package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/client/reme"
	"github.com/agentscope-ai/reme-hook/upstream"
	"github.com/agentscope-ai/reme-hook/workspace"
)

func newUpstreamCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "upstream",
		Short:   "See what a real ReMe makes of the turns, and send it what it lacks",
		GroupID: groupSetup,
		Long: `Look for the ReMe that is configured ('upstream' in the configuration), and show
what was forwarded to it and what waits. Exit status 3 if something needs you.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return a.runUpstream(c.Context(), asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the state as JSON")
	c.AddCommand(newUpstreamBackfillCommand(a), newUpstreamReplayCommand(a))
	return c
}

func (a *app) runUpstream(ctx context.Context, asJSON bool) error {
	private()
	if _, err := a.upstream.Probe(ctx); err != nil {
		return err
	}
	st, err := a.upstream.Status()
	if err != nil {
		return err
	}
	if st.URL != "" {
		if err := a.withWorkspace(func(ws *workspace.Workspace) error { return a.upstream.Measure(ctx, ws, &st) }); err != nil {
			return err
		}
	}
	a.pokeIfDue()
	if asJSON {
		err = a.printJSON(struct {
			Version int `json:"version"`
			upstream.Status
		}{1, st})
	} else {
		a.printUpstream(st)
	}
	if err == nil && st.NeedsUser() {
		return errNeedsUser
	}
	return err
}

func (a *app) printUpstream(st upstream.Status) {
	fmt.Fprintf(a.stdout, "server   %s\n", st.Summary())
	if st.URL == "" {
		return
	}
	switch {
	case st.Since != nil:
		fmt.Fprintf(a.stdout, "backlog  %s, of what was said since %s\n", amount(st.Backlog), st.Since.Local().Format("2006-01-02 15:04"))
	default:
		fmt.Fprintln(a.stdout, "backlog  nothing is forwarded")
	}
	for _, line := range st.Lines() {
		fmt.Fprintf(a.stdout, "         %s\n", line)
	}
	fmt.Fprintf(a.stdout, "history  %s, of what was said before\n", amount(st.History))
	if st.History.Turns > 0 && st.Server.Kind == reme.Released {
		fmt.Fprintln(a.stdout, "         'reme-hook upstream backfill' forwards it")
	}
}

func amount(w upstream.Work) string {
	if w.Turns == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%d turns in %d sessions", w.Turns, w.Sessions)
}

type backfillOptions struct {
	since       string
	dryRun, yes bool
}

func newUpstreamBackfillCommand(a *app) *cobra.Command {
	var o backfillOptions
	c := &cobra.Command{
		Use:   "backfill",
		Short: "Forward what was captured before ReMe was there",
		Long: `Forward to ReMe all that was captured and not forwarded yet. Each request costs
calls of ReMe's model, which are counted first; on a terminal you are asked.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return a.runBackfill(c.Context(), o) },
	}
	c.Flags().StringVar(&o.since, "since", "", "leave out what was said before this `date` (YYYY-MM-DD)")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "only count")
	c.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	return c
}

func (a *app) runBackfill(ctx context.Context, o backfillOptions) error {
	private()
	var since time.Time
	if o.since != "" {
		var err error
		if since, err = time.ParseInLocation(time.DateOnly, o.since, time.Local); err != nil {
			return usageError{fmt.Errorf("--since %q is not a date such as 2026-11-30", o.since)}
		}
	}
	k, err := a.upstream.Probe(ctx)
	if err != nil {
		return err
	}
	return a.withWorkspace(func(ws *workspace.Workspace) error {
		w, err := a.upstream.Estimate(ctx, ws, since)
		if err != nil {
			return err
		}
		if w.Turns == 0 {
			fmt.Fprintln(a.stdout, "nothing to forward")
			return nil
		}
		fmt.Fprintf(a.stdout, "%s: %d requests, about %d calls of ReMe's model\n", amount(w), w.Requests, w.ModelCalls)
		if o.dryRun {
			return nil
		}
		if k.Kind != reme.Released {
			return a.noUpstream(k)
		}
		if !o.yes {
			if !a.asked() {
				return usageError{errors.New("this costs calls of ReMe's model; say so with --yes")}
			}
			if err := a.goOn("Forward it?"); err != nil {
				return err
			}
		}
		return a.forwardNow(ctx, ws, upstream.Options{Backfill: true, Since: since, All: true, AtOnce: true})
	})
}

func newUpstreamReplayCommand(a *app) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "replay",
		Short: "Forward now what waits, whatever failed before; what was given up too",
		Args:  args(cobra.NoArgs),
		RunE:  func(c *cobra.Command, _ []string) error { return a.runUpstreamReplay(c.Context(), all) },
	}
	c.Flags().BoolVar(&all, "kept-nothing", false, "also what ReMe took and made no note of")
	return c
}

func (a *app) runUpstreamReplay(ctx context.Context, all bool) error {
	private()
	k, err := a.upstream.Probe(ctx)
	if err != nil {
		return err
	}
	if k.Kind != reme.Released {
		return a.noUpstream(k)
	}
	return a.withWorkspace(func(ws *workspace.Workspace) error {
		for {
			ready, left, err := a.upstream.Release(ctx, busyWait, all)
			if err != nil {
				return err
			}
			// What is made nothing of again must not come round again.
			all = false
			if err := a.forwardNow(ctx, ws, upstream.Options{AtOnce: true, All: true}); err != nil || ready == 0 || left == 0 {
				return err
			}
		}
	})
}

func (a *app) noUpstream(k upstream.Known) error {
	if a.upstream.URL == "" {
		return errors.New("upstream is off; 'reme-hook config show' tells where that is set")
	}
	return fmt.Errorf("no ReMe at %s: %s", a.upstream.URL, k.Why)
}

// busyWait is how long a command waits for a deliverer that forwards: many have
// nothing to do and end at once.
const busyWait = 5 * time.Second

// forwardNow forwards on the user's time, and tells how it goes.
func (a *app) forwardNow(ctx context.Context, ws *workspace.Workspace, o upstream.Options) error {
	o.Wait = busyWait
	o.Each = func(turns int, outcome string) { fmt.Fprintf(a.stdout, "%d turns: %s\n", turns, outcome) }
	err := a.upstream.Forward(ctx, ws, o)
	if err != nil {
		return err
	}
	st, err := a.upstream.Status()
	if err == nil && st.NeedsUser() {
		fmt.Fprintln(a.stdout, strings.Join(st.Lines(), "\n"))
		return errNeedsUser
	}
	return err
}
