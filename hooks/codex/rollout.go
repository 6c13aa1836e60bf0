package codex

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/internal/jsonl"
)

// Codex appends what happens in a session to a file, its rollout: one JSON object
// a line. Its text is in the lines of type event_msg; the response_item lines
// hold it once more, among what the host and its hooks add.

// logs are Codex's sessions on disk.
type logs struct{ hooks.Files }

func newLogs(home func() string) logs {
	return logs{hooks.Files{Root: home, Patterns: []string{"sessions/*/*/*/rollout-*.jsonl", "archived_sessions/rollout-*.jsonl"}, Describe: describe}}
}

// describe reads the head of a rollout. It is not ok if no user speaks there.
func describe(log *hooks.Log) (ok bool, err error) {
	head, err := hooks.Head(log.Path, hooks.Lines)
	if err != nil || head == nil {
		return false, err // it has just been made
	}
	var line struct {
		Type    string `json:"type"`
		Payload struct {
			ID     string          `json:"id"`
			Cwd    string          `json:"cwd"`
			Thread string          `json:"thread_source"`
			Source json.RawMessage `json:"source"`
		} `json:"payload"`
	}
	if !hooks.Decode(head, &line) || line.Type != "session_meta" {
		return false, &hooks.VersionError{Found: "without session_meta", Known: "rollouts that begin with it"}
	}
	meta := &line.Payload
	if jsonl.Has(meta.Source, "subagent") || meta.Thread == "subagent" || meta.ID == "" {
		return false, nil
	}
	log.Session = client.Session{Host: Host, Scope: "default", ID: meta.ID}
	log.Cwd = meta.Cwd
	return true, nil
}

// Read implements [hooks.Logs].
func (l logs) Read(log hooks.Log, cursor string) (hooks.LogPage, error) {
	follow := hooks.Follower{Each: hooks.Lines, New: func() hooks.Fold {
		return &rollout{session: log.Session.ID, settled: log.Settled(time.Now())}
	}}
	return follow.Page(log.Path, cursor)
}

// rollout is what was read of a file.
type rollout struct {
	session string
	settled bool // nothing more is expected
	turns   []*turn
	open    *turn // the last of turns, while it goes on
}

type turn struct {
	hooks.LogTurn
	untold bool // where it ends: older files tell the texts alone
	from   int64
	said   hooks.LogMessage // by the agent, since it last stopped
	reply  string           // with which it last stopped
}

// Turns implements [hooks.Fold].
func (r *rollout) Turns() []hooks.LogTurn {
	if r.settled && r.open != nil && r.open.untold {
		r.open.stop("", time.Time{})
		r.open.Ended, r.open = true, nil
	}
	var out []hooks.LogTurn
	for _, t := range r.turns {
		if len(t.Messages) > 0 && !copied(string(t.ID), r.session) {
			out = append(out, t.LogTurn)
		}
	}
	return out
}

// Open implements [hooks.Fold].
func (r *rollout) Open() (int64, bool) {
	if r.open == nil {
		return 0, false
	}
	return r.open.from, true
}

// copied tells whether a turn is older than its session: it came from the one
// that the session was forked from. Both ids begin with the time at which they
// were made (UUID version 7).
func copied(turn, session string) bool {
	const seconds = len("01a228ff-d449")
	v7 := func(id string) bool { return len(id) == 36 && id[14] == '7' }
	return v7(turn) && v7(session) && turn[:seconds] < session[:seconds]
}

// isWanted tells whether a line may count, as far as that can be told without
// decoding it: most of a rollout is what tools put out.
func isWanted(line []byte) bool {
	switch string(jsonl.Plain(line, "type")) {
	case "", "turn_context":
		return true
	case "event_msg":
	default:
		return false
	}
	switch string(jsonl.Plain(line, "payload", "type")) {
	case "", "task_started", "task_complete", "turn_aborted", "user_message", "agent_message":
		return true
	case "item_completed":
	default:
		return false
	}
	switch string(jsonl.Plain(line, "payload", "item", "type")) {
	case "", "UserMessage", "AgentMessage", "HookPrompt":
		return true
	}
	return false
}

// row is a line of a rollout, as far as it tells the conversation.
type row struct {
	Timestamp string          `json:"timestamp"`
	Ordinal   json.RawMessage `json:"ordinal"` // files that number their lines tell the texts as items
	Type      string          `json:"type"`
	Payload   struct {
		Type    string        `json:"type"`
		Turn    string        `json:"turn_id"`
		Cwd     string        `json:"cwd"`
		Message hooks.Content `json:"message"`
		Last    hooks.Content `json:"last_agent_message"`
		Item    struct {
			Type    string          `json:"type"`
			Content json.RawMessage `json:"content"`
		} `json:"item"`
	} `json:"payload"`
}

