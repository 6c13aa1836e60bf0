package hosttest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
	"github.com/agentscope-ai/reme-hook/internal/config"
	"github.com/agentscope-ai/reme-hook/internal/link"
	"github.com/agentscope-ai/reme-hook/spool"
	"github.com/agentscope-ai/reme-hook/state"
	"github.com/agentscope-ai/reme-hook/workspace"
)

// FlatTurnsEnv makes [Flat] hold a session of so many turns.
const FlatTurnsEnv = "REME_FLAT_TURNS"

const (
	flatTurns  = 60
	flatGrowth = 1.35     // a hook that reads the whole session reads twice as much at its end as at a third of it
	flatMargin = 64 << 10 // bytes; the index grows too, and what a recall reads of it up to a limit
)

// Flat holds the session id and checks that the bytes which its hooks read and write
// do not grow with it. They are counted by the system, for the whole process: so the
// test must not be parallel. tell writes what the host itself writes before a hook,
// if the hook reads it; nil means that there is nothing.
func Flat(t *testing.T, id string, adapter func() *hooks.Adapter, tell func(kind hooks.Kind, turn int, text string)) {
	if _, _, err := counted(); err != nil {
		t.Skip("this system does not count the bytes that a process reads and writes")
	}
	turns := flatTurns
	if n, err := strconv.Atoi(os.Getenv(FlatTurnsEnv)); err == nil {
		turns = n
	}
	dir := t.TempDir()
	var log bytes.Buffer
	read, written := map[hooks.Kind][]int{}, map[hooks.Kind][]int{}
	session := client.Session{ID: id}
	for turn := range turns {
		at := time.Now().Add(time.Duration(turn) * time.Minute)
		for _, kind := range []hooks.Kind{hooks.Prompt, hooks.TurnEnd} {
			text := fmt.Sprintf("How does part%d of module%d handle the case%d of a thing%d?", turn, turn%7, turn%13, turn)
			if kind == hooks.TurnEnd {
				text = fmt.Sprintf("It is part%d. ", turn) + strings.Repeat(fmt.Sprintf("The module%d hands case%d to part%d of step%d. ", turn%7, turn%13, turn, turn*31), 250)
			}
			if tell != nil {
				tell(kind, turn, text)
			}
			a := adapter() // each hook is a process of its own
			ws, err := workspace.Open(filepath.Join(dir, "workspace"), workspace.Options{Now: func() time.Time { return at }})
			if err != nil {
				t.Fatal(err)
			}
			run := &hooks.Runner{
				Now: func() time.Time { return at }, Getenv: func(string) string { return "" },
				Config:  config.Config{Workspace: filepath.Join(dir, "workspace"), Recall: true, Capture: true, RecallLimit: 5, RecallMaxChars: 4000, RecallTimeout: time.Minute},
				State:   state.Store{Dir: filepath.Join(dir, "state"), Now: func() time.Time { return at }},
				Spool:   spool.Spool{Dir: filepath.Join(dir, "spool"), Now: func() time.Time { return at }},
				Link:    link.File{Path: filepath.Join(dir, "service.json")},
				Service: func() (client.Service, error) { return ws, nil },
				Poke:    func() {}, Due: func() bool { return false }, Behind: func() bool { return false },
				Log: slog.New(slog.NewTextHandler(&log, nil)),
			}
			event := hooks.Event{Kind: kind, Session: session, Turn: client.TurnID(fmt.Sprintf("turn-%d", turn)), Cwd: "/p"}
			if kind == hooks.Prompt {
				event.Prompt = text
			} else {
				event.Reply = text
			}
			payload := a.Sample(event)
			r0, w0, _ := counted()
			run.Run(context.Background(), a, eventOf(t, a, kind), bytes.NewReader(payload))
			if err := ws.Close(); err != nil {
				t.Fatal(err)
			}
			r1, w1, _ := counted()
			read[kind], written[kind] = append(read[kind], r1-r0), append(written[kind], w1-w0)
		}
	}
	ws, err := workspace.Open(filepath.Join(dir, "workspace"), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	// The last turn of a host whose log is read may wait for its next hook.
	if st, err := ws.Stats(t.Context()); err != nil || st.Turns < turns-1 {
		t.Errorf("%d of %d turns were kept, %v\n%s", st.Turns, turns, err, log.String())
	}
	for kind, what := range map[hooks.Kind]string{hooks.Prompt: "prompt", hooks.TurnEnd: "end of turn"} {
		for did, bytes := range map[string][]int{"reads": read[kind], "writes": written[kind]} {
			early, late := middle(bytes[turns/4:turns/2]), middle(bytes[3*turns/4:])
			t.Logf("%s: %s %d bytes early in the session, %d late", what, did, early, late)
			if float64(late) > flatGrowth*float64(early)+flatMargin {
				t.Errorf("%s: %s %d bytes early in the session, %d late", what, did, early, late)
			}
		}
	}
}

func eventOf(t *testing.T, a *hooks.Adapter, kind hooks.Kind) string {
	t.Helper()
	var names []string
	for name, k := range a.Events {
		if k == kind {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Fatalf("%s has no such event", a.Host)
	}
	return slices.Min(names)
}

func middle(list []int) int {
	return slices.Sorted(slices.Values(list))[len(list)/2]
}

// counted tells how many bytes this process has read and written so far, from
// whatever: files, pipes, the cache.
func counted() (read, written int, err error) {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, 0, err
	}
	_, err = fmt.Sscanf(string(text), "rchar: %d\nwchar: %d", &read, &written)
	return read, written, err
}
