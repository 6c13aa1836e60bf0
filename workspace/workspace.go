// Package workspace is the memory that works with nothing else installed: a
// [client.Service] on a folder, used in-process by short-lived hooks, many at
// once, and by a server.
//
// # Promises
//
// The files are the truth, in ReMe's own layout and format, so that a real ReMe
// can go on from there: session/dialog/<host>/<key>.jsonl holds what was said,
// one row an event; daily/<date>/*.md holds the notes, daily/<date>.md lists
// them; digest/ belongs to ReMe and is only read. An event is on the disk when
// Append answers, and there once however often it is sent. Rows and notes that
// someone else adds, changes or removes are seen by the next recall; of much that
// is new it sees a part, and in a large workspace no change of an old file in its
// place. Drain sees all.
//
// # What it refuses
//
// It calls no model, opens no port and writes outside its folder never. A note
// or a day index that someone else wrote or edited is not overwritten. A recall
// rather answers nothing than noise, and text it returns is data.
//
// # What survives a crash
//
// Rows are written in one write and synced before they are indexed; a line torn
// by a crash was never acknowledged and is cut off by the next append. The one
// SQLite file in metadata/reme-hook is derived: behind, it catches up from its
// cursor; deleted, it is built again; damaged, it is set aside and built again;
// unusable, appends go on without it and recall makes do with an index in memory.
package workspace

import (
	"cmp"
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// Folders of a workspace, relative to it.
const (
	dialogDir  = "session/dialog"
	dailyDir   = "daily"
	digestDir  = "digest"
	privateDir = "metadata/reme-hook"
)

// ServiceName is what Info names this service.
const ServiceName = "reme-hook workspace"

// Options are what a workspace takes from outside. The zero value is right for
// all but tests.
type Options struct {
	Now      func() time.Time // the clock; nil means time.Now
	Location *time.Location   // the zone in which days begin and dates are told; nil means time.Local
	Version  string           // what Info tells; "" means "dev"
	// Elsewhere is a ReMe that extracts and searches as well; nil means none.
	Elsewhere Elsewhere
}

// Workspace is a memory in a folder. It is safe for concurrent use, also by
// several processes on the same folder.
type Workspace struct {
	dir       string
	now       func() time.Time
	loc       *time.Location
	info      client.Info
	locks     durable.Stripes // one per session
	lines     lines           // of appends
	appending *semaphore.Weighted
	busyWait  time.Duration // for the index
	elsewhere Elsewhere

	// extract makes of a session, which is locked, what is to last of it. It is done
	// again after a crash, and with each turn that comes.
	extract func(ctx context.Context, dialogPath string) error

	behind atomic.Bool // see Behind

	mu     sync.Mutex // guards what follows
	disk   *index
	memory *index // stands in where the index on disk cannot be used
	state  IndexState
	why    string
}

var _ client.Ledger = (*Workspace)(nil)

// Open opens the workspace in dir. It is cheap: nothing is read or made before
// it is needed.
func Open(dir string, opts Options) (*Workspace, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	w := &Workspace{dir: abs, now: opts.Now, loc: opts.Location, elsewhere: opts.Elsewhere, busyWait: busyWait, state: IndexOK, appending: semaphore.NewWeighted(maxAppending)}
	if w.now == nil {
		w.now = time.Now
	}
	w.info = client.Info{Name: ServiceName, Version: cmp.Or(opts.Version, "dev"), APIVersion: client.APIVersion}
	if w.loc == nil {
		w.loc = time.Local
	}
	w.extract = w.writeNotes
	w.locks = durable.Stripes(w.abs(privateDir + "/locks"))
	return w, nil
}

// Close frees the index. Everything that was answered is on the disk already.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var err error
	for _, x := range []**index{&w.disk, &w.memory} {
		if *x != nil {
			err = (*x).db.Close()
			*x = nil
		}
	}
	return err
}

// Info implements [client.Service].
func (w *Workspace) Info(context.Context) (client.Info, error) { return w.info, nil }

// abs returns the place of a path that is relative to the workspace.
func (w *Workspace) abs(rel string) string { return filepath.Join(w.dir, filepath.FromSlash(rel)) }

// dialogPath is where the rows of a session are.
func dialogPath(s client.Session) string {
	return dialogDir + "/" + string(s.Host) + "/" + string(s.Key()) + ".jsonl"
}

// day is the local date of a moment.
func (w *Workspace) day(t time.Time) string { return t.In(w.loc).Format(time.DateOnly) }
