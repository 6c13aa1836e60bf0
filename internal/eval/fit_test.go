package main

import (
	"math"
	"testing"
)

func TestFit(t *testing.T) {
	var list []example
	add := func(cover, evidence float64, right bool) {
		list = append(list, example{[measures]float64{1, cover, 0, evidence}, right})
	}
	for i := range 20 {
		x := float64(i) / 20
		add(x, 1, i > 10)
		add(0.5, x, i%2 == 0)
	}
	m := fit(list)
	if got := m.chance(example{measures: [measures]float64{1, 0.52, 0, 1}}); math.Abs(got-0.5) > 0.1 {
		t.Errorf("%.2f: %.2f on the border", m, got)
	}
	if m[1] < 3*math.Abs(m[3]) {
		t.Errorf("%.2f: the evidence says nothing here", m)
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
	m := model{-2.4, 4.1, 0.8, 4.1}
	if got := m.chance(exampleOf(answers[0], c)); math.Abs(got-c.Chance) > 0.01 {
		t.Errorf("%.3f, and %.3f in the workspace: these are the constants of workspace/chance.go", got, c.Chance)
	}
}
