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

// walk calls fn for each file that the index covers: dialogs, and notes but not
// the lists of a day's notes. Links are not followed.
func (w *Workspace) walk(ctx context.Context, fn func(found)) error {
	var visit func(dir, ext string, depth int) error
	visit = func(dir, ext string, depth int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := os.ReadDir(w.abs(dir))
		if err != nil {
			return nil // no such folder, or none of ours
		}
		for _, e := range entries {
			path := dir + "/" + e.Name()
			switch {
			case e.IsDir():
				if depth > 0 {
					if err := visit(path, ext, depth-1); err != nil {
						return err
					}
				}
			case e.Type().IsRegular() && strings.HasSuffix(path, ext) && !isDayIndex(path):
				if st, err := e.Info(); err == nil {
					fn(found{path, st.Size(), st.ModTime().UnixNano()})
				}
			}
		}
		return nil
	}
	return errors.Join(visit(dialogDir, ".jsonl", 4), visit(dailyDir, ".md", 4), visit(digestDir, ".md", 8))
}

func isDayIndex(path string) bool {
	name, ok := strings.CutPrefix(path, dailyDir+"/")
	if !ok || strings.Contains(name, "/") {
		return false
	}
	_, err := time.Parse(time.DateOnly, strings.TrimSuffix(name, ".md"))
	return err == nil
}

// sync brings the index up to date with the files. It stops when ctx ends; what
// it has done stays done.
func (w *Workspace) sync(ctx context.Context, x *index) error {
	var files []found
	var sum int64
	err := w.walk(ctx, func(f found) {
		files = append(files, f)
		sum ^= f.sum()
	})
	if err != nil {
		return err
	}
	var known int64
	err = x.db.QueryRowContext(ctx, "SELECT value FROM meta WHERE key='sum'").Scan(&known)
	if err == nil && known == sum || errors.Is(err, sql.ErrNoRows) && len(files) == 0 {
		return nil
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return w.syncFiles(ctx, x, files)
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
		if err := x.write(ctx, func(t *tx) error { return t.forget(path) }); err != nil {
			return err
		}
	}
	// Oldest first: the newest docs get the highest ids, and posting lists are
	// read from their end.
	slices.SortFunc(stale, func(a, b found) int { return cmp.Compare(a.mtime, b.mtime) })
	for _, f := range stale {
		if err := w.indexFile(ctx, x, f.path); err != nil {
			return err
		}
	}
	return nil
}
