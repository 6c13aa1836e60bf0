package home

import (
	"os"
	"os/user"
	"runtime"
	"testing"

	"github.com/adrg/xdg"
)

// Without a home in the environment, or one that is another folder in each
// project, it is that of the list of users.
func TestDir(t *testing.T) {
	variable := "HOME"
	if runtime.GOOS == "windows" {
		variable = "USERPROFILE"
	}
	t.Cleanup(xdg.Reload) // after the variable is what it was
	homes := []string{t.TempDir()}
	if runtime.GOOS != "windows" {
		homes = append(homes, "/")
	}
	for _, dir := range homes {
		t.Setenv(variable, dir)
		xdg.Reload()
		if got := Dir(); got != dir {
			t.Errorf("%q, want %q", got, dir)
		}
	}
	u, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	if st, err := os.Stat(u.HomeDir); err != nil || !st.IsDir() || u.HomeDir == "/" {
		t.Skip("the user who runs this has no home")
	}
	for _, dir := range []string{"", "relative", "./x"} {
		t.Setenv(variable, dir)
		xdg.Reload()
		if got := Dir(); got != u.HomeDir {
			t.Errorf("%s is %q: %q, want %q", variable, dir, got, u.HomeDir)
		}
	}
}
