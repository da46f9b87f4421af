package lock_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"apiengine/internal/faultproxy"
	"apiengine/lockwrap"
	"github.com/anishathalye/porcupine"
)

// register is what locked runs write to. It compares tokens as the guard does: whoever
// comes with a smaller token than one that it has seen is refused, before it may read.
type register struct {
	mu    sync.Mutex
	token int64
	value int   // the last run that wrote
	all   []int // every run that wrote, in order
}

// write is the guarded read-modify-write of one run.
func (r *register) write(token int64, run int) (w written) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token <= r.token {
		return written{token: token}
	}
	w = written{token: token, taken: true, read: r.value, wrote: run}
	r.token, r.value, r.all = token, run, append(r.all, run)
	return w
}

// written is a run's result: the output of the register's operations.
type written struct {
	token       int64
	taken       bool
	read, wrote int
}

// history collects operations with their real times.
type history struct {
	began time.Time
	life  time.Duration // of leases
	mu    sync.Mutex
	ops   map[string][]porcupine.Operation // by kind and lock
}

func (h *history) now() int64 { return int64(time.Since(h.began)) }

func (h *history) add(what string, op porcupine.Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops[what] = append(h.ops[what], op)
}

// registerModel: a write counts only with a token larger than all before it, and has read
// what the one before it wrote; a refused one meets a token at least as large.
var registerModel = porcupine.Model{
	Init: func() any { return written{} },
	Step: func(state, _, output any) (bool, any) {
		s, o := state.(written), output.(written)
		if !o.taken {
			return o.token <= s.token, s
		}
		return o.token > s.token && o.read == s.wrote, o
	},
	DescribeOperation: func(_, output any) string { return fmt.Sprintf("%+v", output) },
}

// grantModel: each token is larger than the last.
var grantModel = porcupine.Model{
	Init:              func() any { return int64(0) },
	Step:              func(state, _, output any) (bool, any) { return output.(int64) > state.(int64), output },
	DescribeOperation: func(_, output any) string { return fmt.Sprint(output) },
}

// rise is grantModel's word for long histories: no token is there twice, and no grant that
// was asked for after another one's return has a smaller one.
func rise(ops []porcupine.Operation) bool {
	ops = slices.SortedFunc(slices.Values(ops), func(a, b porcupine.Operation) int { return cmp.Compare(a.Output.(int64), b.Output.(int64)) })
	var call int64
	for i, op := range ops {
		if call = max(call, op.Call); op.Return < call || i > 0 && ops[i-1].Output == op.Output {
			return false
		}
	}
	return true
}

// L1, L2 and L3: nodes run under two locks while connections are cut, held back and
// refused, servers forget and restart, and runs are paused past their leases. The register's
// history and that of the grants are linearizable, and every acknowledged write is in the
// register once.
func TestHistories(t *testing.T) {
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			histories(t, s.open(t))
		})
	}
}

func histories(t *testing.T, s store) {
	seed := newSeed(t)
	r := &trial{history: history{began: time.Now(), life: s.life, ops: map[string][]porcupine.Operation{}},
		least: either(8*time.Second, 2*time.Minute), registers: map[string]*register{"a": {}, "b": {}}, acked: map[int]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var lines []*faultproxy.Proxy
	var all sync.WaitGroup
	for n := range 4 {
		p := faultproxy.New(t, faultproxy.Config{Target: s.addr, Chunks: s.chunks != ""})
		lines = append(lines, p)
		m := node(t, s.url(p.Addr()))
		for g := range 3 {
			random := rand.New(rand.NewPCG(seed, uint64(10*n+g)))
			all.Go(func() { r.runs(ctx, m, random) })
		}
	}
	disturb(ctx, rand.New(rand.NewPCG(seed, 1<<32)), mischief{s, lines, r.enough})
	cancel()
	all.Wait()
	r.checkGrants(t)
	r.checkRegisters(t, seed)
	r.checkAcknowledged(t)
}

// trial is a history and what it is about.
type trial struct {
	history
	least     time.Duration
	registers map[string]*register // by lock
	begun     int
	acked     map[int]bool // runs that were acknowledged
}

// runs makes one run after the other until ctx ends.
func (r *trial) runs(ctx context.Context, m *lockwrap.Manager, random *rand.Rand) {
	for ctx.Err() == nil {
		r.mu.Lock()
		r.begun++
		run := r.begun
		r.mu.Unlock()
		key := []string{"a", "b"}[random.IntN(2)]
		if r.run(m, random, key, r.registers[key], run) == nil {
			r.mu.Lock()
			r.acked[run] = true
			r.mu.Unlock()
		}
	}
}

// enough reports that the time is over and that there is something to be checked, for which
// a slow machine gets a minute more.
func (r *trial) enough() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	shown := len(r.acked) >= fewest && len(r.ops["grants of a"]) >= fewest && len(r.ops["grants of b"]) >= fewest
	over := time.Since(r.began) - r.least
	return over > time.Minute || over > 0 && shown
}

const fewest = 15 // of what a trial must have had of each kind

