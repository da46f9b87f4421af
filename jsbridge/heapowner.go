package jsbridge

import (
	"bytes"
	"math"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
)

// Go does not say which goroutine has allocated what is in the heap, but its heap profile
// has the stack of every sampled allocation. So each machine's goroutine begins with a
// row of calls that spells the machine's number in bits, and the stack tells whose it was.

// A profile holds the innermost 128 calls of a stack only, so built-ins that call one
// another spell it again every few levels.

const (
	numberBits = 16
	spellEvery = 6 // levels of built-ins; each is up to ten calls of Go
)

// spell calls f below frames that spell number.
func spell(number uint16, f func()) { nextBit(number, numberBits, f) }

//go:noinline
func nextBit(number uint16, bits int, f func()) {
	switch {
	case bits == 0:
		f()
	case number&1 == 0:
		bitZero(number>>1, bits-1, f)
	default:
		bitOne(number>>1, bits-1, f)
	}
}

//go:noinline
func bitZero(number uint16, bits int, f func()) { nextBit(number, bits, f) }

//go:noinline
func bitOne(number uint16, bits int, f func()) { nextBit(number, bits, f) }

// heapByMachine estimates what of a heap of so many bytes was allocated by the runs of
// each machine and lives since the last collection.
func heapByMachine(heap int64) map[uint16]int64 {
	var text bytes.Buffer
	if err := pprof.Lookup("heap").WriteTo(&text, 1); err != nil {
		return nil
	}
	sizes := map[uint16]int64{}
	all := 0.0
	byNumber := map[uint16]float64{}
	for line := range strings.Lines(text.String()) {
		size, stack, ok := heapRecord(line)
		if !ok {
			continue
		}
		all += size
		if n, ok := spelled(stack); ok {
			byNumber[n] += size
		}
	}
	for n, size := range byNumber {
		sizes[n] = int64(size / max(all, 1) * float64(heap))
	}
	return sizes
}

// heapRecord reads "count: bytes [count: bytes] @ 0x1 0x2 ..." and undoes the sampling:
// small objects are counted rarely.
func heapRecord(line string) (size float64, stack []string, ok bool) {
	head, tail, ok := strings.Cut(line, " @ ")
	if !ok || strings.HasPrefix(line, "heap profile") || strings.HasPrefix(line, "#") {
		return 0, nil, false
	}
	count, rest, _ := strings.Cut(head, ": ")
	sum, _, _ := strings.Cut(rest, " ")
	n, err1 := strconv.ParseFloat(count, 64)
	b, err2 := strconv.ParseFloat(sum, 64)
	if err1 != nil || err2 != nil || n == 0 {
		return 0, nil, false
	}
	return b / (1 - math.Exp(-b/n/float64(runtime.MemProfileRate))), strings.Fields(tail), true
}

// spelled reads the innermost number on a stack, whose first call is the innermost.
func spelled(stack []string) (uint16, bool) {
	var number uint16
	bits := 0
	for i := 0; i < len(stack) && bits < numberBits; i++ {
		pc, err := strconv.ParseUint(strings.TrimPrefix(stack[i], "0x"), 16, 64)
		if err != nil {
			return 0, false
		}
		f := runtime.FuncForPC(uintptr(pc) - 1)
		if f == nil {
			continue
		}
		switch name := f.Name(); {
		case strings.HasSuffix(name, ".bitOne"):
			bits++
			number |= 1 << (numberBits - bits)
		case strings.HasSuffix(name, ".bitZero"):
			bits++
		case bits > 0 && !strings.HasSuffix(name, ".nextBit"):
			return 0, false
		}
	}
	return number, bits == numberBits
}
