package hooks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/redact"
	"github.com/agentscope-ai/reme-hook/spool"
	"github.com/agentscope-ai/reme-hook/state"
)

const (
	// lockWait bounds the wait for other hooks of the same session. It is short because
	// nothing is kept before it is over: with a second, sixty hooks of one session on a
	// machine with nothing to spare ended by their watchdog before they had kept anything.
	lockWait = 300 * time.Millisecond
	// deliverWait bounds a delivery on the agent's time.
	deliverWait = 400 * time.Millisecond
	// noteWait is what a recall that was given up may take to note that.
	noteWait = 200 * time.Millisecond
	// maxAsked bounds the prompt text that is used as a query, in bytes.
	maxAsked = 4 << 10
)

// call is one event on its way through the pipeline.
type call struct {
	*Runner
	ctx         context.Context
	host        *Adapter
	ev          Event
	log         *slog.Logger
	fingerprint string
	kept        int // messages and notes that went into the spool
}

// errRepeated ends the handling of an event that another registration of the
// same hook has handled.
var errRepeated = errors.New("handled already")

// errUnmet keeps what was said from a service that nobody has asked yet what it is.
var errUnmet = errors.New("the service is not known to speak our contract")

// recoverPanic is deferred by every goroutine: a panic would end the process with
// status 2, which blocks the agent.
func (c *call) recoverPanic() {
	if recover() != nil {
		c.log.Error("panic", "where", panicSite())
	}
}

func (c *call) handle() Outcome {
	if c.ev.Kind == PreToolUse {
		return c.guardPaths()
	}
	if c.ev.Subagent {
		return Outcome{}
	}
	switch c.ev.Kind {
	case SessionStart:
		return c.sessionStart()
	case Prompt:
		return c.prompt()
	case TurnEnd:
		c.turnEnd()
	case Interrupt:
		c.awaitLog()
		c.endTurn(client.TurnEnd)
	case PreCompact:
		c.endTurn(client.PreCompact)
	case PostCompact:
		if c.Config.CompactionNotes {
			c.keepNote(c.ev.Summary, "Summary of a conversation with "+c.host.Title, &c.ev.Session)
		}
	case MemoryWrite:
		c.keepNote(c.ev.Note, "", nil)
	case SessionEnd:
		c.endTurn(client.SessionEnd)
	}
	return Outcome{}
}

// bypass remembers that the user wants a session without memory, for those who
// read the host's log of it later.
func (c *call) bypass() {
	if c.ev.Kind == SessionStart || c.ev.Kind == Prompt {
		c.update(func(s *state.Session) error {
			s.Bypassed = true
			return nil
		})
	}
}

// guardPaths refuses a file tool the addresses that recalled memories carry,
// and tells the model what opens them.
func (c *call) guardPaths() Outcome {
	for _, path := range c.ev.Paths {
		if strings.HasPrefix(strings.TrimSpace(path), "reme://") {
			return Outcome{Deny: "reme:// addresses are memories, not files. Read this one with the shell command: reme-hook show '" +
				strings.ReplaceAll(strings.TrimSpace(path), "'", "") + "'"}
		}
	}
	return Outcome{}
}

func (c *call) sessionStart() Outcome {
	var asked string
	var introduce bool
	var shown []string
	err := c.update(func(s *state.Session) error {
		if s.Repeated(c.fingerprint, c.Now()) {
			return errRepeated
		}
		if c.ev.ContextLost {
			s.Forget(c.ev.TurnLost)
		}
		if c.ev.TurnLost && s.Running && WorthRecalling(s.Asked) {
			asked = s.Asked
		}
		introduce = c.host.StartContext && c.introduces(s)
		shown = s.Shown
		c.takeLog(s)
		return nil
	})
	c.pokeIfPending()
	if err != nil || asked == "" && !introduce {
		return Outcome{}
	}
	// The compaction took the memories of the turn that goes on.
	return c.show(c.recall(asked, introduce, shown))
}

// introduces tells whether the session is to be told of its project now, and
// remembers that it was.
func (c *call) introduces(s *state.Session) bool {
	now := c.Config.ProjectContext && !s.Introduced
	s.Introduced = s.Introduced || now
	return now
}

