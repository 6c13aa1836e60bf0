package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/agentscope-ai/reme-hook/internal/crash"
	"github.com/agentscope-ai/reme-hook/internal/durable"
	"github.com/pmezard/go-difflib/difflib"
)

// maxFile bounds what is read: no configuration file of a host comes near it.
// maxOpen is how often it may open something, so that a parser that recurses
// stays within its stack.
const (
	maxFile = 16 << 20
	maxOpen = 1 << 18
)

// Change is what is to become of one file. Old and New are whole contents; nil
// means that the file is absent. Links are followed: the link stays, its target
// is written.
type Change struct {
	Path     string
	Old, New []byte
}

// Apply makes the changes, in order. A file that is no longer as the change
// expects is [ErrChanged]. If one fails, those already made are undone, and so is that
// one if it has come as far as the file.
func Apply(changes []Change) error {
	for i, c := range changes {
		err := c.apply()
		if err == nil {
			crash.Point("install.changed")
			continue
		}
		made := changes[:i]
		if c.made() {
			made = changes[:i+1]
		}
		for _, m := range slices.Backward(made) {
			undo := Change{m.Path, m.New, m.Old}
			err = errors.Join(err, undo.apply())
		}
		return err
	}
	return nil
}

// made tells whether the file is as the change would have it.
func (c Change) made() bool {
	path, err := resolve(c.Path)
	if err != nil {
		return false
	}
	now, err := read(path)
	return err == nil && same(now, c.New) && !same(now, c.Old)
}

// Diff prints the changes as unified diffs.
func Diff(w io.Writer, changes []Change) error {
	for _, c := range changes {
		d := difflib.UnifiedDiff{A: lines(c.Old), B: lines(c.New), FromFile: c.Path, ToFile: c.Path, Context: 3}
		if c.Old == nil {
			d.FromFile = os.DevNull
		}
		if c.New == nil {
			d.ToFile = os.DevNull
		}
		if err := difflib.WriteUnifiedDiff(w, d); err != nil {
			return err
		}
	}
	return nil
}

// lines splits b for a diff. A missing final newline is shown as diff(1) does.
func lines(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	var out []string
	for line := range bytes.Lines(b) {
		out = append(out, string(line))
	}
	if last := len(out) - 1; b[len(b)-1] != '\n' {
		out[last] += "\n\\ No newline at end of file\n"
	}
	return out
}

func (c Change) apply() error {
	path, err := resolve(c.Path)
	if err != nil {
		return err
	}
	now, err := read(path)
	if err != nil {
		return err
	}
	if !same(now, c.Old) {
		return fmt.Errorf("%s: %w", c.Path, ErrChanged)
	}
	if c.New == nil {
		if now == nil {
			return nil
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove %s: %w", c.Path, err)
		}
		return durable.SyncDir(filepath.Dir(path))
	}
	if err := errors.Join(durable.MkdirAll(filepath.Dir(path)), durable.Sweep(filepath.Dir(path))); err != nil {
		return fmt.Errorf("make the folder of %s: %w", c.Path, err)
	}
	keep := ownerOf(path)
	if err := durable.WriteFile(path, c.New); err != nil {
		return fmt.Errorf("%s: %w", c.Path, err)
	}
	if err := keep(); err != nil {
		return fmt.Errorf("keep the owner of %s: %w", c.Path, err)
	}
	if back, err := read(path); err != nil || !same(back, c.New) {
		return errors.Join(fmt.Errorf("%s does not hold what was written to it", c.Path), err)
	}
	return nil
}

// same compares contents; an absent file is not an empty one.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// resolve follows links to the file that is meant, also if that is not there.
func resolve(path string) (string, error) {
	for range 40 { // as many as Linux follows
		real, err := filepath.EvalSymlinks(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return real, err
		}
		// The file is missing, but the path may lead through links to where it should
		// be. What a link says counts from where that link really is.
		dir, name := filepath.Split(path)
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		path = filepath.Join(dir, name)
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil
		}
		if !filepath.IsAbs(target) {
			target = dir + string(filepath.Separator) + target
		}
		path = target
	}
	return "", fmt.Errorf("%s: too many links", path)
}

// read returns the content of a regular file, following links; nil if there is
// none. What is no regular file is refused without being opened: a FIFO would
// hang.
func read(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is %s, not a file; move it away and run the command again", path, kindOf(st.Mode()))
	}
	if st.Size() > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes: not a configuration file", path, maxFile)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if bytes.Count(b, []byte("["))+bytes.Count(b, []byte("{"))+bytes.Count(b, []byte(".")) > maxOpen {
		return nil, fmt.Errorf("%s has more brackets than a configuration file", path)
	}
	return append([]byte{}, b...), nil // an empty file is not nil
}

// ReadFile is os.ReadFile for the files of others: what is not a file is an error
// and is not opened, as a pipe would hang, and so is what is too large to be a
// configuration file.
func ReadFile(path string) ([]byte, error) {
	b, err := read(path)
	if b == nil && err == nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return b, err
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}
