package jsbridge

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"

	"apiengine/fault"
)

// Config sets up a Bridge. A zero field takes its default.
type Config struct {
	MaxIdle      int           // runtimes kept for one tenant between runs; default 32 for each CPU
	MaxIdleTotal int           // runtimes kept for all tenants together; default 256 for each CPU
	MaxRuns      int           // runs of one runtime before it is thrown away; default 10000
	IdleTime     time.Duration // an unused runtime is dropped after; default 5m
	StuckGrace   time.Duration // how long an interrupted run may go on before it is abandoned; default 1s
	Memory       int64         // bytes of the process's heap above which the run that has most is ended; default 1 GiB
	OnStuck      func(*Env)    // called when an interrupted run was abandoned; may be nil
	RunMemory    int64         // bytes of the heap that one run may hold; default a quarter of Memory, at least 64 MiB
}

// Bridge runs Programs. It keeps runtimes, those of one tenant apart from those of any
// other, so that a run costs little more than the script itself. Safe for concurrent use.
type Bridge struct {
	cfg     Config
	funcs   []Func
	prelude *goja.Program
	layout  *layout
	memory  *memory

	mu      sync.Mutex // orders Close and the start of machines; kept machines do without
	pools   sync.Map   // tenant -> *pool
	closed  atomic.Bool
	idle    atomic.Int64
	stuck   atomic.Int64
	puts    atomic.Int64
	made    atomic.Uint32 // gives machines their numbers; begins anywhere, since bridges of one process share its heap profile
	serving sync.WaitGroup
}

// New returns a Bridge, or an error that names the first unusable field of cfg.
func New(cfg Config) (*Bridge, error) {
	cpus := runtime.GOMAXPROCS(0)
	cfg.MaxIdle = cmp.Or(cfg.MaxIdle, 32*cpus)
	cfg.MaxIdleTotal = cmp.Or(cfg.MaxIdleTotal, 256*cpus)
	cfg.MaxRuns = cmp.Or(cfg.MaxRuns, 10000)
	cfg.IdleTime = cmp.Or(cfg.IdleTime, 5*time.Minute)
	cfg.StuckGrace = cmp.Or(cfg.StuckGrace, time.Second)
	cfg.Memory = cmp.Or(cfg.Memory, 1<<30)
	cfg.RunMemory = cmp.Or(cfg.RunMemory, max(cfg.Memory/4, 64<<20))
	for name, v := range map[string]int64{"MaxIdle": int64(cfg.MaxIdle), "MaxIdleTotal": int64(cfg.MaxIdleTotal),
		"MaxRuns": int64(cfg.MaxRuns), "IdleTime": int64(cfg.IdleTime), "StuckGrace": int64(cfg.StuckGrace),
		"Memory": cfg.Memory, "RunMemory": cfg.RunMemory} {
		if v < 0 {
			return nil, errors.New("jsbridge: Config." + name + " is negative")
		}
	}
	prelude, err := goja.Compile("prelude.js", preludeSource, false)
	if err != nil {
		return nil, err
	}
	inside, err := newLayout()
	if err != nil {
		return nil, err
	}
	limitRegex()
	b := &Bridge{cfg: cfg, layout: inside, funcs: allFuncs(), prelude: prelude, memory: newMemory(cfg.Memory, cfg.RunMemory)}
	b.made.Store(rand.Uint32())
	return b, nil
}

// Close drops the kept runtimes and waits for the runs going on, except those that are
// stuck. A Run after Close fails.
func (b *Bridge) Close() {
	b.mu.Lock()
	again := b.closed.Swap(true)
	b.mu.Unlock()
	b.pools.Range(func(_, p any) bool {
		b.drop(p.(*pool).drain(func(*machine) bool { return true }))
		return true
	})
	b.serving.Wait()
	if !again {
		b.memory.close()
	}
}

// Stuck is the number of runs that were abandoned, because they did not stop when they
// were interrupted, and still go on.
func (b *Bridge) Stuck() int { return int(b.stuck.Load()) }

var errClosed = fault.New(fault.Draining, "the script bridge is closed")

// pool holds the idle machines of one tenant, the latest used last.
type pool struct {
	mu   sync.Mutex
	idle []*machine
}

func (p *pool) pop() *machine {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle) - 1
	if n < 0 {
		return nil
	}
	m := p.idle[n]
	p.idle[n] = nil
	p.idle = p.idle[:n]
	return m
}

