package upstream

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/crash"
)

// TestDiskRefuses has the disk refuse everything from some step of a run on. Once it is well
// again each message reaches ReMe under one request, which has the same bytes whenever
// it is made.
func TestDiskRefuses(t *testing.T) {
	defer func(was func(string) error) { crash.Fault = was }(crash.Fault)
	for fatal := 1; ; fatal += 2 {
		w := met(t)
		var want []string
		say := func(turns ...int) {
			for _, i := range turns {
				prompt, reply := fmt.Sprint("question ", i), fmt.Sprint("answer ", i)
				w.say("s", fmt.Sprint(i), prompt, reply)
				want = append(want, prompt, reply)
			}
			w.flush("s", client.SessionEnd)
		}
		say(0, 1, 2)
		// ReMe takes the first request, but that does not become known.
		w.fake.Change(func() { w.fake.Answers = []string{"broken"} })
		step := 0
		crash.Fault = func(name string) error {
			if step++; step >= fatal {
				return &os.PathError{Op: name, Path: "x", Err: os.ErrPermission}
			}
			return nil
		}
		_ = w.Forward(t.Context(), w.ws, Options{}) // what it tells is not what counts
		crash.Fault = func(string) error { return nil }
		w.fake.Change(func() { w.fake.Answers = nil })
		say(3, 4, 5)
		for range 3 {
			w.now = w.now.Add(time.Hour)
			if err := w.Forward(t.Context(), w.ws, Options{}); err != nil {
				t.Errorf("step %d: %v", fatal, err)
			}
		}
		bodies := map[string]string{}
		var got []string
		for _, body := range w.fake.Took() {
			var r request
			if err := json.Unmarshal([]byte(body), &r); err != nil {
				t.Fatal(err)
			}
			if before, again := bodies[r.RequestID]; again {
				if before != body {
					t.Errorf("step %d: a request was\n%s\nand is\n%s", fatal, before, body)
				}
				continue
			}
			bodies[r.RequestID] = body
			for _, m := range r.Messages {
				got = append(got, m.Content)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("step %d: ReMe has\n%s\nwant\n%s", fatal, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if step < fatal {
			if fatal < 10 {
				t.Errorf("a run takes %d steps only", step)
			}
			return
		}
	}
}
