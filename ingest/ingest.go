// Package ingest brings into the memory what the hosts' own logs of their
// sessions have: all of it, what is added, or what the memory lacks.
//
// # Promises
//
// A turn gets the ids that live capture gives it, so nothing is ever doubled,
// whatever was captured live, ingested before, or interrupted. What is kept of a
// turn, and what is cleaned out of it, is what live capture keeps. Logs are only
// read.
//
// # What it refuses
//
// A log of a version that is not known is reported and left alone; so are the
// sessions of folders that the user excluded, and those that the user held
// without memory.
//
// # What survives a crash
//
// What was stored is stored. Where a log is read on from is saved now and then;
// what comes after it is read again, to no effect.
package ingest

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
)

// Ingester reads the logs of hosts.
type Ingester struct {
	Memory client.Ledger
	// Waiting returns the events of a session that are on their way to the memory,
	// which will have them. It may be nil.
	Waiting func(client.Session) ([]client.Event, error)
	// LeftAlone tells sessions that are not to be remembered: by where they work, or
	// because the user said so.
	LeftAlone func(s client.Session, cwd string) bool
	Dir       string // where the cursors are kept
	Now       func() time.Time
	// Progress is told now and then what was done so far; it may be nil.
	Progress func(Report)
}

// Filter narrows what is looked at. The zero value is everything.
type Filter struct {
	Since, Until time.Time // of a turn's first message; zero is open, Until is exclusive
	Project      string    // folder that a session works in, or below
}

// Report tells what the logs of a host have and what became of it.
type Report struct {
	Host     client.Host `json:"host"`
	Sessions int         `json:"sessions"` // with something said in them
	Turns    int         `json:"turns"`
	Messages int         `json:"messages"`
	Bytes    int64       `json:"bytes"` // of logs that were read
	First    time.Time   `json:"first,omitzero"`
	Last     time.Time   `json:"last,omitzero"`
	// Missing is what the memory lacked, in sessions, turns and messages.
	Missing Missing `json:"missing"`
	// Extractions is how often a language model is asked for them where a real ReMe
	// makes the notes, in batches; each takes a few calls.
	Extractions int `json:"extractions"`
	Unchanged   int `json:"unchanged"`  // logs without anything new since the last time
	LeftAlone   int `json:"left_alone"` // sessions that are not to be remembered
	Damaged     int `json:"damaged"`    // records that could not be read
	// Problems are logs that could not be read, with the reason.
	Problems []Problem `json:"problems"`
	// Gaps are the sessions with something missing, if they were asked for.
	Gaps []Gap `json:"gaps,omitempty"`
}

// Missing counts what a memory lacks.
type Missing struct {
	Sessions int `json:"sessions"`
	Turns    int `json:"turns"`
	Messages int `json:"messages"`
}

// Problem is a log that could not be read.
type Problem struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Gap is a session of which the memory lacks turns.
type Gap struct {
	client.Session
	Path     string          `json:"path"`
	Turns    []client.TurnID `json:"turns"`
	Messages int             `json:"messages"`
	First    time.Time       `json:"first"`
}

// Options say what a run does. The zero value tells what a backfill would add.
type Options struct {
	Filter
	Write bool // store what is missing
	// Whole compares all of the logs with what the memory holds, and reports the
	// gaps. Otherwise a run of everything reads what the last one that wrote did not.
	Whole bool
	// Later leaves the notes of what is stored to whoever drains the memory's queue.
	Later bool
	// pass reads everything and stores nothing of it, so that the next run that follows
	// begins after it.
	pass bool
	// follow goes on where the last run ended, also behind what was passed.
	follow bool
}

// Bulk is a memory that takes much that is old at once, and sees later to what is
// made of it.
type Bulk interface {
	// AppendAll stores events as Append does. What the sessions had before, also those
	// of requests without events, is durable when it returns without error, too.
	AppendAll(context.Context, []client.AppendRequest) error
}

const (
	// maxText bounds the text that waits for being stored, in bytes.
	maxText = 2 << 20
	// maxWaiting bounds the sessions that do. They are stored together: the time that
	// takes is that of the disk.
	maxWaiting = 256
	// maxAppending is how many appends are under way at once.
	maxAppending = 32
)

