package doctor

import "testing"

func TestOtherMemory(t *testing.T) {
	t.Parallel()
	for plugin, want := range map[string]bool{
		"reme@reme": true, "ReMe": true, "reme-memory@x": true, "openviking-memory@openviking-local": true, "memory@openviking": true,
		"reme-hook@local": false, "remember": false, "superpowers@official": false, "": false,
	} {
		if got := otherMemory(plugin); got != want {
			t.Errorf("%q: %v", plugin, got)
		}
	}
}
