// Package durable keeps private files that survive a crash.
//
// A file written with [WriteFile] is there whole or not at all, also after a
// power cut. What a killed writer leaves beside it, [Sweep] takes away. A [Stripes] lock is an OS lock: the kernel frees it when its
// holder dies, so no lock is ever judged by age. Folders are 0700 and files
// 0600 whatever the umask.
package durable

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/gofrs/flock"

	"github.com/agentscope-ai/reme-hook/internal/crash"
)

// MkdirAll makes dir and its missing parents with mode 0700.
func MkdirAll(dir string) error {
	if st, err := os.Stat(dir); err == nil && st.IsDir() {
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := MkdirAll(parent); err != nil {
			return err
		}
	}
	if err := crash.Fault("folder.make"); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		st, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New("it is a link to a folder that is not there")}
		case err != nil:
			return err
		case !st.IsDir(): // a device, such as /dev/null: its mode is not ours to change
			return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
		}
	} else if err != nil {
		return err
	}
	return os.Chmod(dir, 0o700)
}

// SyncDir makes renames and new names in dir durable. File systems that cannot
// sync a folder (and Windows) are let pass.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := crash.Fault("folder.sync"); err != nil {
		return err
	}
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}

// stripes is how many lock files a set has: enough that two sessions seldom
// share one, few enough that they never need to be cleaned up.
const stripes = 64

// Stripes is a set of locks, one for each name, on a fixed number of files in
// one folder. Two names may share a lock; nobody may hold two locks of one set.
type Stripes string

// Lock takes the lock for a name, waiting for it until ctx ends.
func (s Stripes) Lock(ctx context.Context, name string) (unlock func(), err error) {
	return Lock(ctx, s.path(name))
}

// TryLock takes the lock for a name if nobody holds it.
func (s Stripes) TryLock(name string) (unlock func(), ok bool, err error) {
	return TryLock(s.path(name))
}

func (s Stripes) path(name string) string {
	h := fnv.New32a()
	h.Write([]byte(name))
	return filepath.Join(string(s), fmt.Sprintf("%02x.lock", h.Sum32()%stripes))
}

// Lock takes the OS lock on a file, which it makes if needed, waiting until ctx
// ends. Those who wait are served in turn, as the system does it.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	l, err := lockFile(path)
	if err != nil {
		return nil, err
	}
	locked := make(chan error, 1)
	go func() {
		err := crash.Fault("lock")
		if err == nil {
			err = l.Lock()
		}
		locked <- err
	}()
	select {
	case err = <-locked:
	case <-ctx.Done():
		err = ctx.Err()
		go func() {
			<-locked
			l.Close()
		}()
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", filepath.Base(path), err)
	}
	return func() { l.Close() }, nil
}

// TryLock takes the OS lock on a file if nobody holds it.
func TryLock(path string) (unlock func(), ok bool, err error) {
	l, err := lockFile(path)
	if err != nil {
		return nil, false, err
	}
	if ok, err = tryLock(l); err != nil || !ok {
		return nil, false, err
	}
	return func() { l.Close() }, true, nil
}

func tryLock(l *flock.Flock) (bool, error) {
	if err := crash.Fault("lock"); err != nil {
		return false, err
	}
	return l.TryLock()
}

func lockFile(path string) (*flock.Flock, error) {
	if err := MkdirAll(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return flock.New(path, flock.SetPermissions(0o600)), nil
}

// Glob finds the files below dir that match a pattern with slashes. Other than with
// [filepath.Glob], dir is a name, whatever signs are in it.
func Glob(dir, pattern string) ([]string, error) {
	names, err := fs.Glob(os.DirFS(dir), pattern)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		names[i] = filepath.Join(dir, filepath.FromSlash(name))
	}
	return names, nil
}