// Run looks through the logs of one host. It ends early only when ctx ends or the
// memory fails, with what was done until then.
func (in *Ingester) Run(ctx context.Context, a *hooks.Adapter, o Options) (Report, error) {
	r := &run{Ingester: in, Options: o, host: a, report: Report{Host: a.Host, Problems: []Problem{}}, inside: map[string]bool{}, seed: maphash.MakeSeed(), counted: map[uint64]bool{}}
	if o.Whole || o.Filter != (Filter{}) {
		err := r.all(ctx)
		return r.report, err
	}
	if o.Write {
		unlock, err := in.lock(ctx, a.Host)
		if err != nil {
			return r.report, err
		}
		defer unlock()
	}
	r.cursors = in.loadCursors(a.Host)
	r.cursors.whole = o.pass
	err := r.all(ctx)
	if o.Write && !(o.pass && err != nil) { // else what was not passed would count as added
		err = errors.Join(err, r.cursors.save())
	}
	return r.report, err
}

// run is one look through the logs of a host.
type run struct {
	*Ingester
	Options
	host    *hooks.Adapter
	cursors *cursors // nil if all is read from the beginning
	report  Report
	told    time.Time
	waiting []part // for being stored
	text    int    // of them, in bytes
	storing []part // what is being stored
	done    chan error
	inside  map[string]bool // whether a folder is in the project
	seed    maphash.Seed
	counted map[uint64]bool // events that are missing, where they are not stored: by session and id
}

// part is what was read of a log and is to be stored.
type part struct {
	key    string // in the cursors
	log    hooks.Log
	lacks  []client.AppendRequest
	cursor string // to go on from when it is stored; "" if there is more to come
}

func (r *run) all(ctx context.Context) error {
	if r.host.Logs == nil {
		return nil
	}
	err := r.logs(ctx)
	if err == nil {
		err = r.store(ctx)
	}
	if last := r.stored(); err == nil {
		err = last
	}
	if failed := new(memoryError); errors.As(err, &failed) {
		return failed.err
	}
	return err
}

// logs looks through all logs.
func (r *run) logs(ctx context.Context) error {
	for log, err := range r.host.Logs.List(ctx) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			err = r.log(ctx, log)
		}
		if errors.As(err, new(*memoryError)) {
			return err
		}
		if err != nil {
			r.report.Problems = append(r.report.Problems, Problem{log.Path, err.Error()})
		}
		if r.Progress != nil && r.Now().Sub(r.told) > 100*time.Millisecond {
			r.told = r.Now()
			r.Progress(r.report)
		}
	}
	return nil
}

// memoryError ends a run: what fails for one session fails for all.
type memoryError struct{ err error }

func (e *memoryError) Error() string { return e.err.Error() }

// log looks through one log.
func (r *run) log(ctx context.Context, log hooks.Log) error {
	if !r.Since.IsZero() && log.Modified.Before(r.Since) {
		return nil
	}
	key := key(log)
	if r.cursors != nil && r.cursors.unchanged(key, log) && (r.follow || !r.cursors.Logs[key].Passed) {
		r.report.Unchanged++
		return nil
	}
	if ok, err := log.Complete(); !ok || err != nil {
		return err
	}
	if r.LeftAlone(log.Session, log.Cwd) {
		r.report.LeftAlone++
		return nil
	}
	cursor := ""
	if r.cursors != nil && (r.follow || !r.cursors.Logs[key].Passed) {
		cursor = r.cursors.Logs[key].Cursor
	}
	s := &session{run: r, key: key, log: log, leftAlone: map[string]bool{log.Cwd: false}}
	for {
		page, err := r.host.Logs.Read(log, cursor)
		r.report.Damaged += page.Damaged
		if !r.pass {
			if err := s.take(ctx, page.Turns); err != nil {
				return err
			}
		}
		if err != nil {
			return errors.Join(err, s.finish(ctx, ""))
		}
		cursor = page.Next
		if !page.More {
			break
		}
		if ctx.Err() != nil {
			return &memoryError{ctx.Err()}
		}
	}
	r.report.Bytes += log.Size
	return s.finish(ctx, cursor)
}

// session is one log on its way into the memory.
type session struct {
	*run
	key   string // in the cursors
	log   hooks.Log
	lacks []client.AppendRequest          // that are to be stored
	held  map[client.EventID]bool         // nil before the memory was asked
	known []known                         // what it held then
	names map[client.TurnID]client.TurnID // that it has for turns of the log; nil before they were looked for
	turns int
	gap   Gap
	days  map[string]int // turns that are missing, by day

	leftAlone map[string]bool // by where it works
}

