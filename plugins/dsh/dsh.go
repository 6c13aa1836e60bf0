// Package dsh holds the plugin for DSH: a shim that calls reme-hook for each
// event, and what makes a bundle for `dsh plugin add` of it.
package dsh

import _ "embed"

// ShimName is the file of the plugin that DSH loads.
const ShimName = "reme-hook.mjs"

var (
	//go:embed reme-hook.mjs
	shim []byte
	//go:embed tools.json
	tools []byte
)

// Files are the files of the plugin, by name. Nobody changes them.
func Files() map[string][]byte {
	return map[string][]byte{ShimName: shim, "tools.json": tools}
}
