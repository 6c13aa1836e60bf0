package workspace

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/crash"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// tx is a write transaction. Statements are prepared once for each.
type tx struct {
	ctx   context.Context
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	later []postponed
	words map[string]bool // as they are spelt, and whether a misspelt one may stand for it
	// uncovered are notes that are to be indexed after it.
	uncovered []string
}

// postponed is a change of the full-text index. They come last in a transaction:
// any statement that may have to be undone makes FTS5 write out what it has. So
// 100,000 turns in 5,000 files are indexed in 13 s, not in 25.
type postponed struct {
	doc    int64
	terms  string
	remove bool
}

// write runs fn in a transaction that holds the write lock from its start, so
// that what fn reads stays true until it ends.
func (x *index) write(ctx context.Context, fn func(*tx) error) error {
	c, err := x.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	t := &tx{ctx: ctx, conn: c, stmts: map[string]*sql.Stmt{}, words: map[string]bool{}}
	if err := x.begin(ctx, c); err != nil {
		return err
	}
	if err = fn(t); err == nil {
		err = t.doLater()
	}
	for _, s := range t.stmts {
		_ = s.Close()
	}
	if err == nil {
		crash.Point("index.commit")
		_, err = c.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		_, _ = c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	}
	return err
}

const turnLock = privateDir + "/locks/turn.lock"

// begin takes the write lock. Whoever has to wait for it waits in a line: without one,
// who indexes much would take it again before others see that it is free.
func (x *index) begin(ctx context.Context, c *sql.Conn) error {
	wait := fmt.Sprintf("PRAGMA busy_timeout=%d;", x.wait.Milliseconds())
	_, err := c.ExecContext(ctx, "PRAGMA busy_timeout=0; BEGIN IMMEDIATE;"+wait)
	if err == nil {
		return nil
	}
	_, _ = c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	_, _ = c.ExecContext(context.WithoutCancel(ctx), wait)
	if e := new(sqlite.Error); !errors.As(err, &e) || e.Code()&0xff != sqlite3.SQLITE_BUSY {
		return err
	}
	if unlock, err := durable.Lock(ctx, x.turn); err == nil {
		defer unlock()
	}
	_, err = c.ExecContext(ctx, "BEGIN IMMEDIATE")
	return err
}

// yield lets those write who wait for it.
func (x *index) yield(ctx context.Context) {
	if x.turn == "" { // in memory
		return
	}
	if unlock, err := durable.Lock(ctx, x.turn); err == nil {
		unlock()
	}
}

func (t *tx) prepare(query string) (*sql.Stmt, error) {
	if s := t.stmts[query]; s != nil {
		return s, nil
	}
	s, err := t.conn.PrepareContext(t.ctx, query)
	if err == nil {
		t.stmts[query] = s
	}
	return s, err
}

func (t *tx) exec(query string, args ...any) error {
	_, err := t.run(query, args...)
	return err
}

