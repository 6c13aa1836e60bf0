// Package client is the service contract that hooks rely on (agent contract,
// integration API version 1.0): its types, the [Service] interface, the classes
// of its errors, and [HTTP], the service at a URL.
//
// A Service promises three things. Append is idempotent by event id and
// durable once it has answered. Flush only queues; it never waits for a
// language model unless it is told to. Recall returns data, never instructions.
// Any implementation must pass the suite of package servicetest.
package client

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// APIVersion is the version of the contract spoken here; a service whose major
// number differs must not be used automatically.
const APIVersion = "1.0"

// Service is what a hook needs of a memory.
type Service interface {
	// Append stores the events of one session. It is idempotent by event id and
	// the events are durable when it returns without error; the answer names
	// every event id that the service now holds or has filtered.
	Append(context.Context, AppendRequest) (AppendResult, error)
	// Flush queues the extraction of what was appended to a session.
	Flush(context.Context, FlushRequest) (FlushResult, error)
	// Recall finds what is relevant to a query.
	Recall(context.Context, RecallRequest) (RecallResult, error)
	// Remember writes a note that lasts. The same note of the same day is written
	// once.
	Remember(context.Context, RememberRequest) (Note, error)
	// Info tells which service this is.
	Info(context.Context) (Info, error)
}

// Ledger is a [Service] that tells what it holds. Hooks do without that; who reads
// the logs of hosts does not.
type Ledger interface {
	Service
	// SessionEvents returns the events of a session that the service holds, a page of
	// them at a time.
	SessionEvents(context.Context, SessionEventsRequest) (SessionEventsResult, error)
}

// Role says who spoke.
type Role string

// The roles that a captured event can have.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Event is one message of a conversation.
type Event struct {
	ID        EventID   `json:"event_id"`
	Role      Role      `json:"role"`
	Content   string    `json:"content"`
	CreatedAt time.Time `json:"created_at"`
}

// AppendRequest is the body of agent_session_append.
type AppendRequest struct {
	Session
	Cwd    string  `json:"cwd,omitempty"`
	Events []Event `json:"events"`
}

// AppendResult is the metadata that agent_session_append answers with.
type AppendResult struct {
	Appended  int `json:"appended"`  // events stored by this call
	Duplicate int `json:"duplicate"` // events that were there already
	Filtered  int `json:"filtered"`  // events refused on purpose: empty after cleaning
	Total     int `json:"total"`     // events of the session after this call
	// EventIDs names every event of the request that needs no further delivery.
	EventIDs []EventID `json:"event_ids"`
}

// FlushReason says why a session is flushed.
type FlushReason string

// The reasons for a flush.
const (
	TurnEnd    FlushReason = "turn_end"
	PreCompact FlushReason = "pre_compact"
	SessionEnd FlushReason = "session_end"
	Shutdown   FlushReason = "shutdown"
)

// FlushRequest is the body of agent_session_flush.
type FlushRequest struct {
	Session
	Reason FlushReason `json:"reason"`
	Wait   bool        `json:"wait,omitempty"`
}

// FlushResult is the metadata that agent_session_flush answers with.
type FlushResult struct {
	Queued  bool `json:"queued"`
	Pending int  `json:"pending"` // sessions whose extraction is still to be done
}

// Purpose says what a recall is for. ForSessionStart without a query asks for the
// newest notes of the project and for what was last said in it, ForCompact for what
// was last said in the running session.
type Purpose string

// The purposes of a recall. With ForCompact the running session's own turns may
// be returned; with all others they are left out.
const (
	ForPrompt       Purpose = "prompt"
	ForSessionStart Purpose = "session_start"
	ForCompact      Purpose = "compact"
)

// RecallRequest is the body of agent_memory_recall.
type RecallRequest struct {
	Query    string   `json:"query"`
	Limit    int      `json:"limit,omitempty"`     // items; 0 means 5
	MaxChars int      `json:"max_chars,omitempty"` // of all snippets together, in Unicode code points; 0 means 4000
	Purpose  Purpose  `json:"purpose,omitempty"`
	Host     Host     `json:"host,omitempty"`
	ScopeID  string   `json:"scope_id,omitempty"`
	Session  string   `json:"session_id,omitempty"` // the running session, left out of the answer
	Cwd      string   `json:"cwd,omitempty"`        // memories of the same project rank higher
	Exclude  []string `json:"exclude,omitempty"`    // ids of items that were shown already
}

