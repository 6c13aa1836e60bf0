package codex

import "strings"

// patched lists the files that an apply_patch text names.
func patched(patch string) []string {
	var out []string
	for line := range strings.Lines(patch) {
		for _, head := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if path, ok := strings.CutPrefix(line, head); ok {
				out = append(out, strings.TrimSpace(path))
			}
		}
	}
	return out
}
