//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// LockDir keeps every other process that calls it out of the folder until unlock is called
// or this process ends, however it ends. The folder must exist. When another process is
// there, the error names the folder and, if it can, the process.
func LockDir(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(path, "process.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("folder %s cannot be locked: %w", path, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("folder %s is in use: another process%s runs there", path, pid(f))
		}
		return nil, fmt.Errorf("folder %s cannot be locked: %w", path, err)
	}
	// The pid is for the other's message only. The file stays: to remove it would let two
	// processes lock two files of one name.
	if err := errors.Join(f.Truncate(0), write(f, strconv.Itoa(os.Getpid()))); err != nil {
		return nil, errors.Join(fmt.Errorf("folder %s cannot be locked: %w", path, err), f.Close())
	}
	return sync.OnceValue(f.Close), nil // closing gives the lock back
}

func write(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

// pid is " (pid 123)", or empty when the holder has not written it yet.
func pid(f *os.File) string {
	text, _ := io.ReadAll(io.LimitReader(f, 20)) // for a message only
	if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		return fmt.Sprintf(" (pid %d)", n)
	}
	return ""
}
