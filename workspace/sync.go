package workspace

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// found is a file of the workspace as it is on the disk.
type found struct {
	path        string // relative, with slashes
	size, mtime int64
}

// sum is what a file adds to the fingerprint of the workspace. Fingerprints are
// added up by XOR, so that an append can bring the stored one up to date alone.
func (f found) sum() int64 {
	h := fnv.New64a()
	io.WriteString(h, f.path)
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], uint64(f.size))
	binary.LittleEndian.PutUint64(b[8:], uint64(f.mtime))
	h.Write(b[:])
	return int64(h.Sum64())
}

// folder is one that was looked into; mtime is -1 if it is not there.
type folder struct {
	path  string
	mtime int64
}

// root is a folder of which the index covers the files with an extension, so many
// folders deep.
type root struct {
	dir, ext string
	depth    int
}

var roots = []root{{dialogDir, ".jsonl", 4}, {dailyDir, ".md", 4}, {digestDir, ".md", 8}}

// rootOf returns the root that a folder is in.
func rootOf(dir string) (root, bool) {
	for _, r := range roots {
		if dir == r.dir || strings.HasPrefix(dir, r.dir+"/") {
			r.depth -= strings.Count(dir[len(r.dir):], "/")
			return r, r.depth >= 0
		}
	}
	return root{}, false
}

// walked is what a look at folders has found: their files that the index covers,
// which are dialogs, and notes but not the lists of a day's notes. Links are not
// followed.
type walked struct {
	files   []found
	folders []folder
}

// walk finds all that the index covers.
func (w *Workspace) walk(ctx context.Context) (walked, error) {
	var all walked
	for _, r := range roots {
		all.visit(ctx, w, r, r.dir, nil)
	}
	return all, ctx.Err()
}

// visit looks into a folder, and into those below that skip does not tell.
func (all *walked) visit(ctx context.Context, w *Workspace, r root, dir string, skip map[string]bool) {
	if ctx.Err() != nil {
		return
	}
	all.folders = append(all.folders, folder{dir, w.folderTime(dir)})
	entries, err := os.ReadDir(w.abs(dir))
	if err != nil {
		return // no such folder, or none of ours
	}
	for _, e := range entries {
		path := dir + "/" + e.Name()
		switch {
		case e.IsDir():
			if r.depth > 0 && !skip[path] {
				all.visit(ctx, w, root{r.dir, r.ext, r.depth - 1}, path, skip)
			}
		case e.Type().IsRegular() && strings.HasSuffix(path, r.ext) && !isDayIndex(path):
			if st, err := e.Info(); err == nil {
				all.files = append(all.files, found{path, st.Size(), st.ModTime().UnixNano()})
			}
		}
	}
}

func (w *Workspace) folderTime(dir string) int64 {
	st, err := os.Lstat(w.abs(dir))
	if err != nil {
		return -1
	}
	return st.ModTime().UnixNano()
}

func isDayIndex(path string) bool {
	name, ok := strings.CutPrefix(path, dailyDir+"/")
	if !ok || strings.Contains(name, "/") {
		return false
	}
	_, err := time.Parse(time.DateOnly, strings.TrimSuffix(name, ".md"))
	return err == nil
}

// manyFiles is how many files a recall looks at every time: 200 take 0.5 ms. Of
// more it looks at the folders, and into those that have changed.
var manyFiles = 200

const (
	recent    = 24 * time.Hour
	maxRecent = 256
	// maxCatchUp is how much of what others wrote a recall indexes, in bytes: 200
	// turns, or 40 ms. More is left to who drains the queue.
	maxCatchUp = 256 << 10
	manyNew    = 1000 // files after whose indexing the full-text index is merged
)

// unsettled tells that a folder may change again without its time telling so. The
// clocks of file systems tick every 10 ms or less, those of old ones every 2 s.
func (f folder) unsettled(now time.Time) bool {
	grain := 20 * time.Millisecond
	if f.mtime%int64(time.Second) == 0 {
		grain = 2 * time.Second
	}
	return f.mtime > 0 && now.Sub(time.Unix(0, f.mtime)) < grain
}

// look is what a recall looks at on the disk while it works with the index as it is.
type look struct {
	walked
	whole bool // at all there is
}