// drain takes out the idle machines that f chooses.
func (p *pool) drain(f func(*machine) bool) (out []*machine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	keep := p.idle[:0]
	for _, m := range p.idle {
		if f(m) {
			out = append(out, m)
		} else {
			keep = append(keep, m)
		}
	}
	clear(p.idle[len(keep):])
	p.idle = keep
	return out
}

func (b *Bridge) pool(tenant string) *pool {
	if p, ok := b.pools.Load(tenant); ok {
		return p.(*pool)
	}
	p, _ := b.pools.LoadOrStore(tenant, &pool{})
	return p.(*pool)
}

// take returns an idle machine of the tenant or a new one.
func (b *Bridge) take(tenant string) (*machine, error) {
	if b.closed.Load() {
		return nil, errClosed
	}
	if m := b.pool(tenant).pop(); m != nil {
		b.idle.Add(-1)
		return m, nil
	}
	m, err := newMachine(b, tenant)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Load() {
		return nil, errClosed
	}
	b.serving.Add(1)
	go spell(m.number, m.serve)
	return m, nil
}

// put gives a machine back after a run that ended as it should.
func (b *Bridge) put(m *machine) {
	m.runs++
	m.used = time.Now()
	p := b.pool(m.tenant)
	p.mu.Lock()
	keep := m.runs < b.cfg.MaxRuns && len(p.idle) < b.cfg.MaxIdle && int(b.idle.Load()) < b.cfg.MaxIdleTotal && !b.closed.Load()
	if keep {
		p.idle = append(p.idle, m)
		b.idle.Add(1)
	}
	p.mu.Unlock()
	if !keep {
		close(m.jobs)
	}
	if b.closed.Load() { // Close may have looked before the append
		b.drop(p.drain(func(*machine) bool { return true }))
	}
	if b.puts.Add(1)%1024 == 0 {
		b.sweep()
	}
}

// sweep drops what has not been used for IdleTime.
func (b *Bridge) sweep() {
	old := time.Now().Add(-b.cfg.IdleTime)
	b.pools.Range(func(_, p any) bool {
		b.drop(p.(*pool).drain(func(m *machine) bool { return m.used.Before(old) }))
		return true
	})
}

func (b *Bridge) drop(ms []*machine) {
	for _, m := range ms {
		b.idle.Add(-1)
		close(m.jobs)
	}
}

// Run runs p once with what env gives it and returns what it left. The Report holds
// console and stats also when the error is not nil.
//
// The error is a *ScriptError when the script threw, a *LimitError at a limit or at
// env.Limits.Deadline, a *ResultError when the result cannot be JSON, the cause of ctx
// when ctx ended, or the error of a service that ends runs (lost lease, unknown outcome).
// A script that does not stop within Config.StuckGrace of its interrupt, and is in no host
// function, is left behind: Run returns with an empty Report, Stuck counts it, and its runtime is never used again.
func (b *Bridge) Run(ctx context.Context, p *Program, env *Env) (Report, error) {
	r, err := newRun(ctx, p, env)
	if err != nil {
		return Report{}, err
	}
	defer r.cancel()
	if r.Err() != nil {
		return Report{}, context.Cause(r)
	}
	m, err := b.take(env.Tenant)
	if err != nil {
		return Report{}, err
	}
	r.m = m
	b.memory.enter(m, r)
	m.jobs <- r
	select {
	case <-m.done:
	case <-r.Done():
		m.rt.Interrupt(nil)
		r.stopped.Store(true)
		if !b.awaitStop(m, r, env) {
			return Report{}, r.cause()
		}
		r.broken = true
	}
	b.memory.leave(m)
	if r.broken {
		close(m.jobs)
	} else {
		b.put(m)
	}
	return r.report, r.err
}

// awaitStop waits for the end of an interrupted run: a host function that it is in to its
// end, since the caller ends transactions when Run returns, which nobody may be using then;
// and the script for StuckGrace, which counts from the return of that function.
func (b *Bridge) awaitStop(m *machine, r *run, env *Env) bool {
	t := time.NewTicker(b.cfg.StuckGrace)
	defer t.Stop()
	for hosted := true; hosted || r.hosting.Load(); {
		hosted = r.hosting.Load()
		select {
		case <-m.done:
			return true
		case <-t.C:
		}
	}
	r.ended = func() {}
	if env.Left != nil {
		r.ended = env.Left()
	}
	b.stuck.Add(1)
	if !m.state.CompareAndSwap(machineBusy, machineLeft) {
		<-m.done // it ended at the last moment
		b.stuck.Add(-1)
		r.ended()
		return true
	}
	if b.cfg.OnStuck != nil {
		b.cfg.OnStuck(env)
	}
	b.serving.Done()
	return false
}
