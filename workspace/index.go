package workspace

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/agentscope-ai/reme-hook/internal/crash"
	"github.com/agentscope-ai/reme-hook/internal/durable"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// schemaVersion is raised when the schema or the segmentation changes; an index
// of another version is built again.
const schemaVersion = 4

// The index. A doc is what recall can return: a turn, or a stretch of a note.
// Its terms are a set without positions (detail=none) and its text is not kept
// (contentless), because scores are made of which terms a doc has and snippets
// are read from the file: 100,000 docs of 150 words take 21 MB, with positions
// 50, with the text as well 131. contentless_delete lets a growing turn replace
// its doc. The words as they are spelt are there for the queries that misspell
// one; none is ever taken out.
const schema = `
CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE files(
	id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, kind INTEGER NOT NULL, key TEXT NOT NULL,
	size INTEGER NOT NULL, mtime INTEGER NOT NULL,
	cursor INTEGER NOT NULL, lines INTEGER NOT NULL, tail INTEGER NOT NULL, open TEXT NOT NULL,
	host TEXT NOT NULL, scope TEXT NOT NULL, session TEXT NOT NULL, cwd TEXT NOT NULL, title TEXT NOT NULL,
	events INTEGER NOT NULL, turns INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE INDEX files_mtime ON files(mtime);
CREATE INDEX files_key ON files(key);
CREATE INDEX files_cwd ON files(cwd, last);
CREATE INDEX files_folder ON files(` + folderOf + `);
CREATE TABLE folders(path TEXT PRIMARY KEY, mtime INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE events(file INTEGER NOT NULL, id INTEGER NOT NULL, PRIMARY KEY(file, id)) WITHOUT ROWID;
CREATE TABLE docs(
	id INTEGER PRIMARY KEY, file INTEGER NOT NULL, turn TEXT NOT NULL, spans TEXT NOT NULL,
	at INTEGER NOT NULL, cwd TEXT NOT NULL, UNIQUE(file, turn));
CREATE TABLE words(word TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE queue(key TEXT PRIMARY KEY, path TEXT NOT NULL, ended INTEGER NOT NULL, failures INTEGER NOT NULL, due INTEGER NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE terms USING fts5(text, content='', contentless_delete=1, detail=none,
	tokenize="ascii tokenchars '_-./\:@'''");
`

// folderOf is the folder of a path with the slash after it: what is left when all
// other characters are taken off its end.
const folderOf = "rtrim(path, replace(path, '/', ''))"

// IndexState says how the derived index is.
type IndexState string

// The states of the index.
const (
	IndexOK          IndexState = "ok"
	IndexRebuilt     IndexState = "rebuilt"     // it was missing or damaged and has been made anew by this Workspace
	IndexUnavailable IndexState = "unavailable" // it cannot be used; an index in memory stands in for it
)

// index is an open index. It has one connection: a hook needs no more, and a
// server spends its time in other places.
type index struct {
	db   *sql.DB
	file fs.FileInfo   // nil in memory
	wait time.Duration // for the write lock
	turn string        // the lock of the line for it
}

// query is for what is answered in no time.
func (x *index) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return quick(ctx, x.db.QueryContext, query, args)
}

// quick asks without a context that may end: that would cost a goroutine for each
// query, and to wake a thread for it takes longer than most of them.
func quick(ctx context.Context, ask func(context.Context, string, ...any) (*sql.Rows, error), query string, args []any) (*sql.Rows, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return ask(context.WithoutCancel(ctx), query, args...)
}

// keptDamaged is how many damaged indexes are kept for a look at the cause.
const keptDamaged = 2

const indexLock = privateDir + "/locks/index.lock"

func (w *Workspace) indexPath() string { return w.abs(privateDir + "/index.sqlite") }

// use runs fn with the index on disk. A damaged index is set aside and fn runs
// again with a new one.
func (w *Workspace) use(ctx context.Context, fn func(*index) error) error {
	for try := 0; ; try++ {
		var x *index
		opened := false
		err := w.guarded(func() (err error) {
			if x, err = w.open(ctx); err == nil {
				opened = true
				err = fn(x)
			}
			return err
		})
		if err == nil || opened && ctx.Err() != nil {
			w.usable()
			return err
		}
		if !isDamaged(err) || try == 2 {
			if isUnusable(err) {
				w.setState(IndexUnavailable, err.Error())
			}
			return err
		}
		if err := w.setAside(ctx, x); err != nil {
			w.setState(IndexUnavailable, err.Error())
			return err
		}
	}
}

