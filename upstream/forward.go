package upstream

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/client/reme"
	"github.com/agentscope-ai/reme-hook/internal/crash"
	"github.com/agentscope-ai/reme-hook/internal/durable"
	"github.com/agentscope-ai/reme-hook/workspace"
)

const (
	// callTime bounds one extraction; a model may take its time.
	callTime = 600 * time.Second
	// workers is how many sessions are extracted at once.
	workers = 2
	// maxTries is after how many failures of its own a request is given up.
	maxTries = 10
	// keptFor is how long a request that ReMe made nothing of is kept.
	keptFor = 30 * 24 * time.Hour
	// unknownWait is how long a server that does not know a request again may still
	// be at work on one whose end nobody has seen.
	unknownWait = callTime
)

// ErrBusy is returned when another process forwards.
var ErrBusy = errors.New("another process is forwarding to ReMe")

// session is what is known of a session's way to ReMe: the content of
// sessions/<key>.json.
type session struct {
	Version int      `json:"version"`
	Batches int      `json:"batches"`         // made so far
	Taken   string   `json:"taken"`           // messages that need not be sent any more: 16 hex digits each
	Notes   []string `json:"notes,omitempty"` // what was made of them: paths in ReMe's workspace

	set map[string]bool // of Taken
}

func (s *session) has(message string) bool { return s.set[message] }

// takenLength is the length of a message's id in session.Taken.
const takenLength = 16

// noteOf is the note that ReMe has made of a day of the session, "" if none.
func (s session) noteOf(day string) string {
	for _, note := range s.Notes {
		if path.Base(path.Dir(note)) == day {
			return note
		}
	}
	return ""
}

// takes notes that a batch needs no more sending.
func (s *session) takes(b batch, note string) {
	for _, m := range b.Taken {
		if !s.has(m) {
			s.Taken += m
			s.set[m] = true
		}
	}
	s.Batches = max(s.Batches, b.Number)
	if note != "" && !slices.Contains(s.Notes, note) {
		s.Notes = append(s.Notes, note)
	}
}

func (u *Upstream) sessionFile(key client.SessionKey) string {
	return u.file(filepath.Join("sessions", string(key)+".json"))
}

func (u *Upstream) batchFile(key client.SessionKey) string {
	return u.file(filepath.Join("batches", string(key)+".json"))
}

func (u *Upstream) archiveFile(b batch) string {
	return u.file(filepath.Join("archive", string(b.Key()), fmt.Sprintf("%08d.json", b.Number)))
}

// loadSession reads what is known of a session; a file that cannot be read is an
// error, because to take it for none would send everything again.
func (u *Upstream) loadSession(key client.SessionKey) (session, error) {
	s := session{Version: version, set: map[string]bool{}}
	err := read(u.sessionFile(key), &s)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil && (s.Version != version || len(s.Taken)%takenLength != 0 || !isHex(s.Taken)) {
		err = errors.New("is damaged or of another version")
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", u.sessionFile(key), err)
	}
	for i := 0; i < len(s.Taken); i += takenLength {
		s.set[s.Taken[i:i+takenLength]] = true
	}
	return s, nil
}

func isHex(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil
}

// Options say what is forwarded.
type Options struct {
	// All forwards what is not complete yet as well: it does not wait for a fifth turn
	// or for the end of a session.
	All bool
	// Backfill forwards what was said before ReMe was there, from Since on.
	Backfill bool
	Since    time.Time
	// AtOnce does not wait for a back-off.
	AtOnce bool
	// Wait is how long to wait for another process that forwards.
	Wait time.Duration
	// Begin bounds the time in which calls are begun; 0 means no bound.
	Begin time.Duration
	// Each is called after each request with what was sent and what is to be said
	// of it.
	Each func(turns int, outcome string)
}

// forwarder is one run.
type forwarder struct {
	*Upstream
	Options
	ws     *workspace.Workspace
	server reme.Server
	zone   *time.Location
	since  time.Time
	until  time.Time // no call begins after it; zero is no bound

	mu   sync.Mutex
	stop error                      // why the others need not go on
	sent bool                       // in this round
	held map[client.SessionKey]bool // sessions whose batch failed in this run
}

