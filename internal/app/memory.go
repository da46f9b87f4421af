package app

import (
	"os"
	"runtime/debug"
)

// gcPercent lets the heap grow to five times what lives in it between collections. The
// kept runtimes are a heap of small objects that is marked anew by every collection, and a
// call leaves little garbage: with Go's own 100 a busy small server spends a tenth of its
// time on marking.
const gcPercent = 400

// tuneGC sets the collector for a server, unless the operator has set GOGC.
func tuneGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
