// Package dsh holds the plugin for DSH: a shim that calls reme-hook for each
// event, and what makes a bundle for `dsh plugin add` of it.
package dsh

import _ "embed"

// Shim is the text of the plugin. Nobody changes it.
//
//go:embed reme-hook.mjs
var Shim []byte
