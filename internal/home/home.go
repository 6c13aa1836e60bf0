// Package home finds the user's own folder.
package home

import (
	"os"
	"os/user"
	"path/filepath"
)

// Dir is the user's folder: the one that the environment names, or else, as of
// processes that were started without one, that of the system's list of users. It
// is "" if there is none.
func Dir() string {
	if dir, err := os.UserHomeDir(); err == nil && filepath.IsAbs(dir) {
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
