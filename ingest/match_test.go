package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
)

// turns reads "id prompt/answer" each; with a ~ in front, they are unnamed.
func turns(text string) (out []known) {
	for _, line := range strings.Split(text, ", ") {
		id, said, ok := strings.Cut(line, " ")
		if !ok {
			continue
		}
		prompt, answer, _ := strings.Cut(said, "/")
		name, unnamed := strings.CutPrefix(id, "~")
		out = append(out, known{client.TurnID(name), prompt, answer, unnamed})
	}
	return out
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ log, memory, want string }{
		"nothing":           {"~1 a/A", "", ""},
		"all":               {"~1 a/A, ~2 b/B", "x a/A, y b/B", "1=x 2=y"},
		"by name":           {"~1 a/A, ~2 a/A", "1 a/A", ""},
		"by name and text":  {"~1 a/A, ~2 a/A", "x a/A, 1 a/A", "2=x"},
		"named in the log":  {"1 a/A", "x a/A", ""},
		"the same text":     {"~1 a/A, ~2 a/B, ~3 a/C", "x a/A, y a/C", "1=x 3=y"},
		"as many as can be": {"~1 a/A, ~2 b/B, ~3 a/A", "x b/B, y a/A", "2=x 3=y"},
		"in order":          {"~1 a/A, ~2 b/B, ~3 c/C", "x c/C, y a/A, z b/B", "1=y 2=z"},
		"without an end":    {"~1 a/A, ~2 b", "x a, y b/B", "1=x 2=y"},
		"another answer":    {"~1 a/A", "x a/B", ""},
		"only an answer":    {"~1 /A, ~2 /B", "x /A, y /C", "1=x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for l, m := range match(turns(c.log), turns(c.memory)) {
				got = append(got, fmt.Sprintf("%s=%s", l, m))
			}
			slices.Sort(got)
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// unnamedDir is the log folder of a host whose log lacks the names of turns.
type unnamedDir struct{ logDir }

func (d unnamedDir) Read(l hooks.Log, cursor string) (hooks.LogPage, error) {
	page, err := d.logDir.Read(l, cursor)
	for i := range page.Turns {
		page.Turns[i].Unnamed = true
	}
	return page, err
}

// Turns that the memory holds under other names are known by their order and their
// text; what it lacks of them comes under their names there.
func TestUnnamedTurns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.host.Logs = unnamedDir{logDir(w.logs)}
	in, ws := w.open()
	live := client.AppendRequest{Session: client.Session{Host: "h", Scope: "default", ID: "s"}}
	for _, e := range [][2]string{{"x:user", "go on"}, {"x:assistant", "one"}, {"y:user", "go on"}, {"z:user", "go on"}, {"z:assistant", "four"}} {
		id := client.EventID(e[0])
		role := client.Role(strings.TrimPrefix(e[0], string(id.Turn())+":"))
		live.Events = append(live.Events, client.Event{ID: id, Role: role, Content: e[1], CreatedAt: in.Now()})
	}
	if _, err := ws.Append(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	w.write("s", "t1 user go on", "t1 assistant one", "t1 end", "t2 user go on", "t2 assistant two", "t2 end", "t3 user go on", "t3 assistant three", "t3 end", "t4 user go on", "t4 assistant four", "t4 end")
	want := "x:user go on; x:assistant one; y:user go on; z:user go on; z:assistant four; t2:user go on; t2:assistant two; y:assistant three"
	for range 2 {
		if _, err := in.Run(t.Context(), w.host, Options{Write: true, Whole: true}); err != nil {
			t.Fatal(err)
		}
		if got := held(t, in, live.Session); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	// Read on from a cursor, a turn is not taken for an older one with the same text.
	if _, err := in.Run(t.Context(), w.host, Options{Write: true}); err != nil {
		t.Fatal(err)
	}
	w.write("s", "t5 user go on", "t5 assistant one", "t5 end")
	r, err := in.Run(t.Context(), w.host, Options{Write: true})
	if got := held(t, in, live.Session); err != nil || r.Missing.Turns != 1 || got != want+"; t5:user go on; t5:assistant one" {
		t.Errorf("%+v, %v: got %s", r, err, got)
	}
}

func held(t *testing.T, in *Ingester, s client.Session) string {
	t.Helper()
	res, err := in.Memory.SessionEvents(t.Context(), client.SessionEventsRequest{Session: s})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range res.Events {
		out = append(out, string(e.ID)+" "+e.Content)
	}
	return strings.Join(out, "; ")
}
