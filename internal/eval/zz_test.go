package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/agentscope-ai/reme-hook/client"
	"github.com/agentscope-ai/reme-hook/hooks"
)

func TestDump(t *testing.T) {
	d, _ := load()
	e, err := d.fill(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out, _ := os.Create("/tmp/evalwork/dump.txt")
	defer out.Close()
	for _, q := range d.queries {
		if q.held() || !hooks.WorthRecalling(q.text) {
			continue
		}
		req := client.RecallRequest{Query: q.text, Cwd: q.cwd, Purpose: client.ForPrompt}
		if q.running != nil {
			e.add(t.Context(), *q.running)
			s := q.running.session()
			req.Host, req.ScopeID, req.Session = s.Host, s.Scope, s.ID
		}
		_, x, _ := e.Explain(t.Context(), req)
		fmt.Fprintf(out, "%s | %s | %s\n", q.category, q.text, q.answer)
		for _, w := range x.Terms {
			fmt.Fprintf(out, "   %s(%d)=%.1f", w.Text, w.Docs, w.Weight)
		}
		fmt.Fprintln(out)
		for i, c := range x.Candidates {
			id := c.Path[len("session/dialog/"):]
			gold := ""
			if q.answer != "" && (len(id) > 5 && contains(c.Path, "-"+q.answer+"-") || e.notes[c.Path] == q.answer) {
				gold = "GOLD"
			}
			if i > 4 && gold == "" {
				continue
			}
			fmt.Fprintf(out, "  %d %.2f %-4s %v EV %.2f %v %s %s\n", i, c.Score, gold, c.Factors, c.Evidence, c.Terms, c.Verdict, c.Path[8:])
		}
	}
}

func contains(s, sub string) bool {
	for i := 0; i+len(sub) <= len(s); i++ {
		if s[i:i+len(sub)] == sub {
			return true
		}
	}
	return false
}
