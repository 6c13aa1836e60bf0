package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

// indexBatch bounds a transaction: bytes of a dialog file.
const indexBatch = 1 << 20

// maxNote is how much of a note is indexed and read.
const maxNote = 1 << 20

// idHash stands for an event id in the index; it is compared within one file
// only.
func idHash(id string) int64 {
	sum := sha256.Sum256([]byte(id))
	return int64(binary.LittleEndian.Uint64(sum[:8]))
}

// indexFiles brings the docs of files up to date. A transaction takes many small
// files, because each leaves the full-text index a segment to merge: with one for
// each file a rebuild takes half as long again.
func (w *Workspace) indexFiles(ctx context.Context, x *index, names ...string) error {
	for len(names) > 0 {
		n := 0
		var uncovered []string
		err := x.write(ctx, func(t *tx) error {
			defer func() { uncovered = t.uncovered }()
			room := int64(indexBatch)
			for n = 0; n < len(names) && room > 0; n++ {
				done, err := w.indexFile(t, names[n], &room)
				if err != nil || !done {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if names = append(names[n:], uncovered...); len(names) > 0 {
			x.yield(ctx)
		}
	}
	return nil
}

// indexFile indexes one file as far as there is room, which it lessens by what it
// has taken, and reports whether that was all.
func (w *Workspace) indexFile(t *tx, name string, room *int64) (done bool, err error) {
	f, err := os.Open(w.abs(name))
	if errors.Is(err, fs.ErrNotExist) {
		return true, t.forget(name)
	}
	if err != nil {
		return true, nil // not ours to read; the fingerprint will ask again
	}
	defer f.Close()
	r, err := t.load(name)
	if err != nil {
		return false, err
	}
	if strings.HasSuffix(name, ".jsonl") {
		return w.indexDialog(t, f, r, room)
	}
	return true, w.indexNote(t, f, r, room)
}

// indexDialog indexes what a dialog file has gained since the cursor, as far as
// there is room, and reports whether that was all. A file that was not just
// appended to is indexed from its start.
func (w *Workspace) indexDialog(t *tx, f *os.File, r *record, room *int64) (done bool, err error) {
	st, err := f.Stat()
	if err != nil {
		return false, err
	}
	size, mtime := st.Size(), st.ModTime().UnixNano()
	unfinished := r.mtime == 0
	if r.was.path != "" && (r.cursor > size || r.tail != tailHash(f, r.cursor) || !unfinished && r.size == size && r.mtime != mtime) {
		if err := t.clear(r); err != nil {
			return false, err
		}
	}
	if r.key == "" {
		r.key = strings.TrimSuffix(path.Base(r.path), ".jsonl")
	}

	b := batch{t: t, f: f, r: r, loc: w.loc, turns: map[string]*turnDoc{}, mtime: st.ModTime(), fresh: r.was.path == "", ids: map[int64]bool{}}
	start := r.cursor
	done = true
	end, err := scanLines(f, start, size, func(line []byte, off, next int64) bool {
		r.lines++
		if err = b.add(line, off); err != nil {
			return false
		}
		done = next-start < *room
		return done
	})
	if err != nil {
		return false, err
	}
	if err := b.store(); err != nil {
		return false, err
	}
	*room -= end - start
	r.cursor, r.tail = end, tailHash(f, end)
	r.size, r.mtime = size, mtime
	if !done {
		r.mtime = 0
	}
	if r.key == r.session.RemoteID() {
		r.kind, r.key = mirror, string(r.session.Key())
	}
	if len(b.order) > 0 && r.isOurs() {
		if err := t.enqueue(r.key, r.path, false); err != nil {
			return false, err
		}
	}
	return done, t.save(r)
}

// tailHash is over the last bytes before an offset: they are other bytes if the
// file was not just appended to.
func tailHash(f io.ReaderAt, off int64) int64 {
	b := make([]byte, min(off, 128))
	if _, err := f.ReadAt(b, off-int64(len(b))); err != nil {
		return 0
	}
	h := fnv.New64a()
	h.Write(b)
	return int64(h.Sum64())
}

// span is where a piece of a doc's text is: a row of a dialog file, or a
// stretch of a note.
type span struct {
	line     int // 1-based
	off, len int64
}

func (s span) String() string { return fmt.Sprintf("%d:%d:%d", s.line, s.off, s.len) }

func parseSpans(text string) []span {
	var spans []span
	for field := range strings.SplitSeq(text, ",") {
		p := strings.SplitN(field, ":", 3)
		if len(p) != 3 {
			return nil
		}
		line, err1 := strconv.Atoi(p[0])
		off, err2 := strconv.ParseInt(p[1], 10, 64)
		n, err3 := strconv.ParseInt(p[2], 10, 64)
		if errors.Join(err1, err2, err3) != nil || n < 0 || n > maxRow {
			return nil
		}
		spans = append(spans, span{line, off, n})
	}
	return spans
}

func formatSpans(spans []span) string {
	parts := make([]string, len(spans))
	for i, s := range spans {
		parts[i] = s.String()
	}
	return strings.Join(parts, ",")
}

// maxSpans bounds the rows of one turn that are kept together.
const maxSpans = 256

// batch collects the rows of a transaction by turn.
type batch struct {
	t     *tx
	f     io.ReaderAt
	r     *record
	loc   *time.Location
	mtime time.Time
	turns map[string]*turnDoc
	order []*turnDoc
	fresh bool           // nothing of the file was indexed before
	ids   map[int64]bool // of its events, if so
}

type turnDoc struct {
	id    int64 // 0 if it is new
	turn  string
	spans []span
	text  strings.Builder
	at    int64
	cwd   string
}

// add takes one line; what is not a message only counts as a line.
func (b *batch) add(line []byte, off int64) error {
	m, ok := parseRow(line, b.loc)
	if !ok {
		return nil
	}
	r := b.r
	if m.ID != "" {
		if twice, err := b.twice(idHash(m.ID)); err != nil || twice {
			return err // stored twice by someone: one is enough
		}
	}
	r.events++
	if isBlank(m.Text) {
		return nil
	}
	if r.session.Host == "" && m.Host != "" {
		r.session = client.Session{Host: m.Host, Scope: m.Scope, ID: m.Session}
	}
	if m.Cwd != "" {
		r.cwd = m.Cwd
	}
	if r.title == "" && m.Role == client.User {
		r.title = firstWords(m.Text, 120)
	}
	at := m.At
	if at.IsZero() {
		at = b.mtime
	}
	ms := at.UnixMilli()
	if r.first == 0 || ms < r.first {
		r.first = ms
	}
	r.last = max(r.last, ms)

	turn := string(m.Turn)
	switch {
	case turn != "":
		r.open = ""
	case m.Role == client.User || r.open == "":
		r.open = "#" + m.ID
		if m.ID == "" {
			r.open = "#" + strconv.Itoa(r.lines)
		}
		fallthrough
	default:
		turn = r.open
	}
	d, err := b.doc(turn)
	if err != nil {
		return err
	}
	if len(d.spans) < maxSpans {
		d.spans = append(d.spans, span{r.lines, off, int64(len(line))})
	}
	d.write(m.Text)
	d.at = max(d.at, ms)
	if m.Cwd != "" {
		d.cwd = m.Cwd
	}
	return nil
}

// twice tells whether the file has an event already, which it has from now on.
func (b *batch) twice(id int64) (bool, error) {
	if b.fresh {
		was := b.ids[id]
		b.ids[id] = true
		return was, nil
	}
	res, err := b.t.run("INSERT OR IGNORE INTO events VALUES(?,?)", b.r.id, id)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return err == nil && n == 0, nil
}

func (d *turnDoc) write(text string) {
	if room := maxIndexed - d.text.Len(); room > 0 {
		d.text.WriteString(cutBytes(text, room))
		d.text.WriteByte('\n')
	}
}

// doc returns the doc of a turn, with the text it has so far.
func (b *batch) doc(turn string) (*turnDoc, error) {
	if d := b.turns[turn]; d != nil {
		return d, nil
	}
	d := &turnDoc{turn: turn}
	var spans string
	known := false
	if !b.fresh {
		var err error
		known, err = b.t.get("SELECT id, spans, at, cwd FROM docs WHERE file=? AND turn=?", []any{b.r.id, turn}, &d.id, &spans, &d.at, &d.cwd)
		if err != nil {
			return nil, err
		}
	}
	if known {
		d.spans = parseSpans(spans)
		for _, s := range d.spans {
			if d.text.Len() >= maxIndexed {
				break
			}
			if m, ok := parseRow(readSpan(b.f, s), b.loc); ok {
				d.write(m.Text)
			}
		}
	} else {
		b.r.turns++
	}
	b.turns[turn] = d
	b.order = append(b.order, d)
	return d, nil
}

func readSpan(f io.ReaderAt, s span) []byte {
	buf := make([]byte, s.len)
	n, err := f.ReadAt(buf, s.off)
	if n < len(buf) && err != nil {
		return nil
	}
	return buf
}

// store writes the docs of the batch, and the events of a fresh file.
func (b *batch) store() error {
	if len(b.ids) > 0 {
		list, err := json.Marshal(slices.Sorted(maps.Keys(b.ids)))
		if err != nil {
			return err
		}
		if err := b.t.exec("INSERT INTO events SELECT ?, value FROM json_each(?)", b.r.id, string(list)); err != nil {
			return err
		}
	}
	for _, d := range b.order {
		if err := b.t.putDoc(b.r.id, d); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) putDoc(file int64, d *turnDoc) error {
	if d.id != 0 {
		t.later = append(t.later, postponed{d.id, "", true})
		if err := t.exec("UPDATE docs SET spans=?, at=?, cwd=? WHERE id=?", formatSpans(d.spans), d.at, d.cwd, d.id); err != nil {
			return err
		}
	} else {
		res, err := t.run("INSERT INTO docs(file, turn, spans, at, cwd) VALUES(?,?,?,?,?)", file, d.turn, formatSpans(d.spans), d.at, d.cwd)
		if err != nil {
			return err
		}
		if d.id, err = res.LastInsertId(); err != nil {
			return err
		}
	}
	t.later = append(t.later, postponed{d.id, t.termList(d.text.String()), false})
	return nil
}

// termList is the text that is handed to SQLite, each term once. It also notes how
// the words are spelt.
func (t *tx) termList(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	seen := make(map[string]struct{}, len(text)/8+1)
	s := segmenter{
		yield: func(term string, _ termKind) {
			if _, dup := seen[term]; !dup {
				seen[term] = struct{}{}
				b.WriteString(term)
				b.WriteByte(' ')
			}
		},
		spelled: func(w string) {
			if !isLongAsMisspelt(w) {
				return
			}
			if _, known := t.words[w]; !known {
				t.words[w] = !isEverydayWord(w)
			}
		},
	}
	s.segment(text)
	return b.String()
}

// indexNote indexes a note from its start; notes are small and seldom change.
func (w *Workspace) indexNote(t *tx, f *os.File, r *record, room *int64) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if err := t.clear(r); err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxNote))
	if err != nil {
		return err
	}
	*room -= int64(len(text))
	fm, body := parseFrontMatter(string(text))
	r.size, r.mtime, r.cursor = st.Size(), st.ModTime().UnixNano(), st.Size()
	r.kind = note
	if _, edited := readMark(string(text)); fm["generated_by"] == generatedBy && !edited {
		r.kind = generated
	}
	r.key, r.cwd, r.title = fm["session_id"], fm["cwd"], fm["name"]
	r.session.Host = client.Host(fm["host"])
	r.last = st.ModTime().UnixMilli()
	if day, err := time.ParseInLocation(time.DateOnly, path.Base(path.Dir(r.path)), w.loc); err == nil && w.day(st.ModTime()) != w.day(day) {
		r.last = day.Add(12 * time.Hour).UnixMilli()
	}
	r.first = r.last
	if r.kind == generated {
		// What nobody can find need not be searched, nor come before what can be found.
		if covered, err := t.covered(r.key); err != nil || covered {
			return errors.Join(err, t.save(r))
		}
	}
	head := fm["name"] + "\n" + fm["description"] + "\n"
	for i, s := range noteChunks(string(text), len(text)-len(body)) {
		d := &turnDoc{turn: strconv.Itoa(i), spans: []span{s}, at: r.last, cwd: r.cwd}
		d.write(head)
		d.write(string(text[s.off : s.off+s.len]))
		if err := t.putDoc(r.id, d); err != nil {
			return err
		}
		r.turns++
	}
	return t.save(r)
}

// chunkSize is about how many bytes of a note make a doc.
const chunkSize = 2000

// noteChunks cuts the text from byte from on into docs, at headings and empty
// lines where they are near.
func noteChunks(text string, from int) []span {
	var chunks []span
	line := 1 + strings.Count(text[:from], "\n")
	start, startLine := from, line
	flush := func(end int) {
		if !isBlank(text[start:end]) {
			chunks = append(chunks, span{startLine, int64(start), int64(end - start)})
		}
	}
	for off := from; off < len(text); {
		next := len(text)
		if i := strings.IndexByte(text[off:], '\n'); i >= 0 {
			next = off + i + 1
		}
		l := text[off:next]
		n := off - start
		if n > chunkSize/2 && strings.HasPrefix(l, "#") || n > chunkSize && strings.TrimSpace(l) == "" || n > 2*chunkSize {
			flush(off)
			start, startLine = off, line
		}
		off = next
		line++
	}
	flush(len(text))
	return chunks
}
