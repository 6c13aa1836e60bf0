package ingest

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/agentscope-ai/reme-hook/hooks"
)

const (
	// gather is how long changes are gathered before the logs are looked at.
	gather = 300 * time.Millisecond
	// look is how often they are looked at without any notice of a change: for what
	// the system does not tell, as on network file systems.
	look = time.Minute
)

// Watch brings in what the logs of hosts get, until ctx ends, and tells of each
// look that found something. Logs that are there when the first watch or backfill
// of a host begins are passed over up to their end.
func (in *Ingester) Watch(ctx context.Context, hosts []*hooks.Adapter, told func(Report)) error {
	notices, err := newNotices(hosts)
	if err != nil {
		return err
	}
	defer notices.close()
	for _, h := range hosts {
		if _, err := os.Stat(in.file(h.Host)); err != nil {
			if _, err := in.Run(ctx, h, Options{Write: true, follow: true, pass: true}); err != nil {
				return ended(ctx, err)
			}
		}
	}
	for {
		for _, h := range hosts {
			r, err := in.Run(ctx, h, Options{Write: true, follow: true})
			if err != nil {
				return ended(ctx, err)
			}
			if r.Missing.Turns > 0 || len(r.Problems) > 0 {
				told(r)
			}
		}
		if !notices.wait(ctx) {
			return nil
		}
	}
}

// ended is nil if the user ended it.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// notices tell when something changes below the places of hosts.
type notices struct {
	*fsnotify.Watcher
	places []string
}

func newNotices(hosts []*hooks.Adapter) (*notices, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	n := &notices{Watcher: w}
	for _, h := range hosts {
		n.places = append(n.places, h.Logs.Places()...)
	}
	for _, place := range n.places {
		n.addAll(place)
	}
	return n, nil
}

// addAll watches a folder and all below it, as many as the system lets us; the
// rest is looked at from time to time.
func (n *notices) addAll(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case d.IsDir():
			return n.Add(path)
		case path == dir: // a place can be a file
			return n.Add(filepath.Dir(path))
		}
		return nil
	})
}

// wait returns when something has changed, or from time to time. It is false if
// ctx has ended.
func (n *notices) wait(ctx context.Context) bool {
	var due <-chan time.Time
	idle := time.After(look)
	for {
		select {
		case <-ctx.Done():
			return false
		case <-due:
			return true
		case <-idle:
			for _, place := range n.places {
				n.addAll(place) // it may have come meanwhile
			}
			return true
		case e := <-n.Events:
			if strings.HasSuffix(e.Name, "-shm") {
				continue // where readers of a database, too, say what they look at
			}
			if e.Has(fsnotify.Create) {
				n.addAll(e.Name)
			}
			if due == nil {
				due = time.After(gather)
			}
		case <-n.Errors: // too many at once: the next look finds all
		}
	}
}

func (n *notices) close() { _ = n.Watcher.Close() }
