package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"unicode/utf8"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/crash"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// maxAppending is how many sessions are appended to at once in one process. Each may
// hold a thread that waits for a lock.
const maxAppending = 16

// Append implements [client.Service]. Events without anything to be seen in
// them are filtered; of two events with one id the first is kept.
func (w *Workspace) Append(ctx context.Context, req client.AppendRequest) (client.AppendResult, error) {
	if err := validate(req); err != nil {
		return client.AppendResult{}, err
	}
	p := w.pending(req)
	if !w.lines.join(p) {
		select {
		case <-p.done:
			return p.result()
		case <-p.lead:
		case <-ctx.Done():
			if w.lines.leave(p) {
				return client.AppendResult{}, storeError("wait for the session", ctx.Err())
			}
			<-p.done
			return p.result()
		}
	}
	unlock, err := w.lockToAppend(ctx, req.Key())
	if err != nil {
		w.lines.leave(p)
		return client.AppendResult{}, storeError("lock session", err)
	}
	w.appendAll(ctx, w.lines.take(p), unlock)
	return p.result()
}

// pending makes of a request what is to be stored of it.
func (w *Workspace) pending(req client.AppendRequest) *pending {
	p := &pending{req: req}
	for _, e := range req.Events {
		p.res.EventIDs = append(p.res.EventIDs, e.ID)
		if isBlank(e.Content) {
			p.res.Filtered++
			continue
		}
		if e.CreatedAt.IsZero() {
			e.CreatedAt = w.now()
		}
		p.events = append(p.events, e)
	}
	return p
}

// rows adds the rows of the events that are not held, which they are then.
func (p *pending) rows(rows []byte, held map[int64]bool) ([]byte, error) {
	for _, e := range p.events {
		h := idHash(string(e.ID))
		if held[h] {
			p.res.Duplicate++
			continue
		}
		held[h] = true
		p.res.Appended++
		var err error
		if rows, err = appendRow(rows, p.req.Session, p.req.Cwd, e); err != nil {
			return nil, &client.Error{Class: client.Permanent, Field: "events", Reason: "cannot be encoded", Err: err}
		}
	}
	return rows, nil
}

func (p *pending) result() (client.AppendResult, error) {
	if p.err != nil {
		return client.AppendResult{}, p.err
	}
	return p.res, nil
}

// lockToAppend takes a session's lock when it is not too busy.
func (w *Workspace) lockToAppend(ctx context.Context, key client.SessionKey) (unlock func(), err error) {
	if err := w.appending.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	free, err := w.locks.Lock(ctx, string(key))
	if err != nil {
		w.appending.Release(1)
		return nil, err
	}
	return func() { free(); w.appending.Release(1) }, nil
}

// appendAll does the appends that were taken from the line of a session, which is
// locked.
func (w *Workspace) appendAll(ctx context.Context, together []*pending, unlock func()) {
	defer w.lines.finish(together) // whatever happens
	defer unlock()
	err := w.appendLocked(ctx, together)
	for _, p := range together {
		p.err = err
	}
}

// appendLocked stores the events of all of them or fails for all.
func (w *Workspace) appendLocked(ctx context.Context, together []*pending) error {
	var ids []client.EventID
	for _, p := range together {
		for _, e := range p.events {
			ids = append(ids, e.ID)
		}
	}
	session := together[0].req.Session
	d, err := w.openDialog(dialogPath(session), len(ids) > 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing to store and nothing stored before
	}
	if err != nil {
		return storeError("open dialog", err)
	}
	defer d.Close()

	held, total, indexed, err := w.held(ctx, d, ids)
	if err != nil {
		return storeError("read dialog", err)
	}
	var rows []byte
	duplicate := false
	for _, p := range together {
		if rows, err = p.rows(rows, held); err != nil {
			return err
		}
		duplicate = duplicate || p.res.Duplicate > 0
		total += p.res.Appended
		p.res.Total = total
	}
	if len(rows) == 0 {
		if duplicate {
			// Whoever wrote them may have been killed before they were synced.
			if err := d.sync(); err != nil {
				return storeError("sync dialog", err)
			}
		}
		return nil
	}
	if err := d.add(rows); err != nil {
		return storeError("write dialog", err)
	}
	if err := d.sync(); err != nil {
		return storeError("sync dialog", err)
	}
	crash.Point("append.synced")
	if indexed {
		w.changed(ctx, d.path, d.made)
	}
	crash.Point("append.indexed")
	return nil
}

func validate(req client.AppendRequest) error {
	if err := validateSession(req.Session); err != nil {
		return err
	}
	refuse := func(i int, field, reason string) error {
		return &client.Error{Class: client.Permanent, Field: fmt.Sprintf("events[%d].%s", i, field), Reason: reason}
	}
	for i, e := range req.Events {
		switch {
		case e.ID == "":
			return refuse(i, "event_id", "must not be empty")
		case len(e.ID) > 1024 || !utf8.ValidString(string(e.ID)):
			return refuse(i, "event_id", "must be UTF-8 of at most 1024 bytes")
		case e.Role != client.User && e.Role != client.Assistant:
			return refuse(i, "role", "must be user or assistant")
		case len(e.Content) > maxContent:
			return refuse(i, "content", "must be at most 16 MiB")
		}
	}
	return nil
}

// maxContent keeps a row below maxRow, even if each byte needs an escape of six.
const maxContent = 16 << 20

