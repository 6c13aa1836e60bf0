package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

const (
	defaultLimit    = 5
	defaultMaxChars = 4000

	maxCandidates   = 200 // docs that are scored in full
	describedAtOnce = 50  // of them
	maxRead         = 24  // docs whose text is read to compare them
	maxReadBytes    = 4 << 20
	leastCover      = 0.2 // share of a query below which a doc is not looked at
	leastOfBest     = 0.5 // share of the best score below which the rest is noise
	exactFloor      = 0.4 // score of a doc that has a rare identifier of the query
)

// Recall implements [client.Service]. A broken index or a passed deadline makes
// it answer less, never fail.
//
// The score of an item is the share of the query's weight that it covers, from
// 0 to 1: rare terms and identifiers weigh most, terms that no memory has count
// as not covered. Memories of other projects score a little less, and so does what
// only the agent said.
func (w *Workspace) Recall(ctx context.Context, req client.RecallRequest) (client.RecallResult, error) {
	return w.newRecall(req).do(ctx), nil
}

func (w *Workspace) newRecall(req client.RecallRequest) *recall {
	r := &recall{w: w, req: req, q: newQuery(req.Query), floor: searchFloor}
	if req.Purpose != "" { // nobody asked for what comes
		r.chance, r.tail = leastChance, leastOfBest
	}
	return r
}

func (r *recall) do(ctx context.Context) client.RecallResult {
	start := time.Now()
	res := client.RecallResult{Items: []client.Item{}}
	find := (*recall).run
	if r.req.Query == "" {
		switch r.req.Purpose {
		case client.ForSessionStart:
			find = (*recall).profile
		case client.ForCompact:
			find = (*recall).thread
		}
	}
	if r.req.Limit >= 0 && r.req.MaxChars >= 0 {
		passages := r.askElsewhere(ctx)
		// What was found before something broke is still an answer.
		begun := *r
		_ = r.w.read(ctx, nil, func(x *index) error {
			next := begun
			err := find(&next, ctx, x)
			if err == nil || len(r.hits) == 0 {
				*r = next
			}
			return err
		})
		r.merge(<-passages)
		r.answer(&res)
	}
	res.TookMS = time.Since(start).Milliseconds()
	return res
}

// recall is one recall at work.
type recall struct {
	w         *Workspace
	req       client.RecallRequest
	q         *query
	hits      []*hit  // relevant and different, best first
	more      int     // relevant ones that were not read
	all       []*hit  // every hit that was looked at
	told      []*hit  // the turns that are relevant, also those that are not wanted
	elsewhere bool    // another memory was asked too
	root      *string // of the project, nil if it was not looked for

	floor  float64 // the least score of an answer
	chance float64 // the least chance of an answer
	tail   float64 // share of the best score below which an answer is left out
}

// hit is a doc that may be an answer.
type hit struct {
	id     int64
	mask   uint32
	score  float64
	chance float64 // see [query.chance]

	factors []Factor // what the score is the product of
	verdict string   // why it was chosen, or not
	shown   bool     // the session has it already

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
	asked map[string]struct{} // those that the user said; nil of a note
}

func (r *recall) run(ctx context.Context, x *index) error {
	err := r.find(ctx, x)
	if err != nil || len(r.hits) > 0 {
		return err
	}
	q, ok := r.followUp(ctx, x)
	if !ok {
		return nil
	}
	asked := r.q
	r.q = q
	if err = r.find(ctx, x); err != nil {
		r.q = asked // it is tried again
	}
	return err
}

