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
	"github.com/agentscope-ai/reme-hook/internal/harmless"
)

const maxRemember = 256 << 10

// Remember implements [client.Service]: it writes a note in the folder of its day.
// Another note is never overwritten. The summary of a conversation counts as
// generated: it says what the turns say.
func (w *Workspace) Remember(ctx context.Context, req client.RememberRequest) (client.Note, error) {
	switch {
	case isBlank(req.Content):
		return client.Note{}, &client.Error{Class: client.Permanent, Field: "content", Reason: "must not be empty"}
	case len(req.Content) > maxRemember:
		return client.Note{}, &client.Error{Class: client.Permanent, Field: "content", Reason: "must be at most 256 KiB"}
	}
	body := strings.ToValidUTF8(strings.TrimSpace(req.Content), "\uFFFD") + "\n"
	title := harmless.Line(req.Title)
	if title == "" {
		title = strings.TrimLeft(firstWords(body, 80), "# ")
	}
	at := req.CreatedAt
	if at.IsZero() {
		at = w.now()
	}
	n := client.Note{Date: w.day(at), Description: firstWords(title, 200)}

	unlock, err := w.lockDaily(ctx)
	if err != nil {
		return client.Note{}, storeError("lock notes", err)
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
			return client.Note{}, storeError("read note", err)
		}
		if keys, oldBody := parseFrontMatter(string(old)); strings.TrimSpace(stripMark(oldBody)) == strings.TrimSpace(body) {
			// A crash may have come before the note was listed.
			n.Description = cmp.Or(keys["description"], n.Description)
			return n, w.listed(ctx, n)
		}
	}
	n.Created = true
	keys := [][2]string{{"cwd", req.Cwd}, {"description", n.Description}, {"host", string(req.Host)}, {"name", n.Name}}
	if req.Session != nil {
		keys = append(keys, [2]string{"generated_by", generatedBy}, [2]string{"session_id", string(req.Session.Key())},
			[2]string{"source_conversation", "[[" + dialogPath(*req.Session) + "]]"})
	}
	text := withFrontMatter(keys, body)
	if req.Session != nil {
		text += "\n" + noteMark("", text)
	}
	if err := w.putNote(ctx, n.Path, text); err != nil {
		return client.Note{}, storeError("write note", err)
	}
	crash.Point("remember.written")
	return n, w.listed(ctx, n)
}

func (w *Workspace) listed(ctx context.Context, n client.Note) error {
	if err := w.listNote(ctx, n.Date, n.Path, n.Name, n.Description); err != nil {
		return storeError("list note", err)
	}
	return nil
}
