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
	name, isURI := strings.CutPrefix(name, "reme://")
	if i := strings.LastIndex(name, "#L"); i >= 0 {
		var from, to int
		n, _ := fmt.Sscanf(name[i:], "#L%d-L%d", &from, &to)
		if n == 1 {
			to = from
		}
		if n > 0 {
			name = name[:i]
			if start == 0 && end == 0 {
				start, end = from, to
			}
		}
	}
	if plain, err := url.PathUnescape(name); isURI && err == nil {
		name = plain
	}
	refuse := func(reason string, err error) error {
		return &client.Error{Class: client.Permanent, Field: "path", Reason: reason, Err: err}
	}
	name = path.Clean(strings.ReplaceAll(name, `\`, "/"))
	if !fs.ValidPath(name) || name == "." {
		return "", refuse("must be a file of the workspace", nil)
	}
	if name == "metadata" || strings.HasPrefix(name, "metadata/") {
		return "", refuse("has nothing to read", nil)
	}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return "", refuse("cannot be read", err)
	}
	defer root.Close()
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) && path.Ext(name) == "" {
		f, err = root.Open(name + ".md")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", refuse("is not there", fs.ErrNotExist)
	}
	if err != nil {
		return "", refuse("cannot be read", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return "", refuse("must be a file of the workspace", err)
	}

	var b strings.Builder
	line := 0
	isDialog := strings.HasPrefix(name, dialogDir+"/") && strings.HasSuffix(name, ".jsonl")
	tell := func(text []byte) bool {
		line++
		if line < start {
			return true
		}
		if end > 0 && line > end || ctx.Err() != nil || b.Len() > maxReadText {
			return false
		}
		if !isDialog {
			b.Write(text)
		} else if m, ok := parseRow(text, w.loc); ok {
			b.WriteString(string(m.Role) + ": " + strings.TrimSpace(m.Text) + "\n")
		}
		return true
	}
	done, err := scanLines(f, 0, st.Size(), func(text []byte, _, _ int64) bool { return tell(text) })
	if err == nil && done < st.Size() && st.Size()-done <= maxRow {
		var last []byte // a line without a newline
		if last, err = io.ReadAll(io.NewSectionReader(f, done, st.Size()-done)); err == nil && (end == 0 || line < end) {
			tell(last)
		}
	}
	if err = errors.Join(err, ctx.Err()); err != nil {
		return "", err
	}
	return strings.TrimRight(clean(strings.ToValidUTF8(b.String(), "\uFFFD")), "\n"), nil
}