// Take implements [hooks.Fold].
func (r *rollout) Take(line []byte, at int64) (bool, error) {
	if len(line) == 0 || !isWanted(line) {
		return len(line) == 0 || line[len(line)-1] == '}', nil
	}
	var l row
	if !hooks.Decode(line, &l) {
		return false, nil
	}
	event, paginated := &l.Payload, l.Ordinal != nil
	when, _ := time.Parse(time.RFC3339Nano, l.Timestamp)
	switch kind := event.Type; {
	case l.Type == "turn_context":
		if r.open != nil && event.Turn == string(r.open.ID) {
			r.open.Cwd = event.Cwd
		}
	case l.Type != "event_msg":
	case kind == "task_started":
		r.turn(event.Turn, at)
	case kind == "item_completed" && paginated:
		r.item(&l, at, when)
	case kind == "user_message" && !paginated:
		if r.open != nil && r.open.untold && r.open.said.Text != "" {
			r.open.stop("", when)
			r.open.Ended, r.open = true, nil
		}
		r.turn("", at).add(client.User, string(event.Message), when)
	case kind == "agent_message" && !paginated && r.open != nil:
		r.open.said = hooks.LogMessage{Text: string(event.Message), At: when}
	case kind == "task_complete":
		if r.open != nil {
			r.open.stop(string(event.Last), when)
			r.open.Ended, r.open = true, nil
		}
	case kind == "turn_aborted":
		if r.open != nil {
			r.open.Ended, r.open = true, nil
		}
	}
	return true, nil
}

func (r *rollout) item(l *row, at int64, when time.Time) {
	t := r.turn(l.Payload.Turn, at)
	switch item := l.Payload.Item; item.Type {
	case "UserMessage":
		t.add(client.User, userText(item.Content), when)
	case "AgentMessage":
		t.said = hooks.LogMessage{Text: agentText(item.Content), At: when}
	case "HookPrompt": // a hook made the agent go on after it had stopped
		t.stop("", when)
	}
}

// userText is what the user said in the content of an item, as hooks are told it:
// the parts follow each other without a gap, pictures are left out.
func userText(content json.RawMessage) string {
	var parts []struct{ Type, Text string }
	json.Unmarshal(content, &parts)
	var all strings.Builder
	for _, p := range parts {
		if p.Type == "text" {
			all.WriteString(p.Text)
		}
	}
	return all.String()
}

// agentText is what the agent said in the content of an item, whose parts have the
// type "Text".
func agentText(content json.RawMessage) string {
	var parts []struct{ Type, Text string }
	json.Unmarshal(content, &parts)
	var texts []string
	for _, p := range parts {
		if strings.EqualFold(p.Type, "text") && p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// migrated begins the ids that `codex migrate-rollouts` makes for turns that had none.
const migrated = "rollout-"

// turn is the turn with an id, the one that goes on if that is "". It begins
// here, if it is another one.
func (r *rollout) turn(id string, at int64) *turn {
	if r.open != nil && (id == "" || string(r.open.ID) == id) {
		return r.open
	}
	if r.open != nil {
		r.open.Ended = true // without an end in the log: Codex was killed
	}
	t := &turn{LogTurn: hooks.LogTurn{ID: client.TurnID(id)}, from: at, untold: id == ""}
	if t.untold {
		t.ID = client.TurnID(fmt.Sprintf("at-%d", at)) // the file only grows
	}
	t.Unnamed = t.untold || strings.HasPrefix(id, migrated)
	r.open = t
	r.turns = append(r.turns, r.open)
	return r.open
}

func (t *turn) add(role client.Role, text string, when time.Time) {
	if text != "" {
		t.Messages = append(t.Messages, hooks.LogMessage{Role: role, Text: text, At: when})
	}
}

// stop takes the last of what the agent said for its answer. The same words again
// are none.
func (t *turn) stop(reply string, when time.Time) {
	if reply != "" {
		t.said = hooks.LogMessage{Text: reply, At: when}
	}
	if t.said.Text != t.reply {
		t.add(client.Assistant, t.said.Text, t.said.At)
		t.reply = t.said.Text
	}
	t.said = hooks.LogMessage{}
}