// lookAround begins to look for what others have changed, as far as an agent can wait
// for it. The channel yields one answer, or none if there is no telling; the index is
// not needed for that.
func (w *Workspace) lookAround(ctx context.Context, x *index) (<-chan look, error) {
	answer := make(chan look, 1)
	known, err := x.numbers(ctx)
	if err != nil || known["behind"] != 0 {
		if err == nil {
			w.behind.Store(true)
		}
		close(answer)
		return answer, err
	}
	at := func() (look, error) {
		all, err := w.walk(ctx)
		return look{all, true}, err
	}
	if known["walked"] >= int64(manyFiles) {
		folders, files, err := x.suspects(ctx)
		if err != nil {
			close(answer)
			return answer, err
		}
		at = func() (look, error) {
			changed, err := w.glance(ctx, folders, files)
			return look{changed, false}, err
		}
	}
	go func() {
		defer close(answer)
		defer func() { _ = recover() }() // it is not worth the agent's prompt
		if l, err := at(); err == nil {
			answer <- l
		}
	}()
	return answer, nil
}

// catchUp brings the index up to date with what a look has found, and tells whether
// that changed it. What it leaves is told by Behind.
func (w *Workspace) catchUp(ctx context.Context, x *index, l look) (bool, error) {
	if !l.whole && len(l.files)+len(l.folders) == 0 {
		return false, nil
	}
	n, err := w.take(ctx, x, l.walked, l.whole, maxCatchUp)
	return n > 0, err
}

// Behind tells that a recall has found more to be indexed than it could wait for.
// Drain does the rest.
func (w *Workspace) Behind() bool { return w.behind.Load() }

// numbers reads what the index knows of itself.
func (x *index) numbers(ctx context.Context) (map[string]int64, error) {
	rows, err := x.query(ctx, "SELECT key, value FROM meta")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	known := map[string]int64{}
	for rows.Next() {
		var key string
		var value int64
		if err := rows.Scan(&key, &value); err != nil {
			return nil, err
		}
		known[key] = value
	}
	return known, rows.Err()
}

// suspects lists what may have changed without our doing, as the index knows it: the
// folders, and the recently changed files.
func (x *index) suspects(ctx context.Context) (folders []folder, files []found, err error) {
	rows, err := x.query(ctx, "SELECT path, mtime FROM folders")
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var f folder
		if err := rows.Scan(&f.path, &f.mtime); err != nil {
			return nil, nil, err
		}
		folders = append(folders, f)
	}
	if err := rows.Err(); err != nil {
		return nil, nil, err
	}
	rows.Close()
	rows, err = x.query(ctx, "SELECT path, size, mtime FROM files WHERE mtime=0 OR mtime>? ORDER BY mtime DESC LIMIT ?", time.Now().Add(-recent).UnixNano(), maxRecent)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var f found
		if err := rows.Scan(&f.path, &f.size, &f.mtime); err != nil {
			return nil, nil, err
		}
		files = append(files, f)
	}
	return folders, files, rows.Err()
}

// glance looks at suspects, and returns those that are not as the index knows them.
// What it misses is an old file that is changed in place; Drain, Sessions and Stats
// see that.
func (w *Workspace) glance(ctx context.Context, folders []folder, files []found) (changed walked, err error) {
	known := make(map[string]bool, len(folders))
	var dirs []string
	for _, f := range folders {
		known[f.path] = true
		if f.mtime != w.folderTime(f.path) {
			dirs = append(dirs, f.path)
		}
	}
	for _, dir := range dirs {
		if r, ok := rootOf(dir); ok {
			changed.visit(ctx, w, r, dir, known)
		}
	}
	for _, f := range files {
		now := found{path: f.path}
		if st, err := os.Lstat(w.abs(f.path)); err == nil {
			now.size, now.mtime = st.Size(), st.ModTime().UnixNano()
		}
		if now != f {
			changed.files = append(changed.files, now)
		}
	}
	return changed, ctx.Err()
}

const syncLock = privateDir + "/locks/sync.lock"

