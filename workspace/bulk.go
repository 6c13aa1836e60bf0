package workspace

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sync/errgroup"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/crash"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// maxSyncing is how many files are synced at once: the disk makes one of many syncs.
const maxSyncing = 64

// AppendAll is Append for much that is old. All of it is durable when AppendAll
// returns without an error, and so is all that was in the sessions before, also of
// requests without events. It is left to the next Drain to index it and to queue the
// sessions; a recall sees it before that as it sees what others write.
func (w *Workspace) AppendAll(ctx context.Context, reqs []client.AppendRequest) (err error) {
	for _, req := range reqs {
		if err := validate(req); err != nil {
			return err
		}
	}
	var files []*dialogFile
	defer func() {
		for _, d := range files {
			err = errors.Join(err, d.Close())
		}
	}()
	for _, req := range reqs {
		d, err := w.addRows(ctx, req)
		if err != nil {
			return err
		}
		if d != nil {
			files = append(files, d)
		}
	}
	crash.Point("bulk.written")
	if err := syncAll(files); err != nil {
		return storeError("sync dialogs", err)
	}
	crash.Point("bulk.synced")
	return nil
}

// addRows writes those of the events that the file of their session lacks. It returns
// the file, which is to be synced, or nil if there is none.
func (w *Workspace) addRows(ctx context.Context, req client.AppendRequest) (d *dialogFile, err error) {
	unlock, err := w.lockToAppend(ctx, req.Key())
	if err != nil {
		return nil, storeError("lock session", err)
	}
	defer unlock()
	d, err = w.openDialog(dialogPath(req.Session), len(req.Events) > 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, storeError("open dialog", err)
	}
	defer func() {
		if err != nil {
			d.Close()
			d = nil
		}
	}()
	if len(req.Events) == 0 {
		return d, nil
	}
	held, _, err := scanIDs(d, d.size)
	if err != nil {
		return d, storeError("read dialog", err)
	}
	rows, err := w.pending(req).rows(nil, held)
	if err != nil {
		return d, err
	}
	if err := d.add(rows); err != nil {
		return d, storeError("write dialog", err)
	}
	return d, nil
}

// syncAll makes files durable, and the names that were made with them.
func syncAll(files []*dialogFile) error {
	var all errgroup.Group
	all.SetLimit(maxSyncing)
	for _, d := range files {
		all.Go(d.Sync)
	}
	if err := all.Wait(); err != nil {
		return err
	}
	synced := map[string]bool{}
	for _, d := range files {
		for _, dir := range d.folders() {
			if synced[dir] {
				continue
			}
			synced[dir] = true
			if err := durable.SyncDir(dir); err != nil {
				return err
			}
		}
	}
	return nil
}
