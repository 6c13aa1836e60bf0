package openclaw

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
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/install"
	"github.com/agentscope-ai/reme-hook/internal/durable"
	"github.com/agentscope-ai/reme-hook/internal/rows"
)

// OpenClaw keeps the sessions of an agent in a database: what happens in them as
// events, one JSON object each, which are only ever added. Large ones are
// compressed.

// schema is the version of the database that is known. OpenClaw brings older ones
// up to its own when it starts.
const schema = "23"

// maxEvent is the length in bytes of the largest event that OpenClaw keeps.
const maxEvent = 4 << 20

// enough is the text, in bytes, after which a page ends before the next turn.
const enough = 16 << 20

// logs are OpenClaw's sessions on disk.
type logs struct {
	env func() install.Env
}

// profile is one of the user's, each of which has a folder.
type profile struct{ name, dir string }

func (l logs) profiles() []profile {
	env := l.env()
	used := profile{cmp.Or(env.Getenv("OPENCLAW_PROFILE"), env.Getenv("OPENCLAW_STATE_DIR")), stateDir(env)}
	all := []profile{used}
	root := filepath.Join(home(env), ".openclaw")
	dirs, _ := durable.Glob(home(env), ".openclaw-*")
	for _, dir := range append([]string{root}, dirs...) {
		if dir != used.dir {
			all = append(all, profile{strings.TrimPrefix(strings.TrimPrefix(dir, root), "-"), dir})
		}
	}
	return all
}

// Places implements [hooks.Logs].
func (l logs) Places() (places []string) {
	for _, p := range l.profiles() {
		places = append(places, filepath.Join(p.dir, "agents"))
	}
	return places
}

// List implements [hooks.Logs].
func (l logs) List(ctx context.Context) iter.Seq2[hooks.Log, error] {
	return func(yield func(hooks.Log, error) bool) {
		for _, p := range l.profiles() {
			paths, _ := durable.Glob(p.dir, "agents/*/agent/openclaw-agent.sqlite")
			for _, path := range paths {
				found, err := p.list(ctx, path)
				if err != nil && !errors.Is(err, fs.ErrNotExist) && !yield(hooks.Log{Path: path}, err) {
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
}

// list describes the sessions of an agent in which a user writes.
func (p profile) list(ctx context.Context, path string) (out []hooks.Log, err error) {
	scope, err := p.scope(filepath.Base(filepath.Dir(filepath.Dir(path))))
	if err != nil {
		return nil, err
	}
	db, err := open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	found, err := db.QueryContext(ctx, `SELECT w.session_id, w.session_key, z.seq, z.created_at, CASE WHEN a.seq = 0 THEN CAST(a.event_json AS BLOB) END
		FROM session_windows w
		JOIN transcript_events a ON a.session_id = w.session_id AND a.seq = (SELECT min(seq) FROM transcript_events WHERE session_id = w.session_id)
		JOIN transcript_events z ON z.session_id = w.session_id AND z.seq = (SELECT max(seq) FROM transcript_events WHERE session_id = w.session_id)
		ORDER BY a.created_at`)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var id, key string
		var last, at int64
		var head []byte
		if err := found.Scan(&id, &key, &last, &at, &head); err != nil {
			return out, err
		}
		if isMachineSession(key) {
			continue
		}
		out = append(out, hooks.Log{
			Session: client.Session{Host: Host, Scope: scope, ID: id}, Cwd: parseHeader(head).cwd, Path: path,
			Size: last + 1, Modified: time.UnixMilli(at),
		})
	}
	return out, found.Err()
}

// scope is what the session ids of an agent are unique in, as our plugin tells it.
func (p profile) scope(agent string) (string, error) {
	c, err := readConfig(filepath.Join(p.dir, "openclaw.json"))
	if err != nil {
		return "", fmt.Errorf("the scope that openclaw.json may set is not known: %w", err)
	}
	ours, _ := c.ours()
	ctx := hooks.Payload{}
	for name, value := range map[string]string{"scope": ours.Config.Scope, "agentId": agent, "profile": p.name} {
		ctx[name], _ = json.Marshal(value)
	}
	return scope(ctx), nil
}

// open opens a database of a version that is known.
func open(ctx context.Context, path string) (*rows.DB, error) {
	return rows.OpenVersion(ctx, path, "PRAGMA user_version", schema)
}

// header is the first event of a session.
type header struct {
	cwd string
	at  time.Time
}

func parseHeader(event []byte) header {
	var p hooks.Payload
	if json.Unmarshal(event, &p) != nil {
		return header{}
	}
	at, _ := time.Parse(time.RFC3339Nano, p.String("timestamp"))
	return header{p.String("cwd"), at}
}

// Read implements [hooks.Logs].
func (l logs) Read(log hooks.Log, cursor string) (page hooks.LogPage, err error) {
	ctx := context.Background()
	db, err := open(ctx, log.Path)
	if err != nil {
		return page, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	id := log.Session.ID
	before := func(at int64) (mark string, err error) {
		err = db.QueryRowContext(ctx, "SELECT seq || ' ' || created_at FROM transcript_events WHERE session_id = ? AND seq < ? ORDER BY seq DESC LIMIT 1", id, at).Scan(&mark)
		if errors.Is(err, sql.ErrNoRows) {
			return "", nil
		}
		return mark, err
	}
	from, err := rows.At(cursor, before)
	if err != nil {
		return page, err
	}
	events, err := readEvents(ctx, db.DB, id, 0, 1)
	if err != nil {
		return page, err
	}
	var f fold
	if len(events) > 0 {
		f.begun = parseHeader(events[0].text).at
	}
	next, size := from, 0
	for !page.More {
		const some = 200
		if events, err = readEvents(ctx, db.DB, id, next, some); err != nil {
			break
		}
		for _, e := range events {
			if size > enough && f.position(e.seq) == e.seq {
				page.More = true
				break
			}
			if next = e.seq + 1; !e.ok || !f.take(e.text, e.seq) {
				page.Damaged++
			}
			size += len(e.text)
		}
		if len(events) < some {
			break
		}
	}
	page.Turns = f.list()
	next = f.position(next)
	mark, markErr := before(next)
	page.Next = rows.Cursor(next, mark)
	return page, errors.Join(err, markErr)
}

// event is a row of the events.
type event struct {
	seq  int64
	text []byte
	ok   bool // it could be unpacked
}

// unpacker is made when the first event is compressed.
var unpacker = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxEvent))
	if err != nil {
		panic(err) // of the options
	}
	return d
})

func readEvents(ctx context.Context, db *sql.DB, session string, from int64, limit int) (out []event, err error) {
	found, err := db.QueryContext(ctx, "SELECT seq, CAST(event_json AS BLOB), event_zstd FROM transcript_events WHERE session_id = ? AND seq >= ? ORDER BY seq LIMIT ?", session, from, limit)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		e := event{ok: true}
		var packed []byte
		if err := found.Scan(&e.seq, &e.text, &packed); err != nil {
			return out, err
		}
		if packed != nil {
			e.text, err = unpacker().DecodeAll(packed, nil)
			e.ok = err == nil
		}
		out = append(out, e)
	}
	return out, found.Err()
}
