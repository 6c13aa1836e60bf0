//go:build unix

package contract

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// facts are what each host is told, and what is asked for it in other words.
var facts = map[string][2]string{
	"codex":       {billing, askBilling},
	"claude-code": {server, askServer},
	"kimi":        {"The office kettle is called Bartholomew and wants descaling every Thursday.", "When does the office kettle want descaling?"},
	"dsh":         {"Release notes for the parser are written by Oyelaran in a file named HERALD.md.", "Who writes the release notes for the parser?"},
	"hermes":      {"The backup of the photo archive runs on the machine called Thistledown at 04:40.", "On which machine does the backup of the photo archive run?"},
	"openclaw":    {"Visitors to the observatory are met by Temperance at the side entrance on Wednesdays.", "Who meets visitors to the observatory?"},
}

// TestPairs tells each host something and asks every other one for it in a new session: it is there in one frame, once. What
// was said is captured exactly once.
func TestPairs(t *testing.T) {
	w := newWorld(t)
	all := w.everyHost()
	w.pairs(all, len(all)-1)
}

// TestPairsServed is the same with a memory that another process keeps at a URL; each host learns from two others.
func TestPairsServed(t *testing.T) {
	w := newWorld(t)
	w.serve()
	w.pairs(w.everyHost(), 2)
	if _, err := os.Stat(filepath.Join(w.home, ".reme", "workspace")); !os.IsNotExist(err) {
		t.Errorf("there is a workspace beside the service: %v", err)
	}
}

// everyHost puts all hosts on the machine and wires them by one command.
func (w *world) everyHost() []Host {
	w.Helper()
	o := w.withGateway()
	all := []Host{w.codex, w.claude, w.with("kimi"), w.with("dsh"), w.with("hermes"), o}
	w.must("setup", "--yes")
	noteBudgets(w)
	w.startGateway(o)
	return all
}

// pairs tells each host its fact, and asks for it n of the others.
func (w *world) pairs(all []Host, n int) {
	t := w.T
	want := map[string]map[string]int{}
	for _, h := range all {
		r := w.run(h, Turn{Prompt: facts[h.Name()][0]}, Step{Text: "Noted."})
		if r.Code != 0 {
			t.Fatalf("%s: exit status %d\n%s", h.Name(), r.Code, r.Stderr)
		}
		want[h.Name()] = map[string]int{"user: " + facts[h.Name()][0]: 1, "assistant: Noted.": 1, "assistant: I know.": n}
	}
	for i, told := range all {
		for k := range n {
			asked := all[(i+1+k)%len(all)]
			fact := facts[told.Name()]
			if r := w.run(asked, Turn{Prompt: fact[1]}, Step{Text: "I know."}); r.Code != 0 {
				t.Errorf("%s: exit status %d\n%s", asked.Name(), r.Code, r.Stderr)
			}
			w.shown(w.last(asked, Main), 1, fact[0])
			if w.Failed() {
				t.Fatalf("%s did not learn what %s was told", asked.Name(), told.Name())
			}
			want[asked.Name()]["user: "+fact[1]] = 1
		}
	}
	t.Logf("%d of %d pairs", n*len(all), len(all)*(len(all)-1))
	w.must("spool", "replay")
	for _, h := range all {
		got := map[string]int{}
		for _, r := range w.rows(h) {
			text := r.Role + ": "
			for _, c := range r.Content {
				text += c.Text
			}
			got[text]++
		}
		if fmt.Sprint(got) != fmt.Sprint(want[h.Name()]) {
			t.Errorf("captured of %s: %v\nwant %v", h.Name(), got, want[h.Name()])
		}
	}
}
