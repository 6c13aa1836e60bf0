package claudecode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/internal/jsonl"
)

// Claude Code appends what happens in a session to a file, its transcript: one
// JSON object a line, an assistant's message in one line for each of its blocks.
// Only lines of the types user and assistant tell the conversation.

// logs are Claude Code's sessions on disk.
type logs struct{ hooks.Files }

func newLogs(home func() string) logs {
	return logs{hooks.Files{Root: home, Patterns: []string{"projects/*/*.jsonl"}, Describe: describe}}
}

// describe names a session by its file.
func describe(log *hooks.Log) (ok bool, err error) {
	id := strings.TrimSuffix(filepath.Base(log.Path), ".jsonl")
	log.Session = client.Session{Host: Host, Scope: "default", ID: id}
	return !strings.HasPrefix(id, "agent-"), nil // older releases kept those of subagents beside the sessions
}

// Read implements [hooks.Logs].
func (l logs) Read(log hooks.Log, cursor string) (hooks.LogPage, error) {
	follow := hooks.Follower{Each: hooks.Lines, New: func() hooks.Fold {
		return &transcript{session: log.Session.ID, settled: log.Settled(time.Now())}
	}}
	return follow.Page(log.Path, cursor)
}

// transcript is what was read of a file. A fork begins with copies of another
// session's lines, under the id of the fork and of its first prompt: those of
// users are older than what stands above them, those of the agent name the
// session that they are from.
type transcript struct {
	session string
	settled bool      // nothing more is expected
	begin   int64     // offset of the first line that was taken
	begun   bool      // there was one
	latest  time.Time // of what the lines say
	turns   []*turn
}

type turn struct {
	hooks.LogTurn
	from    int64
	begun   time.Time
	command bool // begun by a command, which may be the host's own
	said    hooks.LogMessage
	// message is the id of the one that ended the turn, as far as it is known.
	message string
	reply   int // index of the reply in Messages, if message is set
}

// row is a line of a transcript.
type row struct {
	Type      string    `json:"type"`
	PromptID  string    `json:"promptId"`
	UUID      string    `json:"uuid"`
	Session   string    `json:"sessionId"`
	Timestamp time.Time `json:"timestamp"`
	Cwd       string    `json:"cwd"`
	Sidechain bool      `json:"isSidechain"`
	Meta      bool      `json:"isMeta"`
	Summary   bool      `json:"isCompactSummary"`
	Visible   bool      `json:"isVisibleInTranscriptOnly"`
	Error     bool      `json:"isApiErrorMessage"`
	From      string    `json:"requestSessionId"` // of an answer that was copied: the session that it was given in
	Source    string    `json:"promptSource"`
	Message   struct {
		ID         string          `json:"id"`
		Model      string          `json:"model"`
		Content    json.RawMessage `json:"content"`
		StopReason string          `json:"stop_reason"`
	} `json:"message"`
	Attachment struct {
		Mode   string          `json:"commandMode"` // "prompt" if the user wrote it
		Prompt json.RawMessage `json:"prompt"`
	} `json:"attachment"`
}

// Turns implements [hooks.Fold].
func (t *transcript) Turns() []hooks.LogTurn {
	if last := t.last(); last != nil && t.settled {
		last.end()
	}
	var out []hooks.LogTurn
	for _, turn := range t.turns {
		// Of a command that the host ran itself nothing follows.
		if len(turn.Messages) > 0 && (!turn.command || turn.message != "" || turn.said.Text != "") {
			out = append(out, turn.LogTurn)
		}
	}
	return out
}

// Open implements [hooks.Fold]. A hook can make the agent go on after any answer,
// so the last turn is never over; and what stands before the first turn tells the
// copies in a fork.
func (t *transcript) Open() (int64, bool) {
	if last := t.last(); last != nil {
		return last.from, true
	}
	return t.begin, t.begun
}

func (t *transcript) last() *turn {
	if len(t.turns) == 0 {
		return nil
	}
	return t.turns[len(t.turns)-1]
}

// Take implements [hooks.Fold].
func (t *transcript) Take(line []byte, at int64) (bool, error) {
	if !t.begun {
		t.begin, t.begun = at, true
	}
	if len(line) == 0 || !isWanted(line) {
		return len(line) == 0 || line[len(line)-1] == '}', nil
	}
	var r row
	if json.Unmarshal(line, &r) != nil {
		return false, nil
	}
	if r.Sidechain || r.Meta || r.Summary || r.Visible || r.Session != t.session {
		return true, nil
	}
	if r.Type == "attachment" {
		t.inserted(&r)
		return true, nil
	}
	copied := t.latest.Sub(r.Timestamp) > time.Second
	if r.Timestamp.After(t.latest) {
		t.latest = r.Timestamp
	}
	switch r.Type {
	case "user":
		if !copied {
			t.user(&r, at)
		}
	case "assistant":
		if r.From != "" && r.From != t.session {
			t.turns = nil // as all that stands above
			break
		}
		// After an interruption the host puts words into the agent's mouth.
		if last := t.last(); last != nil && !r.Error && r.Message.Model != "<synthetic>" {
			last.answer(&r)
		}
	}
	return true, nil
}

