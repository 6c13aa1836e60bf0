package install

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"time"
)

// versionTime bounds how long a host may take to say its version; a cold node
// launcher needs a second or two.
const versionTime = 10 * time.Second

var versionNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\d+\.\d+[0-9A-Za-z.+-]*`) })

// Find looks for a host's program (name is its name on the PATH, or its path) and
// for its configuration folder.
func (e Env) Find(ctx context.Context, name, configDir string) Found {
	f := Found{ConfigDir: configDir}
	if st, err := os.Stat(configDir); err == nil && st.IsDir() {
		f.Present = true
	}
	path, err := e.LookPath(name)
	if err != nil {
		return f
	}
	f.Present, f.Binary = true, path
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = e.Environ
	cmd.WaitDelay = time.Second // a launcher may leave a child that holds the pipe
	if out, err := cmd.Output(); err == nil {
		f.Version = string(versionNumber().Find(out))
	}
	return f
}

// SameFile tells whether two paths lead to one file.
func SameFile(a, b string) bool {
	if a == b {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
