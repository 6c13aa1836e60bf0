//go:build race

package cmd

// raceDetector tells that programs take several times as much memory.
const raceDetector = true
