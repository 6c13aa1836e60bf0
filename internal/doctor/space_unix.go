//go:build linux || darwin

package doctor

import "syscall"

// Free is the space that is left for a user where path is, in bytes.
func Free(path string) (uint64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil
}
