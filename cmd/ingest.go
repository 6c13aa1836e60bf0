package cmd

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/ingest"
)

func newIngestCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "ingest",
		Short:   "Bring in what agents' own logs have",
		GroupID: groupMemory,
		Long: `Agents keep logs of their sessions. Ingest brings into the memory what they have
and the memory lacks: what was said before reme-hook came, and what hooks missed.
Nothing is ever doubled: a turn has the same name in both.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newIngestListCommand(a), newIngestBackfillCommand(a), newIngestGapsCommand(a), newIngestWatchCommand(a), newIngestImportCommand(a))
	return c
}

// ingestOptions are what the commands of ingest have in common.
type ingestOptions struct {
	since, until, project string
	all, json             bool
}

func (o *ingestOptions) filter() (ingest.Filter, error) {
	var f ingest.Filter
	for _, d := range []struct {
		flag, value string
		at          *time.Time
	}{{"since", o.since, &f.Since}, {"until", o.until, &f.Until}} {
		if d.value == "" {
			continue
		}
		t, err := time.ParseInLocation(time.DateOnly, d.value, time.Local)
		if err != nil {
			return f, usageError{fmt.Errorf("--%s must be a day as YYYY-MM-DD, not %q", d.flag, d.value)}
		}
		*d.at = t
	}
	if !f.Until.IsZero() {
		if f.Until.Before(f.Since) {
			return f, usageError{fmt.Errorf("--until %s is before --since %s", o.until, o.since)}
		}
		f.Until = f.Until.AddDate(0, 0, 1) // that day, too
	}
	if o.project != "" {
		abs, err := filepath.Abs(o.project)
		if err != nil {
			return f, usageError{err}
		}
		f.Project = abs
	}
	return f, nil
}

func (o *ingestOptions) flags(c *cobra.Command) {
	c.Flags().StringVar(&o.since, "since", "", "only turns of this day (YYYY-MM-DD) or later")
	c.Flags().StringVar(&o.until, "until", "", "only turns of this day (YYYY-MM-DD) or earlier")
	c.Flags().StringVar(&o.project, "project", "", "only sessions at work in this folder or below")
	c.Flags().BoolVar(&o.json, "json", false, "print the result as JSON")
}

// sources are the hosts that were named, or all that have logs.
func (a *app) sources(names []string) ([]host, error) {
	if len(names) == 0 {
		return slices.DeleteFunc(slices.Clone(a.hosts), func(h host) bool { return h.Logs == nil }), nil
	}
	var out []host
	for _, name := range names {
		h, ok := a.host(name)
		if !ok {
			return nil, usageError{fmt.Errorf("unknown host %q; known are %s", name, strings.Join(a.hostNames(), ", "))}
		}
		if h.Logs == nil {
			return nil, fmt.Errorf("%s keeps no logs that reme-hook can read", h.Adapter.Title)
		}
		out = append(out, h)
	}
	return out, nil
}

// ingester makes what reads the logs. It writes nothing by itself.
func (a *app) ingester(m memory) *ingest.Ingester {
	store := a.state()
	return &ingest.Ingester{
		Memory: m, Waiting: a.spool().Events, Now: a.now, Dir: a.cursorDir(),
		LeftAlone: func(s client.Session, cwd string) bool {
			return hooks.LeftAlone(a.config, cwd) || store.Get(s).Bypassed
		},
	}
}

// cursorDir is where ingest keeps up to where it has read. That of the embedded
// workspace is derived of it: whoever deletes it begins anew. A service at a URL has
// one here for this machine's logs.
func (a *app) cursorDir() string {
	if url := a.config.URL(); url != "" {
		sum := sha256.Sum256([]byte(url))
		return filepath.Join(a.dir, "ingest", hex.EncodeToString(sum[:6]))
	}
	return filepath.Join(a.config.Workspace, "metadata", "reme-hook", "ingest")
}

// interruptible ends with the user's patience.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// withSources runs what a command does with the logs of some hosts, until the
// user's patience ends.
func (a *app) withSources(c *cobra.Command, names []string, fn func(context.Context, *ingest.Ingester, []host) error) error {
	list, err := a.sources(names)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(c.Context())
	defer stop()
	return a.withMemory(ctx, func(m memory) error {
		return fn(ctx, a.ingester(m), list)
	})
}

// source is a host in the output of ingest list-sources --json.
type source struct {
	Host   client.Host    `json:"host"`
	Places []string       `json:"places"`
	Found  bool           `json:"found"`
	Report *ingest.Report `json:"logs,omitempty"`
}

func newIngestListCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list-sources [<host>...]",
		Short: "Show which agents have logs, and what a backfill would add",
		Args:  args(cobra.ArbitraryArgs),
		RunE: func(c *cobra.Command, names []string) error {
			return a.withSources(c, names, func(ctx context.Context, in *ingest.Ingester, list []host) error {
				sources := []source{}
				for _, h := range list {
					s := source{Host: h.Adapter.Host, Places: h.Logs.Places()}
					for _, place := range s.Places {
						_, err := os.Stat(place)
						s.Found = s.Found || err == nil
					}
					if s.Found {
						r, err := in.Run(ctx, h.Adapter, ingest.Options{Whole: true})
						if err != nil {
							return err
						}
						r.Gaps = nil
						s.Report = &r
					}
					sources = append(sources, s)
				}
				if asJSON {
					return a.printJSON(map[string]any{"version": 1, "sources": sources})
				}
				for _, s := range sources {
					if s.Report == nil {
						fmt.Fprintf(a.stdout, "%-11s  no logs in %s\n", s.Host, strings.Join(s.Places, ", "))
						continue
					}
					a.printReport(*s.Report, "would add", s.Places...)
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	return c
}

// printReport tells of the logs of a host, and of their places if they are given.
func (a *app) printReport(r ingest.Report, adds string, places ...string) {
	fmt.Fprintf(a.stdout, "%-11s  %d sessions, %d turns", r.Host, r.Sessions, r.Turns)
	if !r.First.IsZero() {
		fmt.Fprintf(a.stdout, ", %s to %s", r.First.Local().Format(time.DateOnly), r.Last.Local().Format(time.DateOnly))
	}
	if r.Unchanged > 0 {
		fmt.Fprintf(a.stdout, "; %d logs are as they were", r.Unchanged)
	}
	for _, place := range places {
		if _, err := os.Stat(place); err == nil {
			fmt.Fprintf(a.stdout, "\n             in %s", place)
		}
	}
	fmt.Fprintf(a.stdout, "\n             %s %d turns (%d messages) of %d sessions", adds, r.Missing.Turns, r.Missing.Messages, r.Missing.Sessions)
	if r.Extractions > 0 {
		fmt.Fprintf(a.stdout, "; with a real ReMe that is %d extractions by a language model", r.Extractions)
	}
	fmt.Fprintln(a.stdout)
	if r.LeftAlone > 0 {
		fmt.Fprintf(a.stdout, "             %d sessions left alone: excluded folders, or held without memory\n", r.LeftAlone)
	}
	if r.Damaged > 0 {
		fmt.Fprintf(a.stdout, "             %d damaged records passed over\n", r.Damaged)
	}
	for i, p := range r.Problems {
		if i == 5 {
			fmt.Fprintf(a.stdout, "             and %d more; --json lists all\n", len(r.Problems)-i)
			break
		}
		fmt.Fprintf(a.stdout, "             not read: %s: %s\n", p.Path, p.Reason)
	}
}

func newIngestBackfillCommand(a *app) *cobra.Command {
	var o ingestOptions
	var dryRun, yes bool
	c := &cobra.Command{
		Use:   "backfill <host>...|--all",
		Short: "Bring in the sessions of an agent's logs",
		Long: `Bring in the sessions that an agent's logs have. It says what it will write and
