//go:build unix

package cmd

import "syscall"

// private makes new files unreadable for others, whatever umask the host runs
// with; an umask of 0777 would make them unreadable for us.
func private() { syscall.Umask(0o077) }
