// Package home finds the user's own folder.
package home

import (
	"os"
	"os/user"
	"path/filepath"

	"github.com/adrg/xdg"
)

// Dir is the user's folder: the one that the environment names, or else, as of
// processes that were started without one, that of the system's list of users. It
// is "" if there is none.
func Dir() string {
	// xdg says that the home of a process without one is the root.
	if dir := xdg.Home; filepath.IsAbs(dir) && (filepath.Dir(dir) != dir || os.Getenv("HOME") == dir) {
		return dir
	}
	u, err := user.Current()
	if err != nil || !filepath.IsAbs(u.HomeDir) || filepath.Dir(u.HomeDir) == u.HomeDir {
		return ""
	}
	if st, err := os.Stat(u.HomeDir); err != nil || !st.IsDir() {
		return "" // as of users that only run programs
	}
	return u.HomeDir
}
