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
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
)

// Ingester reads the logs of hosts.
type Ingester struct {
	Memory client.Ledger
	// Waiting are events on their way to the memory, which will have them.
	Waiting map[client.SessionKey][]client.EventID
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
	// pass reads everything and stores nothing of it, so that the next run begins
	// after it.
	pass bool
}

// maxBatch bounds the text of one request, in bytes.
const maxBatch = 1 << 20

// Run looks through the logs of one host. It ends early only when ctx ends or the
// memory fails, with what was done until then.
func (in *Ingester) Run(ctx context.Context, a *hooks.Adapter, o Options) (Report, error) {
	r := &run{Ingester: in, Options: o, host: a, report: Report{Host: a.Host, Problems: []Problem{}}}
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
	err := r.all(ctx)
	if o.Write {
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
}

func (r *run) all(ctx context.Context) error {
	if r.host.Logs == nil {
		return nil
	}
	for log, err := range r.host.Logs.List(ctx) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			err = r.log(ctx, log)
		}
		var failed *memoryError
		if errors.As(err, &failed) {
			return failed.err
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
	if r.LeftAlone(log.Session, log.Cwd) {
		r.report.LeftAlone++
		return nil
	}
	cursor := ""
	if r.cursors != nil {
		var unchanged bool
		if cursor, unchanged = r.cursors.at(log); unchanged {
			r.report.Unchanged++
			return nil
		}
	}
	s := &session{run: r, log: log}
	for {
		page, err := r.host.Logs.Read(log, cursor)
		r.report.Damaged += page.Damaged
		if !r.pass {
			if err := s.take(ctx, page.Turns); err != nil {
				return err
			}
		}
		if err != nil {
			return errors.Join(err, s.finish(ctx))
		}
		cursor = page.Next
		if !page.More {
			break
		}
	}
	r.report.Bytes += log.Size
	if err := s.finish(ctx); err != nil {
		return err
	}
	if r.cursors != nil && r.Write {
		return r.cursors.put(log, cursor)
	}
	return nil
}

// session is one log on its way into the memory.
type session struct {
	*run
	log    hooks.Log
	held   map[client.EventID]bool // nil before the memory was asked
	events []client.Event          // that wait for being stored
	cwd    string                  // of them
	size   int                     // of their text
	turns  int
	gap    Gap
	days   map[string]int // turns that are missing, by day
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
		if err := s.turn(ctx, t.ID, cwd, events); err != nil {
			return err
		}
	}
	return nil
}

// wanted tells whether a turn is to be looked at.
func (s *session) wanted(cwd string, at time.Time) bool {
	f := s.Filter
	if !f.Since.IsZero() && at.Before(f.Since) || !f.Until.IsZero() && !at.Before(f.Until) {
		return false
	}
	if f.Project != "" {
		rel, err := filepath.Rel(f.Project, cwd)
		if cwd == "" || err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return false
		}
	}
	return !s.LeftAlone(s.log.Session, cwd)
}

func (s *session) turn(ctx context.Context, id client.TurnID, cwd string, events []client.Event) error {
	if s.held == nil {
		held, err := s.heldEvents(ctx, s.log.Session)
		if err != nil {
			return &memoryError{err}
		}
		s.held = held
	}
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
	events = slices.DeleteFunc(events, func(e client.Event) bool { return s.held[e.ID] })
	if len(events) == 0 {
		return nil
	}
	for _, e := range events {
		s.held[e.ID] = true
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
	if cwd != s.cwd || s.size > maxBatch {
		if err := s.store(ctx); err != nil {
			return err
		}
	}
	s.cwd = cwd
	for _, e := range events {
		s.events = append(s.events, e)
		s.size += len(e.Content)
	}
	return nil
}

// heldEvents are the events of a session that the memory holds or will hold.
func (in *Ingester) heldEvents(ctx context.Context, s client.Session) (map[client.EventID]bool, error) {
	held := map[client.EventID]bool{}
	for _, id := range in.Waiting[s.Key()] {
		held[id] = true
	}
	for offset := 0; ; {
		page, err := in.Memory.SessionEvents(ctx, client.SessionEventsRequest{Session: s, Offset: offset})
		if err != nil {
			return nil, err
		}
		for _, id := range page.EventIDs {
			held[id] = true
		}
		if offset += len(page.EventIDs); len(page.EventIDs) == 0 || offset >= page.Total {
			return held, nil
		}
	}
}

func (s *session) store(ctx context.Context) error {
	if len(s.events) == 0 {
		return nil
	}
	_, err := s.Memory.Append(ctx, client.AppendRequest{Session: s.log.Session, Cwd: s.cwd, Events: s.events})
	s.events, s.size = nil, 0
	if err != nil {
		return &memoryError{err}
	}
	return nil
}

// batch is how many turns of a session and a day ReMe extracts at once.
const batch = 5

// finish stores the rest and counts the session.
func (s *session) finish(ctx context.Context) error {
	if s.turns > 0 {
		s.report.Sessions++
	}
	if len(s.gap.Turns) == 0 {
		return nil
	}
	for _, turns := range s.days {
		s.report.Extractions += (turns + batch - 1) / batch
	}
	if s.Whole {
		s.report.Gaps = append(s.report.Gaps, s.gap)
	}
	if !s.Write {
		return nil
	}
	if err := s.store(ctx); err != nil {
		return err
	}
	if _, err := s.Memory.Flush(ctx, client.FlushRequest{Session: s.log.Session, Reason: client.SessionEnd}); err != nil {
		return &memoryError{err}
	}
	return nil
}
