// Package logfile writes a log file that many processes share, and keeps it small.
//
// It promises that lines stay whole and that the file and its two predecessors
// stay below a fixed size together, whatever happens to the processes that write
// them.
package logfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/agentscope-ai/reme-hook/internal/crash"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

const (
	// maxSize is where a file becomes a predecessor, in bytes.
	maxSize = 5 << 20
	// kept is how many predecessors there are: name.1, the younger one, and name.2.
	kept = 2
)

// Path is the path of a log file. It is made when the first line is written.
type Path string

// Write appends one line. The file is opened for each: it may have been replaced
// by another process.
func (p Path) Write(line []byte) (int, error) {
	f, size, err := p.open()
	if err != nil {
		return 0, err
	}
	if size+int64(len(line)) > maxSize {
		p.rotate()
		f.Close()
		if f, size, err = p.open(); err != nil {
			return 0, err
		}
		if size > 2*maxSize {
			return 0, errors.Join(errors.New("the log cannot be rotated"), f.Close())
		}
	}
	n, err := f.Write(line)
	return n, errors.Join(err, f.Close())
}

func (p Path) open() (*os.File, int64, error) {
	if err := durable.MkdirAll(filepath.Dir(string(p))); err != nil {
		return nil, 0, err
	}
	f, err := os.OpenFile(string(p), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, st.Size(), nil
}

// rotateWait bounds the wait for another process that rotates.
const rotateWait = 200 * time.Millisecond

// rotate makes the file a predecessor, unless another process has just done it.
func (p Path) rotate() {
	ctx, cancel := context.WithTimeout(context.Background(), rotateWait)
	defer cancel()
	unlock, err := durable.Lock(ctx, string(p)+".lock")
	if err != nil {
		return
	}
	defer unlock()
	if st, err := os.Stat(string(p)); err != nil || st.Size() < maxSize/2 {
		return
	}
	for n := kept; n > 1; n-- {
		os.Rename(p.predecessor(n-1), p.predecessor(n))
		crash.Point("rotate.moved")
	}
	os.Rename(string(p), p.predecessor(1))
	crash.Point("rotate.done")
}

func (p Path) predecessor(n int) string { return fmt.Sprintf("%s.%d", string(p), n) }
