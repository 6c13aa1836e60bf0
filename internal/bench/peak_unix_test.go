//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// peakMemory is the largest memory that a process had, in bytes.
func peakMemory(p *os.ProcessState) int64 {
	n := int64(p.SysUsage().(*syscall.Rusage).Maxrss)
	if runtime.GOOS != "darwin" { // all others count KiB
		n <<= 10
	}
	return n
}
