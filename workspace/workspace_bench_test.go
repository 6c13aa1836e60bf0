package workspace

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/internal/prose"
)

// fill makes a workspace of turns.
func fill(b *testing.B, s *prose.Source, turns int) string {
	b.Helper()
	dir := b.TempDir()
	if err := s.Fill(dir, turns, time.Now()); err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	w := open(b, dir)
	if _, err := w.Sessions(context.Background(), 1); err != nil { // all is indexed
		b.Fatal(err)
	}
	st, err := w.Stats(context.Background())
	if err != nil || st.Turns != turns {
		b.Fatal(st, err)
	}
	b.Logf("%d turns indexed in %v: %d KiB of dialog, %d KiB of index", st.Turns, time.Since(start).Round(time.Millisecond), st.DialogBytes>>10, st.IndexBytes>>10)
	w.Close()
	return dir
}

func open(tb testing.TB, dir string) *Workspace {
	tb.Helper()
	w, err := Open(dir, Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

func BenchmarkCold(b *testing.B) {
	source, err := prose.Load()
	if err != nil {
		b.Fatal(err)
	}
	for _, turns := range []int{1000, 20000, 100000} {
		b.Run(fmt.Sprint(turns), func(b *testing.B) {
			if turns > 1000 && testing.Short() {
				b.Skip("takes a while to fill")
			}
			dir := fill(b, source, turns)
			ctx := context.Background()
			b.Run("Append", func(b *testing.B) {
				s := client.Session{Host: "codex", Scope: "default", ID: "session-1"}
				for i := 0; b.Loop(); i++ {
					turn := client.TurnID(fmt.Sprintf("%s-%d", b.Name(), i))
					w := open(b, dir)
					_, err := w.Append(ctx, client.AppendRequest{Session: s, Cwd: "/src/project", Events: []client.Event{
						{ID: client.NewEventID(turn, client.User, 1), Role: client.User, Content: "how do we ship the release of Osprey?", CreatedAt: time.Now()},
						{ID: client.NewEventID(turn, client.Assistant, 1), Role: client.Assistant, Content: strings.Repeat("It leaves on 14 December with the train. ", 20), CreatedAt: time.Now()},
					}})
					if err != nil {
						b.Fatal(err)
					}
					w.Close()
				}
			})
			b.Run("Recall", func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					w := open(b, dir)
					_, err := w.Recall(ctx, client.RecallRequest{Query: source.Prompt(i % 100), Purpose: client.ForPrompt, Cwd: "/src/project-1"})
					if err != nil {
						b.Fatal(err)
					}
					w.Close()
				}
			})
			b.Run("RecallWarm", func(b *testing.B) {
				w := open(b, dir)
				defer w.Close()
				for i := 0; b.Loop(); i++ {
					if _, err := w.Recall(ctx, client.RecallRequest{Query: source.Prompt(i % 100), Purpose: client.ForPrompt, Cwd: "/src/project-1"}); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
