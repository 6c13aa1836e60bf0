package workspace

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
)

// The full-text index is written by FTS5 and read here, from its tables. A query of
// FTS5 looks a term up in each segment with statements of its own, which takes 60 µs
// a term and segment: half of a prompt's time for what are a few pages. TestPostings
// compares the two. What is read of the format, which SQLite keeps for good:
//
//   - The row 10 of terms_data lists the segments: where their pages are.
//   - terms_idx tells the page of a segment that a term is on: the one of the last key
//     that is not greater.
//   - A page is two numbers of two bytes (where the first rowid of a document list is,
//     and where the index of the page begins), terms with the document lists that
//     follow them, and the places of the terms. All but the first term of a page leave
//     out what they share with the one before. A list that fills a page goes on on the
//     next ones, the first rowid of a page is written in full.
//   - Rowids that are gone are in hash tables, which belong to a segment too.

var errPostings = errors.New("the full-text index is damaged")

// reader reads the index in one transaction: what it has read stays true.
type reader struct {
	ctx      context.Context
	conn     *sql.Conn
	segments []segment
	pages    map[int64][]byte
	ids      []int64 // of a page
}

// segment is a part of the full-text index; each has terms and documents of its own.
type segment struct {
	id          int64
	first, last int64 // pages
	graves      int64 // pages of hash tables
	gone        map[int64]bool
}

func (s segment) page(n int64) int64  { return s.id<<37 + n }
func (s segment) grave(n int64) int64 { return (s.id+1<<16)<<37 + n }

// reading runs fn in a transaction that only reads.
func (x *index) reading(ctx context.Context, fn func(*reader) error) error {
	conn, err := x.db.Conn(ctx)
	if err != nil {
		return err
	}
	r := &reader{ctx: ctx, conn: conn, pages: map[int64][]byte{}}
	_, err = conn.ExecContext(ctx, "BEGIN")
	if err == nil {
		err = fn(r)
	}
	// Nothing of this is deferred: after a fault SQLite gives nothing back.
	_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return errors.Join(err, conn.Close())
}

func (r *reader) query(query string, args ...any) (*sql.Rows, error) {
	return quick(r.ctx, r.conn.QueryContext, query, args)
}

// open reads the list of the segments, and what is gone of them.
func (r *reader) open() error {
	const list = 10
	if _, known := r.pages[list]; known {
		return nil
	}
	if err := r.load(list); err != nil {
		return err
	}
	if err := r.list(r.pages[list]); err != nil {
		return err
	}
	var load []int64
	for _, s := range r.segments {
		for n := range s.graves {
			load = append(load, s.grave(n))
		}
	}
	if len(load) == 0 {
		return nil
	}
	if err := r.load(load...); err != nil {
		return err
	}
	for i := range r.segments {
		s := &r.segments[i]
		for n := range s.graves {
			s.bury(r.pages[s.grave(n)])
		}
	}
	return nil
}

// list reads the list of the segments.
func (r *reader) list(b []byte) error {
	c := cursor{b: b, at: 4}
	v2 := len(c.b) > 8 && binary.BigEndian.Uint32(c.b[4:]) == 0xFF000001
	if v2 {
		c.at = 8
	}
	levels, _, _ := c.next(), c.next(), c.next()
	for range levels {
		_, n := c.next(), c.next()
		if c.bad {
			return errPostings
		}
		for range n {
			s := segment{id: c.next(), first: c.next(), last: c.next()}
			if v2 {
				_, _, s.graves, _, _ = c.next(), c.next(), c.next(), c.next(), c.next()
			}
			if c.bad || s.first < 0 || s.last < s.first || s.last > maxPages || s.graves < 0 || s.graves > maxPages {
				return errPostings
			}
			if s.first > 0 { // else it is merged into another one
				r.segments = append(r.segments, s)
			}
		}
	}
	return nil
}

// maxPages bounds what a damaged list of segments can ask for.
const maxPages = 1 << 24

// bury notes the rowids of a hash table.
func (s *segment) bury(page []byte) {
	if len(page) < 8 {
		return
	}
	if s.gone == nil {
		s.gone = map[int64]bool{}
	}
	size := 8
	if page[0] == 4 {
		size = 4
	}
	for slots := page[8:]; len(slots) >= size; slots = slots[size:] {
		id := int64(binary.BigEndian.Uint32(slots))
		if size == 8 {
			id = int64(binary.BigEndian.Uint64(slots))
		}
		if id != 0 {
			s.gone[id] = true
		}
	}
}

// newest returns the greatest id of a doc.
func (r *reader) newest() (id int64, err error) {
	rows, err := r.query("SELECT ifnull(max(id),0) FROM docs")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	rows.Next()
	return id, errors.Join(rows.Scan(&id), rows.Err())
}

