package hooks

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Files are logs that are files below a folder.
type Files struct {
	Root func() string
	// Patterns are the files' paths below Root, in slashes; a part of one is matched
	// as [path.Match] does.
	Patterns []string
	// Describe completes a Log that has Path, Size and Modified. It is not ok if the
	// file is no log of a user's session.
	Describe func(l *Log) (ok bool, err error)
}

// Places implements [Logs].
func (f Files) Places() (places []string) {
	for _, p := range f.Patterns {
		place, _, _ := strings.Cut(p, "*")
		places = append(places, filepath.Join(f.Root(), filepath.FromSlash(path.Dir(place))))
	}
	return places
}

// List implements [Logs].
func (f Files) List(ctx context.Context) iter.Seq2[Log, error] {
	return func(yield func(Log, error) bool) {
		for _, p := range f.Patterns {
			if !f.walk(ctx, f.Root(), strings.Split(p, "/"), yield) {
				return
			}
		}
	}
}

// walk yields what matches the parts of a pattern below a folder. It is false if
// no more is wanted.
func (f Files) walk(ctx context.Context, dir string, parts []string, yield func(Log, error) bool) bool {
	for len(parts) > 1 && !strings.Contains(parts[0], "*") {
		dir, parts = filepath.Join(dir, parts[0]), parts[1:]
	}
	if !strings.Contains(parts[0], "*") {
		return f.file(filepath.Join(dir, parts[0]), yield)
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !yield(Log{Path: dir}, err) {
		return false
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return yield(Log{}, ctx.Err())
		}
		if ok, _ := path.Match(parts[0], e.Name()); !ok {
			continue
		}
		at := filepath.Join(dir, e.Name())
		switch {
		case len(parts) == 1 && e.Type().IsRegular():
			if !f.file(at, yield) {
				return false
			}
		case len(parts) > 1 && e.IsDir():
			if !f.walk(ctx, at, parts[1:], yield) {
				return false
			}
		}
	}
	return true
}

func (f Files) file(at string, yield func(Log, error) bool) bool {
	st, err := os.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !st.Mode().IsRegular() {
		return true
	}
	log := Log{Path: at, describe: f.Describe}
	if err == nil {
		log.Size, log.Modified = st.Size(), st.ModTime()
	}
	return yield(log, err)
}

// Head is the first line of a file, as each reads it; nil if it has none yet.
func Head(file string, each LineReader) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var head []byte
	_, _, err = each(f, 0, func(line []byte, _ int64) bool {
		head = append(head, line...)
		return false
	})
	return head, err
}