// RecallResult is the metadata that agent_memory_recall answers with.
type RecallResult struct {
	Items     []Item `json:"items"`
	Truncated bool   `json:"truncated"` // a snippet was cut
	Omitted   int    `json:"omitted"`   // relevant items that limit or max_chars left out
	TookMS    int64  `json:"took_ms"`
}

// Item is one recalled memory.
type Item struct {
	ID        string  `json:"id"`         // stable across rebuilds of an index
	Path      string  `json:"path"`       // relative to the workspace, with slashes
	StartLine int     `json:"start_line"` // 1-based
	EndLine   int     `json:"end_line"`   // inclusive
	Snippet   string  `json:"snippet"`
	Score     float64 `json:"score"` // 0 to 1
	Date      string  `json:"date"`  // YYYY-MM-DD, local to the service
	Host      Host    `json:"host,omitempty"`
	Project   string  `json:"project,omitempty"` // name of the folder that it was said in
	SessionID string  `json:"session_id,omitempty"`
}

// MaxEvents is how many events a page has at most, and if nothing else is asked for.
const MaxEvents = 1000

// MaxEventsText bounds the text of a page's events, in bytes. It has one event at
// least.
const MaxEventsText = 4 << 20

// SessionEventsRequest is the body of agent_session_events.
type SessionEventsRequest struct {
	Session
	Offset int `json:"offset,omitempty"` // events to pass over
	Limit  int `json:"limit,omitempty"`  // of events; 0 means MaxEvents
}

// Validate reports the first field that a service must refuse.
func (r SessionEventsRequest) Validate() error {
	if err := r.Session.Validate(); err != nil {
		return err
	}
	switch {
	case r.Offset < 0:
		return &Error{Class: Permanent, Field: "offset", Reason: "must be 0 or more"}
	case r.Limit < 0 || r.Limit > MaxEvents:
		return &Error{Class: Permanent, Field: "limit", Reason: fmt.Sprintf("must be 1 to %d", MaxEvents)}
	}
	return nil
}

// SessionEventsResult is the metadata that agent_session_events answers with.
type SessionEventsResult struct {
	Events []Event `json:"events"` // in the order in which they were stored
	Total  int     `json:"total"`  // events of the session
}

// RememberRequest is the body of remember.
type RememberRequest struct {
	Content   string    `json:"content"`             // Markdown; must not be blank; at most 256 KiB
	Title     string    `json:"title,omitempty"`     // one line; empty means the first words of Content
	Cwd       string    `json:"cwd,omitempty"`       // the project that it is about
	Host      Host      `json:"host,omitempty"`      // the agent that it comes from
	CreatedAt time.Time `json:"created_at,omitzero"` // zero means now
	Session   *Session  `json:"session,omitempty"`   // the conversation that it sums up, if it does
}

// Note is a note that a service has written.
type Note struct {
	Path        string `json:"path"` // relative to the workspace, with slashes
	Name        string `json:"name"`
	Description string `json:"description"`
	Date        string `json:"date"`    // YYYY-MM-DD
	Created     bool   `json:"created"` // false if the same note was there already
}

// Info is what a service says of itself.
type Info struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	APIVersion string `json:"integration_api_version"`
}

// Compatible returns nil if the service speaks this version of the contract, or
// says what to do about it. Versions with one major number go together.
func (i Info) Compatible() error {
	theirs, _, _ := strings.Cut(i.APIVersion, ".")
	ours, _, _ := strings.Cut(APIVersion, ".")
	their, err := strconv.Atoi(theirs)
	our, _ := strconv.Atoi(ours)
	e := &Error{Class: Configuration, Field: "service"}
	switch {
	case err != nil:
		e.Reason = fmt.Sprintf("%s %s does not speak the agent contract; leave the key service to one that does", cmp.Or(i.Name, "ReMe"), i.Version)
	case their > our:
		e.Reason = fmt.Sprintf("%s %s speaks version %s of the agent contract, this program %s: upgrade reme-hook on this machine", i.Name, i.Version, i.APIVersion, APIVersion)
	case their < our:
		e.Reason = fmt.Sprintf("%s %s speaks version %s of the agent contract, this program %s: upgrade the service", i.Name, i.Version, i.APIVersion, APIVersion)
	default:
		return nil
	}
	return e
}
