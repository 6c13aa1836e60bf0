// Package rows reads databases (SQLite) that other programs write to, again and
// again from where it was.
//
// It never writes, neither into a database nor a file beside it, and keeps nobody
// from writing. A cursor stands for a row's number. It holds what the row before it
// is known by, so that a database that was replaced or emptied is noticed and read
// from its beginning.
package rows

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"github.com/agentscope-ai/reme-hook/hooks"
)

// DB is a database of another program, open for reading.
type DB struct {
	*sql.DB
	path string
	lone fs.FileInfo // of the file, if nobody had it open
}

// Open opens a database. How long it waits for one who writes is bounded.
func Open(ctx context.Context, path string) (*DB, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	d := &DB{path: path}
	query := "mode=ro&_pragma=busy_timeout(1000)&_pragma=cell_size_check(1)"
	alone, err := isAlone(path)
	if err != nil {
		return nil, err
	}
	if alone {
		// SQLite would make files beside it, and leave them there.
		query += "&immutable=1"
		if d.lone, err = os.Stat(path); err != nil {
			return nil, err
		}
	}
	u := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: query}
	if d.DB, err = sql.Open("sqlite", u.String()); err != nil {
		return nil, err
	}
	d.SetMaxOpenConns(1)
	if err := d.PingContext(ctx); err != nil {
		d.DB.Close()
		return nil, err
	}
	return d, nil
}

// OpenVersion opens a database that answers a query with its version. Another than
// the known one is a [hooks.VersionError].
func OpenVersion(ctx context.Context, path, query, known string) (*DB, error) {
	d, err := Open(ctx, path)
	if err != nil {
		return nil, err
	}
	var version string
	err = d.QueryRowContext(ctx, query).Scan(&version)
	if err == nil && version != known {
		err = &hooks.VersionError{Found: version, Known: known}
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// isAlone tells whether a database is one with a write-ahead log that nobody has
// open: whoever opens it makes that log.
func isAlone(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	const readVersion, wal = 19, 2
	var head [readVersion + 1]byte
	if _, err := f.ReadAt(head[:], 0); err != nil || !bytes.HasPrefix(head[:], []byte("SQLite format 3\x00")) || head[readVersion] != wal {
		return false, nil
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(path + suffix); !errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
	}
	return true, nil
}

// Close closes the database. It fails if what was read may not fit together,
// because somebody began to write meanwhile.
func (d *DB) Close() error {
	err := d.DB.Close()
	if d.lone == nil {
		return err
	}
	now, statErr := os.Stat(d.path)
	if statErr == nil && (!os.SameFile(now, d.lone) || now.Size() != d.lone.Size() || !now.ModTime().Equal(d.lone.ModTime())) {
		statErr = errors.New("it has changed while it was read")
	}
	return errors.Join(err, statErr)
}

// Cursor makes the cursor of a row's number. Before is what the row before it is
// known by.
func Cursor(at int64, before string) string {
	return fmt.Sprintf("%d-%x", at, crc32.ChecksumIEEE([]byte(before)))
}

// At is where a cursor leads; 0, if the database is not the one that it was made
// for. Before tells what the row before a number is known by.
func At(cursor string, before func(at int64) (string, error)) (int64, error) {
	number, _, _ := strings.Cut(cursor, "-")
	at, err := strconv.ParseInt(number, 10, 64)
	if err != nil || at <= 0 {
		return 0, nil
	}
	known, err := before(at)
	if err != nil || Cursor(at, known) != cursor {
		return 0, err
	}
	return at, nil
}
