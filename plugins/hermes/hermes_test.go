package hermes

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/hooks/hosttest"
)

// python is an interpreter that Hermes runs with.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3.12", "python3.13", "python3.11", "python3"} {
		if exec.Command(name, "-c", "import sys; sys.exit(sys.version_info < (3, 11))").Run() == nil {
			return name
		}
	}
	t.Skip("no Python of 3.11 or later, which Hermes needs")
	return ""
}

// The provider does what it should with programs of any kind in the place of
// reme-hook.
func TestProvider(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	out, err := exec.Command(python(t), "provider_test.py", "-v").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// The tools that the provider declares are those of the memory.
func TestTools(t *testing.T) { hosttest.Tools(t, "reme_", "reme/tools.json") }

func TestFiles(t *testing.T) {
	t.Parallel()
	files := Files("1.2.3", `"/x y/reme-hook"`)
	if len(files) != 4 || Program(files["cli.py"]) != `"/x y/reme-hook"` || Program(files["plugin.yaml"]) != "" {
		t.Errorf("%q", files)
	}
	for name, text := range files {
		if name == "tools.json" {
			continue
		}
		if !strings.Contains(string(text), "1.2.3") || strings.Contains(string(text), Version) {
			t.Errorf("%s has not the version", name)
		}
	}
}
