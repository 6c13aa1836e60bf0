package dsh

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/internal/frames"
)

// DSH appends what happens in a session to a file, one JSON object a line, in
// compressed frames unless it was told not to compress. The first line is the
// session's header, the others are its events, numbered from 0.

// version is that of the format. DSH itself reads no other.
const version = "0"

// logs are DSH's sessions on disk.
type logs struct{ hooks.Files }

func newLogs(home func() string) logs {
	return logs{hooks.Files{
		Root: home, Patterns: []string{"sessions/*/*/session.jsonl.zstd", "sessions/*/*/session.jsonl"},
		Describe: func(log *hooks.Log) (bool, error) {
			h, err := readHeader(log.Path)
			log.Session, log.Cwd = client.Session{Host: Host, Scope: "default", ID: h.ID}, h.Cwd
			return h.ID != "" && h.Origin != "subagent", err
		},
	}}
}

// Places implements [hooks.Logs].
func (l logs) Places() []string { return l.Files.Places()[:1] }

// Read implements [hooks.Logs].
func (l logs) Read(log hooks.Log, cursor string) (hooks.LogPage, error) {
	h, err := readHeader(log.Path)
	if err != nil {
		return hooks.LogPage{}, err
	}
	follow := hooks.Follower{Each: reader(log.Path), New: func() hooks.Fold { return &events{seed: h.Seed} }}
	return follow.Page(log.Path, cursor)
}

// reader reads the lines of a session's file.
func reader(path string) hooks.LineReader {
	if strings.HasSuffix(path, ".zstd") {
		return frames.Each
	}
	return hooks.Lines
}

// header is the first line of a session's file.
type header struct {
	Type    string          `json:"type"`
	Version json.RawMessage `json:"version"`
	ID      string          `json:"id"`
	Cwd     string          `json:"cwd"`
	Origin  string          `json:"origin"`
	Seed    int64           `json:"seedLength"` // number of events that were copied from the session that it was forked from
}

// readHeader is zero if the file has no header yet.
func readHeader(path string) (h header, err error) {
	line, err := hooks.Head(path, reader(path))
	if err != nil || line == nil {
		return h, err
	}
	if err := json.Unmarshal(line, &h); err != nil || h.Type != "session" {
		return header{}, &hooks.VersionError{Found: "without a session's header", Known: version}
	}
	if string(h.Version) != version {
		return header{}, &hooks.VersionError{Found: string(h.Version), Known: version}
	}
	return h, nil
}

// events are what was read of a file. Turns begin and end with events of their
// own, between which events belong to them.
type events struct {
	seed  int64 // events before it are another session's
	turns []hooks.LogTurn
	open  bool  // the last of turns goes on
	from  int64 // where it begins
	said  hooks.LogMessage
}

// Turns implements [hooks.Fold].
func (e *events) Turns() (out []hooks.LogTurn) {
	for _, t := range e.turns {
		if len(t.Messages) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// Open implements [hooks.Fold].
func (e *events) Open() (int64, bool) { return e.from, e.open }

// Take implements [hooks.Fold].
func (e *events) Take(line []byte, at int64) (bool, error) {
	if !hooks.OfType(line, "turn/", "user/message", "assistant/message") {
		return true, nil
	}
	var p hooks.Payload
	if json.Unmarshal(line, &p) != nil {
		return false, nil
	}
	seq, err := strconv.ParseInt(p.String("seq"), 10, 64)
	if err != nil || seq < e.seed {
		return err == nil || p.String("type") == "session", nil
	}
	ms, _ := strconv.ParseInt(p.String("time"), 10, 64)
	data, when := p.Object("data"), time.UnixMilli(ms)
	switch kind := p.String("type"); {
	case kind == "turn/start" && data.String("turn") == "":
		return false, nil
	case kind == "turn/start":
		e.end()
		e.turns = append(e.turns, hooks.LogTurn{ID: client.TurnID(data.String("turn"))})
		e.open, e.from, e.said = true, at, hooks.LogMessage{}
	case !e.open:
		// The turn began before what is read.
	case kind == "user/message":
		if data.Object("source").String("kind") == "user" && p.Object("surfaceOp").String("op") != "replace" {
			e.add(hooks.LogMessage{Role: client.User, Text: data.Text("content"), At: when})
		}
	case kind == "assistant/message":
		if text := data.Object("message").Text("content"); text != "" && string(data["interrupted"]) != "true" {
			e.said = hooks.LogMessage{Role: client.Assistant, Text: text, At: when}
		}
	case kind == "turn/end":
		// DSH ends a turn in this way for a process that did not: nobody was told.
		if data.Object("reason").String("kind") != "interrupted" {
			e.add(e.said)
		}
		e.end()
	}
	return true, nil
}

func (e *events) add(m hooks.LogMessage) {
	if m.Text != "" {
		last := &e.turns[len(e.turns)-1]
		last.Messages = append(last.Messages, m)
	}
}

func (e *events) end() {
	if e.open {
		e.turns[len(e.turns)-1].Ended, e.open = true, false
	}
}
