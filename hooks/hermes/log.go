package hermes

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/install"
	"github.com/agentscope-ai/reme-hook/internal/durable"
	"github.com/agentscope-ai/reme-hook/internal/rows"
)

// Hermes keeps the sessions of a profile in a database, state.db: a row for each
// message, numbered in the order in which they came. There are no ids of turns.
// The provider names a turn by the last row that its session had when it began.

// schema is the version of the database that is known. Hermes brings older ones up
// to its own when it starts.
const schema = "22"

// logs are Hermes' sessions on disk.
type logs struct {
	env func() install.Env
}

// Places implements [hooks.Logs].
func (l logs) Places() []string {
	root := hermesHome(l.env())
	if profiles := filepath.Dir(root); filepath.Base(profiles) == "profiles" {
		root = filepath.Dir(profiles)
	}
	places := []string{filepath.Join(root, "state.db")}
	more, _ := durable.Glob(root, "profiles/*/state.db")
	return append(places, more...)
}

// profile is the scope of the sessions of a database.
func profile(path string) string {
	dir := filepath.Dir(path)
	if filepath.Base(filepath.Dir(dir)) == "profiles" {
		return filepath.Base(dir)
	}
	return "default"
}

// List implements [hooks.Logs].
func (l logs) List(ctx context.Context) iter.Seq2[hooks.Log, error] {
	return func(yield func(hooks.Log, error) bool) {
		for _, path := range l.Places() {
			found, err := list(ctx, path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil && !yield(hooks.Log{Path: path}, err) {
				return
			}
			for _, log := range found {
				if !yield(log, nil) {
					return
				}
			}
		}
	}
}

// session is a row of the sessions.
type session struct {
	id, source, parent, ended, cwd string
	begun                          float64
	branched, delegated            bool
	last                           int64 // number of its last message
	at                             float64
}

// list describes the sessions of a database in which a user speaks.
func list(ctx context.Context, path string) (out []hooks.Log, err error) {
	db, err := open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	all, err := readSessions(ctx, db.DB, "TRUE")
	if err != nil {
		return nil, err
	}
	left, err := readLeft(ctx, db.DB)
	if err != nil {
		return nil, err
	}
	cwds := map[string]string{}
	for _, s := range all.order {
		// Where a session goes on, branches off or begins anew, only the first one tells.
		parent, heir := all.relatives(s)
		cwds[s.id] = cmp.Or(s.cwd, cwds[cmp.Or(parent.id, left.before(s))])
		if s.delegated || isMachine(s.source) {
			continue
		}
		out = append(out, hooks.Log{
			Session: client.Session{Host: Host, Scope: profile(path), ID: s.id}, Cwd: cwds[s.id], Path: path,
			Size: max(s.last, heir.last), Modified: when(max(s.at, heir.at)),
		})
	}
	return out, nil
}

// open opens a database of a version that is known.
func open(ctx context.Context, path string) (*rows.DB, error) {
	return rows.OpenVersion(ctx, path, "SELECT version FROM schema_version LIMIT 1", schema)
}

// sessions are those of a database, or some of them.
type sessions struct {
	order []session
	byID  map[string]session
	heirs map[string]session // by their parents
}

// readSessions reads those with messages for which a condition holds.
func readSessions(ctx context.Context, db *sql.DB, where string, args ...any) (*sessions, error) {
	found, err := db.QueryContext(ctx, `SELECT s.id, s.source, s.parent_session_id, s.end_reason, s.cwd, s.model_config, CAST(s.started_at AS REAL), max(m.id), max(CAST(m.timestamp AS REAL))
		FROM sessions s JOIN messages m ON m.session_id = s.id WHERE `+where+` GROUP BY s.id ORDER BY min(m.id)`, args...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	all := &sessions{byID: map[string]session{}, heirs: map[string]session{}}
	for found.Next() {
		var s session
		var model []byte
		err := found.Scan(text{&s.id}, text{&s.source}, text{&s.parent}, text{&s.ended}, text{&s.cwd}, &model, &s.begun, &s.last, &s.at)
		if err != nil {
			return nil, err
		}
		var made hooks.Payload
		json.Unmarshal(model, &made)
		s.branched, s.delegated = made["_branched_from"] != nil, made["_delegate_from"] != nil
		all.order = append(all.order, s)
		all.byID[s.id] = s
		if !s.branched && !s.delegated {
			all.heirs[s.parent] = s
		}
	}
	return all, found.Err()
}

// left are the sessions that /new has left, by their source and in the order of that.
type left map[string][]leftSession

type leftSession struct {
	id string
	at float64
}

func readLeft(ctx context.Context, db *sql.DB) (left, error) {
	found, err := db.QueryContext(ctx, "SELECT id, source, CAST(ended_at AS REAL) FROM sessions WHERE end_reason = 'new_session' AND ended_at IS NOT NULL ORDER BY ended_at")
	if err != nil {
		return nil, err
	}
	defer found.Close()
	out := left{}
	for found.Next() {
		var s leftSession
		var source string
		if err := found.Scan(text{&s.id}, text{&source}, &s.at); err != nil {
			return nil, err
		}
		out[source] = append(out[source], s)
	}
	return out, found.Err()
}

// before is the session that was left for another one, "" if none was.
func (l left) before(s session) string {
	const takes = 2 // seconds, at most
	all := l[s.source]
	n, _ := slices.BinarySearchFunc(all, s.begun, func(o leftSession, begun float64) int {
		if o.at <= begun {
			return -1
		}
		return 1
	})
	if n == 0 || s.begun-all[n-1].at > takes {
		return ""
	}
	return all[n-1].id
}

// compacted is how a session has ended that another one goes on from.
const compacted = "compression"

// relatives are the session whose messages one begins with, and the one that goes
// on where a compaction has ended it, maybe in the middle of a turn.
func (all *sessions) relatives(s session) (parent, heir session) {
	parent = all.byID[s.parent]
	if s.delegated || !s.branched && parent.ended != compacted {
		parent = session{}
	}
	if s.ended == compacted {
		heir = all.heirs[s.id]
	}
	return parent, heir
}

// Read implements [hooks.Logs]. It looks at all that is said in the session, as
// what a compaction has written is known by what was there before.
func (l logs) Read(log hooks.Log, cursor string) (page hooks.LogPage, err error) {
	ctx := context.Background()
	db, err := open(ctx, log.Path)
	if err != nil {
		return page, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	family, err := readSessions(ctx, db.DB, "s.id = ?1 OR s.parent_session_id = ?1 OR s.id = (SELECT parent_session_id FROM sessions WHERE id = ?1)", log.Session.ID)
	if err != nil {
		return page, err
	}
	own := family.byID[log.Session.ID]
	parent, heir := family.relatives(own)
	var texts [3][]message
	for i, id := range []string{own.id, parent.id, heir.id} {
		if texts[i], err = readMessages(ctx, db.DB, id); err != nil {
			return page, err
		}
	}
	all := texts[0]
	f := newFold(texts[1], own.branched)
	f.take(all)
	f.goOn(all, texts[2])

	before := func(at int64) (string, error) {
		i, _ := slices.BinarySearchFunc(all, at, func(m message, at int64) int { return cmp.Compare(m.number, at) })
		if i == 0 {
			return "", nil
		}
		return fmt.Sprint(all[i-1].number, all[i-1].at), nil
	}
	from, err := rows.At(cursor, before)
	if err != nil {
		return page, err
	}
	next := from
	for _, m := range all {
		if next = m.number + 1; m.number >= from && !m.ok {
			page.Damaged++
		}
	}
	for _, t := range f.turns {
		if !t.Ended {
			next = t.from
		}
		if t.from >= from && len(t.Messages) > 0 {
			page.Turns = append(page.Turns, t.LogTurn)
		}
	}
	mark, err := before(next)
	page.Next = rows.Cursor(next, mark)
	return page, err
}

// message is a row of the messages.
type message struct {
	number int64
	role   string
	text   string // of the user or the agent
	at     float64
	stop   bool // the agent ended with it
	ok     bool // it could be read
}

// messagesQuery leaves out what tools gave, and what others said in a group that
// the agent only listened to.
const messagesQuery = `SELECT id, CASE WHEN observed THEN 'observed' ELSE role END, CASE WHEN role IN ('user', 'assistant') AND NOT coalesce(observed, 0) THEN CAST(content AS BLOB) END,
		CAST(timestamp AS REAL), finish_reason
	FROM messages WHERE session_id = ? ORDER BY id`

func readMessages(ctx context.Context, db *sql.DB, session string) ([]message, error) {
	found, err := db.QueryContext(ctx, messagesQuery, session)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var out []message
	for found.Next() {
		var m message
		var content []byte
		var finish string
		if err := found.Scan(&m.number, text{&m.role}, &content, &m.at, text{&finish}); err != nil {
			return nil, err
		}
		m.stop = finish == "stop"
		m.text, m.ok = decodeContent(content)
		out = append(out, m)
	}
	return out, found.Err()
}

// text is a column for [sql.Rows.Scan] that may be of any type. What is none reads
// as "".
type text struct{ to *string }

// Scan implements [sql.Scanner].
func (t text) Scan(value any) error {
	var s sql.NullString
	err := s.Scan(value)
	*t.to = s.String
	return err
}

// decodeContent reads the text of a message: as it is, or a list of parts behind a
// mark.
func decodeContent(content []byte) (text string, ok bool) {
	list, marked := strings.CutPrefix(string(content), "\x00json:")
	if !marked {
		return list, true
	}
	if !json.Valid([]byte(list)) {
		return "", false
	}
	return hooks.Payload{"content": json.RawMessage(list)}.Text("content"), true
}

// when is the time of a message.
func when(seconds float64) time.Time {
	return time.UnixMicro(int64(seconds * 1e6))
}
