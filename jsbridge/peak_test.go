package jsbridge

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The steps and built-ins that make most out of least, each alone in a process of its own
// with a budget of 128 MiB and 64 MiB for the run. The process may pass its budget by what
// steps make before the watch has seen it: each some ten MiB more than it was given.
var peaks = []struct{ name, code string }{
	{"text doubled", `var s = 'a'.repeat(1 << 24); for (;;) s += s;`},
	{"wide text doubled", `var s = 'é'.repeat(1 << 24); for (;;) s += s;`},
	{"text added", `var a = 'é'.repeat(1 << 24), s = a; for (;;) s += a;`},
	{"text of an object", `var s = 'a'; for (;;) s += {toString: () => s};`},
	{"text of two", `var a = 'é', b = 'e'; for (;;) { a = a + b; b = b + a; }`},
	{"template", "var s = 'é'.repeat(1 << 24); for (;;) s = `${s}${s}${s}${s}`;"},
	{"split", `for (;;) ','.repeat(1 << 24).split(',');`},
	{"split by a pattern", `for (;;) ','.repeat(1 << 24).split(/,/);`},
	{"split by lookahead", `for (;;) ','.repeat(1 << 24).split(/(?=,)/);`},
	{"match", `for (;;) 'a'.repeat(1 << 24).match(/a/g);`},
	{"match with groups", `for (;;) 'a'.repeat(1 << 24).match(/(?=(a))(a)/g);`},
	{"replace by a pattern", `for (;;) 'a'.repeat(1 << 24).replace(/a/g, 'b');`},
	{"replace by a function", `for (;;) 'a'.repeat(1 << 24).replace(/a/g, x => x);`},
	{"pad", `var l = []; for (;;) l.push('é'.padStart(1 << 24, 'é'));`},
	{"join", `var s = 'é'.repeat(1 << 23); for (;;) [s, s].join('');`},
	{"parse", `var s = '[' + '[],'.repeat(5e6) + '1]'; for (;;) JSON.parse(s).length;`},
	{"stringify", `var s = 'é'.repeat(4e6); for (;;) JSON.stringify([s]);`},
	{"encode", `var s = 'é'.repeat(5e6); for (;;) encodeURIComponent(s);`},
}

const maxPeak = 768 // MiB; the most seen is a third of it

// TestPeakMemory: none of them takes the process past the bound.
func TestPeakMemory(t *testing.T) {
	if code := os.Getenv("JSBRIDGE_PEAK"); code != "" {
		growAlone(t, code)
		return
	}
	if raceEnabled {
		t.Skip("too much for the race detector; make hostile runs it")
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("only Linux tells it")
	}
	for _, p := range peaks {
		t.Run(p.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPeakMemory$")
			cmd.Env = append(os.Environ(), "JSBRIDGE_PEAK="+p.code)
			out, err := cmd.Output()
			var mib int64
			_, said, _ := strings.Cut(string(out), "peak ")
			if _, scanErr := fmt.Sscan(said, &mib); err != nil || scanErr != nil {
				t.Fatalf("%v %v: %s", err, scanErr, out)
			}
			said, _, _ = strings.Cut(said, "\n")
			t.Logf("MiB: %s", said)
			if mib > maxPeak {
				t.Errorf("the process took %d MiB, more than %d", mib, maxPeak)
			}
		})
	}
}

// growAlone runs code and prints the most memory that the process ever had.
func growAlone(t *testing.T, code string) {
	b := newBridge(t, Config{Memory: 128 << 20, RunMemory: 64 << 20, StuckGrace: hostileGrace})
	e := env()
	e.Limits.Deadline = time.Now().Add(5 * time.Second)
	_, err := b.Run(context.Background(), compile(t, code), e)
	fmt.Printf("peak %d, ended by %v\n", mostMemory(t)>>10, err)
}

// mostMemory is the most KiB that this process, not who started it, ever had.
func mostMemory(t *testing.T) (kib int64) {
	status, err := os.ReadFile("/proc/self/status")
	_, high, ok := strings.Cut(string(status), "VmHWM:")
	if err != nil || !ok {
		t.Fatalf("no VmHWM: %v", err)
	}
	if _, err := fmt.Sscan(high, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}