// find finds what is relevant to the query.
func (r *recall) find(ctx context.Context, x *index) error {
	r.hits, r.all, r.more, r.told = nil, nil, 0, nil
	if len(r.q.asked) == 0 {
		return nil
	}
	var kept []*hit
	if err := x.reading(ctx, func(index *reader) error {
		found, err := r.q.match(index)
		if err != nil {
			return err
		}
		for n := 0; len(found) > 0 && (n%maxCandidates != 0 || len(kept) < maxCandidates/2); {
			batch := hitsOf(found[:min(len(found), describedAtOnce)])
			found = found[len(batch):]
			n += len(batch)
			if err := index.describe(batch); err != nil {
				return err
			}
			for _, h := range batch {
				if h.kind == dialog && h.path != "" {
					r.told = append(r.told, h)
				}
			}
			batch = slices.DeleteFunc(batch, func(h *hit) bool { return !r.wanted(h) })
			r.rank(batch)
			kept = append(kept, batch...)
			if len(found) > 0 && r.settled(kept, found[0].cover) {
				break
			}
		}
		return nil
	}); err != nil {
		return err
	}
	kept = r.withoutEchoes(kept)
	sortHits(kept)
	r.all = kept
	r.choose(r.weigh(r.readTexts(ctx, kept)))
	return nil
}

// settled tells whether docs that cover no more than a share of the query can make no
// difference to what is read, nor to what is explained. What another memory finds is
// compared with all that could have told it.
func (r *recall) settled(kept []*hit, cover float64) bool {
	if r.elsewhere {
		return false
	}
	better := 0
	for _, h := range kept {
		if h.kind == dialog && h.score > cover*sameFactor && !r.wasShown(h) {
			better++
		}
	}
	return better >= max(maxRead, maxExplained, r.req.Limit)
}

// wasShown tells whether the session was shown a hit.
func (r *recall) wasShown(h *hit) bool {
	return len(r.req.Exclude) > 0 && slices.Contains(r.req.Exclude, h.itemID())
}

// hitsOf makes hits of docs.
func hitsOf(found []match) []*hit {
	list := make([]hit, len(found))
	hits := make([]*hit, len(found))
	for i, m := range found {
		list[i] = hit{id: m.id, mask: m.mask, score: m.cover}
		hits[i] = &list[i]
	}
	return hits
}