func (t *tx) run(query string, args ...any) (sql.Result, error) {
	s, err := t.prepare(query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(t.ctx, args...)
}

func (t *tx) doLater() error {
	for _, p := range t.later {
		var err error
		if p.remove {
			err = t.exec("DELETE FROM terms WHERE rowid=?", p.doc)
		} else {
			err = t.exec("INSERT INTO terms(rowid, text) VALUES(?,?)", p.doc, p.terms)
		}
		if err != nil {
			return err
		}
	}
	maps.DeleteFunc(t.words, func(_ string, kept bool) bool { return !kept })
	if len(t.words) == 0 {
		return nil
	}
	list, err := json.Marshal(slices.Sorted(maps.Keys(t.words)))
	if err != nil {
		return err
	}
	return t.exec("INSERT OR IGNORE INTO words SELECT value FROM json_each(?)", string(list))
}

// get reads one row and reports whether there is one.
func (t *tx) get(query string, args []any, dst ...any) (bool, error) {
	s, err := t.prepare(query)
	if err != nil {
		return false, err
	}
	err = s.QueryRowContext(t.ctx, args...).Scan(dst...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// kind says what a file is.
type kind int

const (
	dialog    kind = iota
	note           // written by ReMe, a user or Remember
	generated      // written by Flush; it only counts when the turns it was made from are gone
	mirror         // what ReMe keeps of turns that were forwarded to it; counts as a generated note does
)

// isDialog tells whether a file has rows.
func (k kind) isDialog() bool { return k == dialog || k == mirror }

// record is a row of the table files.
type record struct {
	id int64
	found
	kind        kind
	key         string // of the session that the file is of, "" if of none
	cursor      int64  // bytes that are indexed
	lines       int    // lines that are indexed
	tail        int64  // hash of the bytes before the cursor
	open        string // the turn that a row without a turn belongs to
	session     client.Session
	cwd, title  string
	events      int
	turns       int
	first, last int64 // unix milliseconds, 0 if there is none

	was found // what the fingerprint counts
}

const recordColumns = "id, path, size, mtime, kind, key, cursor, lines, tail, open, host, scope, session, cwd, title, events, turns, first, last"

// columns returns where the columns of r are scanned to.
func (r *record) columns() []any {
	return []any{&r.id, &r.path, &r.size, &r.mtime, &r.kind, &r.key, &r.cursor, &r.lines, &r.tail, &r.open,
		&r.session.Host, &r.session.Scope, &r.session.ID, &r.cwd, &r.title, &r.events, &r.turns, &r.first, &r.last}
}

// load returns the record of a file, a new one if there is none.
func (t *tx) load(path string) (*record, error) {
	r := &record{}
	ok, err := t.get("SELECT "+recordColumns+" FROM files WHERE path=?", []any{path}, r.columns()...)
	if err != nil {
		return nil, err
	}
	if ok {
		r.was = r.found
		return r, nil
	}
	r.path = path
	_, err = t.get("SELECT ifnull(max(id),0)+1 FROM files", nil, &r.id)
	return r, err
}

// save stores a record and keeps the fingerprint true.
func (t *tx) save(r *record) error {
	delta := r.sum()
	if r.was.path != "" {
		delta ^= r.was.sum()
	}
	if err := t.addSum(delta); err != nil {
		return err
	}
	r.was = r.found
	return t.exec("INSERT OR REPLACE INTO files("+recordColumns+") VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
		r.id, r.path, r.size, r.mtime, r.kind, r.key, r.cursor, r.lines, r.tail, r.open,
		string(r.session.Host), r.session.Scope, r.session.ID, r.cwd, r.title, r.events, r.turns, r.first, r.last)
}

func (t *tx) addSum(delta int64) error {
	var sum int64
	if _, err := t.get("SELECT value FROM meta WHERE key='sum'", nil, &sum); err != nil {
		return err
	}
	return t.exec("INSERT OR REPLACE INTO meta VALUES('sum', ?)", sum^delta)
}

// forget takes a file out of the index.
func (t *tx) forget(path string) error {
	r, err := t.load(path)
	if err != nil || r.was.path == "" {
		return err
	}
	kind, key := r.kind, r.key
	if err := t.clear(r); err != nil {
		return err
	}
	if err := t.addSum(r.was.sum()); err != nil {
		return err
	}
	if err := t.exec("DELETE FROM files WHERE id=?", r.id); err != nil || kind != dialog {
		return err
	}
	return t.uncover(key)
}

// covered tells that the turns which a generated note was made of are searched.
func (t *tx) covered(key string) (bool, error) {
	var one int
	return t.get("SELECT 1 FROM files WHERE key=? AND kind=?", []any{key, dialog}, &one)
}

// uncover has the generated notes of a dialog that is gone indexed again.
func (t *tx) uncover(key string) error {
	var last int64
	for {
		r := &record{}
		ok, err := t.get("SELECT "+recordColumns+" FROM files WHERE key=? AND kind=? AND id>? ORDER BY id", []any{key, generated, last}, r.columns()...)
		if err != nil || !ok {
			return err
		}
		last, r.was, r.mtime = r.id, r.found, 0
		t.uncovered = append(t.uncovered, r.path)
		if err := t.save(r); err != nil {
			return err
		}
	}
}

// clear takes all that was indexed of a file out of the index, and out of r.
func (t *tx) clear(r *record) error {
	if r.was.path != "" {
		for _, q := range []string{
			"DELETE FROM terms WHERE rowid IN (SELECT id FROM docs WHERE file=?)",
			"DELETE FROM docs WHERE file=?",
			"DELETE FROM events WHERE file=?",
		} {
			if err := t.exec(q, r.id); err != nil {
				return err
			}
		}
	}
	*r = record{id: r.id, found: r.found, was: r.was}
	return nil
}

// held returns which of the ids the index has for a file.
func (x *index) held(ctx context.Context, file int64, ids []client.EventID) (map[int64]bool, error) {
	hashes := make([]int64, len(ids))
	for i, id := range ids {
		hashes[i] = idHash(string(id))
	}
	list, err := json.Marshal(hashes)
	if err != nil {
		return nil, err
	}
	rows, err := x.db.QueryContext(ctx, "SELECT id FROM events WHERE file=? AND id IN (SELECT value FROM json_each(?))", file, string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	held := map[int64]bool{}
	for rows.Next() {
		var h int64
		if err := rows.Scan(&h); err != nil {
			return nil, err
		}
		held[h] = true
	}
	return held, rows.Err()
}
