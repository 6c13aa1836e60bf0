package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/agentscope-ai/reme-hook/internal/crash"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// SelfCopy copies the program at src to dst, whole or not at all, also while
// hooks run the one at dst. The copy has mode 0700. Nothing is done if it is
// there already.
func SelfCopy(src, dst string) error {
	from, err := os.Stat(src)
	if err != nil {
		return fmt.Errorf("copy the program: %w", err)
	}
	to, err := os.Stat(dst)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("copy the program: %w", err)
	}
	if err == nil && os.SameFile(from, to) {
		return nil
	}
	data, err := os.ReadFile(src)
	if err != nil {
		return fmt.Errorf("copy the program: %w", err)
	}
	if to == nil || to.Size() != from.Size() || !hasContent(dst, data) {
		if err := errors.Join(durable.MkdirAll(filepath.Dir(dst)), durable.Sweep(filepath.Dir(dst))); err != nil {
			return fmt.Errorf("copy the program: %w", err)
		}
		if to != nil && runtime.GOOS == "windows" {
			// A running program cannot be replaced there, but it can be renamed.
			if err := os.Rename(dst, dst+".old"); err != nil {
				return fmt.Errorf("copy the program: %w", err)
			}
		}
		if err := durable.WriteFile(dst, data); err != nil {
			return fmt.Errorf("copy the program: %w", err)
		}
	}
	crash.Point("copy.written")
	return os.Chmod(dst, 0o700)
}

func hasContent(path string, data []byte) bool {
	b, err := os.ReadFile(path)
	return err == nil && bytes.Equal(b, data)
}