func (c *call) prompt() Outcome {
	text := c.host.clean(c.ev.Prompt)
	if text == "" || c.host.machineMade(c.ev.Prompt) {
		return Outcome{}
	}
	asked := strings.ToValidUTF8(text[:min(len(text), maxAsked)], "")
	query := ""
	if WorthRecalling(text) {
		query = asked
	}
	var recalled <-chan client.RecallResult
	err := c.update(func(s *state.Session) error {
		if c.host.Transient && s.Prompts > 0 && s.Turn == c.ev.Turn && s.Asked == asked {
			s.Running = true
			if query != "" {
				recalled = c.recall(query, false, nil)
			}
			return nil
		}
		if s.Repeated(c.fingerprint, c.Now()) {
			return errRepeated
		}
		if c.ev.ContextLost && len(s.Shown) > 0 {
			s.Forget(true)
		}
		waiting := c.recollect(s)
		if c.justKept(waiting, text) {
			return errRepeated
		}
		idle := c.takeLog(s)
		turn := c.ev.Turn
		if turn == "" {
			if !s.Running || c.host.ReadLog != nil {
				s.Ordinal++
			}
			turn = c.ordinal(s)
		}
		s.Begin(turn)
		s.Running = true
		if text == redact.Private {
			s.Private = true
			return nil
		}
		s.Prompts = next(waiting, turn, client.User, s.Prompts)
		s.Asked = asked
		introduce := c.introduces(s)
		if query != "" || introduce {
			// Meanwhile the prompt goes to the disk.
			recalled = c.recall(query, introduce, slices.Clone(s.Shown))
		}
		if !c.Config.Capture {
			return nil
		}
		c.keep(spool.Turn{Turn: turn, Open: true, Provisional: c.host.ReadLog != nil, Events: []client.Event{c.event(client.NewEventID(turn, client.User, s.Prompts), client.User, text)}})
		if idle {
			c.abandon(text)
		}
		return nil
	})
	if errors.Is(err, errRepeated) {
		return Outcome{}
	}
	out := c.show(recalled)
	// The end of the turn looks for what other sessions left; a prompt does not wait
	// for that, unless there was trouble.
	if known := c.Link.Load(); known.Delivery.Failures > 0 || known.Due(c.Now()) || c.Behind() {
		c.pokeIfPending()
	}
	return out
}

// recall asks the service in the background: for what is relevant to a query, if
// there is one, and for what was last said in the project, if the session is to
// be introduced to it. The channel yields one answer; an empty one if there is
// none in time.
func (c *call) recall(query string, introduce bool, shown []string) <-chan client.RecallResult {
	answer := make(chan client.RecallResult, 1)
	if !c.Config.Recall || !c.Link.Load().Recalls(c.Now()) {
		close(answer)
		return answer
	}
	go func() {
		defer close(answer)
		defer c.recoverPanic()
		start := c.Now()
		ctx, cancel := context.WithTimeout(c.ctx, c.wait(c.Config.RecallTimeout))
		defer cancel()
		svc, err := c.Service()
		if err != nil {
			c.log.Error("open service", "err", err)
			return
		}
		req := client.RecallRequest{
			Query: query, Limit: c.Config.RecallLimit, MaxChars: c.Config.RecallMaxChars, Purpose: client.ForPrompt,
			Host: c.ev.Session.Host, ScopeID: c.ev.Session.Scope, Session: c.ev.Session.ID, Cwd: c.ev.Cwd, Exclude: shown,
		}
		var res client.RecallResult
		if query != "" {
			res, err = svc.Recall(ctx, req)
		}
		if err == nil && introduce {
			err = c.introduction(ctx, svc, req, &res)
		}
		took := c.Now().Sub(start).Milliseconds()
		if err := c.Link.Recalled(err, c.Now()); err != nil {
			c.log.Error("link", "err", err)
		}
		if err != nil {
			c.log.Error("recall", "err", err, "ms", took)
			return
		}
		c.log.Info("recall", "items", len(res.Items), "ms", took)
		answer <- res
	}()
	return answer
}

