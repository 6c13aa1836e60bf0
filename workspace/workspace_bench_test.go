package workspace

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentscope-ai/reme-hook/client"
)

// fill makes a workspace of turns in sessions, with words as they are spread in
// a language: few common, many rare.
func fill(b *testing.B, turns, sessions int) string {
	b.Helper()
	dir := b.TempDir()
	rnd := rand.New(rand.NewSource(1))
	zipf := rand.NewZipf(rnd, 1.1, 4, uint64(turns)*5+5000)
	text := func(n int) string {
		var sb strings.Builder
		for range n {
			fmt.Fprintf(&sb, "%s ", wordOf(zipf.Uint64()))
		}
		return sb.String()
	}
	at := time.Now().Add(-24 * time.Hour)
	for i := range sessions {
		s := client.Session{Host: "codex", Scope: "default", ID: fmt.Sprint("session-", i)}
		var rows []byte
		for turn := range turns / sessions {
			for _, role := range []client.Role{client.User, client.Assistant} {
				n := 20
				if role == client.Assistant {
					n = 120
				}
				rows, _ = appendRow(rows, s, "/src/project", client.Event{ID: client.NewEventID(client.TurnID(fmt.Sprint(turn)), role, 1), Role: role, Content: text(n), CreatedAt: at})
			}
		}
		path := filepath.Join(dir, dialogPath(s))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, rows, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	start := time.Now()
	w := open(b, dir)
	if st, err := w.Stats(context.Background()); err != nil || st.Turns != turns/sessions*sessions {
		b.Fatal(st, err)
	} else {
		b.Logf("%d turns indexed in %v: %d KiB of dialog, %d KiB of index", st.Turns, time.Since(start).Round(time.Millisecond), st.DialogBytes>>10, st.IndexBytes>>10)
	}
	w.Close()
	return dir
}

// wordOf makes a pronounceable word of a number.
func wordOf(n uint64) string {
	var b strings.Builder
	for n += 30; n > 0; n /= 70 {
		b.WriteByte("bdfgklmnprstvz"[n%14])
		b.WriteByte("aeiou"[n/14%5])
	}
	return b.String()
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
	for _, size := range []struct{ turns, sessions int }{{1000, 100}, {20000, 1000}, {100000, 5000}} {
		b.Run(fmt.Sprint(size.turns), func(b *testing.B) {
			if size.turns > 1000 && testing.Short() {
				b.Skip("takes a while to fill")
			}
			dir := fill(b, size.turns, size.sessions)
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
			recall := func(query string) func(b *testing.B) {
				return func(b *testing.B) {
					for b.Loop() {
						w := open(b, dir)
						_, err := w.Recall(ctx, client.RecallRequest{Query: query, Cwd: "/src/project"})
						if err != nil {
							b.Fatal(err)
						}
						w.Close()
					}
				}
			}
			var rare, long []string
			for i := range 400 {
				long = append(long, wordOf(uint64(i*i%3000)))
			}
			for i := range 4 {
				rare = append(rare, wordOf(uint64(1000+i*313)))
			}
			b.Run("RecallRare", recall(strings.Join(rare, " ")))
			b.Run("RecallCommon", recall(wordOf(5)+" "+wordOf(9)+" "+wordOf(14)+" "+wordOf(21)))
			b.Run("RecallLong", recall(strings.Join(long, " ")))
		})
	}
}