// Forward sends what is to be sent of the workspace's sessions, until nothing is
// left or the server asks for a rest, which is remembered and returned. It is
// [ErrBusy] if another process is at it. A crash at any point costs nothing: the
// next call goes on.
func (u *Upstream) Forward(ctx context.Context, ws *workspace.Workspace, o Options) error {
	if u.URL == "" {
		return u.tidy()
	}
	unlock, err := u.lock(ctx, o.Wait)
	if err != nil {
		return err
	}
	defer unlock()
	k, err := u.current(ctx)
	if err != nil {
		return err
	}
	if err := u.expire(); err != nil {
		return err
	}
	if k.Kind != reme.Released || !o.AtOnce && u.resting(forwarding) {
		return nil
	}
	f := &forwarder{Upstream: u, Options: o, ws: ws, server: k.Server, held: map[client.SessionKey]bool{}}
	if zone, err := time.LoadLocation(k.Timezone); err == nil && k.Timezone != "" {
		f.zone = zone
	}
	f.since, _ = u.since()
	if o.Backfill {
		f.since = o.Since
	}
	if o.Begin > 0 {
		f.until = time.Now().Add(o.Begin)
	}
	err = f.run(ctx)
	var failure *reme.Failure
	if err == nil || errors.As(err, &failure) {
		return errors.Join(err, u.note(forwarding, err))
	}
	return err
}

// lock makes this process the one that forwards.
func (u *Upstream) lock(ctx context.Context, wait time.Duration) (unlock func(), err error) {
	const name = "forward.lock"
	unlock, ok, err := durable.TryLock(u.file(name))
	if err != nil || ok {
		return unlock, err
	}
	short, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if unlock, err = durable.Lock(short, u.file(name)); err != nil && short.Err() != nil && ctx.Err() == nil {
		err = ErrBusy
	}
	return unlock, err
}

// run makes rounds until one has nothing to send: while a model is at work, other
// turns come in.
func (f *forwarder) run(ctx context.Context) error {
	for {
		f.sent = false
		if err := f.round(ctx); err != nil || !f.sent || f.over(ctx) {
			return err
		}
	}
}

// round forwards the sessions of the queue, and those that have a batch under way.
func (f *forwarder) round(ctx context.Context) error {
	queue, err := f.sessions(ctx)
	if err != nil {
		return err
	}
	work := make(chan workspace.Queued)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for q := range work {
				if err := f.session(ctx, q); err != nil {
					f.fail(err)
				}
			}
		})
	}
	for _, q := range queue {
		work <- q
	}
	close(work)
	wg.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.stop, ctx.Err())
}

func (f *forwarder) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop == nil {
		f.stop = err
	}
}

// hold lets a session be for the rest of the run.
func (f *forwarder) hold(key client.SessionKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held[key] = true
}

func (f *forwarder) isHeld(key client.SessionKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held[key]
}

// over tells whether no further call is to begin.
func (f *forwarder) over(ctx context.Context) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stop != nil || ctx.Err() != nil || !f.until.IsZero() && time.Now().After(f.until)
}

// sessions lists those that may have something to send.
func (f *forwarder) sessions(ctx context.Context) ([]workspace.Queued, error) {
	queue, err := f.ws.Queued(ctx)
	if err != nil {
		return nil, err
	}
	if !f.Backfill {
		queue = slices.DeleteFunc(queue, func(q workspace.Queued) bool { return !f.Extracts(client.SessionKey(q.Key), q.Last) })
	}
	if f.Backfill {
		all, err := f.ws.Sessions(ctx, 0)
		if err != nil {
			return nil, err
		}
		slices.Reverse(all) // oldest first
		for _, s := range all {
			if s.Host != "" && !slices.ContainsFunc(queue, func(q workspace.Queued) bool { return q.Key == s.Key }) {
				queue = append(queue, workspace.Queued{Key: s.Key, Path: s.Path, Last: s.Last, Settled: true})
			}
		}
	}
	batches, err := f.underWay()
	if err != nil {
		return nil, err
	}
	for _, b := range batches {
		if key := string(b.Key()); !slices.ContainsFunc(queue, func(q workspace.Queued) bool { return q.Key == key }) {
			queue = append(queue, workspace.Queued{Key: key})
		}
	}
	return queue, nil
}

// session forwards one session as far as that is possible now.
func (f *forwarder) session(ctx context.Context, q workspace.Queued) error {
	key := client.SessionKey(q.Key)
	for !f.over(ctx) && !f.isHeld(key) {
		b, err := f.loadBatch(key)
		if errors.Is(err, fs.ErrNotExist) {
			if q.Path == "" {
				return nil
			}
			b, err = f.next(ctx, q)
			if err == nil && b == nil {
				return nil
			}
		}
		if err != nil {
			return err
		}
		if !f.AtOnce && f.Now().Before(b.NotBefore) {
			return nil
		}
		done, err := f.send(ctx, b)
		if err != nil || !done {
			return err
		}
	}
	return nil
}

