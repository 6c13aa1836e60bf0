package doctor

import "testing"

func TestOtherMemory(t *testing.T) {
	t.Parallel()
	for plugin, want := range map[string]bool{
		"reme@reme": true, "ReMe": true, "reme-memory@x": true, "openviking-memory@openviking-local": true, "memory@openviking": true,
		"@agentscope-ai/reme-dsh-plugin": true, "@agentscope-ai/reme/dsh": true, "@openviking/dsh-memory-plugin": true, "~/openviking/recall.sh now": true,
		"memory-openviking": true, "memory-core": false, "@deepseek-ai/dsh-mcp-client": false, "~/bin/notify.sh 'remember me'": false, "honcho": false,
		"reme-hook@local": false, "remember": false, "superpowers@official": false, "": false,
	} {
		if got := otherMemory(plugin); got != want {
			t.Errorf("%q: %v", plugin, got)
		}
	}
}
