package main

import (
	"math"
	"testing"
)

func TestFit(t *testing.T) {
	var list []example
	for i := range 20 {
		x := float64(i) / 20
		list = append(list, example{cover: x, evidence: 1, right: i > 10}, example{cover: 0.5, evidence: x, right: i%2 == 0})
	}
	m := fit(list)
	if got := m.chance(example{cover: 0.52, evidence: 1}); math.Abs(got-0.5) > 0.1 {
		t.Errorf("%+v: %.2f on the border", m, got)
	}
	if m.cover < 3*math.Abs(m.evidence) {
		t.Errorf("%+v: the evidence says nothing here", m)
	}
}

func TestMeasuresAreTheWorkspaces(t *testing.T) {
	d, err := load()
	if err != nil {
		t.Fatal(err)
	}
	d.memories = d.memories[len(d.memories)-50:]
	d.queries = []query{{category: "english", text: "how long before the move should I lower the TTL"}}
	e, err := d.fill(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	answers, err := d.ask(t.Context(), "tune", e.ask)
	if err != nil || len(answers[0].looked) == 0 {
		t.Fatal(err, answers)
	}
	c := answers[0].looked[0]
	m := model{bias: -3.1, cover: 4.6, evidence: 3.9}
	if got := m.chance(exampleOf(d.queries[0], c)); math.Abs(got-c.Chance) > 0.01 {
		t.Errorf("%.3f, and %.3f in the workspace: these are the constants of workspace/chance.go", got, c.Chance)
	}
}
