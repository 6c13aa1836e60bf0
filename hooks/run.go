package hooks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/config"
	"github.com/agentscope-ai/reme-hook/internal/redact"
	"github.com/agentscope-ai/reme-hook/spool"
	"github.com/agentscope-ai/reme-hook/state"
)

// GuardEnv marks the processes of the memory itself; hooks in them do nothing.
const GuardEnv = "REME_HOOK_GUARD"

// BypassEnv switches every hook off.
const BypassEnv = "REME_HOOK_BYPASS"

const (
	// lockWait bounds the wait for another hook of the same session.
	lockWait = time.Second
	// deliverWait bounds a delivery on the agent's time.
	deliverWait = 400 * time.Millisecond
	// maxAsked bounds the prompt text that is used as a query, in bytes.
	maxAsked = 4 << 10
	// maxShown bounds the list of memories that a session was shown.
	maxShown = 500
)

// Runner runs the pipeline. Everything it touches is injected.
type Runner struct {
	Now     func() time.Time
	Getenv  func(string) string
	Config  config.Config
	State   state.Store
	Spool   spool.Spool
	Backoff spool.BackoffFile
	// Service opens the service on first use.
	Service func() (client.Service, error)
	// Poke starts the detached deliverer, if it is not running.
	Poke func()
	Log  *slog.Logger
}

// Run handles one hook call and returns the bytes for stdout. It never fails:
// whatever goes wrong is logged, and the agent goes on without us.
func (r *Runner) Run(ctx context.Context, a *Adapter, name string, stdin io.Reader) (out []byte) {
	log := r.Log.With("host", a.Host, "event", name)
	defer func() {
		if recover() != nil {
			log.Error("panic", "where", panicSite())
			out = nil
		}
	}()
	kind, ok := a.Events[strings.ReplaceAll(name, "_", "-")]
	if !ok {
		log.Warn("unknown event")
		return nil
	}
	if r.Getenv(GuardEnv) != "" || r.Getenv(BypassEnv) != "" {
		return nil
	}
	payload, err := ReadPayload(stdin)
	if err != nil {
		// The members that did arrive may still end a turn.
		log.Warn("bad payload", "err", err)
	}
	ev := a.Decode(kind, payload)
	ev.Kind = kind
	ev.Session.Host = a.Host
	if ev.Session.ID == "" {
		log.Warn("no session in the payload")
		return nil
	}
	if r.bypassed(ev) {
		return nil
	}
	c := call{Runner: r, ctx: ctx, host: a, ev: ev, log: log.With("session", ev.Session.Key()), fingerprint: fingerprint(name, payload)}
	return a.Encode(ev, c.handle())
}

