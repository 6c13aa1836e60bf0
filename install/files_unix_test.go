//go:build unix

package install

import (
	"io/fs"
	"net"
	"os"
	"syscall"
)

// noFiles make what may stand in the place of a file.
var noFiles = map[string]func(string) error{
	"folder":    func(path string) error { return os.Mkdir(path, 0o700) },
	"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
	"device":    func(path string) error { return os.Symlink(os.DevNull, path) },
	"link ring": func(path string) error { return os.Symlink(path, path) },
	"socket": func(path string) error {
		dir, err := os.MkdirTemp("", "s") // the paths of sockets have to be short
		if err != nil {
			return err
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dir + "/s", Net: "unix"})
		if err != nil {
			return err
		}
		l.SetUnlinkOnClose(false)
		l.Close()
		return os.Rename(dir+"/s", path)
	},
}

func sameOwner(a, b fs.FileInfo) bool {
	x, y := a.Sys().(*syscall.Stat_t), b.Sys().(*syscall.Stat_t)
	return x.Uid == y.Uid && x.Gid == y.Gid
}
