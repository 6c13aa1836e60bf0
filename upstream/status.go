package upstream

import (
	"context"
	"fmt"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/client/reme"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// Status tells how things stand between the workspace and ReMe.
type Status struct {
	Target        string      `json:"target"`        // the setting
	URL           string      `json:"url,omitempty"` // the address that it means
	Server        reme.Server `json:"server"`        // who answered when it was last asked
	CheckedAt     *time.Time  `json:"checked_at,omitempty"`
	Idempotent    bool        `json:"idempotent"`      // the server knows a request again
	SameWorkspace bool        `json:"same_workspace"`  // ReMe works on our own folder
	Since         *time.Time  `json:"since,omitempty"` // from when on turns are forwarded; absent if they are not
	// Backlog is what is still to be forwarded, History what was said before ReMe was
	// there.
	Backlog Work `json:"backlog"`
	History Work `json:"history"`
	// Waiting counts the requests under way by the class of their last error, "" for
	// none.
	Waiting     map[string]int `json:"waiting"`
	Reason      string         `json:"reason,omitempty"` // of the last error of one that waits
	NotBefore   *time.Time     `json:"not_before,omitempty"`
	KeptNothing int            `json:"kept_nothing"` // requests that ReMe took and made nothing of
	Parked      int            `json:"parked"`       // that failed too often
	Refused     int            `json:"refused"`      // that ReMe will never take
	Repeated    int            `json:"repeated"`     // that may have been extracted twice
}

// Work is an amount of turns.
type Work struct {
	Sessions   int `json:"sessions"`
	Turns      int `json:"turns"`
	Requests   int `json:"requests"`
	ModelCalls int `json:"model_calls"` // about: 4 for a new note, 5 to go on with one
}

const (
	callsNew    = 4
	callsUpdate = 5
)

// Status reads how things stand, but for the work that is left. It asks nobody.
func (u *Upstream) Status() (Status, error) {
	k := u.Known()
	st := Status{Target: u.Target, URL: u.URL, Server: k.Server, Idempotent: k.Idempotent(), SameWorkspace: u.sameWorkspace(k), Waiting: map[string]int{}}
	if !k.CheckedAt.IsZero() {
		st.CheckedAt = &k.CheckedAt
	}
	batches, err := u.underWay()
	if err != nil {
		return st, err
	}
	for _, b := range batches {
		st.Waiting[b.Class]++
		st.Reason = b.Reason
	}
	if r := u.rest(forwarding); u.resting(forwarding) {
		st.Reason, st.NotBefore = r.Reason, &r.NotBefore
	}
	archive, err := u.archives()
	if err != nil {
		return st, err
	}
	for _, a := range archive {
		switch a.State {
		case keptNothing:
			st.KeptNothing++
		case parked:
			st.Parked++
		case refused:
			st.Refused++
		case repeated:
			st.Repeated++
		}
	}
	if since, is := u.since(); is {
		st.Since = &since
	}
	return st, nil
}

// Measure adds to a status what is to be done. It reads every dialog.
func (u *Upstream) Measure(ctx context.Context, ws *workspace.Workspace, st *Status) error {
	all, err := u.Estimate(ctx, ws, time.Time{})
	if err != nil {
		return err
	}
	if st.Since != nil {
		if st.Backlog, err = u.Estimate(ctx, ws, *st.Since); err != nil {
			return err
		}
	}
	st.History = all.less(st.Backlog)
	return nil
}

func (w Work) less(o Work) Work {
	return Work{w.Sessions - o.Sessions, w.Turns - o.Turns, w.Requests - o.Requests, w.ModelCalls - o.ModelCalls}
}

// Estimate tells what is to be done to forward all that was said from a moment on,
// requests under way included.
func (u *Upstream) Estimate(ctx context.Context, ws *workspace.Workspace, since time.Time) (Work, error) {
	sessions, err := ws.Sessions(ctx, 0)
	if err != nil {
		return Work{}, err
	}
	zone, err := time.LoadLocation(u.Known().Timezone)
	if err != nil || u.Known().Timezone == "" {
		zone = nil
	}
	f := &forwarder{Upstream: u, ws: ws, zone: zone, since: since}
	var w Work
	for _, sum := range sessions {
		if sum.Host == "" || sum.Last.Before(since) {
			continue
		}
		key := client.SessionKey(sum.Key)
		s, err := u.loadSession(key)
		if err != nil {
			return w, err
		}
		days := map[string]bool{}
		before := w.Requests
		count := func(b batch) {
			w.Requests++
			w.Turns += b.Turns
			w.ModelCalls += callsUpdate
			if !days[b.Day] && s.noteOf(b.Day) == "" {
				w.ModelCalls += callsNew - callsUpdate
			}
			days[b.Day] = true
			s.takes(b, "")
		}
		if b, err := f.loadBatch(key); err == nil {
			count(*b)
		}
		var left []workspace.Message
		if _, err := f.left(ctx, s, workspace.Queued{Key: sum.Key, Path: sum.Path, Last: sum.Last}, func(m workspace.Message) bool {
			left = append(left, m)
			return true
		}); err != nil {
			return w, err
		}
		for len(left) > 0 {
			c := &cutter{zone: zone}
			for _, m := range left {
				if !c.add(m) {
					break
				}
			}
			left = left[len(c.messages):]
			count(c.freeze(s.Batches+1, u.Now()))
		}
		if w.Requests > before {
			w.Sessions++
		}
	}
	return w, nil
}

// NeedsUser tells whether something will not go on by itself.
func (st Status) NeedsUser() bool {
	return st.URL != "" && (st.Waiting[client.Configuration.String()] > 0 || st.Parked > 0 || st.Refused > 0)
}

// Summary says in a few words who is there.
func (st Status) Summary() string {
	switch {
	case st.URL == "":
		return "off"
	case st.Server.Kind == "":
		return "nobody has looked for a ReMe at " + st.URL + " yet"
	case st.Server.Kind != reme.Released:
		return "no ReMe at " + st.URL + ": " + st.Server.Why
	case st.SameWorkspace:
		return "ReMe " + st.Server.Version + " at " + st.URL + ", on this workspace"
	}
	return "ReMe " + st.Server.Version + " at " + st.URL
}

// Lines tells what waits and what came to nothing, a line each.
func (st Status) Lines() []string {
	var out []string
	add := func(n int, format string, args ...any) {
		if n > 0 {
			out = append(out, fmt.Sprintf("%d %s "+format, append([]any{n, plural(n)}, args...)...))
		}
	}
	if st.Waiting[client.Configuration.String()] > 0 {
		add(st.Waiting[client.Configuration.String()], "wait until something is set right: %s", st.Reason)
	}
	add(st.Waiting[client.Retryable.String()], "failed and will be repeated: %s", st.Reason)
	add(st.Waiting[""], "under way")
	add(st.Parked, "given up after %d failures; 'reme-hook upstream replay' tries again", maxTries)
	add(st.Refused, "refused; 'reme-hook upstream replay' tries again")
	add(st.KeptNothing, "taken without a note, kept for a month; 'reme-hook upstream replay --kept-nothing' tries again")
	add(st.Repeated, "may have been extracted twice, because this ReMe does not know a request again: upgrade it to 0.4.2.0")
	return out
}

func plural(n int) string {
	if n == 1 {
		return "request"
	}
	return "requests"
}
