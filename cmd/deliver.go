package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/internal/detach"
	"github.com/agentscope-ai/reme-hook/workspace"
)

const (
	deliverCommand = "deliver"
	// deliverLife bounds the detached deliverer; what is left then waits for the
	// next one.
	deliverLife = time.Minute
)

func newDeliverCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    deliverCommand,
		Short:  "Deliver waiting turns in the background (started by hooks)",
		Hidden: true,
		Args:   args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if detach.Between([]string{deliverCommand}) {
				return nil
			}
			private()
			ctx, cancel := context.WithTimeout(context.Background(), deliverLife)
			defer cancel()
			return a.deliver(ctx)
		},
	}
}

// deliver hands over all that is due, then writes the notes that wait.
func (a *app) deliver(ctx context.Context) error {
	m, err := a.memory()
	if err == nil {
		defer m.Close()
		err = a.meet(ctx, m)
	}
	if err == nil {
		var ran bool
		ran, err = a.spool().DeliverAll(ctx, m)
		if !ran {
			return err
		}
	}
	if err := a.link().Delivered(err, a.now()); err != nil {
		return err
	}
	if err != nil {
		a.log().Error("deliver", "err", err)
		return err
	}
	return m.Drain(ctx, workspace.Settled)
}
