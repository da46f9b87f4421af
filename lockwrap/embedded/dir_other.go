//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package embedded

import (
	"fmt"
	"runtime"
)

// LockDir is not available on this system: it returns an error.
func LockDir(path string) (unlock func() error, err error) {
	return nil, fmt.Errorf("folder %s cannot be locked on %s: use the Redis lock", path, runtime.GOOS)
}