func (s *session) take(ctx context.Context, turns []hooks.LogTurn) error {
	for _, t := range turns {
		events, _ := s.host.Kept(t)
		if len(events) == 0 {
			continue
		}
		for i := range events {
			if events[i].CreatedAt.IsZero() {
				events[i].CreatedAt = s.log.Modified
			}
		}
		cwd := t.Cwd
		if cwd == "" {
			cwd = s.log.Cwd
		}
		if !s.wanted(cwd, events[0].CreatedAt) {
			continue
		}
		if err := s.turn(ctx, t, cwd, events); err != nil {
			return err
		}
	}
	return nil
}

// name is what the memory calls a turn.
func (s *session) name(t hooks.LogTurn) (client.TurnID, error) {
	if !t.Unnamed || len(s.known) == 0 || slices.ContainsFunc(s.known, func(k known) bool { return k.id == t.ID }) {
		return t.ID, nil
	}
	if s.names == nil {
		var log []known
		for cursor, more := "", true; more; {
			page, err := s.host.Logs.Read(s.log, cursor)
			if err != nil {
				return "", err
			}
			for _, t := range page.Turns {
				events, _ := s.host.Kept(t)
				for _, k := range knownTurns(events) {
					k.unnamed = t.Unnamed
					log = append(log, k)
				}
			}
			cursor, more = page.Next, page.More
		}
		s.names = match(log, s.known)
	}
	return cmp.Or(s.names[t.ID], t.ID), nil
}

// wanted tells whether a turn is to be looked at.
func (s *session) wanted(cwd string, at time.Time) bool {
	f := s.Filter
	if !f.Since.IsZero() && at.Before(f.Since) || !f.Until.IsZero() && !at.Before(f.Until) {
		return false
	}
	if f.Project != "" {
		inside, known := s.inside[cwd]
		if !known {
			inside = cwd != "" && hooks.InFolder(cwd, f.Project)
			s.inside[cwd] = inside
		}
		if !inside {
			return false
		}
	}
	left, known := s.leftAlone[cwd]
	if !known {
		left = s.LeftAlone(s.log.Session, cwd)
		s.leftAlone[cwd] = left
	}
	return !left
}

func (s *session) turn(ctx context.Context, t hooks.LogTurn, cwd string, events []client.Event) error {
	if s.held == nil {
		if err := s.alone(ctx); err != nil {
			return err
		}
		if err := s.ask(ctx); err != nil {
			return &memoryError{err}
		}
	}
	id, err := s.name(t)
	if err != nil {
		return err
	}
	rename(events, t.ID, id)
	r := &s.report
	s.turns++
	r.Turns++
	r.Messages += len(events)
	first, last := events[0].CreatedAt, events[len(events)-1].CreatedAt
	if r.First.IsZero() || first.Before(r.First) {
		r.First = first
	}
	if last.After(r.Last) {
		r.Last = last
	}
	events = slices.DeleteFunc(events, func(e client.Event) bool { return s.held[e.ID] || s.counted[s.hash(e.ID)] })
	if len(events) == 0 {
		return nil
	}
	for _, e := range events {
		s.held[e.ID] = true
		if !s.Write { // else the memory tells, to the next log of the session
			s.counted[s.hash(e.ID)] = true
		}
	}
	if len(s.gap.Turns) == 0 {
		s.gap.Session, s.gap.Path, s.gap.First = s.log.Session, s.log.Path, first
		s.days = map[string]int{}
		r.Missing.Sessions++
	}
	s.gap.Turns = append(s.gap.Turns, id)
	s.gap.Messages += len(events)
	s.days[first.Local().Format(time.DateOnly)]++
	r.Missing.Turns++
	r.Missing.Messages += len(events)
	if !s.Write {
		return nil
	}
	if n := len(s.lacks); n == 0 || s.lacks[n-1].Cwd != cwd {
		s.lacks = append(s.lacks, client.AppendRequest{Session: s.log.Session, Cwd: cwd})
	}
	req := &s.lacks[len(s.lacks)-1]
	req.Events = append(req.Events, events...)
	for _, e := range events {
		s.text += len(e.Content)
	}
	if s.text > maxText {
		s.wait("")
		return s.store(ctx)
	}
	return nil
}

func (s *session) hash(id client.EventID) uint64 {
	return maphash.Comparable(s.seed, struct {
		client.Session
		client.EventID
	}{s.log.Session, id})
}

