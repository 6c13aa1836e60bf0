package spool

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/agentscope-ai/reme-hook/internal/crash"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

func (s Spool) path(e Entry) string {
	dir := s.pending(e.Key)
	if e.State == Quarantined {
		dir = s.quarantine(e.Key)
	}
	return filepath.Join(dir, e.Name)
}

// Raw returns a record's bytes as they lie on the disk, damaged ones too.
func (s Spool) Raw(e Entry) ([]byte, error) { return os.ReadFile(s.path(e)) }

// Release puts a quarantined record to the end of its session's pending ones. If
// it is interrupted, the record is in both places, and delivering it twice does
// no harm. One that cannot be read stays where it is.
func (s Spool) Release(e Entry) error {
	if e.Damage != "" {
		return errors.New(e.Damage)
	}
	t := e.Turn
	t.Reason = ""
	if err := s.Put(t); err != nil {
		return err
	}
	crash.Point("release.put")
	return s.remove(e)
}

func (s Spool) remove(e Entry) error {
	path := s.path(e)
	if err := os.Remove(path); err != nil {
		return err
	}
	os.Remove(filepath.Dir(path)) // stays if another record is in it
	return nil
}

// Drop deletes a record for good. It waits for a delivery of the session to end,
// until ctx does.
func (s Spool) Drop(ctx context.Context, e Entry) error {
	unlock, err := s.lockDelivery(ctx, e.Key)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.remove(e); err != nil {
		return err
	}
	crash.Point("drop.removed")
	return durable.SyncDir(filepath.Dir(filepath.Dir(s.path(e))))
}
