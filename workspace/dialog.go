package workspace

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/agentscope-ai/reme-hook/client"
)

// maxRow is the longest line of a dialog file that is read. A longer one is
// kept in the file but not searchable.
const maxRow = 128 << 20

// rowTime is how a created_at is written: UTC, so that ReMe's order by the
// string is the order in time.
const rowTime = "2006-01-02T15:04:05-07:00"

// message is one AgentScope Msg row, in the order and with the nulls that ReMe
// writes.
type message struct {
	Name             string      `json:"name"`
	Content          []block     `json:"content"`
	Role             client.Role `json:"role"`
	ID               string      `json:"id"`
	Metadata         metadata    `json:"metadata"`
	CreatedAt        string      `json:"created_at"`
	Usage            *struct{}   `json:"usage"`
	FinishedAt       *struct{}   `json:"finished_at"`
	FinishedReason   *struct{}   `json:"finished_reason"`
	StructuredOutput *struct{}   `json:"structured_output"`
	Error            *struct{}   `json:"error"`
}

type block struct {
	Type       string    `json:"type"`
	Text       string    `json:"text"`
	ID         string    `json:"id"`
	CreatedAt  string    `json:"created_at"`
	FinishedAt *struct{} `json:"finished_at"`
}

type metadata struct {
	Host    client.Host   `json:"host"`
	Scope   string        `json:"scope_id"`
	Session string        `json:"session_id"`
	Turn    client.TurnID `json:"turn_id"`
	Cwd     string        `json:"cwd"`
}

// appendRow appends the line of an event, with its newline. The block's id is
// derived from the event so that a repeated append writes the same bytes.
func appendRow(dst []byte, s client.Session, cwd string, e client.Event) ([]byte, error) {
	at := formatRowTime(e.CreatedAt)
	sum := sha256.Sum256([]byte(string(s.Key()) + "\x00" + string(e.ID)))
	m := message{
		Name:     string(e.Role),
		Content:  []block{{Type: "text", Text: e.Content, ID: hex.EncodeToString(sum[:16]), CreatedAt: at}},
		Role:     e.Role,
		ID:       string(e.ID),
		Metadata: metadata{Host: s.Host, Scope: s.Scope, Session: s.ID, Turn: e.ID.Turn(), Cwd: cwd},

		CreatedAt: at,
	}
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(m)
	return buf.Bytes(), err
}

func formatRowTime(t time.Time) string {
	t = t.UTC()
	if us := t.Nanosecond() / 1000; us != 0 {
		return t.Format("2006-01-02T15:04:05.000000-07:00")
	}
	return t.Format(rowTime)
}

// row is what is read from a line, whoever wrote it.
type row struct {
	metadata
	ID   string
	Role client.Role
	Text string
	At   time.Time // zero if the row has no readable time
}

// parseRow reads one line of a dialog file. It accepts rows of any AgentScope
// program: content as a string or as blocks, metadata of any shape. It reports
// false for what is not a message of a user or an assistant.
func parseRow(line []byte, loc *time.Location) (row, bool) {
	// Most rows are as we write them, and are read in one go: that takes a third of
	// the time.
	var m struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		Role      client.Role `json:"role"`
		ID        string      `json:"id"`
		Metadata  metadata    `json:"metadata"`
		CreatedAt string      `json:"created_at"`
	}
	if json.Unmarshal(line, &m) == nil {
		if m.Role != client.User && m.Role != client.Assistant {
			return row{}, false
		}
		var texts []string
		for _, b := range m.Content {
			if b.Text != "" && b.Type == "text" {
				texts = append(texts, b.Text)
			}
		}
		return row{metadata: m.Metadata, ID: m.ID, Role: m.Role, Text: strings.Join(texts, "\n"), At: parseTime(m.CreatedAt, loc)}, true
	}
	var raw struct {
		Content   json.RawMessage `json:"content"`
		Role      json.RawMessage `json:"role"`
		ID        json.RawMessage `json:"id"`
		Metadata  json.RawMessage `json:"metadata"`
		CreatedAt json.RawMessage `json:"created_at"`
	}
	if json.Unmarshal(line, &raw) != nil {
		return row{}, false
	}
	r := row{ID: jsonString(raw.ID), Role: client.Role(jsonString(raw.Role)), At: parseTime(jsonString(raw.CreatedAt), loc)}
	if r.Role != client.User && r.Role != client.Assistant {
		return row{}, false
	}
	var meta struct {
		Host    json.RawMessage `json:"host"`
		Scope   json.RawMessage `json:"scope_id"`
		Session json.RawMessage `json:"session_id"`
		Turn    json.RawMessage `json:"turn_id"`
		Cwd     json.RawMessage `json:"cwd"`
	}
	if json.Unmarshal(raw.Metadata, &meta) == nil {
		r.metadata = metadata{
			Host: client.Host(jsonString(meta.Host)), Scope: jsonString(meta.Scope), Session: jsonString(meta.Session),
			Turn: client.TurnID(jsonString(meta.Turn)), Cwd: jsonString(meta.Cwd),
		}
	}
	r.Text = contentText(raw.Content)
	return r, true
}

func jsonString(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func contentText(raw json.RawMessage) string {
	if len(raw) > 0 && raw[0] == '"' {
		return jsonString(raw)
	}
	var blocks []struct {
		Type json.RawMessage `json:"type"`
		Text json.RawMessage `json:"text"`
	}
	if json.Unmarshal(raw, &blocks) != nil {
		return ""
	}
	var texts []string
	for _, b := range blocks {
		if text := jsonString(b.Text); text != "" && jsonString(b.Type) == "text" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// parseTime reads RFC 3339 and Python's isoformat without an offset.
func parseTime(s string, loc *time.Location) time.Time {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t
	}
	for _, layout := range []string{"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, loc); err == nil {
			return t
		}
	}
	return time.Time{}
}

// isBlank reports whether a text has nothing to be seen.
func isBlank(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }) < 0
}

// scanLines calls fn for each line that ends with a newline, from offset from
// on, until fn returns false. line is valid during the call only; it is nil for
// a line longer than [maxRow]. It returns the offset after the last line that
// fn saw.
func scanLines(f io.ReaderAt, from, size int64, fn func(line []byte, off, next int64) bool) (int64, error) {
	r := bufio.NewReaderSize(io.NewSectionReader(f, from, size-from), 64<<10)
	var long []byte
	off, next := from, from
	for {
		chunk, err := r.ReadSlice('\n')
		next += int64(len(chunk))
		switch {
		case err == nil:
			line := chunk
			if long != nil {
				line = append(long, chunk...)
			}
			if next-off > maxRow {
				line = nil
			}
			if !fn(line, off, next) {
				return next, nil
			}
			off, long = next, nil
		case errors.Is(err, bufio.ErrBufferFull):
			if next-off <= maxRow {
				long = append(long, chunk...)
			}
		case errors.Is(err, io.EOF):
			return off, nil
		default:
			return off, err
		}
	}
}

// rowID reads only what an append must know of a line, and by the same rules as
// parseRow.
func rowID(line []byte) (id string, ok bool) {
	m, ok := parseRow(line, time.UTC)
	return m.ID, ok
}

func isObject(line []byte) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal(line, &m) == nil && m != nil
}