// describe fills in what the index knows of the hits. A generated note, or ReMe's
// copy of a dialog, says what the turns of its session say, in other words at
// best: it gets no path, and so is not wanted, as long as they are there.
func (r *reader) describe(hits []*hit) error {
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
	rows, err := r.query(`SELECT d.id, d.turn, d.spans, d.at, d.cwd, f.path, f.kind, f.key, f.host, f.session
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

// wanted leaves out the running session, with its notes.
func (r *recall) wanted(h *hit) bool {
	if h.path == "" {
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
	sameFactor  = 1.15    // of the same project
	longDoc     = 8 << 10 // bytes; each doubling makes a match by chance likelier
	longFactor  = 0.95
	replyFactor = 0.8 // of what only the reply has of the query
)

// times makes a factor part of the score.
func (h *hit) times(name string, value float64) {
	h.factors = append(h.factors, Factor{name, value})
	h.score *= value
}

// rank weighs what the index tells of the hits.
func (r *recall) rank(hits []*hit) {
	if r.root == nil {
		root := projectRoot(r.req.Cwd)
		r.root = &root
	}
	for _, h := range hits {
		h.factors = append(h.factors, Factor{"covered", h.score})
		if inProject(h.cwd, *r.root) {
			h.times("project", sameFactor)
		}
		if n := h.bytes(); n > longDoc {
			h.times("length", math.Pow(longFactor, math.Log2(float64(n)/longDoc)))
		}
	}
	sortHits(hits)
}

func sortHits(hits []*hit) {
	slices.SortFunc(hits, func(a, b *hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.at, a.at), cmp.Compare(b.id, a.id))
	})
}

// weigh weighs what the texts of hits tell and returns those that say enough of
// what was asked for, the best first.
func (r *recall) weigh(hits []*hit) []*hit {
	for _, h := range hits {
		has := in(h.mask)
		h.chance = r.q.chance(has)
		if h.asked != nil {
			said := r.q.sum(func(t queryTerm) bool { _, ok := h.asked[t.text]; return ok && has(t) })
			h.times("asked", replyFactor+(1-replyFactor)*said/r.q.sum(has))
		}
	}
	r.supersede(hits)
	r.leaveOutShown(hits)
	sortHits(hits)
	return slices.DeleteFunc(hits, func(h *hit) bool {
		h.score = min(1, h.score)
		switch {
		case h.verdict != "":
		case h.score < r.floor:
			h.verdict = "says too little of what was asked for"
		case h.chance < r.chance:
			h.verdict = "is likelier not what was asked for"
		}
		return h.verdict != ""
	})
}

// leaveOutShown leaves out what the session was shown, and what says the same. That
// comes after supersede: if a correction was shown, what it corrects must not be.
func (r *recall) leaveOutShown(hits []*hit) {
	var shown []*hit
	for _, h := range hits {
		if h.shown {
			h.verdict = "was shown in this session"
			shown = append(shown, h)
		}
	}
	for _, h := range hits {
		if h.verdict == "" && slices.ContainsFunc(shown, func(o *hit) bool { return nearCopies(h.terms, o.terms) }) {
			h.verdict = "says the same as what was shown in this session"
		}
	}
}

// choose takes the best hits and drops what says the same as another: of near
// copies the newest stays, in the place of the best.
func (r *recall) choose(hits []*hit) {
	limit := cmp.Or(r.req.Limit, defaultLimit)
	for _, h := range hits {
		if h.score < r.tail*hits[0].score {
			h.verdict = "far behind the best"
			continue
		}
		if same := slices.IndexFunc(r.hits, func(o *hit) bool { return nearCopies(h.terms, o.terms) }); same >= 0 {
			h.verdict = "says the same as another"
			if o := r.hits[same]; h.at > o.at {
				h.score, h.verdict, o.verdict = o.score, o.verdict, h.verdict
				r.hits[same] = h
			}
			continue
		}
		if len(r.hits) == limit {
			h.verdict = "others are better"
			r.more++
			continue
		}
		h.verdict = "chosen"
		r.hits = append(r.hits, h)
	}
}

// readTexts reads the texts of the best hits.
func (r *recall) readTexts(ctx context.Context, hits []*hit) []*hit {
	var bytes int64
	var list []*hit
	fresh := 0
	for {
		n, more, size := 0, fresh, bytes
		for n < len(hits) && more < max(maxRead, r.req.Limit) && len(list)+n < 2*max(maxRead, r.req.Limit) && size <= maxReadBytes {
			h := hits[n]
			n++
			size += h.bytes()
			if h.shown = r.wasShown(h); !h.shown {
				more++
			}
		}
		if n == 0 {
			return list
		}
		atOnce(n, func(i int) {
			h := hits[i]
			var ok bool
			if ctx.Err() != nil {
				return
			}
			if h.doc, ok = r.w.readDoc(h); ok {
				h.asked, h.terms = h.doc.terms()
			}
		})
		if ctx.Err() != nil {
			return list
		}
		for _, h := range hits[:n] {
			bytes += h.bytes()
			switch {
			case h.terms == nil:
				h.verdict = "its file has changed"
				continue
			case !h.shown:
				fresh++
			}
			list = append(list, h)
		}
		hits = hits[n:]
	}
}

// atOnce calls fn for the numbers below n, on all processors. A panic in one of them is
// one of the caller's.
func atOnce(n int, fn func(int)) {
	var next atomic.Int64
	var panicked atomic.Pointer[any]
	var workers sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					panicked.Store(&p)
				}
			}()
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				fn(int(i))
			}
		})
	}
	workers.Wait()
	if p := panicked.Load(); p != nil {
		panic(*p)
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
			Score: math.Round(h.score*1000) / 1000, Date: date, Host: h.host, Project: projectName(h.cwd), SessionID: cmp.Or(h.sess, h.key),
		})
	}
	res.Omitted += r.more
}
