package kimi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/internal/jsonl"
)

// Kimi appends what happens in a session to a file, its wire: one JSON object a
// line, the first of which has the version of the format. The file is written
// behind the hooks: when Stop runs, the end of the turn is on its way.

// wireVersion is the part of the version before the point. Kimi itself takes
// files with another one for unreadable.
const wireVersion = "1"

// logs are Kimi's sessions on disk.
type logs struct {
	hooks.Files
	follow hooks.Follower
}

func newLogs(home func() string) *logs {
	return &logs{
		Files:  hooks.Files{Root: home, Patterns: []string{"sessions/*/*/agents/main/wire.jsonl"}},
		follow: hooks.Follower{New: func() hooks.Fold { return &wire{at: time.Now()} }, Each: hooks.Lines},
	}
}

// List implements [hooks.Logs]. A session is named by its folder; where it works is
// in Kimi's index.
func (l *logs) List(ctx context.Context) iter.Seq2[hooks.Log, error] {
	index := sync.OnceValue(func() map[string]indexed { return sessions(l.Root()) })
	files := l.Files
	files.Describe = func(log *hooks.Log) (bool, error) {
		id := filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(log.Path))))
		log.Session, log.Cwd = client.Session{Host: Host, Scope: "default", ID: id}, index()[id].work
		return true, nil
	}
	return files.List(ctx)
}

// turns implements [hooks.Adapter.ReadLog].
func (l *logs) turns(e hooks.Event, cursor string) (hooks.LogPage, error) {
	path, err := wireOf(l.Root(), e.Session.ID)
	if errors.Is(err, os.ErrNotExist) {
		if turn, ok := selfTest(e); ok {
			return hooks.LogPage{Turns: []hooks.LogTurn{turn}, Next: cursor}, nil
		}
		if e.Kind == hooks.SessionStart {
			return hooks.LogPage{Next: cursor}, nil // `kimi web` has not begun the file by then
		}
	}
	if err != nil {
		return hooks.LogPage{Next: cursor}, err
	}
	return l.follow.Page(path, cursor)
}

// Read implements [hooks.Logs].
func (l *logs) Read(log hooks.Log, cursor string) (hooks.LogPage, error) {
	follow := hooks.Follower{New: l.follow.New, Each: l.follow.Each}
	return follow.Page(log.Path, cursor)
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

// wire is what was read of a file.
type wire struct {
	line int64 // offset of the current one
	at   time.Time

	turns []*turn
	open  *turn    // the last of turns, while it goes on
	said  []string // by the agent in the current step
}

type turn struct {
	hooks.LogTurn
	number string // Kimi's own, which continues over a resume
	from   int64
}

// Turns implements [hooks.Fold].
func (w *wire) Turns() []hooks.LogTurn {
	var out []hooks.LogTurn
	for _, t := range w.turns {
		out = append(out, t.LogTurn)
	}
	return out
}

// Open implements [hooks.Fold].
func (w *wire) Open() (int64, bool) {
	if w.open == nil {
		return 0, false
	}
	return w.open.from, true
}

// Take follows the conversation by one line. Of all that the file has, the
// turn.* lines and the loop's events tell it; events of kind "event" number the
// turns in another way.
func (w *wire) Take(line []byte, at int64) (bool, error) {
	w.line = at
	if !isWanted(line) {
		return true, nil
	}
	var p hooks.Payload
	if json.Unmarshal(line, &p) != nil {
		return len(bytes.TrimSpace(line)) == 0, nil // Kimi skips such a line, too
	}
	if ms, err := strconv.ParseInt(p.String("time"), 10, 64); err == nil && ms > 0 {
		w.at = time.UnixMilli(ms)
	}
	said, user := userText(p)
	switch p.String("type") {
	case "metadata":
		version := p.String("protocol_version")
		if major, _, _ := strings.Cut(version, "."); major != wireVersion {
			return false, &hooks.VersionError{Found: version, Known: wireVersion + ".x"}
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
	return true, nil
}

// isWanted tells whether a line may count, as far as that can be told without
// decoding it: most of a wire is what tools put out.
func isWanted(line []byte) bool {
	if !hooks.OfType(line, "metadata", "turn.", "context.append_loop_event", "context.undone", "forked", "subagent.spawned") {
		return false
	}
	switch string(jsonl.Plain(line, "event", "type")) {
	case "tool.call", "tool.result":
		return false
	}
	return true
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
	t := &turn{number: p.String("turnId"), from: w.line}
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
	if path := wireIn(sessions(home)[session].dir); regular(path) {
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

// indexed is where Kimi's index says that a session is kept, and where it works.
type indexed struct{ dir, work string }

// sessions reads the index.
func sessions(home string) map[string]indexed {
	f, err := os.Open(filepath.Join(home, "session_index.jsonl"))
	if err != nil {
		return nil
	}
	defer f.Close()
	all := map[string]indexed{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var p hooks.Payload
		if json.Unmarshal(lines.Bytes(), &p) == nil {
			all[p.String("sessionId")] = indexed{p.String("sessionDir"), p.String("workDir")}
		}
	}
	return all
}
