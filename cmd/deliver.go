package cmd

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/agentscope-ai/reme-hook/internal/detach"
	"github.com/agentscope-ai/reme-hook/internal/durable"
	"github.com/agentscope-ai/reme-hook/upstream"
	"github.com/agentscope-ai/reme-hook/workspace"
)

const (
	deliverCommand = "deliver"
	// deliverLife bounds the delivery of the detached deliverer; what is left then
	// waits for the next one.
	deliverLife = time.Minute
	// forwardBegin is how long it begins extractions after that, and forwardLife how
	// long it waits for the last ones. Meanwhile others deliver.
	forwardBegin = 15 * time.Minute
	forwardLife  = 26 * time.Minute
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
			time.AfterFunc(deliverLife+forwardLife+time.Minute, func() { os.Exit(exitFailed) })
			// One process delivers and one extracts; all others end at once.
			err := a.alone("deliver.lock", func() error { return a.deliver(context.Background()) })
			return errors.Join(err, a.alone("extract.lock", func() error {
				err := a.tidy()
				if a.config.URL() != "" { // a service at a URL makes its notes itself
					return err
				}
				ctx, cancel := context.WithTimeout(context.Background(), forwardLife)
				defer cancel()
				return errors.Join(err, a.withWorkspace(func(ws *workspace.Workspace) error { return a.extract(ctx, ws) }))
			}))
		},
	}
}

// deliver hands over all that is due.
func (a *app) deliver(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deliverLife)
	defer cancel()
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
	}
	return err
}

// alone does something unless another process is at it.
func (a *app) alone(lock string, do func() error) error {
	unlock, ok, err := durable.TryLock(filepath.Join(a.dir, lock))
	if err != nil || !ok {
		return err
	}
	defer unlock()
	return do()
}

// tidyMark is a file whose time is that of the last tidying; tidyEach is how long it
// lasts.
const (
	tidyMark = "tidied"
	tidyEach = 24 * time.Hour
)

// untidy tells whether it is time to tidy. The first time is a day from now.
func (a *app) untidy() bool {
	st, err := os.Stat(filepath.Join(a.dir, tidyMark))
	if errors.Is(err, fs.ErrNotExist) {
		a.tidied()
	}
	return err == nil && a.now().Sub(st.ModTime()).Abs() > tidyEach
}

func (a *app) tidied() error {
	mark := filepath.Join(a.dir, tidyMark)
	return errors.Join(durable.ReplaceFile(mark, nil), os.Chtimes(mark, time.Time{}, a.now()))
}

// tidy removes what killed processes have left behind, and what is too old to be of
// use.
func (a *app) tidy() error {
	err := errors.Join(durable.SweepAll(a.dir), a.state().Expire(), a.tidied())
	if err != nil {
		a.log().Error("tidy", "err", err)
	}
	return err
}

// due tells whether the deliverer has anything to do beside delivering.
func (a *app) due() bool { return a.untidy() || a.upstream.Due() }

// extract makes the notes that wait: here, and at a ReMe if there is one. It is the
// one place where extraction begins.
func (a *app) extract(ctx context.Context, ws *workspace.Workspace) error {
	log := a.log()
	err := a.upstream.Forward(ctx, ws, upstream.Options{
		Begin: forwardBegin,
		Each:  func(turns int, outcome string) { log.Info("forward", "turns", turns, "outcome", outcome) },
	})
	if errors.Is(err, upstream.ErrBusy) {
		err = nil
	}
	if err != nil {
		log.Error("forward", "err", err)
	}
	return errors.Join(err, ws.Drain(ctx, workspace.Settled))
}
