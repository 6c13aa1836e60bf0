package cmd

import (
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
	c.AddCommand(newSpoolListCommand(a), newSpoolReplayCommand(a))
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
	Reason    string      `json:"reason,omitempty"`
}

func (a *app) runSpoolList(asJSON bool) error {
	entries, err := a.spool().List()
	if err != nil {
		return err
	}
	out := []spooled{}
	for _, e := range entries {
		s := spooled{e.State, string(e.Key), e.Name, string(e.Turn.Turn), len(e.Turn.Events), e.Bytes, e.Turn.UpdatedAt, e.Turn.Reason}
		if e.Damage != "" {
			s.Reason = e.Damage
		}
		out = append(out, s)
	}
	if asJSON {
		return a.printJSON(map[string]any{"version": 1, "turns": out})
	}
	if len(out) == 0 {
		fmt.Fprintln(a.stdout, "nothing waits")
	}
	for _, s := range out {
		fmt.Fprintf(a.stdout, "%-11s  %s  %s  %d events, %d bytes  %s\n", s.State, s.UpdatedAt.Local().Format("2006-01-02 15:04"), s.Name, s.Events, s.Bytes, s.Key)
		if s.Reason != "" {
			fmt.Fprintln(a.stdout, "             ", s.Reason)
		}
	}
	return nil
}

func newSpoolReplayCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "replay",
		Short: "Deliver now, whatever failed before; quarantined turns too",
		Args:  args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.runSpoolReplay(c.Context())
		},
	}
}

func (a *app) runSpoolReplay(ctx context.Context) error {
	private()
	s := a.spool()
	before, err := s.List()
	if err != nil {
		return err
	}
	released := map[string]bool{}
	for _, e := range before {
		if e.State == spool.Quarantined && !released[string(e.Key)] {
			released[string(e.Key)] = true
			if err := s.Release(e.Key); err != nil {
				return err
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
