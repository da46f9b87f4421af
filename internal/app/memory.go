package app

import (
	"bufio"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// gcPercent lets the heap grow to five times what lives in it between collections. The
// kept runtimes are a heap of small objects that is marked anew by every collection, and a
// call leaves little garbage: with Go's own 100 a busy small server spends a tenth of its
// time on marking.
const gcPercent = 400

const (
	fallbackMemory = 2 << 30
	maxRunMemory   = 512 << 20
)

// tuneGC sets the collector for a server, unless the operator has set GOGC or GOMEMLIMIT.
// Near the budget it collects as often as it must.
func tuneGC(budget int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(budget)
	}
}

// memoryBudget is what the process may use: the setting, else GOMEMLIMIT, else four fifths
// of the container's limit, else half of the machine's memory.
func (s *Settings) memoryBudget() int64 {
	if s.Memory > 0 {
		return s.Memory
	}
	if limit := debug.SetMemoryLimit(-1); os.Getenv("GOMEMLIMIT") != "" && limit < math.MaxInt64 {
		return limit
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if limit, ok := readLimit(file); ok {
			return limit / 5 * 4
		}
	}
	if total, ok := readTotal("/proc/meminfo"); ok {
		return total / 2
	}
	return fallbackMemory
}

// scriptMemory is how far the heap may grow before runs are ended, and what one run may
// hold of it. A quarter of the budget is for what is no object of the heap.
func (s *Settings) scriptMemory() (all, run int64) {
	all = s.memoryBudget() / 4 * 3
	if s.RunMemory > 0 {
		return all, s.RunMemory
	}
	return all, min(max(all/4, 32<<20), maxRunMemory)
}

// readLimit reads a container's limit; "max" and absurdly large ones are none.
func readLimit(file string) (int64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil && n > 0 && n < 1<<50
}

// readTotal reads the line "MemTotal: 16303428 kB".
func readTotal(file string) (int64, bool) {
	f, err := os.Open(file)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 && fields[0] == "MemTotal:" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n << 10, err == nil && n > 0
		}
	}
	return 0, false
}
