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
	ws, err := a.workspace()
	if err == nil {
		defer ws.Close()
		var ran bool
		ran, err = a.spool().DeliverAll(ctx, ws)
		if !ran {
			return err
		}
	}
	if err := a.backoff().Record(err, a.now()); err != nil {
		return err
	}
	if err != nil {
		a.log().Error("deliver", "err", err)
		return err
	}
	return ws.Drain(ctx, workspace.Settled)
}
