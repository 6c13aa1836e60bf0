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

	"github.com/agentscope-ai/reme-hook/client"
)

// Files are logs, or notes, that are files below a folder.
type Files struct {
	Root func() string
	// Patterns are the files' paths below Root, in slashes. A part of one is matched as
	// [path.Match] does; ** is any number of folders that are not hidden.
	Patterns []string
	// Follow tells whether a file is one of them, by where it is when all links are
	// followed; nil takes any. ** passes over links to folders.
	Follow func(path string) bool
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
	deep := parts[0] == "**"
	if deep && !f.walk(ctx, dir, parts[1:], yield) {
		return false
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !yield(Log{Path: dir}, err) {
		return false
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return yield(Log{}, ctx.Err())
		}
		at := filepath.Join(dir, e.Name())
		link := e.Type()&fs.ModeSymlink != 0
		if deep {
			if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !f.walk(ctx, at, parts, yield) {
				return false
			}
			continue
		}
		if ok, _ := path.Match(parts[0], e.Name()); !ok {
			continue
		}
		switch {
		case len(parts) == 1 && (e.Type().IsRegular() || link):
			if !f.file(at, yield) {
				return false
			}
		case len(parts) > 1 && (e.IsDir() || link && isDir(at)):
			if !f.walk(ctx, at, parts[1:], yield) {
				return false
			}
		}
	}
	return true
}

func (f Files) file(at string, yield func(Log, error) bool) bool {
	if f.Follow != nil {
		if path, err := filepath.EvalSymlinks(at); err != nil || !f.Follow(path) {
			return true
		}
	}
	st, err := os.Stat(at)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !st.Mode().IsRegular() {
		return true
	}
	log := Log{Path: at, describe: f.Describe}
	if err == nil {
		log.Size, log.Modified = st.Size(), st.ModTime()
	}
	return yield(log, err)
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// Notes are a memory that somebody else keeps in files of text.
type Notes struct {
	Name  string // on the command line
	Title string
	Host  client.Host // that keeps it, if one does
	// Refusal says why it cannot be read, and what to do instead.
	Refusal string
	Files
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
