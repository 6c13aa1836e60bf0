package hooks

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/spool"
)

// newLogWorld is a world whose host tells its turns only by its log: the
// returned slice.
func newLogWorld(t *testing.T) (*world, *[]LogTurn) {
	w := newWorld(t)
	var log []LogTurn
	w.host.ReadLog = func(_ Event, cursor string) (LogPage, error) {
		from, _ := strconv.Atoi(cursor)
		next := from
		for next < len(log) && log[next].Ended {
			next++
		}
		return LogPage{Turns: log[from:], Next: fmt.Sprint(next)}, nil
	}
	return w, &log
}

func logTurn(id string, ended bool, messages ...string) LogTurn {
	t := LogTurn{ID: client.TurnID(id), Ended: ended}
	for _, m := range messages {
		role, text, _ := strings.Cut(m, " ")
		t.Messages = append(t.Messages, LogMessage{Role: client.Role(role), Text: text, At: time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)})
	}
	return t
}

func TestLogTellsTheTurns(t *testing.T) {
	t.Parallel()
	w, log := newLogWorld(t)
	w.hook("prompt", "turn", "", "text", "first")
	*log = append(*log, logTurn("m1", true, "user first", "user steer", "assistant one"))
	w.hook("stop", "turn", "")
	w.expect("m1:user first", "m1:user:2 steer", "m1:assistant one")
	if n := w.pending(); n != 0 {
		t.Errorf("%d records are left", n)
	}
	// A stop that comes before its end is written is completed by the next event.
	w.hook("prompt", "turn", "", "text", "second")
	*log = append(*log, logTurn("m2", false, "user second"))
	w.hook("interrupt", "turn", "")
	(*log)[1] = logTurn("m2", true, "user second", "assistant two")
	w.hook("prompt", "turn", "", "text", "third")
	*log = append(*log, logTurn("m3", true, "user third", "assistant three"))
	w.hook("end", "turn", "")
	w.expect("m1:user first", "m1:user:2 steer", "m1:assistant one", "m2:user second", "m2:assistant two", "m3:user third", "m3:assistant three")
}

func TestLogIsAwaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, log := newLogWorld(t)
		w.hook("prompt", "turn", "", "text", "question")
		*log = append(*log, logTurn("m1", false, "user question"))
		looks := 0
		read := w.host.ReadLog
		w.host.ReadLog = func(e Event, cursor string) (LogPage, error) {
			if looks++; looks == 30 {
				*log = []LogTurn{logTurn("m1", true, "user question", "assistant answer")}
			}
			return read(e, cursor)
		}
		start := time.Now()
		w.hook("stop", "turn", "")
		w.expect("m1:user question", "m1:assistant answer")
		if took := time.Since(start); took != 29*logPause {
			t.Errorf("waited %v", took)
		}

		// The stop of a subagent, in the middle of a turn, gives up.
		w.hook("prompt", "turn", "", "text", "another")
		*log = append(*log, logTurn("m2", false, "user another"))
		start = time.Now()
		w.hook("stop", "turn", "")
		if took := time.Since(start); took != logWait {
			t.Errorf("waited %v", took)
		}
		(*log)[1].Delegated = true
		start = time.Now()
		w.hook("stop", "turn", "")
		if took := time.Since(start); took != delegatedWait {
			t.Errorf("waited %v for a turn that is a subagent's", took)
		}
		(*log)[1] = logTurn("m2", true, "user another", "assistant done")
		w.hook("stop", "turn", "")
		// Nothing is running: nothing to wait for.
		start = time.Now()
		w.hook("stop", "turn", "")
		if took := time.Since(start); took != 0 {
			t.Errorf("waited %v", took)
		}
		w.expect("m1:user question", "m1:assistant answer", "m2:user another", "m2:assistant done")
	})
}

func TestPromptThatTheLogNeverTells(t *testing.T) {
	t.Parallel()
	w, log := newLogWorld(t)
	life := w.life()
	w.hook("prompt", "turn", "", "text", "killed")
	w.hook("start", "session", "s2")
	w.clock = w.clock.Add(2 * spool.OpenFor)
	w.hook("start", "session", "s3")
	if w.poked.Load() != 0 {
		t.Error("poked for a prompt that the log may still tell")
	}
	// The next turn of the session proves that it will not.
	w.hook("prompt", "turn", "", "text", "next")
	*log = append(*log, logTurn("m1", true, "user next", "assistant answer"))
	w.hook("stop", "turn", "")
	w.expect("000001"+life+":user killed", "m1:user next", "m1:assistant answer")

	// The hook may tell a queued prompt while another text goes in: each is stored once.
	w, log = newLogWorld(t)
	w.hook("prompt", "turn", "", "text", "queued")
	*log = append(*log, logTurn("m1", true, "user steered", "assistant one"))
	w.hook("stop", "turn", "")
	w.hook("prompt", "turn", "", "text", "queued")
	*log = append(*log, logTurn("m2", true, "user queued", "assistant two"))
	w.hook("stop", "turn", "")
	w.expect("m1:user steered", "m1:assistant one", "m2:user queued", "m2:assistant two")
}

func TestPrivateTurnOfALog(t *testing.T) {
	t.Parallel()
	w, log := newLogWorld(t)
	w.hook("prompt", "turn", "", "text", "<private>nothing of this</private>")
	*log = append(*log, logTurn("m1", true, "user <private>nothing of this</private>", "assistant nor this"), logTurn("m2", true, "user that", "assistant yes"))
	w.hook("stop", "turn", "")
	w.expect("m2:user that", "m2:assistant yes")
}