// isWanted tells whether a line may count, as far as that can be told without
// decoding it: most of a transcript is tools' results, and they are long.
func isWanted(line []byte) bool {
	switch string(jsonl.Plain(line, "type")) {
	case "", "assistant", "queue-operation":
		return true
	case "user":
		return !jsonl.Has(line, "toolUseResult")
	case "attachment":
		return string(jsonl.Plain(line, "attachment", "type")) == "queued_command"
	}
	return false
}

// interrupted begins what the host writes in the user's name when the user stops
// the agent.
const interrupted = "[Request interrupted by user"

func (t *transcript) user(r *row, at int64) {
	text, isResult := text(r.Message.Content)
	switch {
	case isResult, strings.HasPrefix(text, "<local-command-"):
		return
	case strings.HasPrefix(text, interrupted):
		if last := t.last(); last != nil {
			last.said, last.Ended = hooks.LogMessage{}, true
		}
		return
	}
	id := cmp.Or(r.PromptID, r.UUID)
	if id == "" {
		return
	}
	last := t.last()
	if last == nil || string(last.ID) != id {
		if last != nil {
			last.end()
		}
		last = &turn{LogTurn: hooks.LogTurn{ID: client.TurnID(id), Cwd: r.Cwd}, from: at, begun: r.Timestamp}
		t.turns = append(t.turns, last)
	}
	if r.Source == "system" { // nobody wrote it, but it is answered
		return
	}
	if typed, ok := command(text); ok {
		text, last.command = typed, true
	}
	last.Messages = append(last.Messages, hooks.LogMessage{Role: client.User, Text: text, At: r.Timestamp})
}

// inserted takes what the user said in the middle of a turn. Its time is that of the
// saying; the line is written when the agent is told, maybe after a tool's end. One
// that is older than the turn was copied.
func (t *transcript) inserted(r *row) {
	said, _ := text(r.Attachment.Prompt)
	last := t.last()
	if r.Attachment.Mode != "prompt" || said == "" || last == nil || r.Timestamp.Before(last.begun) {
		return
	}
	last.Messages = append(last.Messages, hooks.LogMessage{Role: client.User, Text: said, At: r.Timestamp})
}

// answer takes a line of the agent's. The turn is answered by the last text block
// of a message that does not go on with a tool.
func (t *turn) answer(r *row) {
	said, _ := text(r.Message.Content)
	if said == "" {
		if r.Message.StopReason == "tool_use" || bytes.Contains(r.Message.Content, []byte(`"tool_use"`)) {
			t.said = hooks.LogMessage{}
		}
		return
	}
	m := hooks.LogMessage{Role: client.Assistant, Text: said, At: r.Timestamp}
	switch r.Message.StopReason {
	case "tool_use":
		t.said = hooks.LogMessage{}
	case "": // older releases do not tell: what follows does
		t.said = m
	default:
		t.answered(m, r.Message.ID)
	}
}

// answered notes an answer. The same words again are none.
func (t *turn) answered(m hooks.LogMessage, message string) {
	switch {
	case t.message != "" && t.message == message:
		t.Messages[t.reply] = m
	case t.message == "" || t.Messages[t.reply].Text != m.Text:
		t.reply = len(t.Messages)
		t.Messages = append(t.Messages, m)
	}
	t.message, t.said, t.Ended = cmp.Or(message, "-"), hooks.LogMessage{}, true
}

// end closes a turn after which another begins.
func (t *turn) end() {
	if t.said.Text != "" {
		t.answered(t.said, "")
	}
	t.Ended = true
}

var elements = regexp.MustCompile(`(?s)<command-name>(.*?)</command-name>(?:.*?<command-args>(.*?)</command-args>)?`)

// command is what the user typed when a command was expanded.
func command(text string) (typed string, ok bool) {
	if !strings.HasPrefix(text, "<command-") {
		return "", false
	}
	m := elements.FindStringSubmatch(text)
	if m == nil {
		return "", true
	}
	name := m[1]
	if !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	return strings.TrimSpace(name + " " + m[2]), true
}

// text joins the text blocks of a message's content, and tells whether it is a
// tool's result.
func text(content json.RawMessage) (s string, isResult bool) {
	if len(content) > 0 && content[0] == '"' {
		json.Unmarshal(content, &s)
		return s, false
	}
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &blocks) != nil {
		return "", false
	}
	var texts []string
	for _, b := range blocks {
		isResult = isResult || b.Type == "tool_result"
		if b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n")), isResult
}