// What a session is told of its project, and of itself, is read with every prompt.
const (
	maxIntroduced      = 3   // items of each
	maxIntroducedChars = 600 // of all of them
)

// introduction adds what there is to know of the project to an answer, and after a
// compaction where this session is, as far as the limits of the answer leave room.
func (c *call) introduction(ctx context.Context, svc client.Service, req client.RecallRequest, res *client.RecallResult) error {
	add := func(purpose client.Purpose) error {
		r := req
		r.Query, r.Purpose, r.Exclude = "", purpose, slices.Clone(req.Exclude)
		for _, it := range res.Items {
			r.Limit--
			r.MaxChars -= utf8.RuneCountInString(it.Snippet)
			r.Exclude = append(r.Exclude, it.ID)
		}
		if r.Limit < 1 || r.MaxChars < 1 {
			return nil
		}
		r.Limit, r.MaxChars = min(r.Limit, maxIntroduced), min(r.MaxChars, maxIntroducedChars)
		more, err := svc.Recall(ctx, r)
		res.Items = append(res.Items, more.Items...)
		return err
	}
	if c.ev.Compacted {
		if err := add(client.ForCompact); err != nil {
			return err
		}
	}
	return add(client.ForSessionStart)
}

// show makes the frame of what was recalled and remembers that the session has
// seen it. A nil channel is no recall at all.
func (c *call) show(recalled <-chan client.RecallResult) Outcome {
	if recalled == nil {
		return Outcome{}
	}
	var res client.RecallResult
	select {
	case res = <-recalled:
	case <-time.After(c.wait(c.Config.RecallTimeout + noteWait)): // for a service that does not heed its context
		c.log.Error("recall", "err", "no answer in time")
	}
	text, ids := Frame(res, c.host.MaxContext, c.host.Size)
	if text == "" {
		return Outcome{}
	}
	if !c.host.Transient {
		c.update(func(s *state.Session) error {
			s.Show(ids)
			return nil
		})
	}
	return Outcome{Context: text}
}

func (c *call) turnEnd() {
	if c.host.ReadLog != nil {
		c.awaitLog()
		c.update(func(s *state.Session) error {
			c.takeLog(s)
			return nil
		})
		c.deliver()
		return
	}
	text := c.host.clean(c.ev.Reply)
	err := c.update(func(s *state.Session) error {
		if s.Repeated(c.fingerprint, c.Now()) {
			return errRepeated
		}
		waiting := c.recollect(s)
		turn := c.ev.Turn
		if turn == "" {
			turn = c.ordinal(s)
		}
		s.Begin(turn)
		s.Running = false
		if s.Private || !c.Config.Capture {
			return nil
		}
		end := spool.Turn{Turn: turn, Flush: client.TurnEnd}
		said := 0
		for _, text := range c.ev.Answered {
			if text = c.host.clean(text); text == "" {
				continue
			}
			if said++; said <= s.Prompts {
				continue
			}
			if text == redact.Private {
				return nil
			}
			s.Prompts = said
			end.Events = append(end.Events, c.event(client.NewEventID(turn, client.User, said), client.User, text))
		}
		// A turn that another hook made go on ends again, sometimes with the same words.
		if sum := digest(text); text != "" && sum != s.LastReply && text != last(waiting, turn, client.Assistant) {
			s.LastReply = sum
			s.Replies = next(waiting, turn, client.Assistant, s.Replies)
			end.Events = append(end.Events, c.event(client.NewEventID(turn, client.Assistant, s.Replies), client.Assistant, text))
		}
		c.keep(end)
		return nil
	})
	if err == nil {
		c.deliver()
	}
}

// endTurn closes a turn that gets no answer, and flushes the session.
func (c *call) endTurn(reason client.FlushReason) {
	err := c.update(func(s *state.Session) error {
		if s.Repeated(c.fingerprint, c.Now()) {
			return errRepeated
		}
		s.Running = s.Running && c.ev.Kind == PreCompact
		if c.ev.ContextLost {
			s.Forget(c.ev.TurnLost)
		}
		c.takeLog(s)
		if !c.Config.Capture {
			return nil
		}
		if c.ev.Kind == SessionEnd {
			c.abandon("")
		}
		return c.Spool.Close(c.ev.Session, reason)
	})
	if err == nil {
		c.deliver()
	}
}

