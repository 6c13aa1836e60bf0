// Package dsh holds the plugin for DSH: a shim that calls reme-hook for each
// event, and what makes a bundle for `dsh plugin add` of it.
package dsh

import (
	_ "embed"
	"strings"
)

//go:embed reme-hook.mjs
var shim string

// Shim is the text of the plugin as the given version of reme-hook makes it.
func Shim(version string) []byte {
	return []byte(strings.Replace(shim, "0.0.0-source", version, 1))
}
