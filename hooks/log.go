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
		turns, _, err := c.host.ReadLog(c.ev, s.Cursor)
		if err != nil || len(turns) > 0 && turns[len(turns)-1].Ended {
			return
		}
		late := delegated
		if len(turns) == 0 || !turns[len(turns)-1].Delegated {
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
	turns, next, err := c.host.ReadLog(c.ev, s.Cursor)
	if err != nil {
		// What it did read still counts; the rest is read next time.
		c.log.Warn("host's log", "err", err)
	}
	// A turn that goes on is told later, under the same ids, unless nothing may come
	// any more.
	final := c.ev.Kind == Interrupt || c.ev.Kind == SessionEnd
	var told []string
	for _, t := range turns {
		if !t.Ended && !final {
			continue
		}
		kept := spool.Turn{Turn: t.ID, Flush: client.TurnEnd}
		count := map[client.Role]int{}
		private := false
		for _, m := range t.Messages {
			text := c.host.clean(m.Text)
			told = append(told, text)
			private = private || text == redact.Private
			if text != "" {
				count[m.Role]++
				e := c.event(client.NewEventID(t.ID, m.Role, count[m.Role]), m.Role, text)
				e.CreatedAt = m.At
				kept.Events = append(kept.Events, e)
			}
		}
		if c.Config.Capture && !private {
			c.keep(kept)
		}
	}
	idle = err == nil && !slices.ContainsFunc(turns, func(t LogTurn) bool { return !t.Ended })
	if idle && len(turns) > 0 {
		s.Running = false
	}
	s.Cursor = next
	err = c.Spool.Settle(c.ev.Session, func(text string) bool { return slices.Contains(told, text) })
	if err != nil {
		c.log.Error("spool", "err", err)
	}
	return idle
}
