// Package link keeps what all processes of this machine know of the service: how
// the last calls went, when it may be called again, and what it said of itself.
//
// It promises that one failure spares all later hooks a wait, and that nothing
// known of one service is held against another. The file is never in the way: one
// that is missing or damaged means that nothing is known.
package link

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/durable"
)

// version is the version of the file format.
const version = 1

// What bounds the waits after failures.
const (
	longestRecallWait = time.Minute // a prompt in vain costs less than a day without memories
	longestAsked      = time.Hour   // by the service itself
)

// probeLife is how long what a service said of itself is taken for new.
const probeLife = time.Hour

// lockWait bounds the wait for another process that writes the file.
const lockWait = time.Second

// Link is what is known. Its methods take the current time.
type Link struct {
	Version  int     `json:"version"`
	URL      string  `json:"url,omitempty"` // of the service; empty for the embedded workspace
	Delivery Backoff `json:"delivery,omitzero"`
	Recall   Backoff `json:"recall,omitzero"`
	Probe    *Probe  `json:"probe,omitempty"` // of a service at a URL
}

// Backoff tells of the last failures of one kind of call. The zero value means
// that the last one went well.
type Backoff struct {
	Failures    int       `json:"failures"`              // in a row
	Class       string    `json:"class"`                 // of the last error
	Reason      string    `json:"reason"`                // of the last error, free of any text of the user
	Unreachable bool      `json:"unreachable,omitempty"` // there was no answer
	At          time.Time `json:"at"`
	NotBefore   time.Time `json:"not_before"`
}

// Probe is what a service said of itself.
type Probe struct {
	client.Info
	At time.Time `json:"checked_at"`
}

// waiting tells whether the next call should wait. A wait that is longer than any
// that is ever set comes from a clock that was changed, and is ignored.
func (b Backoff) waiting(now time.Time) bool {
	wait := b.NotBefore.Sub(now)
	return wait > 0 && wait <= 2*longestAsked
}

// after is the backoff once a call has failed.
func (b Backoff) after(err error, longest time.Duration, now time.Time) Backoff {
	wait := min(client.RetryWait(err, b.Failures+1), longest)
	var e *client.Error
	if errors.As(err, &e) {
		wait = max(wait, min(e.RetryAfter, longestAsked))
	}
	return Backoff{
		Failures: b.Failures + 1, Class: client.ClassOf(err).String(), Reason: err.Error(),
		Unreachable: errors.Is(err, client.ErrUnreachable), At: now, NotBefore: now.Add(wait),
	}
}

// Known tells whether the service may be used without being asked first what it
// is. A hook that may not use it leaves everything to the deliverer, which asks.
func (l Link) Known() bool {
	return l.URL == "" || l.Probe != nil && l.Probe.Compatible() == nil
}

// Due tells whether the service should be asked what it is.
func (l Link) Due(now time.Time) bool {
	return !l.Known() || l.Probe != nil && now.Sub(l.Probe.At).Abs() > probeLife
}

// Delivers tells whether hooks may start a delivery.
func (l Link) Delivers(now time.Time) bool { return !l.Delivery.waiting(now) }

// Recalls tells whether a prompt may wait for memories.
func (l Link) Recalls(now time.Time) bool {
	return l.Known() && !l.Recall.waiting(now) && !(l.Delivery.Unreachable && l.Delivery.waiting(now))
}

// File keeps a [Link] in a file.
type File struct {
	Path string
	URL  string // of the service; empty for the embedded workspace
}

// Load returns what is known of the service.
func (f File) Load() Link {
	var l Link
	if data, err := os.ReadFile(f.Path); err != nil || json.Unmarshal(data, &l) != nil || l.Version != version || l.URL != f.URL {
		return Link{Version: version, URL: f.URL}
	}
	return l
}

// Delivered notes how a delivery ended.
func (f File) Delivered(err error, now time.Time) error {
	return f.update(func(l *Link) bool { return l.Delivery.note(err, 2*client.LongestWait, now) })
}

// Recalled notes how a recall ended. The embedded workspace is no place to wait
// for, and a refused request says nothing of the next one.
func (f File) Recalled(err error, now time.Time) error {
	if f.URL == "" || client.ClassOf(err) == client.Permanent {
		return nil
	}
	return f.update(func(l *Link) bool { return l.Recall.note(err, longestRecallWait, now) })
}

// note changes b if there is something to note.
func (b *Backoff) note(err error, longest time.Duration, now time.Time) bool {
	if err == nil && b.Failures == 0 {
		return false
	}
	if err != nil {
		*b = b.after(err, longest, now)
	} else {
		*b = Backoff{}
	}
	return true
}

// Probed notes what the service said of itself. If it is one that can be used, a
// wait for the user to change something is over.
func (f File) Probed(info client.Info, now time.Time) error {
	return f.update(func(l *Link) bool {
		l.Probe = &Probe{info, now}
		for _, b := range []*Backoff{&l.Delivery, &l.Recall} {
			if info.Compatible() == nil && b.Class == client.Configuration.String() {
				*b = Backoff{}
			}
		}
		return true
	})
}

// update changes the file, under a lock if that can be had: what it holds can be
// done without. Nothing is written if change returns false.
func (f File) update(change func(*Link) bool) error {
	if l := f.Load(); !change(&l) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	if unlock, err := durable.Lock(ctx, f.Path+".lock"); err == nil {
		defer unlock()
	}
	l := f.Load()
	change(&l)
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(filepath.Dir(f.Path)); err != nil {
		return err
	}
	return durable.ReplaceFile(f.Path, append(data, '\n'))
}
