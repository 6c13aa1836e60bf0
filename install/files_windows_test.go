package install

import (
	"io/fs"
	"os"
)

// noFiles make what may stand in the place of a file.
var noFiles = map[string]func(string) error{
	"folder": func(path string) error { return os.Mkdir(path, 0o700) },
}

func sameOwner(fs.FileInfo, fs.FileInfo) bool { return true }