// guarded runs fn, which reads the index. What it reads is mapped, so a disk that
// fails and a file that someone else cuts short are no errors but faults; without
// this they would end the process.
func (w *Workspace) guarded(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if _, fault := p.(interface{ Addr() uintptr }); !fault {
			panic(p)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.disk = nil // what SQLite holds of it is held for good
		err = errFault
	}()
	return fn()
}

func (w *Workspace) usable() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == IndexUnavailable {
		w.state, w.why = IndexOK, ""
	}
}

func (w *Workspace) setState(s IndexState, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state, w.why = s, why
}

// isDamaged tells errors that a new index cures.
func isDamaged(err error) bool {
	if errors.Is(err, errSchema) || errors.Is(err, errPostings) {
		return true
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR:
		return true
	}
	return e.Code() == sqlite3.SQLITE_IOERR_SHORT_READ
}

var (
	errSchema = errors.New("the index has another version")
	errFault  = errors.New("the index cannot be read where it should be")
)

func isUnusable(err error) bool {
	return err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// open returns the index on disk, which is made if it is not there, and opened
// anew if another process has put a new one in its place.
func (w *Workspace) open(ctx context.Context) (*index, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	path := w.indexPath()
	st, err := os.Stat(path)
	if x := w.disk; x != nil {
		if err == nil && os.SameFile(st, x.file) {
			return x, nil
		}
		w.disk = nil
		_ = x.db.Close()
	}
	var x *index
	if err == nil && st.Size() > 0 {
		x, err = w.openIndex(ctx)
	} else {
		x, err = w.create(ctx)
	}
	if err != nil {
		return x, err
	}
	w.disk = x
	return x, nil
}

// openIndex opens an existing index; x is set if only its version is wrong or
// it is damaged.
func (w *Workspace) openIndex(ctx context.Context) (*index, error) {
	path := w.indexPath()
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	db, err := openDB(path, w.busyWait)
	if err != nil {
		return nil, err
	}
	x := &index{db: db, file: st, wait: w.busyWait, turn: w.abs(turnLock)}
	var version int
	if err := db.QueryRowContext(ctx, synchronous+"PRAGMA user_version").Scan(&version); err != nil {
		_ = db.Close()
		return x, fmt.Errorf("open index: %w", err)
	}
	if version != schemaVersion {
		_ = db.Close()
		return x, errSchema
	}
	return x, nil
}

// busyWait is how long a call waits for the index while others have it, unless its context
// ends first. Whoever closes it last writes it out, with two syncs, and meanwhile nobody
// can even open it; on a busy disk that took longer than the 200 ms that this once was.
const busyWait = 5 * time.Second

// synchronous=NORMAL costs one sync when the last process closes the index (0.3 ms
// here); with OFF a power cut could leave a cursor without its event ids, and an event
// would be stored twice.
const synchronous = "PRAGMA synchronous=NORMAL;"

// mapped is how much of the index SQLite maps into memory, in bytes: a cold recall
// touches 300 pages, and to read each into memory of its own takes 3 ms of the
// processor.
const mapped = 1 << 30

// openDB opens an existing file. Other settings than the wait would be made without
// regard to anybody's context.
func openDB(path string, wait time.Duration) (*sql.DB, error) {
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: fmt.Sprintf("mode=rw&_pragma=busy_timeout(%d)&_pragma=mmap_size(%d)", wait.Milliseconds(), mapped)}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// create makes the index under a lock, so that of many first hooks one makes it,
// and under another name, so that nobody opens one that is half made. The caller
// holds w.mu.
func (w *Workspace) create(ctx context.Context) (*index, error) {
	path := w.indexPath()
	_, errLock := os.Stat(w.abs(indexLock))
	unlock, err := w.lockIndex(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if st, err := os.Stat(path); err == nil && st.Size() > 0 {
		return w.openIndex(ctx)
	}
	fresh := path + ".new"
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(fresh + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	// SQLite would make the file with the mode that the umask leaves.
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return nil, err
	}
	db, err := openDB(fresh, w.busyWait)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(makeSchema(ctx, db, synchronous+"PRAGMA journal_mode=WAL;"), db.Close()); err != nil {
		return nil, err
	}
	crash.Point("index.made")
	if err := os.Rename(fresh, path); err != nil {
		return nil, err
	}
	crash.Point("index.renamed")
	if errLock == nil { // there has been an index
		w.state, w.why = IndexRebuilt, ""
	}
	return w.openIndex(ctx)
}

func makeSchema(ctx context.Context, db *sql.DB, first string) error {
	_, err := db.ExecContext(ctx, fmt.Sprintf("%s BEGIN; %s PRAGMA user_version=%d; COMMIT", first, schema, schemaVersion))
	if err != nil {
		return fmt.Errorf("make index: %w", err)
	}
	return nil
}

func (w *Workspace) lockIndex(ctx context.Context) (func(), error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return durable.Lock(ctx, w.abs(indexLock))
}

// setAside renames the damaged index x unless another process has done so.
func (w *Workspace) setAside(ctx context.Context, x *index) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.disk != nil {
		_ = w.disk.db.Close()
		w.disk = nil
	}
	unlock, err := w.lockIndex(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	path := w.indexPath()
	st, err := os.Stat(path)
	if err != nil || x == nil || !os.SameFile(st, x.file) {
		return nil
	}
	for n := keptDamaged; n > 1; n-- {
		_ = os.Rename(fmt.Sprintf("%s.damaged-%d", path, n-1), fmt.Sprintf("%s.damaged-%d", path, n))
	}
	if err := os.Rename(path, path+".damaged-1"); err != nil {
		return err
	}
	crash.Point("index.aside")
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// inMemory returns the index that stands in for one that cannot be used. It is
// filled by sync like any other.
func (w *Workspace) inMemory(ctx context.Context) (*index, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.memory == nil {
		db, err := sql.Open("sqlite", ":memory:")
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(1)
		if err := makeSchema(ctx, db, ""); err != nil {
			_ = db.Close()
			return nil, err
		}
		w.memory = &index{db: db}
	}
	return w.memory, nil
}

// read runs fn with the index as update leaves it, on disk if that is possible.
// On an agent's time, where update is nil, fn runs with the index as it is, and once
// more if what was looked at meanwhile has changed it. If ctx has a deadline, half of
// the time is left for fn, and the index may be behind.
func (w *Workspace) read(ctx context.Context, update func(context.Context, *index) error, fn func(*index) error) error {
	syncCtx := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		syncCtx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	openCtx := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		openCtx, cancel = context.WithTimeout(ctx, time.Until(deadline)/4)
		defer cancel()
	}
	// While others have the index to themselves, there is time left for the one in memory.
	err := w.guarded(func() error {
		_, err := w.open(openCtx)
		return err
	})
	if err != nil && openCtx.Err() != nil {
		w.setState(IndexUnavailable, "others have it to themselves")
		return w.readMemory(ctx, syncCtx, fn)
	}
	err = w.use(ctx, func(x *index) error {
		if update != nil {
			if err := update(syncCtx, x); isDamaged(err) {
				return err
			}
			return fn(x)
		}
		looked, err := w.lookAround(syncCtx, x)
		if isDamaged(err) {
			return err
		}
		if err := fn(x); err != nil {
			return err
		}
		if l, ok := <-looked; ok {
			changed, err := w.catchUp(syncCtx, x, l)
			if isDamaged(err) {
				return err
			}
			if changed {
				return fn(x)
			}
		}
		return nil
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	return w.readMemory(ctx, syncCtx, fn)
}

// readMemory runs fn with the index in memory, brought up to date as far as syncCtx allows.
func (w *Workspace) readMemory(ctx, syncCtx context.Context, fn func(*index) error) error {
	x, err := w.inMemory(ctx)
	if err != nil {
		return err
	}
	// What could be indexed in time is better than nothing.
	_ = w.syncLocked(syncCtx, x)
	if err = fn(x); err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.memory = nil
		_ = x.db.Close()
	}
	return err
}