// validateSession also keeps the host fit to name a folder.
func validateSession(s client.Session) error {
	if err := s.Validate(); err != nil {
		return err
	}
	for i, r := range string(s.Host) {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if i >= 64 || !letter && (i == 0 || r != '-' && r != '_') {
			return &client.Error{Class: client.Permanent, Field: "host", Reason: "must be at most 64 letters, digits, - and _"}
		}
	}
	return nil
}

// storeError gives a failure of the file system its class.
func storeError(doing string, err error) error {
	class := client.Retryable
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		class = client.Configuration
	}
	return &client.Error{Class: class, Reason: doing, Err: err}
}

// dialogFile is a dialog file whose session is locked and whose last line ends
// with a newline.
type dialogFile struct {
	*os.File
	path  string
	size  int64
	known string // the folder nearest to the file that was there before it
	made  change // of the folders, if the file was not there
}

// openDialog opens the file at a relative path, if make is set also one that is
// not there, and repairs its end.
func (w *Workspace) openDialog(path string, make bool) (*dialogFile, error) {
	d := &dialogFile{path: path}
	abs := w.abs(path)
	if err := crash.Fault("rows.open"); err != nil {
		return nil, err
	}
	var err error
	d.File, err = os.OpenFile(abs, os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) && make {
		d.made = w.changing(path)
		for d.known = filepath.Dir(abs); ; d.known = filepath.Dir(d.known) {
			if _, err := os.Stat(d.known); err == nil || d.known == filepath.Dir(d.known) {
				break
			}
		}
		if err := durable.MkdirAll(filepath.Dir(abs)); err != nil {
			return nil, err
		}
		if d.File, err = os.OpenFile(abs, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600); err == nil {
			err = d.Chmod(0o600)
		}
	}
	if err != nil {
		return nil, err
	}
	st, err := d.Stat()
	if err == nil {
		d.size = st.Size()
		err = d.repair()
	}
	if err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

// repair ends a last line that has no newline: a whole row gets it, a torn one
// was never acknowledged and is cut off.
func (d *dialogFile) repair() error {
	if d.size == 0 {
		return nil
	}
	var last [1]byte
	if _, err := d.ReadAt(last[:], d.size-1); err != nil || last[0] == '\n' {
		return err
	}
	start, err := lastLineStart(d, d.size)
	if err != nil {
		return err
	}
	if d.size-start <= maxRow {
		line := make([]byte, d.size-start)
		if _, err := d.ReadAt(line, start); err != nil {
			return err
		}
		if isObject(line) {
			_, err := d.Write([]byte("\n"))
			d.size++
			return err
		}
	}
	d.size = start
	return d.Truncate(start)
}

// lastLineStart looks backwards from size for the byte after a newline.
func lastLineStart(f io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for end := size; end > 0; {
		n := min(end, int64(len(buf)))
		if _, err := f.ReadAt(buf[:n], end-n); err != nil {
			return 0, err
		}
		for i := n - 1; i >= 0; i-- {
			if buf[i] == '\n' {
				return end - n + i + 1, nil
			}
		}
		end -= n
	}
	return 0, nil
}

// add appends rows. What a full disk leaves of them is taken back.
func (d *dialogFile) add(rows []byte) error {
	err := crash.Fault("rows.write")
	if err == nil {
		_, err = d.Write(rows)
	}
	if err != nil {
		return errors.Join(err, d.Truncate(d.size))
	}
	crash.Point("append.written")
	return nil
}

// sync makes the file durable, and the names that were made with it.
func (d *dialogFile) sync() error {
	if err := crash.Fault("rows.sync"); err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		return err
	}
	for _, dir := range d.folders() {
		if err := durable.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// folders are those in which names were made with the file.
func (d *dialogFile) folders() (dirs []string) {
	if d.known == "" {
		return nil
	}
	for dir := filepath.Dir(d.Name()); ; dir = filepath.Dir(dir) {
		if dirs = append(dirs, dir); dir == d.known {
			return dirs
		}
	}
}

// held returns the hashes of those ids that the file has, and the number of its
// events, from the index if that can be used and else from the file itself.
func (w *Workspace) held(ctx context.Context, d *dialogFile, ids []client.EventID) (held map[int64]bool, total int, indexed bool, err error) {
	if d.size == 0 {
		return map[int64]bool{}, 0, true, nil
	}
	st, err := d.Stat()
	if err != nil {
		return nil, 0, false, err
	}
	err = w.use(ctx, func(x *index) error {
		var id, mtime, cursor int64
		const state = "SELECT id, mtime, cursor, events FROM files WHERE path=?"
		err := x.db.QueryRowContext(ctx, state, d.path).Scan(&id, &mtime, &cursor, &total)
		if err != nil || mtime != st.ModTime().UnixNano() || cursor != d.size {
			if err := w.indexFiles(ctx, x, d.path); err != nil {
				return err
			}
			if err := x.db.QueryRowContext(ctx, state, d.path).Scan(&id, &mtime, &cursor, &total); err != nil {
				return err
			}
		}
		held, err = x.held(ctx, id, ids)
		return err
	})
	if err == nil {
		return held, total, true, nil
	}
	held, total, err = scanIDs(d, d.size)
	return held, total, false, err
}

func scanIDs(f io.ReaderAt, size int64) (held map[int64]bool, total int, err error) {
	held = map[int64]bool{}
	_, err = scanLines(f, 0, size, func(line []byte, _, _ int64) bool {
		if id, ok := rowID(line); ok && (id == "" || !held[idHash(id)]) {
			total++
			if id != "" {
				held[idHash(id)] = true
			}
		}
		return true
	})
	return held, total, err
}
