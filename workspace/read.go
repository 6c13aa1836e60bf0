package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/harmless"
)

// maxReadText bounds what Read returns, in bytes.
const maxReadText = 4 << 20

// Read returns lines start to end (1-based, inclusive; 0 means the first and the
// last) of a file of the workspace. The path is relative to the workspace and may
// be written as an item of a recall is shown: reme://daily/…/x.md#L3-L4. The rows
// of a dialog are told as "user: …" and "assistant: …", other text is returned
// as it is, without control characters. Nothing outside the workspace is read,
// nor what is only of use to the machine. A bad path is a permanent
// [*client.Error]; one that is not there also matches [fs.ErrNotExist].
func (w *Workspace) Read(ctx context.Context, name string, start, end int) (string, error) {
	p, err := w.ReadPage(ctx, name, start, end, maxReadText)
	return p.Text, err
}

// Page is a stretch of a file.
type Page struct {
	Path  string // relative to the workspace
	Text  string
	Next  int // the line to go on with, 0 if the stretch was read to its end
	Lines int // lines up to the end of what was looked at
}

// ReadPage reads as Read does, whole lines of at most max bytes together. A line
// that is longer alone is cut.
func (w *Workspace) ReadPage(ctx context.Context, name string, start, end, max int) (Page, error) {
	name, from, to := parseAddress(name)
	if start == 0 && end == 0 {
		start, end = from, to
	}
	refuse := func(reason string, err error) (Page, error) {
		return Page{}, &client.Error{Class: client.Permanent, Field: "path", Reason: reason, Err: err}
	}
	name = path.Clean(name)
	if !fs.ValidPath(name) || name == "." {
		return refuse("must be a file of the workspace", nil)
	}
	if strings.HasPrefix(name, elsewhereDir) {
		return w.readElsewhere(ctx, name, start, end, max)
	}
	if name == "metadata" || strings.HasPrefix(name, "metadata/") {
		return refuse("has nothing to read", nil)
	}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return refuse("cannot be read", err)
	}
	defer root.Close()
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) && path.Ext(name) == "" {
		name += ".md"
		f, err = root.Open(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return refuse("is not there", fs.ErrNotExist)
	}
	if err != nil {
		return refuse("cannot be read", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return refuse("must be a file of the workspace", err)
	}

	p := Page{Path: name}
	var b strings.Builder
	isDialog := strings.HasPrefix(name, dialogDir+"/") && strings.HasSuffix(name, ".jsonl")
	tell := func(line []byte) bool {
		if end > 0 && p.Lines >= end || ctx.Err() != nil {
			return false
		}
		p.Lines++
		if p.Lines < start {
			return true
		}
		text := string(line)
		if isDialog {
			m, ok := parseRow(line, w.loc)
			if !ok {
				return true
			}
			text = string(m.Role) + ": " + strings.TrimSpace(m.Text) + "\n"
		}
		if b.Len() > 0 && b.Len()+len(text) > max {
			p.Next = p.Lines
			return false
		}
		if len(text) > max {
			text = cutBytes(text, max) + "\n[… cut …]\n"
		}
		b.WriteString(text)
		return true
	}
	done, err := scanLines(f, 0, st.Size(), func(text []byte, _, _ int64) bool { return tell(text) })
	if err == nil && p.Next == 0 && (end == 0 || p.Lines < end) && done < st.Size() && st.Size()-done <= maxRow {
		var last []byte // a line without a newline
		if last, err = io.ReadAll(io.NewSectionReader(f, done, st.Size()-done)); err == nil {
			tell(last)
		}
	}
	if err = errors.Join(err, ctx.Err()); err != nil {
		return Page{}, err
	}
	p.Text = strings.TrimRight(harmless.Text(strings.ToValidUTF8(b.String(), "\uFFFD")), "\n")
	return p, nil
}

// parseAddress takes an address of a memory apart: its path, and the lines that
// it names or 0.
func parseAddress(name string) (file string, from, to int) {
	name, isURI := strings.CutPrefix(name, "reme://")
	if i := strings.LastIndex(name, "#L"); i >= 0 {
		n, _ := fmt.Sscanf(name[i:], "#L%d-L%d", &from, &to)
		if n == 1 {
			to = from
		}
		if n > 0 {
			name = name[:i]
		}
	}
	if plain, err := url.PathUnescape(name); isURI && err == nil {
		name = plain
	}
	return strings.ReplaceAll(name, `\`, "/"), from, to
}
