package hooks

import (
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// panicSite names the function of this module that panicked: where, but nothing
// of what it was working on.
func panicSite() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		if strings.Contains(f.Function, "reme-hook/") || !more {
			return f.Function + ":" + strconv.Itoa(f.Line)
		}
	}
}

func sortedKeys(p Payload) []string { return slices.Sorted(maps.Keys(p)) }
