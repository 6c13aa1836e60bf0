//go:build unix

package install

import (
	"os"
	"syscall"
)

// ownerOf notes who owns the file at path and returns what gives it back to
// them after it was replaced: root may install for another user.
func ownerOf(path string) (keep func() error) {
	st, err := os.Stat(path)
	if err != nil {
		return func() error { return nil }
	}
	old := st.Sys().(*syscall.Stat_t)
	return func() error {
		st, err := os.Stat(path)
		if err != nil {
			return err
		}
		if now := st.Sys().(*syscall.Stat_t); now.Uid == old.Uid && now.Gid == old.Gid {
			return nil
		}
		return os.Chown(path, int(old.Uid), int(old.Gid))
	}
}