// alone sees to it that nothing of the session is on its way from another log of it,
// to which this one adds.
func (s *session) alone(ctx context.Context) error {
	same := func(p part) bool { return p.log.Session == s.log.Session }
	if slices.ContainsFunc(s.waiting, same) {
		if err := s.store(ctx); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(s.storing, same) {
		return s.stored()
	}
	return nil
}

// ask asks for the events that the memory holds or will hold.
func (s *session) ask(ctx context.Context) error {
	var waiting, events []client.Event
	if s.Waiting != nil {
		var err error
		if waiting, err = s.Waiting(s.log.Session); err != nil { // first: they may be stored meanwhile
			return err
		}
	}
	for total := 1; len(events) < total; {
		page, err := s.Memory.SessionEvents(ctx, client.SessionEventsRequest{Session: s.log.Session, Offset: len(events)})
		if err != nil {
			return err
		}
		events = append(events, page.Events...)
		if total = page.Total; len(page.Events) == 0 {
			break
		}
	}
	s.held = map[client.EventID]bool{}
	events = slices.DeleteFunc(append(events, waiting...), func(e client.Event) bool {
		twice := s.held[e.ID]
		s.held[e.ID] = true
		return twice
	})
	s.known = knownTurns(events)
	return nil
}

// wait lets what was read of the session wait for being stored.
func (s *session) wait(cursor string) {
	lacks := s.lacks
	if len(lacks) == 0 && len(s.held) > 0 {
		lacks = []client.AppendRequest{{Session: s.log.Session}} // whoever wrote it may have been killed before it was durable
	}
	s.waiting = append(s.waiting, part{s.key, s.log, lacks, cursor})
	s.lacks = nil
}

// store begins to store what waits, when what was before it is stored. Meanwhile the
// next logs are read.
func (r *run) store(ctx context.Context) error {
	if err := r.stored(); err != nil {
		return err
	}
	parts, done := r.waiting, make(chan error, 1)
	r.storing, r.done = parts, done
	r.waiting, r.text = nil, 0
	if !r.Write {
		parts = nil
	}
	go func() { done <- r.append(ctx, parts) }()
	return nil
}

// stored waits for what is being stored. Then its logs are read on from where it
// ends.
func (r *run) stored() error {
	if r.done == nil {
		return nil
	}
	err, parts := <-r.done, r.storing
	r.storing, r.done = nil, nil
	if err != nil {
		return &memoryError{err}
	}
	for _, p := range parts {
		if p.cursor != "" && r.cursors != nil && r.Write {
			passed := r.pass || r.follow && r.cursors.Logs[p.key].Passed
			if err := r.cursors.put(p.key, p.log, p.cursor, passed); err != nil {
				return &memoryError{err}
			}
		}
	}
	return nil
}

func (r *run) append(ctx context.Context, parts []part) error {
	if bulk, ok := r.Memory.(Bulk); ok && r.Later {
		var all []client.AppendRequest
		for _, p := range parts {
			all = append(all, p.lacks...)
		}
		return bulk.AppendAll(ctx, all)
	}
	reason := client.SessionEnd
	if r.Later {
		reason = client.TurnEnd
	}
	var all errgroup.Group
	all.SetLimit(maxAppending)
	for _, p := range parts {
		if len(p.lacks) > 0 && len(p.lacks[0].Events) > 0 {
			all.Go(func() error { return r.appendOne(ctx, p, reason) })
		}
	}
	return all.Wait()
}

func (r *run) appendOne(ctx context.Context, p part, reason client.FlushReason) error {
	for _, req := range p.lacks {
		if _, err := r.Memory.Append(ctx, req); err != nil {
			return err
		}
	}
	_, err := r.Memory.Flush(ctx, client.FlushRequest{Session: p.log.Session, Reason: reason})
	return err
}

// batch is how many turns of a session and a day ReMe extracts at once.
const batch = 5

// finish counts the session and lets it wait for being stored. The log is read on
// from a cursor then, if it is not "".
func (s *session) finish(ctx context.Context, cursor string) error {
	if s.turns > 0 {
		s.report.Sessions++
	}
	if len(s.gap.Turns) > 0 {
		for _, turns := range s.days {
			s.report.Extractions += (turns + batch - 1) / batch
		}
		if s.Whole {
			s.report.Gaps = append(s.report.Gaps, s.gap)
		}
	}
	if s.wait(cursor); len(s.waiting) < maxWaiting {
		return nil
	}
	return s.store(ctx)
}