// load reads pages that were not read yet.
func (r *reader) load(ids ...int64) error {
	ids = slices.DeleteFunc(ids, func(id int64) bool { _, known := r.pages[id]; return known })
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	list, err := json.Marshal(slices.Compact(ids))
	if err != nil {
		return err
	}
	rows, err := r.query("SELECT d.id, d.block FROM json_each(?) j JOIN terms_data d ON d.id = j.value", string(list))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var block []byte
		if err := rows.Scan(&id, &block); err != nil {
			return err
		}
		r.pages[id] = block
	}
	return rows.Err()
}

// place is where the documents of a term are in a segment.
type place struct {
	list    int // of which term
	segment *segment
	page    int64 // that the term is on
	end     int64 // the last page that its list can be on
	part    []byte
	next    int64 // the page to be read next, the last ones first; page if none is left
	ids     []int64
}

// postings returns the ids of the newest docs that have a term, newest first and at
// most limit, for each of the terms.
func (r *reader) postings(terms []queryTerm, limit int) ([][]int64, error) {
	lists := make([][]int64, len(terms))
	if len(terms) == 0 {
		return lists, nil
	}
	if err := r.open(); err != nil {
		return nil, err
	}
	keys := make([]string, len(terms))
	for i, t := range terms {
		keys[i] = termKey(t.text)
	}
	places, err := r.places(keys)
	if err != nil {
		return nil, err
	}
	load := make([]int64, len(places))
	for i, p := range places {
		load[i] = p.segment.page(p.page)
	}
	if err := r.load(load...); err != nil {
		return nil, err
	}
	// A list that goes on is read from its end.
	var open []*place
	for i := range places {
		p := &places[i]
		page, err := newLeaf(r.pages[p.segment.page(p.page)])
		if err != nil {
			return nil, err
		}
		var found, more bool
		if p.part, found, more, err = page.find(keys[p.list]); err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		p.next = p.page
		if more {
			p.next = min(p.end, p.segment.last)
		}
		open = append(open, p)
	}
	for waiting := open; len(waiting) > 0; {
		load = load[:0]
		for _, p := range waiting {
			for n := range int64(2) {
				load = append(load, p.segment.page(max(p.page, p.next-n)))
			}
		}
		if err := r.load(load...); err != nil {
			return nil, err
		}
		var still []*place
		for _, p := range waiting {
			done, err := r.collect(p, limit)
			if err != nil {
				return nil, err
			}
			if !done {
				still = append(still, p)
			}
		}
		waiting = still
	}
	for _, p := range open {
		if lists[p.list] == nil {
			lists[p.list] = p.ids
		} else {
			lists[p.list] = append(lists[p.list], p.ids...)
		}
	}
	for i, ids := range lists {
		newer := func(a, b int64) int { return int(max(-1, min(1, b-a))) }
		if !slices.IsSortedFunc(ids, newer) {
			slices.SortFunc(ids, newer)
		}
		ids = slices.Compact(ids)
		lists[i] = ids[:min(len(ids), limit)]
	}
	return lists, nil
}

// places tells where terms may be.
func (r *reader) places(keys []string) ([]place, error) {
	var places []place
	var large []int64
	byID := map[int64]*segment{}
	for i := range r.segments {
		s := &r.segments[i]
		if s.first < s.last {
			large = append(large, s.id)
			byID[s.id] = s
			continue
		}
		for list := range keys {
			places = append(places, place{list: list, segment: s, page: s.first, end: s.first})
		}
	}
	if len(large) == 0 {
		return places, nil
	}
	list, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	segments, err := json.Marshal(large)
	if err != nil {
		return nil, err
	}
	rows, err := r.query(`SELECT j.key, s.value,
		ifnull((SELECT pgno>>1 FROM terms_idx WHERE segid=s.value AND term<=CAST(j.value AS BLOB) ORDER BY term DESC LIMIT 1), 0),
		ifnull((SELECT pgno>>1 FROM terms_idx WHERE segid=s.value AND term>CAST(j.value AS BLOB) ORDER BY term LIMIT 1), 0)
		FROM json_each(?) j, json_each(?) s`, string(list), string(segments))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var p place
		var id int64
		if err := rows.Scan(&p.list, &id, &p.page, &p.end); err != nil {
			return nil, err
		}
		// Of a segment that is being merged, terms_idx has pages that are not there any more.
		p.segment = byID[id]
		p.page = max(p.page, p.segment.first)
		if p.end == 0 {
			p.end = p.segment.last
		}
		if p.end = max(p.end, p.page); p.page <= p.segment.last {
			places = append(places, p)
		}
	}
	return places, rows.Err()
}

