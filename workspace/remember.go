package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/crash"
)

// RememberRequest is what to keep.
type RememberRequest struct {
	Content string      // Markdown; must not be blank; at most 256 KiB
	Title   string      // one line; empty means the first words of Content
	Cwd     string      // the project that it is about, or ""
	Host    client.Host // the agent that asked for it, or ""
}

// Note is a note of the workspace.
type Note struct {
	Path        string `json:"path"` // relative to the workspace, with slashes
	Name        string `json:"name"`
	Description string `json:"description"`
	Date        string `json:"date"`    // YYYY-MM-DD
	Created     bool   `json:"created"` // false if the same note was there already
}

const maxRemember = 256 << 10

// Remember writes a note in the folder of today; it is durable when it returns.
// Another note is never overwritten, and what has been noted today already is not
// noted twice. A bad request is a permanent [*client.Error].
func (w *Workspace) Remember(ctx context.Context, req RememberRequest) (Note, error) {
	switch {
	case isBlank(req.Content):
		return Note{}, &client.Error{Class: client.Permanent, Field: "content", Reason: "must not be empty"}
	case len(req.Content) > maxRemember:
		return Note{}, &client.Error{Class: client.Permanent, Field: "content", Reason: "must be at most 256 KiB"}
	}
	body := strings.ToValidUTF8(strings.TrimSpace(req.Content), "\uFFFD") + "\n"
	title := oneLine(req.Title)
	if title == "" {
		title = strings.TrimLeft(firstWords(body, 80), "# ")
	}
	n := Note{Date: w.day(w.now()), Description: firstWords(title, 200)}

	unlock, err := w.lockDaily(ctx)
	if err != nil {
		return Note{}, storeError("lock notes", err)
	}
	defer unlock()
	base := slug(title)
	for i := 1; ; i++ {
		n.Name = base
		if i > 1 {
			n.Name += "-" + strconv.Itoa(i)
		}
		n.Path = dailyDir + "/" + n.Date + "/" + n.Name + ".md"
		old, err := os.ReadFile(w.abs(n.Path))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return Note{}, storeError("read note", err)
		}
		if keys, oldBody := parseFrontMatter(string(old)); strings.TrimSpace(oldBody) == strings.TrimSpace(body) {
			// A crash may have come before the note was listed.
			n.Description = cmp.Or(keys["description"], n.Description)
			return n, w.listed(n)
		}
	}
	n.Created = true
	var b strings.Builder
	b.WriteString("---\n")
	for _, kv := range [][2]string{{"cwd", req.Cwd}, {"description", n.Description}, {"host", string(req.Host)}, {"name", n.Name}} {
		if kv[1] != "" {
			b.WriteString(kv[0] + ": " + yamlScalar(kv[1]) + "\n")
		}
	}
	b.WriteString("---\n\n" + body)
	if err := w.putNote(n.Path, b.String()); err != nil {
		return Note{}, storeError("write note", err)
	}
	crash.Point("remember.written")
	return n, w.listed(n)
}

func (w *Workspace) listed(n Note) error {
	if err := w.listNote(n.Date, n.Path, n.Name, n.Description); err != nil {
		return storeError("list note", err)
	}
	return nil
}
