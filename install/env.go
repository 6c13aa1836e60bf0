package install

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/agentscope-ai/reme-hook/internal/home"
)

// Env is what an install knows of the machine. Nothing else is asked of the
// operating system but files.
type Env struct {
	Home            string   // of the user
	Environ         []string // NAME=value, also given to the programs that are run
	IntegrationsDir string
	LookPath        func(name string) (string, error) // exec.LookPath
}

// Here is this machine as far as it tells where a host's folder is.
func Here() Env {
	return Env{Home: home.Dir(), Environ: os.Environ()}
}

// Folder is where a host keeps what is its own: where a variable says, or under
// its name in the user's home.
func (e Env) Folder(variable, name string) string {
	if dir := e.Getenv(variable); dir != "" {
		return dir
	}
	return filepath.Join(e.Home, name)
}

// Getenv is the value of an environment variable, "" if it is not set.
func (e Env) Getenv(name string) string {
	for i := len(e.Environ) - 1; i >= 0; i-- { // the last one counts
		if k, v, ok := strings.Cut(e.Environ[i], "="); ok && (k == name || runtime.GOOS == "windows" && strings.EqualFold(k, name)) {
			return v
		}
	}
	return ""
}

// BinaryPath is where the copy of our program lies that hosts call. It stays
// the same over upgrades.
func (e Env) BinaryPath() string {
	name := "reme-hook"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(e.IntegrationsDir, "bin", name)
}

// CommandPath is the program that hooks call: o.Command, or else BinaryPath.
func (e Env) CommandPath(o Options) string {
	if o.Command != "" {
		return o.Command
	}
	return e.BinaryPath()
}

func (e Env) receiptDir() string { return filepath.Join(e.IntegrationsDir, "install") }