// sync brings the whole index up to date. It stops when ctx ends; what it has done
// stays done. If another process is at it, sync waits for it.
func (w *Workspace) sync(ctx context.Context, x *index) error {
	if unlock, err := durable.Lock(ctx, w.abs(syncLock)); err == nil {
		defer unlock()
	} else if ctx.Err() != nil {
		return err
	}
	return w.syncLocked(ctx, x)
}

// trySync is sync, unless another process is at it.
func (w *Workspace) trySync(ctx context.Context, x *index) error {
	_, err := w.unlessSyncing(func() error { return w.syncLocked(ctx, x) })
	return err
}

// maxBegin is how much people wait for, in bytes: about 0.3 s.
const maxBegin = 2 << 20

// begin is trySync for people who wait: it indexes some of what is new, and tells
// whether another process is at it.
func (w *Workspace) begin(ctx context.Context, x *index) (busy bool, err error) {
	return w.unlessSyncing(func() error {
		all, err := w.walk(ctx)
		if err == nil {
			_, err = w.take(ctx, x, all, true, maxBegin)
		}
		return err
	})
}

// unlessSyncing calls fn, unless another process brings the index up to date.
func (w *Workspace) unlessSyncing(fn func() error) (busy bool, err error) {
	unlock, ok, err := durable.TryLock(w.abs(syncLock))
	switch {
	case ok:
		defer unlock()
	case err == nil:
		return true, nil
	}
	return false, fn()
}

func (w *Workspace) syncLocked(ctx context.Context, x *index) error {
	all, err := w.walk(ctx)
	if err != nil {
		return err
	}
	n, err := w.take(ctx, x, all, true, math.MaxInt64)
	if err != nil {
		return err
	}
	w.behind.Store(false)
	if n >= manyNew {
		return x.merge(ctx)
	}
	return nil
}

// merge makes one of the segments that the full-text index consists of after much
// was indexed: of 100,000 turns it becomes a third smaller and a recall a sixth
// faster. It goes on in steps, so that others can write between them.
func (x *index) merge(ctx context.Context) error {
	const pages = 500
	for step := -pages; ; step = pages { // the first one tells to merge them all
		var before, after int64
		if err := x.write(ctx, func(t *tx) error {
			if _, err := t.get("SELECT total_changes()", nil, &before); err != nil {
				return err
			}
			if err := t.exec("INSERT INTO terms(terms, rank) VALUES('merge', ?)", step); err != nil {
				return err
			}
			_, err := t.get("SELECT total_changes()", nil, &after)
			return err
		}); err != nil || after-before < 2 {
			return err
		}
		x.yield(ctx)
	}
}

// take indexes what a look at folders has found, up to some bytes of what is new,
// and returns how many files that were. whole tells that it was a look at all there
// is.
func (w *Workspace) take(ctx context.Context, x *index, look walked, whole bool, room int64) (indexed int, err error) {
	known, err := x.numbers(ctx)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, f := range look.files {
		sum ^= f.sum()
	}
	behind, total := false, int64(0)
	var names []string
	if !whole || sum != known["sum"] {
		stale, err := w.stale(ctx, x, look, whole)
		if err != nil {
			return 0, err
		}
		for _, f := range stale {
			if room -= f.size; room < 0 && len(names) > 0 {
				behind = true
				break
			}
			names = append(names, f.path)
			total += f.size
		}
		if total > maxCatchUp && known["behind"] == 0 {
			// Meanwhile no agent is to look for what is new, nor to wait for the lock.
			if err := x.write(ctx, func(t *tx) error { return t.exec("INSERT OR REPLACE INTO meta VALUES('behind', 1)") }); err != nil {
				return 0, err
			}
			known["behind"] = 1
		}
		if err := w.indexFiles(ctx, x, names...); err != nil {
			return 0, err
		}
	}
	if behind {
		w.behind.Store(true)
	}
	if whole && len(look.files) < manyFiles && !behind && known["behind"] == 0 && known["walked"] == 0 {
		return len(names), nil
	}
	return len(names), x.write(ctx, func(t *tx) error {
		if err := t.exec("INSERT OR REPLACE INTO meta VALUES('behind', ?)", behind); err != nil || behind {
			return err
		}
		if whole {
			if err := errors.Join(t.exec("INSERT OR REPLACE INTO meta VALUES('walked', ?)", len(look.files)), t.exec("DELETE FROM folders")); err != nil {
				return err
			}
		}
		now := time.Now()
		for _, f := range look.folders {
			if f.unsettled(now) {
				f.mtime = 0
			}
			if err := t.exec("INSERT OR REPLACE INTO folders VALUES(?,?)", f.path, f.mtime); err != nil {
				return err
			}
		}
		return t.exec("DELETE FROM folders WHERE mtime=-1 AND path NOT IN (?,?,?)", dialogDir, dailyDir, digestDir)
	})
}

