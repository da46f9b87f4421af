package jsbridge

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"apiengine/fault"
)

const (
	memoryTick     = 10 * time.Millisecond
	memoryPatience = 100 // ticks without a run before the watch sleeps
	heapMetric     = "/memory/classes/heap/objects:bytes"
)

// memory ends runs that make the heap grow too far. It looks every few milliseconds while
// runs are active; what it measures is the process's heap, so a run is ended only after
// the heap was cleaned and its profile has shown whose the memory is.
type memory struct {
	budget int64 // of the whole heap
	share  int64 // of one run

	active   atomic.Int64
	last     atomic.Int64 // the heap when it was last looked at
	asleep   atomic.Bool
	wake     chan struct{}
	stop     chan struct{}
	stopped  chan struct{}
	quiet    atomic.Int64 // a heap up to here was judged and found right
	judging  atomic.Bool
	judges   sync.WaitGroup
	mu       sync.Mutex
	machines map[*machine]struct{}
}

func newMemory(budget, share int64) *memory {
	w := &memory{budget: budget, share: share, wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
		machines: map[*machine]struct{}{}}
	go w.watch()
	return w
}

func (w *memory) close() {
	close(w.stop)
	<-w.stopped
}

func (w *memory) add(m *machine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.machines[m] = struct{}{}
}

func (w *memory) remove(m *machine) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.machines, m)
}

// enter notes that r begins on m.
func (w *memory) enter(m *machine, r *run) {
	w.active.Add(1)
	if w.asleep.Load() && w.asleep.CompareAndSwap(true, false) {
		w.wake <- struct{}{}
	}
	r.heap = w.last.Load()
	m.running.Store(r)
}

func (w *memory) leave(m *machine) {
	m.running.Store(nil)
	w.active.Add(-1)
}

func (w *memory) watch() {
	defer close(w.stopped)
	defer w.judges.Wait()
	tick := time.NewTicker(memoryTick)
	defer tick.Stop()
	for idle := 0; ; {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		}
		if idle++; w.active.Load() > 0 {
			idle = 0
		}
		w.look()
		if idle > memoryPatience {
			tick.Stop()
			if !w.sleep() {
				return
			}
			idle = 0
			w.look()
			tick.Reset(memoryTick)
		}
	}
}

// sleep waits for a run to begin; false when the watch ends.
func (w *memory) sleep() bool {
	w.asleep.Store(true)
	if w.active.Load() > 0 && w.asleep.CompareAndSwap(true, false) {
		return true // it began just now and has seen us awake
	}
	select {
	case <-w.wake:
		return true
	case <-w.stop:
		return false
	}
}

func (w *memory) heap() int64 {
	sample := []metrics.Sample{{Name: heapMetric}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

func (w *memory) look() {
	heap := w.heap()
	w.last.Store(heap)
	if quiet := w.quiet.Load(); quiet > heap+w.share/4 {
		w.quiet.CompareAndSwap(quiet, heap+w.share/4)
	}
	if w.active.Load() == 0 || heap <= w.quiet.Load() {
		return
	}
	runs := w.runs()
	suspicious := heap > w.budget
	for _, r := range runs {
		suspicious = suspicious || heap-r.heap > w.share
		if r.firstHeap == 0 {
			r.firstHeap = heap
		}
	}
	if !suspicious {
		return
	}
	if heap > w.budget+w.budget/2 {
		w.endAll(runs, heap)
	}
	if w.judging.CompareAndSwap(false, true) {
		w.judges.Go(func() {
			defer w.judging.Store(false)
			w.judge(runs)
		})
	}
}

// runs are those that are active and were not ended yet, by the number of their machine.
func (w *memory) runs() map[uint16]*run {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[uint16]*run{}
	for m := range w.machines {
		if r := m.running.Load(); r != nil {
			out[m.number] = r
		}
	}
	return out
}

// endAll is the last resort, when there is no time to find out whose the memory is: every
// run during which the heap has grown a good deal ends. What it was at the start of a run
// may be ten milliseconds old and without what the run before has left, so the growth
// counts from the first look at the run.
func (w *memory) endAll(runs map[uint16]*run, heap int64) {
	for _, r := range runs {
		if heap-r.firstHeap > w.share/4 {
			r.endMemory("the process's budget of %d MiB", w.budget)
		}
	}
}

// judge cleans the heap, ends the runs whose share of it is too large, and where the whole
// is too large the one that has most; but none when the excess is not theirs: the memory
// of a run that has ended may still be on its way out.
func (w *memory) judge(runs map[uint16]*run) {
	runtime.GC()
	heap := w.heap()
	sizes := heapByMachine(heap)
	var largest *run
	var most int64
	left, theirs := heap, int64(0)
	for n, r := range runs {
		size := sizes[n]
		switch {
		case r.killed.Load() != nil:
			left -= size
		case size > w.share:
			r.endMemory("%d MiB for one run", w.share)
			left -= size
		default:
			theirs += size
			if largest == nil || size > most || size == most && r.heap < largest.heap {
				largest, most = r, size
			}
		}
	}
	if excess := left - w.budget; excess > 0 && theirs > excess/2 && largest != nil {
		largest.endMemory("the process's budget of %d MiB", w.budget)
	}
	w.quiet.Store(heap + w.share/4)
}

// endMemory ends r from another goroutine.
func (r *run) endMemory(limit string, bytes int64) {
	var err error = &LimitError{K: fault.LimitMemory, Limit: fmt.Sprintf(limit, bytes>>20)}
	if r.killed.CompareAndSwap(nil, &err) {
		r.cancel()
	}
}
