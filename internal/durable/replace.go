package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/gofrs/flock"
	"github.com/natefinch/atomic"

	"github.com/agentscope-ai/reme-hook/internal/crash"
)

// WriteFile replaces path by data: temporary file beside it, sync, rename, sync
// of the folder. An existing file keeps its mode; a new one gets 0600.
func WriteFile(path string, data []byte) error {
	if err := replace(path, data, true); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return SyncDir(filepath.Dir(path))
}

// ReplaceFile replaces path by data, whole or not at all for all who read it,
// but without waiting for the disk: after a power cut the file may be empty. It
// is for what can be done without, at a tenth of the time of [WriteFile].
func ReplaceFile(path string, data []byte) error {
	if err := replace(path, data, false); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}

// The names of temporary files. Whoever writes one holds the OS lock on it, so
// that what nobody writes any more is known without a look at any clock.
const (
	tempPrefix = ".reme-hook-"
	tempSuffix = ".tmp"
)

// Temporary tells whether a name is that of a temporary file, of a writer that may
// be at work or not.
func Temporary(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
}

// replace tries again if its temporary file is gone: a [Sweep] may come between
// its making and its locking.
func replace(path string, data []byte, sync bool) (err error) {
	for range 20 {
		if err = replaceOnce(path, data, sync); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if _, gone := os.Stat(filepath.Dir(path)); gone != nil {
			return err
		}
	}
	return err
}

func replaceOnce(path string, data []byte, sync bool) error {
	mode := fs.FileMode(0o600)
	if st, err := os.Stat(path); err == nil {
		mode = st.Mode()
	}
	temp := filepath.Join(filepath.Dir(path), fmt.Sprintf("%s%016x%s", tempPrefix, rand.Uint64(), tempSuffix))
	f, held, err := makeHeld(temp)
	if err != nil {
		return err
	}
	crash.Point("file.made")
	// What is open for writing cannot be run, and on Windows not be renamed.
	err = errors.Join(fill(f, data, mode, sync), f.Close())
	if err == nil {
		err = crash.Fault("file.rename")
	}
	if err == nil {
		err = atomic.ReplaceFile(temp, path)
	}
	held.Close()
	if err != nil {
		os.Remove(temp)
		return err
	}
	crash.Point("file.renamed")
	return nil
}

// makeHeld makes a file and holds it until both are closed.
func makeHeld(path string) (*os.File, *flock.Flock, error) {
	if err := crash.Fault("file.make"); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	l := flock.New(path, flock.SetFlag(os.O_RDONLY))
	if runtime.GOOS == "windows" {
		return f, l, nil // where nobody can remove what is open
	}
	// A file system without locks has sweepers without locks, who leave the file alone.
	if ok, err := tryLock(l); err == nil && !ok {
		f.Close()
		return nil, nil, fs.ErrNotExist // someone sweeps it
	}
	return f, l, nil
}

func fill(f *os.File, data []byte, mode fs.FileMode, sync bool) error {
	if err := crash.Fault("file.write"); err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	crash.Point("file.written")
	if err := f.Chmod(mode); err != nil { // the umask may have taken something
		return err
	}
	if !sync {
		return nil
	}
	if err := crash.Fault("file.sync"); err != nil {
		return err
	}
	return f.Sync()
}

// Sweep removes the temporary files that killed writers have left in a folder.
// Those of live ones stay.
func Sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !Temporary(e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		l := flock.New(path, flock.SetFlag(os.O_RDONLY))
		if ok, err := tryLock(l); err != nil || !ok {
			continue
		}
		if runtime.GOOS == "windows" { // where what is open cannot be removed
			l.Close()
		}
		err := os.Remove(path)
		l.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// SweepAll sweeps a folder and all below it. Links are not followed.
func SweepAll(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return nil // it is for those who use it to complain
		}
		return Sweep(path)
	})
}