// abandon gives up prompts that the host's log did not tell, but for the one
// that has just begun.
func (c *call) abandon(begun string) {
	if err := c.Spool.Abandon(c.ev.Session, begun); err != nil {
		c.log.Error("spool", "err", err)
	}
}

// keepNote makes a note. Without a title its first words are one; without a
// session it does not sum one up, and stands for itself.
func (c *call) keepNote(text, title string, session *client.Session) {
	text = c.host.clean(text)
	if text == "" || !c.Config.Capture {
		return
	}
	err := c.update(func(s *state.Session) error {
		if s.Repeated(c.fingerprint, c.Now()) {
			return errRepeated
		}
		c.keep(spool.Turn{Note: &client.RememberRequest{
			Title: title, Content: text, Cwd: c.ev.Cwd, Host: c.ev.Session.Host, CreatedAt: c.Now(), Session: session,
		}})
		return nil
	})
	if err == nil {
		c.deliver()
	}
}

func (c *call) event(id client.EventID, role client.Role, text string) client.Event {
	return client.Event{ID: id, Role: role, Content: text, CreatedAt: c.Now()}
}

// ordinal names a turn by its number in the session, and by the life of the state that
// counts: a session that is resumed on another machine, or whose state was lost, begins
// to count again, and a name that the memory has is taken for a turn that it has.
func (c *call) ordinal(s *state.Session) client.TurnID {
	if s.Life == "" {
		s.Life = strconv.FormatInt(c.Now().UnixMilli(), 36)
	}
	return client.TurnID(fmt.Sprintf("%06d-%s", s.Ordinal, s.Life))
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// recollect returns what waits of the session and is younger than its state, with all
// before it, and makes good by it what the state should tell of the names of turns: it
// may be lost, or not be kept.
func (c *call) recollect(s *state.Session) []spool.Turn {
	waiting := c.Spool.Waiting(c.ev.Session, s.UpdatedAt)
	for _, t := range waiting {
		number, life, _ := strings.Cut(string(t.Turn), "-")
		if n, err := strconv.Atoi(number); err == nil && len(number) == len("000001") && life != "" && (s.Life == "" || s.Life == life) {
			s.Ordinal, s.Life = max(s.Ordinal, n), life
		}
	}
	return waiting
}

// justKept tells whether the last that waits of the session is this very prompt, kept
// a moment ago: another registration of the hook has handled it, and no state tells of
// that.
func (c *call) justKept(waiting []spool.Turn, text string) bool {
	if len(waiting) == 0 {
		return false
	}
	t := waiting[len(waiting)-1]
	age := c.Now().Sub(t.UpdatedAt)
	return t.Open && age >= 0 && age <= state.Twice && (c.ev.Turn == "" || c.ev.Turn == t.Turn) && last(waiting[len(waiting)-1:], t.Turn, client.User) == text
}

// last is the last message of a role in a turn that waits.
func last(waiting []spool.Turn, turn client.TurnID, role client.Role) (text string) {
	for _, t := range waiting {
		for _, e := range t.Events {
			if t.Turn == turn && e.Role == role {
				text = e.Content
			}
		}
	}
	return text
}

// next is the number of a turn's next message of a role, if the state knows of n:
// none that waits has it.
func next(waiting []spool.Turn, turn client.TurnID, role client.Role, n int) int {
	for {
		n++
		id := client.NewEventID(turn, role, n)
		if !slices.ContainsFunc(waiting, func(t spool.Turn) bool {
			return slices.ContainsFunc(t.Events, func(e client.Event) bool { return e.ID == id })
		}) {
			return n
		}
	}
}

// update changes the session's state. If the state cannot be kept (full or
// read-only disk, a lock that is not freed in time), the change is made on what is
// there and is not saved, so that the turn is kept all the same.
func (c *call) update(change func(*state.Session) error) error {
	ctx, cancel := context.WithTimeout(c.ctx, c.wait(lockWait))
	defer cancel()
	var changed bool
	var result error
	err := c.State.Update(ctx, c.ev.Session, func(s *state.Session) error {
		s.Event = c.ev.Name
		changed = true
		result = change(s)
		return result
	})
	if result != nil {
		return result
	}
	if err != nil {
		c.log.Error("state", "err", err)
		if !changed {
			s := c.State.Get(c.ev.Session)
			return change(&s)
		}
	}
	return nil
}

// keep makes a turn durable, in the spool or, if that cannot be written, at
// the service.
func (c *call) keep(t spool.Turn) {
	t.Session = c.ev.Session
	t.Cwd = c.ev.Cwd
	c.kept += len(t.Events)
	if t.Note != nil {
		c.kept++
	}
	err := c.Spool.Put(t)
	if err == nil {
		return
	}
	c.log.Error("spool", "err", err)
	if len(t.Events) == 0 && t.Note == nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.wait(deliverWait))
	defer cancel()
	svc, err := c.Service()
	if err == nil && !c.Link.Load().Known() {
		err = errUnmet
	}
	if err == nil && t.Note != nil {
		_, err = svc.Remember(ctx, *t.Note)
	} else if err == nil {
		_, err = svc.Append(ctx, client.AppendRequest{Session: t.Session, Cwd: t.Cwd, Events: t.Events})
		if err == nil && t.Flush != "" {
			if _, err := svc.Flush(ctx, client.FlushRequest{Session: t.Session, Reason: t.Flush}); err != nil {
				c.log.Error("flush", "err", err) // the next turn's will do
			}
		}
	}
	if err != nil {
		c.log.Error("turn lost: neither the spool nor the service took it", "err", err)
	}
}

