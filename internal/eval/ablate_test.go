package main

import "testing"

// The code that an ablation takes out is still there.
func TestAblationsApply(t *testing.T) {
	for _, a := range ablations {
		if changed, err := a.apply("../.."); err != nil || (len(changed) > 0) != (len(a.edits) > 0) {
			t.Errorf("%s: %v, %d files", a.name, err, len(changed))
		}
	}
}
