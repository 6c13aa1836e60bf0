package client

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Host names a coding agent: codex, claude-code …
type Host string

// Slug is the host's name as a folder name.
func (h Host) Slug() string { return slug(string(h), 20) }

// IsName tells whether commands and services take the host as it is: letters,
// digits and single dashes, at most 20 of them.
func (h Host) IsName() bool { return h.Slug() == string(h) }

// Session names one conversation of one host, in the host's own words.
type Session struct {
	Host  Host   `json:"host"`
	Scope string `json:"scope_id"`   // a profile or agent of the host; "default" where it has none
	ID    string `json:"session_id"` // as the host gave it
}

// SessionKey names a session on disk: safe as a file name on every system and
// for ReMe, at most 120 bytes, different for different sessions.
type SessionKey string

// Key is the only way to make a SessionKey. The readable parts are shortened;
// the hash over the raw values keeps keys apart.
func (s Session) Key() SessionKey {
	sum := s.digest()
	return SessionKey(s.Host.Slug() + "-" + slug(s.Scope, 24) + "-" + slug(s.ID, 48) + "-" + hex.EncodeToString(sum[:6]))
}

// RemoteID names the session at a ReMe, which keeps all sessions in one folder: the
// host and 32 hex digits over the same raw values as the key's.
func (s Session) RemoteID() string {
	sum := s.digest()
	return s.Host.Slug() + "-" + hex.EncodeToString(sum[:16])
}

func (s Session) digest() [sha256.Size]byte {
	return sha256.Sum256([]byte(string(s.Host) + "\x00" + s.Scope + "\x00" + s.ID))
}

// slug keeps ASCII letters and digits of s, at most max bytes; each other run
// becomes one dash.
func slug(s string, max int) string {
	var b strings.Builder
	dash := false
	for _, r := range s {
		if b.Len() >= max {
			break
		}
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			b.WriteRune(r)
			dash = false
		case !dash && b.Len() > 0:
			b.WriteByte('-')
			dash = true
		}
	}
	if out := strings.TrimRight(b.String(), "-"); out != "" {
		return out
	}
	return "x"
}

// TurnID names one turn of a session: the host's own turn or message id, or the
// session ordinal where the host has none.
type TurnID string

// EventID names one message: "<turn>:<role>", or "<turn>:<role>:<n>" for the
// n-th message of that role in the turn, counted from 1.
type EventID string

// NewEventID names the n-th message (1-based) of a role in a turn.
func NewEventID(turn TurnID, role Role, n int) EventID {
	id := string(turn) + ":" + string(role)
	if n > 1 {
		id += ":" + strconv.Itoa(n)
	}
	return EventID(id)
}

// Turn is the part of the id that names the turn; the whole id if it was not
// made by [NewEventID].
func (e EventID) Turn() TurnID {
	s := string(e)
	if i := strings.LastIndexByte(s, ':'); i > 0 {
		if n, err := strconv.Atoi(s[i+1:]); err == nil && n > 1 {
			s = s[:i]
		}
	}
	for _, role := range []Role{User, Assistant} {
		if turn, ok := strings.CutSuffix(s, ":"+string(role)); ok {
			return TurnID(turn)
		}
	}
	return TurnID(e)
}

// Validate reports the first field of the session that a service must refuse.
func (s Session) Validate() error {
	for _, f := range []struct{ name, value string }{{"host", string(s.Host)}, {"scope_id", s.Scope}, {"session_id", s.ID}} {
		switch {
		case f.value == "":
			return &Error{Class: Permanent, Field: f.name, Reason: "must not be empty"}
		case len(f.value) > 1024:
			return &Error{Class: Permanent, Field: f.name, Reason: "must be at most 1024 bytes"}
		case !utf8.ValidString(f.value), strings.ContainsRune(f.value, 0):
			return &Error{Class: Permanent, Field: f.name, Reason: "must be UTF-8 without NUL"}
		}
	}
	return nil
}