func (r *trial) checkGrants(t *testing.T) {
	for key := range r.registers {
		ops := r.ops["grants of "+key]
		if t.Logf("grants of %s: %d", key, len(ops)); !rise(ops) { // thousands that overlap are too many for a search
			t.Errorf("grants of %s: tokens do not rise: %v", key, ops)
		}
		if len(ops) < fewest {
			t.Errorf("the test is void: %d grants of %s", len(ops), key)
		}
	}
}

func (r *trial) checkRegisters(t *testing.T, seed uint64) {
	for key := range r.registers {
		ops := r.ops["register "+key]
		result, info := porcupine.CheckOperationsVerbose(registerModel, ops, time.Minute)
		if t.Logf("register %s: %d operations, %s", key, len(ops), result); result != porcupine.Ok {
			file := fmt.Sprintf("%s/%s-%d.html", os.TempDir(), strings.ReplaceAll(t.Name(), "/", "-"), seed)
			t.Errorf("register %s: %s (see %s): %v", key, result, file, porcupine.VisualizePath(registerModel, info, file))
		}
	}
}

func (r *trial) checkAcknowledged(t *testing.T) {
	present := map[int]bool{}
	for _, reg := range r.registers {
		for _, run := range reg.all {
			if present[run] {
				t.Errorf("run %d is there twice", run)
			}
			present[run] = true
		}
	}
	for run := range r.acked {
		if !present[run] {
			t.Errorf("run %d was acknowledged and is gone", run)
		}
	}
	t.Logf("%d runs, %d acknowledged, %d written", r.begun, len(r.acked), len(present))
	if len(r.acked) < fewest || len(r.acked) == r.begun {
		t.Error("the test is void: nothing ran, or nothing went wrong")
	}
}

// newSeed returns the seed of APIENGINE_SEED or a fresh one, and prints it.
func newSeed(t *testing.T) uint64 {
	seed := rand.Uint64()
	if text := os.Getenv("APIENGINE_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("APIENGINE_SEED=%d", seed)
	return seed
}

// run makes one locked run, at times paused past its lease before or after its write, and
// notes what happened. It returns nil when the run is acknowledged.
func (h *history) run(m *lockwrap.Manager, random *rand.Rand, key string, reg *register, run int) error {
	life := h.life
	r := request(life, time.Second)
	if random.IntN(3) == 0 {
		r.Plan.Renew, r.Plan.Hold = life/3, max(time.Second, 2*life)
	}
	r.Key.Value = key
	pauses := [2]time.Duration{time.Duration(random.IntN(3)) * time.Millisecond}
	if random.IntN(12) == 0 {
		pauses[random.IntN(2)] = life + time.Duration(random.IntN(200))*time.Millisecond
	}
	called := h.now()
	l, err := m.Acquire(context.Background(), r)
	if err != nil {
		return err // no grant that anybody knows of
	}
	h.add("grants of "+key, porcupine.Operation{Call: called, Return: h.now(), Output: l.Token()})
	<-time.After(pauses[0]) // as a stopped process does, whatever its lease says
	w := reg.write(l.Token(), run)
	<-time.After(pauses[1])
	err = l.Release(context.Background())
	h.add("register "+key, porcupine.Operation{Call: called, Return: h.now(), Output: w})
	if err == nil && !w.taken {
		return fmt.Errorf("refused by the guard, although the lease held to the end")
	}
	return err
}

// The models themselves tell right from wrong.
func TestTheModelsRefuse(t *testing.T) {
	op := func(call, ret int64, out any) porcupine.Operation {
		return porcupine.Operation{Call: call, Return: ret, Output: out}
	}
	for _, c := range []struct {
		name  string
		model porcupine.Model
		ops   []porcupine.Operation
		want  bool
	}{
		{"rising grants", grantModel, []porcupine.Operation{op(1, 2, int64(5)), op(3, 4, int64(6))}, true},
		{"side by side", grantModel, []porcupine.Operation{op(1, 4, int64(6)), op(2, 3, int64(5))}, true},
		{"a token that fell", grantModel, []porcupine.Operation{op(1, 2, int64(6)), op(3, 4, int64(5))}, false},
		{"a token twice", grantModel, []porcupine.Operation{op(1, 4, int64(5)), op(2, 3, int64(5))}, false},
		{"a stale write refused", registerModel, []porcupine.Operation{op(1, 9, written{token: 1}), op(2, 3, written{2, true, 0, 7})}, true},
		{"a stale write taken", registerModel, []porcupine.Operation{op(2, 3, written{2, true, 0, 7}), op(4, 5, written{1, true, 7, 8})}, false},
		{"a lost update", registerModel, []porcupine.Operation{op(1, 9, written{1, true, 0, 7}), op(2, 8, written{2, true, 0, 8})}, false},
		{"refused without a reason", registerModel, []porcupine.Operation{op(1, 2, written{1, true, 0, 7}), op(3, 4, written{token: 2})}, false},
	} {
		if got := porcupine.CheckOperations(c.model, c.ops); got != c.want || strings.Contains(c.name, "token") && rise(c.ops) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
