package cmd

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/spool"
)

func newSpoolCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "spool",
		Short:   "See and deliver the turns that wait",
		GroupID: groupSetup,
		Args:    args(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newSpoolListCommand(a), newSpoolShowCommand(a), newSpoolReplayCommand(a), newSpoolExportCommand(a), newSpoolDropCommand(a))
	return c
}

func newSpoolListCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List waiting, unfinished and quarantined turns",
		Args:  args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return a.runSpoolList(asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	return c
}

// spooled is a turn in the output of spool list --json; its text stays out.
type spooled struct {
	State     spool.State `json:"state"`
	Key       string      `json:"key"`
	Name      string      `json:"name"` // of its file; they sort by age
	Turn      string      `json:"turn_id"`
	Events    int         `json:"events"`
	Bytes     int64       `json:"bytes"`
	UpdatedAt time.Time   `json:"updated_at"`
	Age       float64     `json:"age_seconds"`
	Reason    string      `json:"reason,omitempty"`
}

func (a *app) spooled(e spool.Entry) spooled {
	return spooled{
		State: e.State, Key: string(e.Key), Name: e.Name, Turn: string(e.Turn.Turn), Events: len(e.Turn.Events), Bytes: e.Bytes,
		UpdatedAt: e.Turn.UpdatedAt, Age: a.age(e).Seconds(), Reason: cmp.Or(e.Damage, e.Turn.Reason),
	}
}

// age is how long a record has been in the spool. That of a damaged one is not
// known.
func (a *app) age(e spool.Entry) time.Duration {
	if e.Turn.UpdatedAt.IsZero() {
		return 0
	}
	return max(0, a.now().Sub(e.Turn.UpdatedAt)).Round(time.Second)
}

func (a *app) runSpoolList(asJSON bool) error {
	entries, err := a.spool().List()
	if err != nil {
		return err
	}
	out := []spooled{}
	for _, e := range entries {
		out = append(out, a.spooled(e))
	}
	if asJSON {
		return a.printJSON(map[string]any{"version": 1, "turns": out})
	}
	if len(out) == 0 {
		fmt.Fprintln(a.stdout, "nothing waits")
	}
	for _, s := range out {
		fmt.Fprintf(a.stdout, "%-11s  %s  %s  %d events, %d bytes, %s old  %s\n",
			s.State, s.UpdatedAt.Local().Format("2006-01-02 15:04"), s.Name, s.Events, s.Bytes, time.Duration(s.Age)*time.Second, s.Key)
		if s.Reason != "" {
			fmt.Fprintln(a.stdout, "             ", s.Reason)
		}
	}
	return nil
}

func newSpoolReplayCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "replay [<record>...]",
		Short: "Deliver now, whatever failed before; quarantined turns too",
		Long: `Deliver all that waits, whatever failed before. Quarantined records are tried
again: all of them, or only those that are named. Exit status 3 if any is left.`,
		RunE: func(c *cobra.Command, names []string) error {
			return a.runSpoolReplay(c.Context(), names)
		},
	}
}

func (a *app) runSpoolReplay(ctx context.Context, names []string) error {
	private()
	s := a.spool()
	before, err := s.List()
	if err != nil {
		return err
	}
	chosen, err := choose(before, names)
	if err != nil {
		return err
	}
	for _, e := range chosen {
		switch {
		case e.State != spool.Quarantined:
		case e.Damage != "" && len(names) > 0:
			return fmt.Errorf("%s cannot be read (%s); 'reme-hook spool export' shows it, 'reme-hook spool drop' deletes it", e.Name, e.Damage)
		case e.Damage == "":
			if err := s.Release(e); err != nil {
				return fmt.Errorf("release %s: %w", e.Name, err)
			}
		}
	}
	err = a.withMemory(ctx, func(m memory) error {
		ran, err := s.DeliverAll(ctx, m)
		if err == nil && !ran {
			return fmt.Errorf("another delivery is running; 'reme-hook spool list' shows what it leaves")
		}
		return err
	})
	if rerr := a.link().Delivered(err, a.now()); err == nil {
		err = rerr
	}
	after, lerr := s.List()
	if err == nil {
		err = lerr
	}
	left := waiting(after)
	fmt.Fprintf(a.stdout, "delivered %d records, %d left\n", max(0, waiting(before)-left), left)
	if err == nil && left > 0 {
		return errNeedsUser
	}
	return err
}

// waiting counts the records that a replay is to deliver.
func waiting(entries []spool.Entry) int { return len(entries) - spool.Count(entries)[spool.Unfinished] }