// stale lists what has to be indexed again so that the index has what was found:
// the size of each is that of what is new in it. Dialogs come first, for what is
// made of them need not be searched, and the oldest: the newest docs get the
// highest ids, and posting lists are read from their end.
func (w *Workspace) stale(ctx context.Context, x *index, look walked, whole bool) ([]found, error) {
	where, args := "", []any{}
	if !whole {
		dirs, paths := make([]string, len(look.folders)), make([]string, len(look.files))
		for i, f := range look.folders {
			dirs[i] = f.path + "/"
		}
		for i, f := range look.files {
			paths[i] = f.path
		}
		list, err := json.Marshal(dirs)
		if err != nil {
			return nil, err
		}
		more, err := json.Marshal(paths)
		if err != nil {
			return nil, err
		}
		where = " WHERE " + folderOf + " IN (SELECT value FROM json_each(?)) OR path IN (SELECT value FROM json_each(?))"
		args = append(args, string(list), string(more))
	}
	indexed := map[string]found{}
	rows, err := x.db.QueryContext(ctx, "SELECT path, size, mtime FROM files"+where, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var f found
		if err := rows.Scan(&f.path, &f.size, &f.mtime); err != nil {
			return nil, err
		}
		indexed[f.path] = f
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	rows.Close()

	var stale []found
	for _, f := range look.files {
		if old := indexed[f.path]; old != f {
			if strings.HasSuffix(f.path, ".jsonl") && f.size > old.size {
				f.size -= old.size
			}
			stale = append(stale, f)
		}
		delete(indexed, f.path)
	}
	for path := range indexed {
		if _, err := os.Lstat(w.abs(path)); err != nil { // else it came after the look
			stale = append(stale, found{path: path})
		}
	}
	slices.SortFunc(stale, func(a, b found) int {
		return cmp.Or(cmp.Compare(path.Ext(a.path), path.Ext(b.path)), cmp.Compare(a.mtime, b.mtime))
	})
	return stale, nil
}

// change is a change of ours in folders: what their times were before and are
// after it. It keeps a recall from looking for changes of others there. What others
// do in the same folders in the same tick of the clock is seen by the next walk.
type change []struct{ before, after folder }

// changing begins a change in the folder of a file, and in those above that have
// to be made.
func (w *Workspace) changing(name string) change {
	var c change
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		if _, ok := rootOf(dir); !ok {
			return c
		}
		f := folder{dir, w.folderTime(dir)}
		c = append(c, struct{ before, after folder }{f, f})
		if f.mtime != -1 {
			return c
		}
	}
}

// changed ends a change: the file is indexed, and the folders are known to be as
// they are now. An index that cannot be written catches up later.
func (w *Workspace) changed(ctx context.Context, name string, c change) {
	for i := range c {
		c[i].after.mtime = w.folderTime(c[i].after.path)
	}
	_ = w.use(ctx, func(x *index) error {
		if !isDayIndex(name) {
			if err := w.indexFiles(ctx, x, name); err != nil {
				return err
			}
		}
		if len(c) == 0 {
			return nil
		}
		return x.write(ctx, func(t *tx) error { return t.keep(c) })
	})
}

func (t *tx) keep(c change) error {
	for _, f := range c {
		query := "UPDATE folders SET mtime=?2 WHERE path=?1 AND mtime=?3"
		if f.before.mtime == -1 {
			query = "INSERT INTO folders VALUES(?1,?2) ON CONFLICT DO UPDATE SET mtime=?2 WHERE mtime=?3"
		}
		if err := t.exec(query, f.after.path, f.after.mtime, f.before.mtime); err != nil {
			return err
		}
	}
	return nil
}
