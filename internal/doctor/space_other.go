//go:build !linux && !darwin && !windows

package doctor

import "errors"

// Free does not know the space that is left on this system.
func Free(string) (uint64, error) { return 0, errors.ErrUnsupported }
