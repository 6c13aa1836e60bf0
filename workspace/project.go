package workspace

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/agentscope-ai/reme-hook/internal/home"
)

// projectRoot is the folder of the repository that cwd is in, cwd itself if it is
// in none, "" if there is no telling. A home folder is no project.
func projectRoot(cwd string) string {
	if cwd == "" {
		return ""
	}
	cwd = filepath.Clean(cwd)
	home := home.Dir()
	for dir := cwd; dir != home && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
	}
	if cwd == home || cwd == filepath.Dir(cwd) {
		return ""
	}
	return cwd
}

func inProject(cwd, root string) bool {
	if cwd == "" || root == "" {
		return false
	}
	cwd = filepath.Clean(cwd)
	return cwd == root || strings.HasPrefix(cwd, root+string(filepath.Separator))
}

// projectName is what people call the project that cwd is in.
func projectName(cwd string) string {
	root := projectRoot(cwd)
	if root == "" {
		return ""
	}
	return filepath.Base(root)
}
