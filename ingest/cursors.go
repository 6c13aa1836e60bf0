package ingest

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/internal/crash"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// cursorVersion is the version of the file format.
const cursorVersion = 1

// checkpoint is how often the cursors are saved.
const checkpoint = 5 * time.Second

// cursors are up to where the logs of a host were read.
type cursors struct {
	path  string
	now   func() time.Time
	saved time.Time
	whole bool // saved at the end or not at all

	Version int              `json:"version"`
	Logs    map[string]place `json:"logs"` // by path and session
}

// place is up to where a log was read, and what it was like then.
type place struct {
	Cursor   string    `json:"cursor"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	Passed   bool      `json:"passed,omitempty"` // its beginning was not brought in
}

func (in *Ingester) file(h client.Host) string { return filepath.Join(in.Dir, h.Slug()+".json") }

// lock keeps two backfills of a host from losing each other's cursors.
func (in *Ingester) lock(ctx context.Context, h client.Host) (unlock func(), err error) {
	if err := durable.MkdirAll(in.Dir); err != nil {
		return nil, err
	}
	return durable.Lock(ctx, in.file(h)+".lock")
}

// loadCursors reads those of a host. A file that is missing or damaged is no
// error: all is read again, to no effect.
func (in *Ingester) loadCursors(h client.Host) *cursors {
	c := &cursors{path: in.file(h), now: in.Now, saved: in.Now()}
	raw, err := os.ReadFile(c.path)
	if err != nil || json.Unmarshal(raw, c) != nil || c.Version != cursorVersion || c.Logs == nil {
		c.Version, c.Logs = cursorVersion, map[string]place{}
	}
	return c
}

// key names a log as it is listed: by its path, and by its session where a file
// has several.
func key(l hooks.Log) string { return l.Path + "\x00" + l.Session.Scope + "\x00" + l.Session.ID }

// unchanged tells whether a log is as it was when it was read.
func (c *cursors) unchanged(key string, l hooks.Log) bool {
	p, ok := c.Logs[key]
	return ok && p.Size == l.Size && p.Modified.Equal(l.Modified)
}

func (c *cursors) put(key string, l hooks.Log, cursor string, passed bool) error {
	c.Logs[key] = place{cursor, l.Size, l.Modified, passed}
	if c.whole || c.now().Sub(c.saved) < checkpoint {
		return nil
	}
	return c.save()
}

func (c *cursors) save() error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := durable.ReplaceFile(c.path, raw); err != nil {
		return err
	}
	c.saved = c.now()
	crash.Point("ingest.saved")
	return nil
}
