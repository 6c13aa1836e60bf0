package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/agentscope-ai/reme-hook/internal/harmless"
)

// DailyNote is a note of a day: its path and the keys of its front matter.
type DailyNote map[string]any

// DailyList returns the notes of a day, YYYY-MM-DD or "" for today, by name, and
// that day.
func (w *Workspace) DailyList(ctx context.Context, date string) (string, []DailyNote, error) {
	if date == "" {
		date = w.day(w.now())
	}
	notes := []DailyNote{}
	dir := dailyDir + "/" + date
	entries, err := os.ReadDir(w.abs(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return date, nil, storeError("read notes", err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), ".md") {
			continue
		}
		if err := ctx.Err(); err != nil {
			return date, nil, err
		}
		text, err := w.readNote(dir + "/" + e.Name())
		if err != nil {
			continue // it has gone, or is none of ours
		}
		n := DailyNote(noteKeys(text))
		n["path"] = dir + "/" + e.Name()
		notes = append(notes, n)
	}
	return date, notes, nil
}

// readNote returns as much of a note as is indexed.
func (w *Workspace) readNote(rel string) (string, error) {
	f, err := os.Open(w.abs(rel))
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxNote))
	return strings.ToValidUTF8(string(text), "\uFFFD"), err
}

// noteKeys returns the keys of a note's front matter as values that JSON can
// say: texts of one line, numbers, booleans and lists of these. Where YAML fails
// it is read line by line.
func noteKeys(text string) map[string]any {
	keys := map[string]any{}
	lines, body := parseFrontMatter(text)
	head := strings.TrimSuffix(text, body)
	var m map[string]any
	if yaml.Unmarshal([]byte(strings.TrimSuffix(strings.TrimSpace(head), "---")), &m) == nil {
		for k, v := range m {
			keys[harmless.Line(k)] = plain(v)
		}
		return keys
	}
	for k, v := range lines {
		keys[harmless.Line(k)] = harmless.Line(v)
	}
	return keys
}

func plain(v any) any {
	switch v := v.(type) {
	case nil, bool, int, int64, uint64:
		return v
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		return v
	case time.Time:
		return strings.TrimSuffix(v.Format(time.RFC3339), "T00:00:00Z")
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = plain(e)
		}
		return list
	}
	return harmless.Line(fmt.Sprint(v))
}
