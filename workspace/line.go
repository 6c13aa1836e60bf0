package workspace

import (
	"errors"
	"slices"
	"sync"

	"github.com/agentscope-ai/reme-hook/client"
)

// lines are the appends of this process that wait, in a line for each session.
// Whoever is first in one does the work of all that stand in it by the time that
// the session's lock is had: however many they are, they are one write and one sync.
type lines struct {
	mu    sync.Mutex
	lines map[client.SessionKey]*line
}

// line is that of one session. It is there as long as somebody leads it.
type line struct {
	leader  *pending
	waiting []*pending
}

// pending is an append in a line.
type pending struct {
	req    client.AppendRequest
	events []client.Event // of the request, in which there is something to be seen
	res    client.AppendResult
	err    error

	lead chan struct{} // gets one when it becomes the leader after another
	done chan struct{} // closed when another has done it
}

// errUnfinished is the end of an append that never came to it.
var errUnfinished = errors.New("the append was broken off")

// join puts p into the line of its session, and tells whether it leads it.
func (l *lines) join(p *pending) bool {
	p.err, p.lead, p.done = errUnfinished, make(chan struct{}, 1), make(chan struct{})
	key := p.req.Key()
	l.mu.Lock()
	defer l.mu.Unlock()
	if here := l.lines[key]; here != nil {
		here.waiting = append(here.waiting, p)
		return false
	}
	if l.lines == nil {
		l.lines = map[client.SessionKey]*line{}
	}
	l.lines[key] = &line{leader: p, waiting: []*pending{p}}
	return true
}

// leave takes p out of its line. It tells false if p is being done.
func (l *lines) leave(p *pending) bool {
	key := p.req.Key()
	l.mu.Lock()
	defer l.mu.Unlock()
	here := l.lines[key]
	if here == nil || !slices.Contains(here.waiting, p) {
		return false
	}
	here.waiting = slices.DeleteFunc(here.waiting, func(o *pending) bool { return o == p })
	if here.leader == p {
		l.pass(key, here)
	}
	return true
}

// take gives the leader p all that stand in its line, itself among them.
func (l *lines) take(p *pending) []*pending {
	l.mu.Lock()
	defer l.mu.Unlock()
	here := l.lines[p.req.Key()]
	together := here.waiting
	here.waiting = nil
	return together
}

// finish tells those that were taken that they are done, and has the next one lead.
func (l *lines) finish(together []*pending) {
	for _, p := range together {
		close(p.done)
	}
	key := together[0].req.Key()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pass(key, l.lines[key])
}

// pass makes the first of a line its leader. A line in which nobody stands ends.
func (l *lines) pass(key client.SessionKey, here *line) {
	if len(here.waiting) == 0 {
		delete(l.lines, key)
		return
	}
	here.leader = here.waiting[0]
	here.leader.lead <- struct{}{}
}
