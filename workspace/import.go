package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/crash"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// Imported is a text from elsewhere that is to be a note.
type Imported struct {
	Source  string // the file that it is from, absolute
	Content string // Markdown; must not be blank; at most 256 KiB
	Cwd     string // the project that it is about, if it is about one
	Host    client.Host
	At      time.Time // when it was written
}

// ImportState tells how the note of a text is.
type ImportState string

// The states of a note.
const (
	ImportNew     ImportState = "new"     // there is none
	ImportChanged ImportState = "changed" // the text has changed since
	ImportSame    ImportState = "same"
	ImportEdited  ImportState = "edited" // the text has changed, and so has the note, which is left as it is
)

// Import tells how the note of a text is, and if write is set, brings it up to
// date. A source has one note, in the folder of the day of its first import.
func (w *Workspace) Import(ctx context.Context, in Imported, write bool) (client.Note, ImportState, error) {
	switch {
	case isBlank(in.Content):
		return client.Note{}, "", &client.Error{Class: client.Permanent, Field: "content", Reason: "must not be empty"}
	case len(in.Content) > maxRemember:
		return client.Note{}, "", &client.Error{Class: client.Permanent, Field: "content", Reason: "must be at most 256 KiB"}
	}
	if write {
		unlock, err := w.lockDaily(ctx)
		if err != nil {
			return client.Note{}, "", storeError("lock notes", err)
		}
		defer unlock()
	}
	body := strings.ToValidUTF8(strings.TrimSpace(in.Content), "\uFFFD") + "\n"
	first, _, _ := strings.Cut(strings.TrimLeft(body, "#- "), "\n")
	title := cmp.Or(firstWords(first, 80), filepath.Base(in.Source))
	n := client.Note{Date: w.day(in.At), Description: title}
	hash := shortHash(in.Source)
	n.Name = slug(title) + "-" + hash
	state := ImportNew
	found, err := durable.Glob(w.abs(dailyDir), "*/*-"+hash+".md")
	if err != nil {
		return n, "", storeError("look for note", err)
	}
	if len(found) > 0 {
		n.Date, n.Name = filepath.Base(filepath.Dir(found[0])), strings.TrimSuffix(filepath.Base(found[0]), ".md")
	}
	n.Path = dailyDir + "/" + n.Date + "/" + n.Name + ".md"
	old, err := os.ReadFile(w.abs(n.Path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return n, "", storeError("read note", err)
	}
	if err == nil {
		through, edited := readMark(string(old))
		switch {
		case through == shortHash(body):
			state = ImportSame
		case edited:
			state = ImportEdited
		default:
			state = ImportChanged
		}
	}
	if !write || state == ImportEdited {
		return n, state, nil
	}
	if state != ImportSame {
		text := withFrontMatter([][2]string{{"cwd", in.Cwd}, {"description", n.Description}, {"host", string(in.Host)}, {"name", n.Name}, {"source", in.Source}}, body)
		if err := w.putNote(ctx, n.Path, text+"\n"+noteMark(body, text)); err != nil {
			return n, state, storeError("write note", err)
		}
		crash.Point("import.written")
		n.Created = state == ImportNew
	}
	return n, state, w.listed(ctx, n) // a crash may have come before it was
}
