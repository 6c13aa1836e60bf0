package hooks

import (
	"slices"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/redact"
	"github.com/agentscope-ai/reme-hook/spool"
	"github.com/agentscope-ai/reme-hook/state"
)

const (
	// logWait bounds the wait for a host that writes the end of a turn behind the
	// hook that announces it.
	logWait = time.Second
	// delegatedWait is the same while the log says that a subagent is at work. It is
	// what the host was seen to be behind at most.
	delegatedWait = 350 * time.Millisecond
	// logPause is the time between two looks.
	logPause = 10 * time.Millisecond
)

// awaitLog waits until the host's log, if it has one, tells the end of the
// running turn.
func (c *call) awaitLog() {
	if c.host.ReadLog == nil {
		return
	}
	s := c.State.Get(c.ev.Session)
	if !s.Running {
		return
	}
	timeout, delegated := time.After(logWait), time.After(delegatedWait)
	tick := time.NewTicker(logPause)
	defer tick.Stop()
	for {
		page, err := c.host.ReadLog(c.ev, s.Cursor)
		n := len(page.Turns)
		if err != nil || n > 0 && page.Turns[n-1].Ended {
			return
		}
		late := delegated
		if n == 0 || !page.Turns[n-1].Delegated {
			late = nil
		}
		select {
		case <-tick.C:
		case <-late:
			return
		case <-timeout:
			return
		case <-c.ctx.Done():
			return
		}
	}
}

// takeLog keeps the turns that the host's log has told since it was last read,
// for hosts whose payloads do not have them. What it reads twice is stored once:
// the ids are the log's own. It tells whether no turn is running by the log.
func (c *call) takeLog(s *state.Session) (idle bool) {
	if c.host.ReadLog == nil {
		return false
	}
	page, err := c.host.ReadLog(c.ev, s.Cursor)
	if err != nil {
		// What it did read still counts; the rest is read next time.
		c.log.Warn("host's log", "err", err)
	}
	// A turn that goes on is told later, under the same ids, unless nothing may come
	// any more.
	final := c.ev.Kind == Interrupt || c.ev.Kind == SessionEnd
	var told []string
	for _, t := range page.Turns {
		if !t.Ended && !final {
			continue
		}
		events, said := c.host.Kept(t)
		told = append(told, said...)
		if c.Config.Capture && len(events) > 0 {
			c.keep(spool.Turn{Turn: t.ID, Flush: client.TurnEnd, Events: events})
		}
	}
	idle = err == nil && !slices.ContainsFunc(page.Turns, func(t LogTurn) bool { return !t.Ended })
	if idle && len(page.Turns) > 0 {
		s.Running = false
	}
	s.Cursor = page.Next
	err = c.Spool.Settle(c.ev.Session, func(text string) bool { return slices.Contains(told, text) })
	if err != nil {
		c.log.Error("spool", "err", err)
	}
	return idle
}

// Kept makes of a turn those events that are kept, with the ids that live capture
// gives: nothing, if the user marked a message of it as private as a whole. Said
// are the cleaned texts of all its messages.
func (a *Adapter) Kept(t LogTurn) (events []client.Event, said []string) {
	count := map[client.Role]int{}
	private := false
	for _, m := range t.Messages {
		text := a.clean(m.Text)
		said = append(said, text)
		private = private || text == redact.Private
		if text == "" || m.Role == client.User && a.machineMade(m.Text) {
			continue
		}
		count[m.Role]++
		events = append(events, client.Event{ID: client.NewEventID(t.ID, m.Role, count[m.Role]), Role: m.Role, Content: text, CreatedAt: m.At})
	}
	if private {
		return nil, said
	}
	return events, said
}
