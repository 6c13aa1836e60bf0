package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/agentscope-ai/reme-hook/client"
)

const (
	defaultLimit    = 5
	defaultMaxChars = 4000

	maxCandidates = 200 // docs that are scored in full
	maxRead       = 24  // docs whose text is read to compare them
	maxReadBytes  = 4 << 20
	floor         = 0.3 // scores below are noise
	exactFloor    = 0.4 // score of a doc that has a rare identifier of the query
)

// Recall implements [client.Service]. A broken index or a passed deadline makes
// it answer less, never fail.
//
// The score of an item is the share of the query's weight that it covers, from
// 0 to 1: rare terms and identifiers weigh most, terms that no memory has count
// as not covered. Old memories and those of other projects score a little less.
func (w *Workspace) Recall(ctx context.Context, req client.RecallRequest) (client.RecallResult, error) {
	start := time.Now()
	res := client.RecallResult{Items: []client.Item{}}
	r := recall{w: w, req: req, q: newQuery(req.Query)}
	find := r.run
	if req.Purpose == client.ForSessionStart && req.Query == "" {
		find = r.latest
	}
	if req.Limit >= 0 && req.MaxChars >= 0 {
		passages := r.askElsewhere(ctx)
		// What was found before something broke is still an answer.
		_ = w.read(ctx, true, func(x *index) error { return find(ctx, x) })
		r.merge(<-passages)
		r.answer(&res)
	}
	res.TookMS = time.Since(start).Milliseconds()
	return res, nil
}

// recall is one recall at work.
type recall struct {
	w    *Workspace
	req  client.RecallRequest
	q    *query
	hits []*hit // relevant and different, best first
	more int    // relevant ones that were not read
	told []*hit // the turns that are relevant, also those that are not wanted
}

// hit is a doc that may be an answer.
type hit struct {
	id    int64
	mask  uint32
	score float64

	path  string
	kind  kind
	key   string
	host  client.Host
	sess  string
	turn  string
	spans []span
	at    int64
	cwd   string

	doc   docText
	terms map[string]struct{}
}

// maxLatest bounds how many of a project's newest docs are looked at.
const maxLatest = 100

// latest finds what was last said in the project.
func (r *recall) latest(ctx context.Context, x *index) error {
	r.hits, r.more = nil, 0
	root := projectRoot(r.req.Cwd)
	if root == "" {
		return nil
	}
	below := root + string(filepath.Separator)
	rows, err := x.db.QueryContext(ctx, `SELECT id FROM docs WHERE cwd = ? OR substr(cwd, 1, ?) = ? ORDER BY at DESC LIMIT ?`,
		root, utf8.RuneCountInString(below), below, maxLatest)
	if err != nil {
		return err
	}
	defer rows.Close()
	var hits []*hit
	for rows.Next() {
		h := &hit{score: 1}
		if err := rows.Scan(&h.id); err != nil {
			return err
		}
		hits = append(hits, h)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if err := r.describe(ctx, x, hits); err != nil {
		return err
	}
	hits = slices.DeleteFunc(hits, func(h *hit) bool { return !r.wanted(h) })
	r.rank(hits)
	r.pick(ctx, hits)
	return nil
}

func (r *recall) run(ctx context.Context, x *index) error {
	r.hits, r.more, r.told = nil, 0, nil
	if len(r.q.terms) == 0 {
		return nil
	}
	masks, err := r.q.match(ctx, x)
	if err != nil {
		return err
	}
	hits := make([]*hit, 0, len(masks))
	for id, mask := range masks {
		if s := r.q.score(mask); s >= floor*0.9 {
			hits = append(hits, &hit{id: id, mask: mask, score: s})
		}
	}
	slices.SortFunc(hits, func(a, b *hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.id, a.id))
	})
	var kept []*hit
	for len(hits) > 0 && len(kept) < maxCandidates/2 {
		n := min(len(hits), maxCandidates)
		if err := r.describe(ctx, x, hits[:n]); err != nil {
			return err
		}
		for _, h := range hits[:n] {
			if h.kind == dialog && h.path != "" {
				r.told = append(r.told, h)
			}
		}
		kept = append(kept, slices.DeleteFunc(hits[:n:n], func(h *hit) bool { return !r.wanted(h) })...)
		hits = hits[n:]
	}
	kept = r.withoutEchoes(kept)
	r.rank(kept)
	r.pick(ctx, slices.DeleteFunc(kept, func(h *hit) bool { return h.score < floor }))
	return nil
}

// describe fills in what the index knows of the hits. A generated note, or ReMe's
// copy of a dialog, says what the turns of its session say, in other words at
// best: it gets no path, and so is not wanted, as long as they are there.
func (r *recall) describe(ctx context.Context, x *index, hits []*hit) error {
	ids := make([]int64, len(hits))
	byID := make(map[int64]*hit, len(hits))
	for i, h := range hits {
		ids[i] = h.id
		byID[h.id] = h
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	rows, err := x.db.QueryContext(ctx, `SELECT d.id, d.turn, d.spans, d.at, d.cwd, f.path, f.kind, f.key, f.host, f.session
		FROM json_each(?) j JOIN docs d ON d.id = j.value JOIN files f ON f.id = d.file
		WHERE f.kind NOT IN (?, ?) OR NOT EXISTS (SELECT 1 FROM files o WHERE o.key = f.key AND o.kind = ?)`, string(list), generated, mirror, dialog)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var d hit
		var spans string
		if err := rows.Scan(&d.id, &d.turn, &spans, &d.at, &d.cwd, &d.path, &d.kind, &d.key, &d.host, &d.sess); err != nil {
			return err
		}
		h := byID[d.id]
		d.mask, d.score, d.spans = h.mask, h.score, parseSpans(spans)
		*h = d
	}
	return rows.Err()
}

