package kimi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
)

// Kimi appends what happens in a session to a file, its wire: one JSON object a
// line, the first of which has the version of the format. The file is written
// behind the hooks: when Stop runs, the end of the turn is on its way.

const (
	// wireVersion is the part of the version before the point. Kimi itself takes
	// files with another one for unreadable.
	wireVersion = "1"
	// enough ends a reading between two turns, in bytes. Only the first look at a
	// session that was long before it had hooks gets that far.
	enough = 16 << 20
	// guarded is how much of the text before a cursor must still be the same.
	guarded = 64
)

// reader reads wires. It remembers the last one, as a hook that waits for the
// end of a turn looks many times.
type reader struct {
	home func() string

	mu   sync.Mutex
	last *wire
	read int64 // bytes in all
}

// turns implements [hooks.Adapter.ReadLog].
func (r *reader) turns(e hooks.Event, cursor string) ([]hooks.LogTurn, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	path, err := wireOf(r.home(), e.Session.ID)
	if errors.Is(err, os.ErrNotExist) {
		if turn, ok := selfTest(e); ok {
			return []hooks.LogTurn{turn}, cursor, nil
		}
		if e.Kind == hooks.SessionStart {
			return nil, cursor, nil // `kimi web` has not begun the file by then
		}
	}
	if err != nil {
		return nil, cursor, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, cursor, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, cursor, err
	}
	if r.last == nil || r.last.path != path || r.last.cursor != cursor || !r.last.grewTo(st) {
		r.last = &wire{path: path, cursor: cursor, at: st.ModTime()}
		r.last.next = r.start(f, st.Size(), cursor)
	}
	w := r.last
	w.stat = st
	if w.next < st.Size() {
		err = r.readOn(f, w)
	}
	return w.told(), w.position(f), err
}

// selfTest makes of an event the turn that a session file would tell. Self-tests
// have no such file; their payloads name the turn, as Kimi's never do with a
// prompt or a stop, and their stops have the reply.
func selfTest(e hooks.Event) (hooks.LogTurn, bool) {
	said := hooks.LogMessage{Role: client.User, Text: e.Prompt, At: time.Now()}
	if e.Reply != "" {
		said.Role, said.Text = client.Assistant, e.Reply
	}
	return hooks.LogTurn{ID: e.Turn, Messages: []hooks.LogMessage{said}, Ended: true}, e.Turn != "" && said.Text != ""
}

// start is the offset that a cursor stands for; the beginning, if the file is
// not the one that it was made for.
func (r *reader) start(f io.ReaderAt, size int64, cursor string) int64 {
	offset, sum, _ := strings.Cut(cursor, "-")
	at, err := strconv.ParseInt(offset, 10, 64)
	if err != nil || at < 0 || at > size || guard(f, at) != sum {
		return 0
	}
	r.read += min(at, guarded)
	return at
}

// guard is a checksum of what stands before an offset.
func guard(f io.ReaderAt, at int64) string {
	b := make([]byte, min(at, guarded))
	if _, err := f.ReadAt(b, at-int64(len(b))); err != nil && err != io.EOF {
		return ""
	}
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE(b)), 16)
}

// readOn takes the whole lines that have come since the last time.
func (r *reader) readOn(f io.ReaderAt, w *wire) error {
	begin := w.next
	lines := bufio.NewReaderSize(io.NewSectionReader(f, begin, 1<<62), 64<<10)
	for w.next-begin < enough || w.open != nil {
		line, err := lines.ReadBytes('\n')
		r.read += int64(len(line))
		if err == io.EOF {
			return nil // what there is of a last line is read again when it is whole
		}
		if err != nil {
			return err
		}
		if err := w.take(line); err != nil {
			return err
		}
		w.next += int64(len(line))
	}
	return nil
}

// wire is what was read of a file.
type wire struct {
	path   string
	cursor string // where the reading began
	stat   os.FileInfo
	next   int64 // offset of the first line that was not taken
	at     time.Time

	turns []*turn
	open  *turn    // the last of turns, while it goes on
	said  []string // by the agent in the current step
}

type turn struct {
	hooks.LogTurn
	number string // Kimi's own, which continues over a resume
	from   int64
}

// grewTo tells whether what was read is the beginning of a file.
func (w *wire) grewTo(st os.FileInfo) bool {
	return os.SameFile(w.stat, st) && w.next <= st.Size()
}

func (w *wire) told() []hooks.LogTurn {
	var out []hooks.LogTurn
	for _, t := range w.turns {
		out = append(out, t.LogTurn)
	}
	return out
}

// position is the cursor of the first turn that has not ended.
func (w *wire) position(f io.ReaderAt) string {
	at := w.next
	if w.open != nil {
		at = w.open.from
	}
	return fmt.Sprintf("%d-%s", at, guard(f, at))
}

