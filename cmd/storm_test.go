package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
)

// TestStorm has 64 processes at a time tell things to one memory: of all hosts, in
// sessions that several of them share, between other events. Every turn is there, once,
// its prompt before its answer, and no hook says anything that it should not. With
// TEST_LONG=1 it goes on for a minute.
func TestStorm(t *testing.T) {
	t.Parallel()
	c := newCrowd(t)
	const workers = 64
	var end time.Time
	if os.Getenv(longEnv) != "" {
		end = time.Now().Add(time.Minute)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for w := range workers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			host := c.hosts[w%len(c.hosts)]
			for n := 0; n == 0 || time.Now().Before(end); n++ {
				turn := n*workers + w
				e := hooks.Event{Session: client.Session{ID: fmt.Sprint("session ", random.IntN(4))}, Turn: client.TurnID(fmt.Sprint("turn-", turn)), Cwd: "/p"}
				tell := func(kind hooks.Kind, counts bool) {
					e := e
					e.Kind, e.Prompt, e.Reply = kind, fmt.Sprint("prompt ", turn), fmt.Sprint("answer ", turn)
					cmd := c.command(host, e, 60+n)
					var stderr bytes.Buffer
					cmd.Stderr = &stderr
					out, err := cmd.Output()
					if err != nil || stderr.Len() > 0 || len(out) > 0 && (!json.Valid(out) || strings.Contains(string(out), "\r")) {
						t.Errorf("%s %s: %v, %q, %s", host.Host, eventOf(host, kind), err, out, stderr.String())
					}
					if counts {
						c.note(host, e, -1, true) // turns of a session run at once: they have no order
					}
					mu.Lock()
					defer mu.Unlock()
					total++
				}
				for _, kind := range []hooks.Kind{hooks.SessionStart, hooks.PreToolUse, hooks.PreCompact, hooks.SessionEnd} {
					if end.IsZero() {
						break // a short storm is of what counts
					}
					if eventOf(host, kind) != "" && random.IntN(6) == 0 {
						defer tell(kind, false)
					}
				}
				tell(hooks.Prompt, true)
				tell(hooks.TurnEnd, true)
			}
		})
	}
	wg.Wait()
	c.settle()
	c.recalled()
	t.Logf("%d hooks", total)
}
