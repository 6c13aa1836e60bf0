package workspace

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
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

// folder is one that was walked; mtime is -1 if it is not there.
type folder struct {
	path  string
	mtime int64
}

// walk finds each file that the index covers: dialogs, and notes but not the
// lists of a day's notes; and the folders that it looked into. Links are not
// followed.
func (w *Workspace) walk(ctx context.Context) (files []found, folders []folder, err error) {
	var visit func(dir, ext string, depth int)
	visit = func(dir, ext string, depth int) {
		if ctx.Err() != nil {
			return
		}
		folders = append(folders, folder{dir, w.folderTime(dir)})
		entries, err := os.ReadDir(w.abs(dir))
		if err != nil {
			return // no such folder, or none of ours
		}
		for _, e := range entries {
			path := dir + "/" + e.Name()
			switch {
			case e.IsDir():
				if depth > 0 {
					visit(path, ext, depth-1)
				}
			case e.Type().IsRegular() && strings.HasSuffix(path, ext) && !isDayIndex(path):
				if st, err := e.Info(); err == nil {
					files = append(files, found{path, st.Size(), st.ModTime().UnixNano()})
				}
			}
		}
	}
	visit(dialogDir, ".jsonl", 4)
	visit(dailyDir, ".md", 4)
	visit(digestDir, ".md", 8)
	return files, folders, ctx.Err()
}

// walked is what a walk has found.
type walked struct {
	files   []found
	folders []folder
	err     error
}

// walking starts a walk and returns what waits for its result, so that the index
// is opened meanwhile.
func (w *Workspace) walking(ctx context.Context) func() walked {
	walk := sync.OnceValue(func() walked {
		files, folders, err := w.walk(ctx)
		return walked{files, folders, err}
	})
	go walk()
	return walk
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

// manyFiles is how many files a recall walks every time: 1,000 take 2 ms, 5,000
// take 12.
var manyFiles = 1000

const (
	recent     = 24 * time.Hour
	maxRecent  = 256
	clockGrain = 2 * time.Second // a change this soon after another may not show in a folder's time
)

// glance reports whether the index is up to date as far as a look at the folders
// and the recently changed files can tell. What it misses is an old file that is
// changed in place in a workspace of many; Drain, Sessions and Stats see that.
func (w *Workspace) glance(ctx context.Context, x *index) bool {
	var walked int
	if x.db.QueryRowContext(ctx, "SELECT value FROM meta WHERE key='walked'").Scan(&walked) != nil || walked < manyFiles {
		return false
	}
	rows, err := x.db.QueryContext(ctx, "SELECT path, mtime FROM folders")
	if err != nil {
		return false
	}
	defer rows.Close()
	for rows.Next() {
		var f folder
		if rows.Scan(&f.path, &f.mtime) != nil || f.mtime != w.folderTime(f.path) {
			return false
		}
	}
	if rows.Err() != nil {
		return false
	}
	rows.Close()
	rows, err = x.db.QueryContext(ctx, "SELECT path, size, mtime FROM files WHERE mtime=0 OR mtime>? ORDER BY mtime DESC LIMIT ?", time.Now().Add(-recent).UnixNano(), maxRecent)
	if err != nil {
		return false
	}
	defer rows.Close()
	for rows.Next() {
		var f found
		if rows.Scan(&f.path, &f.size, &f.mtime) != nil {
			return false
		}
		st, err := os.Lstat(w.abs(f.path))
		if err != nil || st.Size() != f.size || st.ModTime().UnixNano() != f.mtime {
			return false
		}
	}
	return rows.Err() == nil
}

// sync brings the index up to date with the files that a walk has found. It stops
// when ctx ends; what it has done stays done.
func (w *Workspace) sync(ctx context.Context, x *index, walk func() walked) error {
	found := walk()
	files, folders, err := found.files, found.folders, found.err
	if err != nil {
		return err
	}
	var sum int64
	for _, f := range files {
		sum ^= f.sum()
	}
	var known int64
	err = x.db.QueryRowContext(ctx, "SELECT value FROM meta WHERE key='sum'").Scan(&known)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if known != sum {
		if err := w.syncFiles(ctx, x, files); err != nil {
			return err
		}
	}
	if len(files) < manyFiles {
		return nil
	}
	return x.write(ctx, func(t *tx) error {
		if err := t.exec("INSERT OR REPLACE INTO meta VALUES('walked', ?)", len(files)); err != nil {
			return err
		}
		if err := t.exec("DELETE FROM folders"); err != nil {
			return err
		}
		for _, f := range folders {
			if time.Since(time.Unix(0, f.mtime)) < clockGrain {
				f.mtime = 0
			}
			if err := t.exec("INSERT INTO folders VALUES(?,?)", f.path, f.mtime); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *Workspace) syncFiles(ctx context.Context, x *index, files []found) error {
	indexed := map[string]found{}
	rows, err := x.db.QueryContext(ctx, "SELECT path, size, mtime FROM files")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var f found
		if err := rows.Scan(&f.path, &f.size, &f.mtime); err != nil {
			return err
		}
		indexed[f.path] = f
	}
	if err := rows.Err(); err != nil {
		return err
	}
	rows.Close()

	var stale []found
	for _, f := range files {
		if indexed[f.path] != f {
			stale = append(stale, f)
		}
		delete(indexed, f.path)
	}
	for path := range indexed {
		if _, err := os.Lstat(w.abs(path)); err == nil {
			continue // it came after the walk
		}
		if err := x.write(ctx, func(t *tx) error { return t.forget(path) }); err != nil {
			return err
		}
	}
	// Oldest first: the newest docs get the highest ids, and posting lists are
	// read from their end.
	slices.SortFunc(stale, func(a, b found) int { return cmp.Compare(a.mtime, b.mtime) })
	names := make([]string, len(stale))
	for i, f := range stale {
		names[i] = f.path
	}
	return w.indexFiles(ctx, x, names...)
}