// loadBatch reads the batch of a session that is under way. One that ReMe has
// taken already, when a crash came before it was removed, is removed.
func (f *forwarder) loadBatch(key client.SessionKey) (*batch, error) {
	var b batch
	if err := read(f.batchFile(key), &b); err != nil {
		return nil, err
	}
	if b.Version != version || b.Key() != key {
		return nil, fmt.Errorf("%s is of another version or session", f.batchFile(key))
	}
	s, err := f.loadSession(key)
	if err != nil {
		return nil, err
	}
	if s.Batches >= b.Number {
		if err := remove(f.batchFile(key)); err != nil {
			return nil, err
		}
		return nil, fs.ErrNotExist
	}
	return &b, nil
}

// next freezes the next batch of a session, if there is one. A session of which
// all was sent leaves the queue.
func (f *forwarder) next(ctx context.Context, q workspace.Queued) (*batch, error) {
	s, err := f.loadSession(client.SessionKey(q.Key))
	if err != nil {
		return nil, err
	}
	c, size, err := f.cut(ctx, s, q)
	if err != nil {
		return nil, err
	}
	if len(c.messages) == 0 {
		return nil, f.ws.Dequeue(ctx, q, size)
	}
	if !c.closed() && !q.Ended && !q.Settled && !f.All {
		return nil, nil
	}
	b := c.freeze(s.Batches+1, f.Now())
	if err := f.saveBatch(&b); err != nil {
		return nil, err
	}
	crash.Point("forward.frozen")
	return &b, nil
}

// cut collects the next messages of a session.
func (f *forwarder) cut(ctx context.Context, s session, q workspace.Queued) (*cutter, int64, error) {
	c := &cutter{zone: f.zone}
	size, err := f.left(ctx, s, q, c.add)
	return c, size, err
}

// left calls fn for the messages of a session that are to be sent, until it returns
// false. It returns the size of the dialog.
func (f *forwarder) left(ctx context.Context, s session, q workspace.Queued, fn func(workspace.Message) bool) (int64, error) {
	seen := map[string]bool{}
	return f.ws.Messages(ctx, q.Path, func(m workspace.Message) bool {
		if string(m.Session.Key()) != q.Key {
			return true // someone else's row
		}
		if m.CreatedAt.IsZero() {
			m.CreatedAt = q.Last
		}
		id := taken(m.ID)
		if seen[id] || m.CreatedAt.Before(f.since) || s.has(id) {
			return true
		}
		seen[id] = true
		return fn(m)
	})
}

func (f *forwarder) saveBatch(b *batch) error { return write(f.batchFile(b.Key()), b) }

// send makes one try of a batch and remembers how it ended. It reports whether the
// batch is done with, and returns an error if the server should be left in peace.
func (f *forwarder) send(ctx context.Context, b *batch) (done bool, err error) {
	now := f.Now()
	if !f.server.Idempotent() && !b.SentAt.IsZero() {
		if b.NotBefore = b.SentAt.Add(unknownWait); !f.AtOnce && now.Before(b.NotBefore) {
			return false, f.saveBatch(b)
		}
		b.Repeated++
	}
	b.SentAt = now
	if err := f.saveBatch(b); err != nil {
		return false, err
	}
	f.mu.Lock()
	f.sent = true
	f.mu.Unlock()
	crash.Point("forward.sent")
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	x, err := f.client().AutoMemory(call, []byte(b.Body))
	crash.Point("forward.answered")
	var failure *reme.Failure
	switch {
	case err == nil:
		return true, f.extracted(b, x)
	case errors.As(err, &failure):
		return f.failed(ctx, b, failure)
	}
	return false, err
}

// extracted notes what ReMe has made of a batch.
func (f *forwarder) extracted(b *batch, x reme.Extraction) error {
	outcome, state, why := "extracted", "", ""
	switch {
	case x.Path == "" && !x.Skipped:
		outcome, state, why = "nothing kept", keptNothing, "ReMe made no note of it"
	case b.Repeated > 0:
		state, why = repeated, "it may have been extracted more than once: this ReMe does not know a request again"
	}
	return f.finish(b, state, why, outcome, x.Path)
}