// take follows the conversation by one line. Of all that the file has, the
// turn.* lines and the loop's events tell it; events of kind "event" number the
// turns in another way.
func (w *wire) take(line []byte) error {
	if !of(line, "metadata", "turn.", "context.append_loop_event", "context.undone", "forked", "subagent.spawned") {
		return nil
	}
	var p hooks.Payload
	if json.Unmarshal(line, &p) != nil {
		return nil // Kimi skips such a line, too
	}
	if ms, err := strconv.ParseInt(p.String("time"), 10, 64); err == nil && ms > 0 {
		w.at = time.UnixMilli(ms)
	}
	said, user := userText(p)
	switch p.String("type") {
	case "metadata":
		version := p.String("protocol_version")
		if major, _, _ := strings.Cut(version, "."); major != wireVersion {
			return fmt.Errorf("kimi's session file has version %q, this reme-hook knows %s.x; is there a newer one?", version, wireVersion)
		}
	case "turn.prompt":
		w.end()
		if user {
			w.begin(p, p.String("promptId"))
			w.add(client.User, said)
		}
	case "turn.steer":
		if !user {
			break
		}
		if w.open == nil {
			// The agent had answered: without the cursor's help this would look the same.
			w.begin(p, p.String("messageId"))
		}
		w.add(client.User, said)
	case "context.append_loop_event":
		w.step(p.Object("event"))
	case "subagent.spawned":
		if w.open != nil {
			w.open.Delegated = string(p["runInBackground"]) == "false"
		}
	case "turn.ended":
		if w.open != nil && w.open.number == p.String("turnId") {
			w.end()
		}
	case "context.undone":
		w.undo(p.String("fromTurnId"))
	case "forked":
		// What stands above was copied from another session.
		w.turns, w.open, w.said = nil, nil, nil
	}
	return nil
}

// userText is what the user typed of a turn's input, and whether it came from the
// user. A skill or a plugin's command is expanded there; what was typed is in the
// origin.
func userText(p hooks.Payload) (string, bool) {
	origin := p.Object("origin")
	name, args := "", ""
	switch origin.String("kind") {
	case "user":
		var skills, input []json.RawMessage
		json.Unmarshal(origin["skillActivations"], &skills)
		if len(skills) > 0 && json.Unmarshal(p["input"], &input) == nil && len(input) >= len(skills) {
			rest, err := json.Marshal(input[len(skills):])
			return hooks.Payload{"input": rest}.Text("input"), err == nil
		}
		return p.Text("input"), true
	case "skill_activation":
		name, args = origin.String("skillName"), origin.String("skillArgs")
	case "plugin_command":
		name, args = origin.String("pluginId")+":"+origin.String("commandName"), origin.String("commandArgs")
	}
	return strings.TrimSpace("/" + name + " " + args), name != "" && origin.String("trigger") == "user-slash"
}

// of tells whether a line is of a type that begins with one of some words, as
// far as that can be told without decoding it: a tool's output can be long.
func of(line []byte, types ...string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(`{"type":"`))
	for _, t := range types {
		if bytes.HasPrefix(rest, []byte(t)) {
			return true
		}
	}
	return !ok
}

// step follows the steps of a turn. The agent's answer is the text of the last
// one.
func (w *wire) step(event hooks.Payload) {
	switch event.String("type") {
	case "step.begin":
		w.said = nil
		if w.open == nil {
			// Nobody of the conversation asked: a task in the background did, or another
			// hook made the agent go on.
			w.begin(event, event.String("uuid"))
		}
		w.open.Delegated = false
	case "content.part":
		if part := event.Object("part"); part.String("type") == "text" {
			w.said = append(w.said, part.String("text"))
		}
	case "step.end":
		switch event.String("finishReason") {
		case "tool_use", "error": // another step follows, also after some errors
		default:
			w.end()
		}
	}
}

func (w *wire) begin(p hooks.Payload, id string) {
	t := &turn{number: p.String("turnId"), from: w.next}
	if id == "" {
		id = "turn-" + t.number
	}
	t.ID = client.TurnID(id)
	w.open = t
	w.turns = append(w.turns, t)
	w.said = nil
}

func (w *wire) end() {
	if w.open == nil {
		return
	}
	w.add(client.Assistant, strings.Join(w.said, "\n\n"))
	w.open.Ended = true
	w.open, w.said = nil, nil
}

func (w *wire) add(role client.Role, text string) {
	if text != "" {
		w.open.Messages = append(w.open.Messages, hooks.LogMessage{Role: role, Text: text, At: w.at})
	}
}

// undo drops the turns that the user took back before they were told.
func (w *wire) undo(from string) {
	first, err := strconv.Atoi(from)
	if err != nil {
		return
	}
	for i, t := range w.turns {
		if n, err := strconv.Atoi(t.number); err == nil && n >= first {
			w.turns, w.open, w.said = w.turns[:i], nil, nil
			return
		}
	}
}

// wireOf finds the wire of a session's main agent: in the folder of one of the
// workspaces, or where the index says.
func wireOf(home, session string) (string, error) {
	if !filepath.IsLocal(session) || session != filepath.Base(session) {
		return "", fmt.Errorf("find the session's file: %w", os.ErrNotExist)
	}
	all := filepath.Join(home, "sessions")
	workspaces, err := os.ReadDir(all)
	if err != nil {
		return "", err
	}
	for _, workspace := range workspaces {
		if path := wireIn(filepath.Join(all, workspace.Name(), session)); regular(path) {
			return path, nil
		}
	}
	if path := wireIn(indexed(home, session)); regular(path) {
		return path, nil
	}
	return "", fmt.Errorf("find the session's file in %s: %w", all, os.ErrNotExist)
}

func wireIn(sessionDir string) string {
	return filepath.Join(sessionDir, "agents", "main", "wire.jsonl")
}

func regular(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// indexed is the folder that Kimi's index has for a session, "" if it has none.
func indexed(home, session string) string {
	f, err := os.Open(filepath.Join(home, "session_index.jsonl"))
	if err != nil {
		return ""
	}
	defer f.Close()
	dir := ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var p hooks.Payload
		if bytes.Contains(lines.Bytes(), []byte(session)) && json.Unmarshal(lines.Bytes(), &p) == nil && p.String("sessionId") == session {
			dir = p.String("sessionDir")
		}
	}
	return dir
}