// bypassed tells sessions that are none of our business: those of the memory
// service itself, and those in folders that the user excluded.
func (r *Runner) bypassed(ev Event) bool {
	if ev.Cwd == "" {
		return false
	}
	if within(ev.Cwd, r.Config.Workspace) {
		return true
	}
	for _, pattern := range r.Config.Exclude {
		for dir := filepath.Clean(ev.Cwd); ; dir = filepath.Dir(dir) {
			if ok, err := filepath.Match(filepath.Clean(pattern), dir); ok && err == nil {
				return true
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return false
}

func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// fingerprint tells the same event from another one.
func fingerprint(name string, p Payload) string {
	h := sha256.New()
	io.WriteString(h, name)
	for _, key := range sortedKeys(p) {
		fmt.Fprintf(h, "\x00%s\x00%s", key, p[key])
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// call is one event on its way through the pipeline.
type call struct {
	*Runner
	ctx         context.Context
	host        *Adapter
	ev          Event
	log         *slog.Logger
	fingerprint string
}

// errRepeated ends the handling of an event that another registration of the
// same hook has handled.
var errRepeated = errors.New("handled already")

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
		c.endTurn(client.TurnEnd)
	case PreCompact:
		c.endTurn(client.PreCompact)
	case SessionEnd:
		c.endTurn(client.SessionEnd)
	}
	return Outcome{}
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
	var shown []string
	err := c.update(func(s *state.Session) error {
		if s.Repeated(c.fingerprint, c.Now()) {
			return errRepeated
		}
		if c.ev.ContextLost {
			s.Shown = nil
		}
		if c.ev.Compacted && s.Running {
			asked = s.Asked
		}
		shown = s.Shown
		return nil
	})
	c.pokeIfPending()
	if err != nil || asked == "" {
		return Outcome{}
	}
	// The compaction took the memories of the turn that goes on.
	return c.show(c.recall(asked, shown))
}

func (c *call) prompt() Outcome {
	text := c.host.clean(c.ev.Prompt)
	if text == "" || c.host.machineMade(c.ev.Prompt) {
		return Outcome{}
	}
	var recalled <-chan client.RecallResult
	err := c.update(func(s *state.Session) error {
		if s.Repeated(c.fingerprint, c.Now()) {
			return errRepeated
		}
		turn := c.ev.Turn
		if turn == "" {
			if !s.Running {
				s.Ordinal++
			}
			turn = ordinal(s)
		}
		s.Begin(turn)
		s.Running = true
		if text == redact.Private {
			s.Private = true
			return nil
		}
		s.Prompts = max(s.Prompts, c.spooled(turn, client.User)) + 1
		if worthRecalling(text) {
			s.Asked = strings.ToValidUTF8(text[:min(len(text), maxAsked)], "")
			// Meanwhile the prompt goes to the disk.
			recalled = c.recall(s.Asked, slices.Clone(s.Shown))
		}
		if !c.Config.Capture {
			return nil
		}
		return c.keep(spool.Turn{Turn: turn, Open: true, Events: []client.Event{c.event(client.NewEventID(turn, client.User, s.Prompts), client.User, text)}})
	})
	if errors.Is(err, errRepeated) {
		return Outcome{}
	}
	return c.show(recalled)
}

// recall asks the service in the background. The channel yields one answer; an
// empty one if there is none in time.
func (c *call) recall(query string, shown []string) <-chan client.RecallResult {
	answer := make(chan client.RecallResult, 1)
	if !c.Config.Recall {
		close(answer)
		return answer
	}
	go func() {
		defer close(answer)
		defer c.recoverPanic()
		start := c.Now()
		ctx, cancel := context.WithTimeout(c.ctx, c.Config.RecallTimeout)
		defer cancel()
		svc, err := c.Service()
		if err != nil {
			c.log.Error("open service", "err", err)
			return
		}
		res, err := svc.Recall(ctx, client.RecallRequest{
			Query: query, Limit: c.Config.RecallLimit, MaxChars: c.Config.RecallMaxChars, Purpose: client.ForPrompt,
			Host: c.ev.Session.Host, ScopeID: c.ev.Session.Scope, Session: c.ev.Session.ID, Cwd: c.ev.Cwd, Exclude: shown,
		})
		took := c.Now().Sub(start).Milliseconds()
		if err != nil {
			c.log.Error("recall", "err", err, "ms", took)
			return
		}
		c.log.Info("recall", "items", len(res.Items), "ms", took)
		answer <- res
	}()
	return answer
}

// show makes the frame of what was recalled and remembers that the session has
// seen it. A nil channel is no recall at all.
func (c *call) show(recalled <-chan client.RecallResult) Outcome {
	if recalled == nil {
		return Outcome{}
	}
	text, ids := Frame(<-recalled, c.host.MaxContext, c.host.Size)
	if text == "" {
		return Outcome{}
	}
	c.update(func(s *state.Session) error {
		s.Shown = append(s.Shown, ids...)
		s.Shown = s.Shown[max(0, len(s.Shown)-maxShown):]
		return nil
	})
	return Outcome{Context: text}
}

func (c *call) turnEnd() {
	text := c.host.clean(c.ev.Reply)
	err := c.update(func(s *state.Session) error {
		if s.Repeated(c.fingerprint, c.Now()) {
			return errRepeated
		}
		turn := c.ev.Turn
		if turn == "" {
			turn = ordinal(s)
		}
		s.Begin(turn)
		s.Running = false
		if s.Private || !c.Config.Capture {
			return nil
		}
		end := spool.Turn{Turn: turn, Flush: client.TurnEnd}
		// A turn that another hook made go on ends again, sometimes with the same words.
		if sum := digest(text); text != "" && sum != s.LastReply {
			s.LastReply = sum
			s.Replies++
			end.Events = []client.Event{c.event(client.NewEventID(turn, client.Assistant, s.Replies), client.Assistant, text)}
		}
		return c.keep(end)
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
		if !c.Config.Capture {
			return nil
		}
		return c.Spool.Close(c.ctx, c.ev.Session, reason)
	})
	if err == nil {
		c.deliver()
	}
}

func (c *call) event(id client.EventID, role client.Role, text string) client.Event {
	return client.Event{ID: id, Role: role, Content: text, CreatedAt: c.Now()}
}

// ordinal names a turn by its number in the session.
func ordinal(s *state.Session) client.TurnID {
	return client.TurnID(fmt.Sprintf("%06d", s.Ordinal))
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// spooled counts the messages of a role in the session's open turn, in case the
// state was lost.
func (c *call) spooled(turn client.TurnID, role client.Role) int {
	t, ok := c.Spool.Unfinished(c.ev.Session)
	n := 0
	if ok && t.Turn == turn {
		for _, e := range t.Events {
			if e.Role == role {
				n++
			}
		}
	}
	return n
}

// update changes the session's state. If the state cannot be kept (full or
// read-only disk, a lock that is never freed), the change is made on an empty
// one, so that the turn is kept all the same.
func (c *call) update(change func(*state.Session) error) error {
	ctx, cancel := context.WithTimeout(c.ctx, lockWait)
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
			return change(&state.Session{Session: c.ev.Session})
		}
	}
	return nil
}

// keep makes a turn durable, in the spool or, if that cannot be written, at
// the service.
func (c *call) keep(t spool.Turn) error {
	t.Session = c.ev.Session
	t.Cwd = c.ev.Cwd
	err := c.Spool.Put(c.ctx, t)
	if err == nil {
		return nil
	}
	c.log.Error("spool", "err", err)
	if len(t.Events) == 0 {
		return nil
	}
	svc, err := c.Service()
	if err == nil {
		_, err = svc.Append(c.ctx, client.AppendRequest{Session: t.Session, Cwd: t.Cwd, Events: t.Events})
	}
	if err != nil {
		c.log.Error("turn lost: neither the spool nor the service took it", "err", err)
	}
	return nil
}

// deliver hands over the session's turns if that is quick, and leaves the rest
// to the detached deliverer.
func (c *call) deliver() {
	if c.Backoff.Load().Waiting(c.Now()) {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, deliverWait)
	defer cancel()
	svc, err := c.Service()
	if err == nil {
		err = c.Spool.Deliver(ctx, c.ev.Session.Key(), svc)
	}
	if err != nil && ctx.Err() != nil {
		c.Poke()
		return
	}
	if err != nil {
		c.log.Error("deliver", "err", err, "class", client.ClassOf(err))
	}
	if err := c.Backoff.Record(err, c.Now()); err != nil {
		c.log.Error("backoff", "err", err)
	}
	c.pokeIfPending()
}

// pokeIfPending starts the deliverer when other sessions have turns to deliver.
func (c *call) pokeIfPending() {
	if c.Backoff.Load().Waiting(c.Now()) {
		return
	}
	keys, err := c.Spool.Pending()
	if err != nil {
		c.log.Error("spool", "err", err)
		return
	}
	for _, key := range keys {
		if key != c.ev.Session.Key() && c.Spool.Due(key, spool.Grace) {
			c.Poke()
			return
		}
	}
}