// undecided is a service whose refusals are not final: whether it is still what it
// was when the deliverer last looked is not for a hook to find out.
type undecided struct{ client.Service }

// errUndecided is what undecided makes of a refusal.
var errUndecided = errors.New("refused, for the deliverer to decide")

func (u undecided) decide(err error) error {
	if client.ClassOf(err) == client.Permanent {
		return errUndecided
	}
	return err
}

func (u undecided) Append(ctx context.Context, req client.AppendRequest) (client.AppendResult, error) {
	res, err := u.Service.Append(ctx, req)
	return res, u.decide(err)
}

func (u undecided) Flush(ctx context.Context, req client.FlushRequest) (client.FlushResult, error) {
	res, err := u.Service.Flush(ctx, req)
	return res, u.decide(err)
}

func (u undecided) Remember(ctx context.Context, req client.RememberRequest) (client.Note, error) {
	note, err := u.Service.Remember(ctx, req)
	return note, u.decide(err)
}

// deliver hands over the session's turns if that is quick, and leaves the rest
// to the detached deliverer.
func (c *call) deliver() {
	known := c.Link.Load()
	if !known.Delivers(c.Now()) {
		return
	}
	if !known.Known() {
		c.Poke()
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.wait(deliverWait))
	defer cancel()
	svc, err := c.Service()
	if err == nil {
		err = c.Spool.Deliver(ctx, c.ev.Session.Key(), undecided{svc})
	}
	if err != nil && ctx.Err() != nil || errors.Is(err, errUndecided) {
		c.Poke()
		return
	}
	if err != nil {
		c.log.Error("deliver", "err", err, "class", client.ClassOf(err))
	}
	if err := c.Link.Delivered(err, c.Now()); err != nil {
		c.log.Error("link", "err", err)
	}
	c.pokeIfPending()
}

// pokeIfPending starts the deliverer when other sessions have turns to deliver,
// the service should be asked what it is, or there is something else to do.
func (c *call) pokeIfPending() {
	known := c.Link.Load()
	if !known.Delivers(c.Now()) {
		return
	}
	neglected, err := c.Spool.Neglected(c.ev.Session.Key())
	if err != nil {
		c.log.Error("spool", "err", err)
	}
	if neglected || known.Due(c.Now()) || c.Due() || c.Behind() {
		c.Poke()
	}
}