// wanted leaves out the running session, with its notes, and what was shown.
func (r *recall) wanted(h *hit) bool {
	if h.path == "" || slices.Contains(r.req.Exclude, h.itemID()) {
		return false
	}
	if r.req.Purpose == client.ForCompact || r.req.Session == "" {
		return true
	}
	running := r.running()
	return h.key != string(running.Key()) && h.key != running.RemoteID() && h.key != running.ID
}

func (r *recall) running() client.Session {
	return client.Session{Host: r.req.Host, Scope: r.req.ScopeID, ID: r.req.Session}
}

// itemID is made of what a rebuild of the index does not change.
func (h *hit) itemID() string {
	sum := sha256.Sum256([]byte(h.path + "\x00" + h.turn))
	return hex.EncodeToString(sum[:6])
}

func (h *hit) bytes() (n int64) {
	for _, s := range h.spans {
		n += s.len
	}
	return n
}

const (
	halfLife   = 90 * 24 * time.Hour
	longDoc    = 8 << 10 // bytes; each doubling makes a match by chance likelier
	longFactor = 0.95
	oldFactor  = 0.85 // of something very old
	sameFactor = 1.15 // of the same project
)

func (r *recall) rank(hits []*hit) {
	root := projectRoot(r.req.Cwd)
	now := r.w.now()
	for _, h := range hits {
		age := max(0, now.Sub(time.UnixMilli(h.at)))
		if h.at == 0 {
			age = halfLife
		}
		h.score *= oldFactor + (1-oldFactor)*math.Exp2(-float64(age)/float64(halfLife))
		if inProject(h.cwd, root) {
			h.score *= sameFactor
		}
		if n := h.bytes(); n > longDoc {
			h.score *= math.Pow(longFactor, math.Log2(float64(n)/longDoc))
		}
		h.score = min(1, h.score)
	}
	slices.SortFunc(hits, func(a, b *hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.at, a.at), cmp.Compare(b.id, a.id))
	})
}

// pick reads the best hits and drops what says the same as another: of near
// copies the newest stays, in the place of the best.
func (r *recall) pick(ctx context.Context, hits []*hit) {
	var bytes int64
	limit := cmp.Or(r.req.Limit, defaultLimit)
	for i, h := range hits[:min(len(hits), max(maxRead, limit))] {
		if len(r.hits) >= limit || bytes > maxReadBytes || ctx.Err() != nil {
			r.more = len(hits) - i
			break
		}
		bytes += h.bytes()
		var ok bool
		if h.doc, ok = r.w.readDoc(h); !ok {
			continue // the file has changed since it was indexed
		}
		h.terms = termSet(h.doc.String())
		if same := slices.IndexFunc(r.hits, func(o *hit) bool { return nearCopies(h.terms, o.terms) }); same >= 0 {
			if o := r.hits[same]; h.at > o.at {
				h.score = o.score
				r.hits[same] = h
			}
			continue
		}
		r.hits = append(r.hits, h)
	}
}

func termSet(text string) map[string]struct{} {
	set := map[string]struct{}{}
	eachTerm(text, func(term string, _ termKind) { set[term] = struct{}{} })
	return set
}

// nearCopies compares by the share of common terms.
func nearCopies(a, b map[string]struct{}) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if float64(len(a)) < 0.85*float64(len(b)) {
		return false
	}
	common := 0
	for t := range a {
		if _, ok := b[t]; ok {
			common++
		}
	}
	return float64(common) >= 0.85*float64(len(a)+len(b)-common)
}

// answer makes items of the hits that fit.
func (r *recall) answer(res *client.RecallResult) {
	limit := cmp.Or(r.req.Limit, defaultLimit)
	left := cmp.Or(r.req.MaxChars, defaultMaxChars)
	for i, h := range r.hits {
		items := min(limit, len(r.hits)) - len(res.Items)
		if items <= 0 {
			res.Omitted += len(r.hits) - i
			break
		}
		// A fair share of what is left, so that a long first item does not
		// push the others out.
		share := min(maxSnippet, left)
		if items > 1 {
			share = min(share, max(left/items, minSnippet))
		}
		text, cut := snippet(h.doc, r.q, share)
		if text == "" {
			res.Omitted++
			continue
		}
		left -= countChars(text)
		res.Truncated = res.Truncated || cut
		date := ""
		if h.at != 0 {
			date = r.w.dayOf(h)
		}
		res.Items = append(res.Items, client.Item{
			ID: h.itemID(), Path: h.path, StartLine: h.doc.first, EndLine: h.doc.last, Snippet: text,
			Score: math.Round(h.score*1000) / 1000, Date: date, Host: h.host, SessionID: cmp.Or(h.sess, h.key),
		})
	}
	res.Omitted += r.more
}