asks; what is there already is left as it is. It can be stopped at any time and
goes on where it was; what was brought in and is gone since is for 'ingest gaps'.
Tool calls, their results, the model's thinking and what hosts and hooks add are
not brought in; secrets are taken out as always.`,
		RunE: func(c *cobra.Command, names []string) error {
			if (len(names) == 0) != o.all {
				return usageError{errors.New("name the hosts, or give --all; 'reme-hook ingest list-sources' shows what there is")}
			}
			return a.fill(c, names, filling{&o, ingest.Options{}, dryRun, yes})
		},
	}
	o.flags(c)
	c.Flags().BoolVar(&o.all, "all", false, "of all hosts")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be written")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func newIngestGapsCommand(a *app) *cobra.Command {
	var o ingestOptions
	var fix bool
	c := &cobra.Command{
		Use:   "gaps [<host>...]",
		Short: "Show, or with --fix bring in, the turns that the memory lacks",
		Long: `Compare all that agents' logs have with what the memory holds, and list the turns
that it lacks: of killed agents, of the time before reme-hook was installed or when
it was switched off.`,
		Args: args(cobra.ArbitraryArgs),
		RunE: func(c *cobra.Command, names []string) error {
			return a.fill(c, names, filling{&o, ingest.Options{Whole: true}, !fix, true})
		},
	}
	o.flags(c)
	c.Flags().BoolVar(&fix, "fix", false, "bring them in")
	return c
}

// filling is what backfill and gaps do.
type filling struct {
	*ingestOptions
	ingest.Options
	dryRun, yes bool
}

// fill says what the memory lacks, and brings it in if it may.
func (a *app) fill(c *cobra.Command, names []string, o filling) (err error) {
	if o.Filter, err = o.filter(); err != nil {
		return err
	}
	return a.withSources(c, names, func(ctx context.Context, in *ingest.Ingester, list []host) error { return a.fillFrom(ctx, in, list, o) })
}

func (a *app) fillFrom(ctx context.Context, in *ingest.Ingester, list []host, o filling) error {
	reports := make([]ingest.Report, len(list))
	run := func(write bool) (total ingest.Missing, err error) {
		o.Write, o.Later = write, write
		for i := 0; i < len(list) && err == nil; i++ {
			r := &reports[i]
			if r.Host != "" && r.Bytes == 0 {
				continue // all is as it was
			}
			var done func()
			in.Progress, done = a.progress(list[i].Adapter.Title)
			*r, err = in.Run(ctx, list[i].Adapter, o.Options)
			done()
			total.Turns += r.Missing.Turns
			total.Sessions += r.Missing.Sessions
		}
		if write && total.Turns > 0 {
			err = cmp.Or(err, a.poke()) // it makes the index and the notes
		}
		return total, stopped(err)
	}
	print := func() {
		for _, r := range reports {
			a.printReport(r, cmp.Or(map[bool]string{true: "lacks"}[o.Whole], "adds"))
			a.printGaps(r)
		}
	}
	write := o.yes && !o.dryRun // else the user is told first
	total, err := run(write)
	if err != nil {
		return err
	}
	if !o.json {
		print()
	}
	if !write && !o.dryRun {
		if total.Turns > 0 {
			if err := a.confirmWrite(fmt.Sprintf("%d turns of %d sessions", total.Turns, total.Sessions)); err != nil {
				return err
			}
		}
		if total, err = run(true); err != nil {
			return err
		}
		write = true
	}
	if write && total.Turns > 0 && !o.json {
		fmt.Fprintf(a.stdout, "brought in %d turns\n", total.Turns)
		if a.config.URL() == "" {
			fmt.Fprintln(a.stdout, "they are indexed in the background; meanwhile recall finds more and more of them")
		}
	}
	if o.json {
		return a.printJSON(map[string]any{"version": 1, "dry_run": o.dryRun, "hosts": reports})
	}
	return nil
}

func (a *app) printGaps(r ingest.Report) {
	for i, g := range r.Gaps {
		if i == 20 {
			fmt.Fprintf(a.stdout, "             and %d more sessions; --json lists all\n", len(r.Gaps)-i)
			break
		}
		fmt.Fprintf(a.stdout, "             %s  %d turns of session %s\n", g.First.Local().Format("2006-01-02 15:04"), len(g.Turns), g.ID)
	}
}

func stopped(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("stopped; what was brought in stays, and the same command goes on from there")
	}
	return err
}

// confirmWrite asks whether something may be written into the memory.
func (a *app) confirmWrite(what string) error {
	if !a.asked() {
		return usageError{errors.New("nothing was written: give --yes to write without being asked, or --dry-run to only look")}
	}
	fmt.Fprintf(a.stdout, "Write %s into %s? [y/N] ", what, cmp.Or(a.config.URL(), a.config.Workspace))
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was written")
	}
	return nil
}

// progress tells on a terminal how far the reading of a host's logs is, until it is
// done.
func (a *app) progress(title string) (tell func(ingest.Report), done func()) {
	f, ok := a.stderr.(*os.File)
	if !ok || !isatty.IsTerminal(f.Fd()) {
		return nil, func() {}
	}
	tell = func(r ingest.Report) {
		fmt.Fprintf(f, "\r%s: %d MB of logs, %d turns\x1b[K", title, r.Bytes/1e6, r.Turns)
	}
	return tell, func() { fmt.Fprint(f, "\r\x1b[K") }
}

func newIngestWatchCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "watch [<host>...]",
		Short: "Bring in what agents' logs get, as they get it, until stopped",
		Long: `Follow agents' logs and bring in what they get, for agents that run without hooks.
It begins with what was added since it, or a backfill, ran last, and with nothing
older if neither ever ran.`,
		Args: args(cobra.ArbitraryArgs),
		RunE: func(c *cobra.Command, names []string) error {
			return a.withSources(c, names, func(ctx context.Context, in *ingest.Ingester, list []host) error {
				var adapters []*hooks.Adapter
				for _, h := range list {
					adapters = append(adapters, h.Adapter)
				}
				fmt.Fprintln(a.stdout, "watching; stop with Ctrl-C")
				return in.Watch(ctx, adapters, func(r ingest.Report) {
					if r.Missing.Turns > 0 {
						fmt.Fprintf(a.stdout, "%s  %s: %d turns\n", a.now().Format("15:04:05"), r.Host, r.Missing.Turns)
					}
					for _, p := range r.Problems {
						if !errors.Is(ctx.Err(), context.Canceled) {
							fmt.Fprintf(a.stderr, "%s: %s\n", p.Path, p.Reason)
						}
					}
				})
			})
		},
	}
}
