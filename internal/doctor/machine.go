package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agentscope-ai/reme-hook/internal/durable"
)

const (
	// lowSpace is how much space, in bytes, must be left for turns and the index.
	lowSpace = 200 << 20
	// ahead is how far in the future a time of ours must lie to tell of a clock that
	// was set back.
	ahead = 2 * time.Hour
	// leftFor is how old a temporary file must be to be nobody's any more.
	leftFor = time.Hour
	// maxFiles bounds the files that are looked at.
	maxFiles = 50_000
)

// machine looks at what the memory stands on: files, space, the clock.
func (d Doctor) machine(hosts []Host) []Finding {
	out := d.folder()
	for _, f := range []func() (Finding, bool){d.modes, d.space, func() (Finding, bool) { return d.leftovers(hosts) }, func() (Finding, bool) { return d.clock(hosts) }} {
		if f, ok := f(); ok {
			out = append(out, f)
		}
	}
	return out
}

// folder looks whether hooks can write where they have to, and lock.
func (d Doctor) folder() []Finding {
	dirs := []string{d.Env.IntegrationsDir, d.State.Dir, d.Spool.Dir, filepath.Dir(d.Log)}
	if d.Config.URL() == "" {
		dirs = append(dirs, d.Config.Workspace, filepath.Join(d.Config.Workspace, "session", "dialog"))
	}
	var out []Finding
	for _, dir := range dirs {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			continue // the first hook makes it
		}
		f, err := os.CreateTemp(dir, ".reme-hook-*.tmp") // as [durable.Temporary] has it
		if err != nil {
			out = append(out, problem("unwritable", fmt.Sprintf("nothing can be written to %s: %v", dir, err), "make it a folder that you can write to"))
			continue
		}
		f.Close()
		unlock, _, err := durable.TryLock(f.Name())
		if err != nil {
			out = append(out, problem("no-locks", fmt.Sprintf("files in %s cannot be locked (%v): what is said waits in the spool, and prompts get no memories", dir, err),
				"mount it with locks, or set REME_INTEGRATIONS_DIR and REME_WORKSPACE to folders on a disk of this machine"))
		} else {
			unlock()
		}
		os.Remove(f.Name())
	}
	return out
}

// own calls do for each file and folder of ours.
func (d Doctor) own(do func(path string, st fs.FileInfo)) {
	n := 0
	_ = filepath.WalkDir(d.Env.IntegrationsDir, func(path string, e fs.DirEntry, err error) error {
		if n++; n > maxFiles {
			return filepath.SkipAll
		}
		if err != nil {
			return nil // reported where it is needed
		}
		if st, err := e.Info(); err == nil {
			do(path, st)
		}
		return nil
	})
}

// modes looks whether others can read what was said.
func (d Doctor) modes() (Finding, bool) {
	if filepath.Separator != '/' {
		return Finding{}, false // Windows has no modes
	}
	var open []string
	look := func(path string, st fs.FileInfo) {
		if st.Mode()&fs.ModeSymlink == 0 && st.Mode().Perm()&0o077 != 0 {
			open = append(open, path)
		}
	}
	d.own(look)
	if len(open) == 0 {
		return Finding{}, false
	}
	what := open[0] + " can be read by others"
	if len(open) > 1 {
		what = fmt.Sprintf("%s and %d more can be read by others", open[0], len(open)-1)
	}
	return problem("modes", what, "chmod -R go-rwx "+d.Env.IntegrationsDir).with(&mend{
		fmt.Sprintf("took the rights of others from %d files and folders in %s", len(open), d.Env.IntegrationsDir),
		func(context.Context) error {
			var failed error
			d.own(func(path string, st fs.FileInfo) {
				if st.Mode()&fs.ModeSymlink == 0 && st.Mode().Perm()&0o077 != 0 {
					failed = errors.Join(failed, os.Chmod(path, st.Mode().Perm()&^0o077))
				}
			})
			return failed
		},
	}), true
}

