package upstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// The bounds of a request. ReMe takes half a mebibyte and forgets a whole one.
const (
	maxTurns   = 5        // as ReMe's own plugins send
	maxBody    = 64 << 10 // bytes of JSON
	maxMessage = 32 << 10 // bytes of the text of a message
	cutMark    = "\n[… cut …]\n"
	// rowTime sorts as text the way it does in time: ReMe sorts messages so.
	rowTime = "2006-01-02T15:04:05.000000-07:00"
)

// request is the body of auto_memory.
type request struct {
	RequestID string    `json:"request_id"`
	SessionID string    `json:"session_id"`
	Date      string    `json:"date,omitempty"` // of the note, in the server's zone; without it the server decides
	Messages  []message `json:"messages"`
}

// message is an AgentScope Msg as far as it must be sent.
type message struct {
	ID        string      `json:"id"`
	Role      client.Role `json:"role"`
	Name      client.Role `json:"name"`
	Content   string      `json:"content"`
	CreatedAt string      `json:"created_at"`
	Metadata  metadata    `json:"metadata"`
}

// metadata tells our own index what a copy is a copy of.
type metadata struct {
	Host    client.Host   `json:"host"`
	Scope   string        `json:"scope_id"`
	Session string        `json:"session_id"`
	Turn    client.TurnID `json:"turn_id"`
	Cwd     string        `json:"cwd"`
}

// batch is a request, frozen before it is first sent.
type batch struct {
	Version int `json:"version"`
	client.Session
	Number   int       `json:"number"` // within the session, from 1
	Day      string    `json:"day"`
	Turns    int       `json:"turns"`
	Taken    []string  `json:"taken"` // the messages in it, as session.Taken has them
	Body     string    `json:"body"`  // what is sent, byte for byte
	FrozenAt time.Time `json:"frozen_at"`
	// Generation counts the names that the request had before.
	Generation int `json:"generation,omitempty"`

	// SentAt is set while a try is under way; it stays if nobody knows how that ended.
	SentAt    time.Time `json:"sent_at,omitzero"`
	Tries     int       `json:"tries,omitempty"` // that ended with an answer to this request alone
	NotBefore time.Time `json:"not_before,omitzero"`
	Class     string    `json:"class,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	// Repeated counts the tries after one that may have done the work, at a server
	// that cannot tell.
	Repeated int `json:"repeated,omitempty"`
}

// version is that of all files.
const version = 1

// taken is the part of a message's id that tells it from the others of its session.
func taken(id client.EventID) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// messageID names a message for ReMe, the same whenever it is sent.
func messageID(s client.Session, id client.EventID) string {
	sum := sha256.Sum256([]byte(string(s.Key()) + "\x00" + string(id)))
	return s.Host.Slug() + "-" + hex.EncodeToString(sum[:16])
}

// requestID names a batch by its messages. generation is 0, or counts the times
// that a batch was given up and sent again under another name.
func requestID(messages []message, generation int) string {
	h := sha256.New()
	for _, m := range messages {
		h.Write([]byte(m.ID + "\x00"))
	}
	h.Write(bytes.Repeat([]byte{1}, generation))
	return hex.EncodeToString(h.Sum(nil))
}

// shortened cuts the middle out of a long text, visibly.
func shortened(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxMessage {
		return text
	}
	half := (maxMessage - len(cutMark)) / 2
	head, tail := half, len(text)-half
	for !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + cutMark + text[tail:]
}

// cutter makes a batch of the messages of a session, in the order of the dialog.
type cutter struct {
	zone     *time.Location // of the server, nil if it did not tell
	messages []message
	taken    []string
	turns    int
	turn     client.TurnID // the one that goes on
	start    int           // where it begins in messages
	replied  bool
	day      string // of all turns in it
	size     int
	full     bool // a further message does not belong to it
	session  client.Session
}

func (c *cutter) dayOf(t time.Time) string {
	if c.zone == nil {
		return t.UTC().Format(time.DateOnly)
	}
	return t.In(c.zone).Format(time.DateOnly)
}

// add takes a message, or reports that the batch is full.
func (c *cutter) add(m workspace.Message) (ok bool) {
	out := message{
		ID: messageID(m.Session, m.ID), Role: m.Role, Name: m.Role, Content: shortened(m.Content), CreatedAt: m.CreatedAt.UTC().Format(rowTime),
		Metadata: metadata{m.Session.Host, m.Session.Scope, m.Session.ID, m.Turn, m.Cwd},
	}
	size := len(encode(out)) + 1
	fresh := len(c.messages) == 0 || m.Turn != c.turn || m.Turn == ""
	if fresh {
		if c.turns == maxTurns || c.turns > 0 && c.dayOf(m.CreatedAt) != c.day {
			c.full = true
			return false
		}
	}
	if len(c.messages) > 0 && c.size+size > maxBody-overhead {
		c.full = true
		if !fresh && c.start > 0 { // the whole turn goes into the next one
			c.messages, c.taken = c.messages[:c.start], c.taken[:c.start]
			c.turns--
		}
		return false
	}
	if fresh {
		c.turns++
		c.turn, c.start, c.replied = m.Turn, len(c.messages), false
		if c.turns == 1 {
			c.day, c.session = c.dayOf(m.CreatedAt), m.Session
		}
	}
	c.replied = c.replied || m.Role == client.Assistant
	c.messages, c.taken = append(c.messages, out), append(c.taken, taken(m.ID))
	c.size += size
	return true
}

// overhead is more than a request has beside its messages.
const overhead = 512

// closed tells whether the batch need not wait for more.
func (c *cutter) closed() bool { return c.full || c.turns == maxTurns && c.replied }

// freeze makes the batch that is to be sent.
func (c *cutter) freeze(number int, now time.Time) batch {
	r := request{RequestID: requestID(c.messages, 0), SessionID: c.session.RemoteID(), Messages: c.messages}
	if c.zone != nil {
		r.Date = c.day
	}
	return batch{
		Version: version, Session: c.session, Number: number, Day: c.day, Turns: c.turns, Taken: slices.Clone(c.taken), Body: encode(r), FrozenAt: now,
	}
}

// again is the batch under another name, because ReMe has an answer for the old
// one.
func (b batch) again(now time.Time) (batch, error) {
	var r request
	if err := json.Unmarshal([]byte(b.Body), &r); err != nil {
		return b, err
	}
	b.Generation++
	r.RequestID = requestID(r.Messages, b.Generation)
	b.Body, b.FrozenAt = encode(r), now
	b.SentAt, b.Tries, b.NotBefore, b.Class, b.Reason, b.Repeated = time.Time{}, 0, time.Time{}, "", "", 0
	return b, nil
}

// encode writes JSON without the escapes that HTML needs.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // only structs of strings and numbers come here
	}
	return strings.TrimSuffix(b.String(), "\n")
}