// termKey is how the full-text index spells a term: of letters only those of ASCII
// are made small, and what is before tells that it is no prefix.
func termKey(term string) string {
	key := []byte("0" + term)
	for i, c := range key {
		if 'A' <= c && c <= 'Z' {
			key[i] = c + 'a' - 'A'
		}
	}
	return string(key)
}

// collect takes the ids from the pages that are there, and tells whether that is enough.
func (r *reader) collect(p *place, limit int) (done bool, err error) {
	for ; ; p.next-- {
		part := p.part
		if p.next > p.page {
			b, known := r.pages[p.segment.page(p.next)]
			if !known {
				return false, nil
			}
			page, err := newLeaf(b)
			if err != nil {
				return false, err
			}
			part = page.head()
		}
		var ok bool
		if r.ids, ok = appendRowids(r.ids[:0], part); !ok {
			return false, errPostings
		}
		if p.ids == nil {
			p.ids = make([]int64, 0, min(len(r.ids), limit))
		}
		for _, id := range slices.Backward(r.ids) {
			if len(p.ids) == limit {
				return true, nil
			}
			if !p.segment.gone[id] {
				p.ids = append(p.ids, id)
			}
		}
		if p.next <= p.page {
			return true, nil
		}
	}
}

// leaf is a page of terms and document lists.
type leaf struct {
	b      []byte // without the index
	first  int    // where the first rowid is, 0 if there is none
	places []byte // the index: of the first term, and how far each other one is from the one before
}

func newLeaf(page []byte) (leaf, error) {
	if len(page) < 4 {
		return leaf{}, errPostings
	}
	first, end := int(binary.BigEndian.Uint16(page)), int(binary.BigEndian.Uint16(page[2:]))
	if end < 4 || end > len(page) || first > end {
		return leaf{}, errPostings
	}
	return leaf{page[:end], first, page[end:]}, nil
}

// head is what the page has of a list that began on one before.
func (l leaf) head() []byte {
	end := len(l.b)
	if c := (cursor{b: l.places}); len(l.places) > 0 {
		end = int(min(max(c.next(), 0), int64(end)))
	}
	if l.first < 4 || l.first >= end {
		return nil
	}
	return l.b[l.first:end]
}

// find returns the list of a term as far as it is on the page, and tells whether it
// may go on.
func (l leaf) find(key string) (list []byte, found, more bool, err error) {
	var buf [64]byte
	t := buf[:0]
	places := cursor{b: l.places}
	for at := int64(0); places.at < len(places.b); {
		begun := at > 0
		at += places.next()
		if places.bad || at < 4 || at >= int64(len(l.b)) {
			return nil, false, false, errPostings
		}
		c := cursor{b: l.b, at: int(at)}
		keep := int64(0)
		if begun {
			keep = c.next()
		}
		n := c.next()
		if c.bad || keep < 0 || keep > int64(len(t)) || n < 0 || n > int64(len(l.b)-c.at) {
			return nil, false, false, errPostings
		}
		t = append(t[:keep], l.b[c.at:c.at+int(n)]...)
		if string(t) < key {
			continue
		}
		if string(t) > key {
			break
		}
		start, end := c.at+int(n), len(l.b)
		more = places.at == len(places.b)
		if !more {
			end = int(min(max(at+places.next(), int64(start)), int64(end)))
		}
		return l.b[start:end], true, more, nil
	}
	return nil, false, false, nil
}

// appendRowids reads a document list: numbers, each but the first as the difference to
// the one before; a zero after one tells that it is not in the segment any more.
func appendRowids(ids []int64, list []byte) ([]int64, bool) {
	id := int64(0)
	for c := (cursor{b: list}); c.at < len(list); {
		id += c.next()
		if c.bad {
			return nil, false
		}
		if c.at < len(list) && list[c.at] == 0 {
			if c.at++; c.at == len(list) || list[c.at] != 0 {
				continue
			}
			c.at++
		}
		ids = append(ids, id)
	}
	return ids, true
}

// cursor reads SQLite's numbers of variable length.
type cursor struct {
	b   []byte
	at  int
	bad bool
}

func (c *cursor) next() int64 {
	var v uint64
	for n := 0; n < 9; n++ {
		if c.at < 0 || c.at >= len(c.b) {
			c.bad = true
			return 0
		}
		b := c.b[c.at]
		c.at++
		if n == 8 {
			return int64(v<<8 | uint64(b))
		}
		v = v<<7 | uint64(b&0x7F)
		if b < 0x80 {
			return int64(v)
		}
	}
	return int64(v)
}