// finish ends a batch's way, in the archive if it has a state there.
func (f *forwarder) finish(b *batch, state, why, outcome, note string) error {
	if state != "" {
		if err := write(f.archiveFile(*b), archived{*b, state, why, f.Now()}); err != nil {
			return err
		}
		crash.Point("forward.archived")
	}
	s, err := f.loadSession(b.Key())
	if err != nil {
		return err
	}
	s.takes(*b, note)
	if err := write(f.sessionFile(b.Key()), s); err != nil {
		return err
	}
	crash.Point("forward.taken")
	f.told(b, outcome)
	return remove(f.batchFile(b.Key()))
}

func (f *forwarder) told(b *batch, outcome string) {
	if f.Each != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.Each(b.Turns, outcome)
	}
}

// failed notes why a try came to nothing, and gives the batch up if it will never
// do.
func (f *forwarder) failed(ctx context.Context, b *batch, failure *reme.Failure) (done bool, err error) {
	b.Class, b.Reason = failure.Class.String(), failure.Error()
	if !failure.Unknown {
		b.SentAt = time.Time{}
	}
	b.NotBefore = time.Time{}
	if failure.Alone {
		b.Tries++
		b.NotBefore = f.Now().Add(min(5*time.Second<<b.Tries, 15*time.Minute))
		switch {
		case failure.Class == client.Permanent:
			return true, f.finish(b, refused, b.Reason, b.Reason, "")
		case b.Tries >= maxTries:
			return true, f.finish(b, parked, b.Reason, b.Reason, "")
		}
	}
	if err := f.saveBatch(b); err != nil {
		return false, err
	}
	f.told(b, b.Reason)
	if failure.Alone || ctx.Err() != nil {
		f.hold(b.Key())
		return false, nil
	}
	return false, failure
}

// The reasons for which a batch is in the archive.
const (
	keptNothing = "kept-nothing" // ReMe took it and made no note
	parked      = "parked"       // it failed too often
	refused     = "refused"      // ReMe will never take it
	repeated    = "repeated"     // it may have been extracted twice
)

// archived is a batch that is not under way any more: the content of
// archive/<key>/<number>.json.
type archived struct {
	batch
	State string    `json:"state"`
	Why   string    `json:"why"`
	At    time.Time `json:"at"`
}

// underWay reads the batches that ReMe has not taken yet.
func (u *Upstream) underWay() ([]batch, error) {
	files, err := durable.Glob(u.Dir, "batches/*.json")
	if err != nil {
		return nil, err
	}
	var out []batch
	for _, file := range files {
		var b batch
		if err := read(file, &b); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, b)
	}
	return out, nil
}

// archives reads the archive.
func (u *Upstream) archives() (map[string]archived, error) {
	files, err := durable.Glob(u.Dir, "archive/*/*.json")
	if err != nil {
		return nil, err
	}
	out := map[string]archived{}
	for _, file := range files {
		var a archived
		if err := read(file, &a); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out[file] = a
	}
	return out, nil
}

// expire deletes what ReMe has taken and made nothing of, after a month.
func (u *Upstream) expire() error {
	list, err := u.archives()
	if err != nil {
		return err
	}
	for file, a := range list {
		if (a.State == keptNothing || a.State == repeated) && u.Now().Sub(a.At) > keptFor {
			if err := remove(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// Release makes archived batches ready to be sent again, under new names: those
// that were given up, and with all those that ReMe made nothing of. A session has
// one batch under way at a time, so that some may be left for the next call; it
// returns how many are ready and how many are left.
func (u *Upstream) Release(ctx context.Context, wait time.Duration, all bool) (ready, left int, err error) {
	unlock, err := u.lock(ctx, wait)
	if err != nil {
		return 0, 0, err
	}
	defer unlock()
	list, err := u.archives()
	if err != nil {
		return 0, 0, err
	}
	files := make([]string, 0, len(list))
	for file := range list {
		files = append(files, file)
	}
	slices.SortFunc(files, strings.Compare)
	for _, file := range files {
		a := list[file]
		if a.State == repeated || a.State == keptNothing && !all {
			continue
		}
		if _, err := os.Stat(u.batchFile(a.Key())); err == nil {
			left++
			continue
		}
		s, err := u.loadSession(a.Key())
		if err != nil {
			return ready, left, err
		}
		b, err := a.again(u.Now())
		if err != nil {
			return ready, left, err
		}
		b.Number = s.Batches + 1
		if err := write(u.batchFile(b.Key()), b); err != nil {
			return ready, left, err
		}
		crash.Point("forward.released")
		if err := remove(file); err != nil {
			return ready, left, err
		}
		ready++
	}
	return ready, left, nil
}