// leftovers looks for files that processes left when they were killed. Of ours,
// the deliverer takes them away once a day.
func (d Doctor) leftovers(hosts []Host) (Finding, bool) {
	old := func(st fs.FileInfo) bool { return d.Now().Sub(st.ModTime()) > leftFor }
	var left, folders []string // whole folders to remove, and folders to sweep
	n := 0
	found := ""
	see := func(path string) { n, found = n+1, cmp.Or(found, path) }
	d.own(func(path string, st fs.FileInfo) {
		if name := filepath.Base(path); st.Mode().IsRegular() && (durable.Temporary(name) || name == "reme-hook.exe.old") && old(st) {
			see(path)
			if folders = append(folders, filepath.Dir(path)); !durable.Temporary(name) {
				left = append(left, path)
			}
		}
	})
	for _, h := range hosts {
		files, _ := h.Target.Files(d.Env, d.Options)
		for _, f := range files {
			dir := filepath.Dir(f.Path)
			if slices.Contains(folders, dir) {
				continue
			}
			entries, _ := os.ReadDir(dir)
			for _, e := range entries {
				if st, err := e.Info(); err == nil && st.Mode().IsRegular() && durable.Temporary(e.Name()) && old(st) {
					see(filepath.Join(dir, e.Name()))
					folders = append(folders, dir)
				}
			}
		}
	}
	probes, _ := os.ReadDir(d.Temp)
	for _, e := range probes {
		if st, err := e.Info(); err == nil && st.IsDir() && strings.HasPrefix(e.Name(), probePattern) && old(st) {
			path := filepath.Join(d.Temp, e.Name())
			see(path)
			left = append(left, path)
		}
	}
	if n == 0 {
		return Finding{}, false
	}
	return note("leftovers", count(n, "temporary file")+" that nobody uses any more, such as "+found, "reme-hook doctor --fix").with(&mend{
		"removed " + count(n, "temporary file"),
		func(context.Context) error {
			var failed error
			for _, dir := range folders {
				failed = errors.Join(failed, durable.Sweep(dir))
			}
			for _, path := range left {
				failed = errors.Join(failed, os.RemoveAll(path))
			}
			return failed
		},
	}), true
}

func (d Doctor) space() (Finding, bool) {
	for _, path := range []string{d.Env.IntegrationsDir, d.Config.Workspace} {
		if free, err := d.Free(existing(path)); err == nil && free < lowSpace {
			return problem("disk", fmt.Sprintf("only %d MB are left where %s is: turns may not find room", free>>20, path), "make room there"), true
		}
	}
	return Finding{}, false
}

// existing is the innermost folder of a path that is there.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// clock looks for times of ours that are still to come.
func (d Doctor) clock(hosts []Host) (Finding, bool) {
	latest := d.Link.Load().Delivery.At
	see := func(t time.Time) {
		if t.After(latest) {
			latest = t
		}
	}
	if entries, err := d.Spool.List(); err == nil {
		for _, e := range entries {
			see(e.Turn.UpdatedAt)
		}
	}
	for _, h := range hosts {
		if s, ok, err := d.State.Last(h.Adapter.Host); err == nil && ok {
			see(s.UpdatedAt)
		}
	}
	if latest.Before(d.Now().Add(ahead)) {
		return Finding{}, false
	}
	return problem("clock", fmt.Sprintf("the clock says %s, but a hook ran at %s already", d.Now().UTC().Format(time.DateTime), latest.UTC().Format(time.DateTime)),
		"set the clock; if it was wrong before, this passes by itself"), true
}

// portWait bounds the question to who listens where serve would.
const portWait = 500 * time.Millisecond

// port looks for another program where serve would listen.
func (d Doctor) port(ctx context.Context) []Finding {
	ctx, cancel := context.WithTimeout(ctx, portWait)
	defer cancel()
	var somebody atomic.Bool
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		somebody.Store(err == nil)
		return c, err
	}
	c := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.Config.Listen+"/healthz", nil)
	if err != nil {
		return nil
	}
	res, err := c.Do(req)
	if !somebody.Load() {
		return nil
	}
	if err == nil {
		defer res.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		var health struct {
			Answer  string `json:"answer"`
			Success bool   `json:"success"`
		}
		if json.Unmarshal(body, &health) == nil && health.Success && health.Answer == "ok" || strings.Contains(string(body), "HTTP request to an HTTPS server") {
			return nil // ours, perhaps with --tls-cert
		}
	}
	return []Finding{note("port", "another program listens on "+d.Config.Listen+", where `reme-hook serve` would", "to run serve, name another address as `listen`")}
}
