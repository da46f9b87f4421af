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

	"github.com/anishathalye/porcupine"
	goredis "github.com/redis/go-redis/v9"

	"apiengine/internal/faultproxy"
	"apiengine/internal/testserver"
	"apiengine/lockwrap"
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
// refused, Redis forgets and restarts, and runs are paused past their leases. The register's
// history and that of the grants are linearizable, and every acknowledged write is in the
// register once.
func TestHistories(t *testing.T) {
	seed := newSeed(t)
	s := testserver.NewRedis(t)
	h := &history{began: time.Now(), ops: map[string][]porcupine.Operation{}}
	ctx, cancel := context.WithTimeout(t.Context(), either(5*time.Second, 2*time.Minute))
	defer cancel()
	var lines []*faultproxy.Proxy
	registers := map[string]*register{"a": {}, "b": {}}
	acked := map[int]bool{}
	var runs, mu = 0, sync.Mutex{}
	var all sync.WaitGroup
	for n := range 4 {
		p := proxied(t, s)
		lines = append(lines, p)
		m := node(t, "redis://"+p.Addr())
		for g := range 3 {
			random := rand.New(rand.NewPCG(seed, uint64(10*n+g)))
			all.Go(func() {
				for ctx.Err() == nil {
					mu.Lock()
					runs++
					run := runs
					mu.Unlock()
					key := []string{"a", "b"}[random.IntN(2)]
					if h.run(m, random, key, registers[key], run) == nil {
						mu.Lock()
						acked[run] = true
						mu.Unlock()
					}
				}
			})
		}
	}
	disturb(ctx, t, rand.New(rand.NewPCG(seed, 1<<32)), s, lines)
	all.Wait()

	for what, ops := range h.ops {
		if what[0] == 'g' { // thousands that overlap are too many for a search
			if t.Logf("%s: %d", what, len(ops)); !rise(ops) || len(ops) < 10 {
				t.Errorf("%s: tokens do not rise: %v", what, ops)
			}
			continue
		}
		model := registerModel
		result, info := porcupine.CheckOperationsVerbose(model, ops, time.Minute)
		t.Logf("%s: %d operations, %s", what, len(ops), result)
		if result != porcupine.Ok || len(ops) < 10 {
			file := fmt.Sprintf("%s/%s-%d.html", os.TempDir(), t.Name(), seed)
			t.Errorf("%s: %s (see %s): %v", what, result, file, porcupine.VisualizePath(model, info, file))
		}
	}
	present := map[int]bool{}
	for _, r := range registers {
		for _, run := range r.all {
			if present[run] {
				t.Errorf("run %d is there twice", run)
			}
			present[run] = true
		}
	}
	for run := range acked {
		if !present[run] {
			t.Errorf("run %d was acknowledged and is gone", run)
		}
	}
	t.Logf("%d runs, %d acknowledged, %d written", runs, len(acked), len(present))
	if len(acked) < 20 || len(acked) == runs {
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
	const life = 200 * time.Millisecond
	r := request(life, time.Second)
	if random.IntN(3) == 0 {
		r.Plan.Renew, r.Plan.Hold = life/3, time.Second
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

// disturb does one harm after the other until ctx ends.
func disturb(ctx context.Context, t *testing.T, random *rand.Rand, s *testserver.RedisServer, lines []*faultproxy.Proxy) {
	a := admin(t, s)
	for ctx.Err() == nil {
		p := lines[random.IntN(len(lines))]
		span := time.Duration(random.IntN(300)) * time.Millisecond
		switch random.IntN(9) {
		case 0:
			a.FlushAll(ctx)
		case 1:
			a.ScriptFlush(ctx)
		case 2:
			s.Restart(t)
		case 3:
			p.Cut()
		case 4:
			p.Refuse(true)
			rest(ctx, span)
			p.Refuse(false)
		case 5:
			p.BlackHole(true)
			rest(ctx, span)
			p.BlackHole(false)
		case 6:
			p.Hold(faultproxy.ToClient)
			rest(ctx, span)
			p.Resume(faultproxy.ToClient)
		case 7:
			p.Add(faultproxy.Rule{Match: faultproxy.Script(prefix), Times: 1 + random.IntN(3), Fault: faultproxy.Fault(random.IntN(4))})
		case 8:
			evict(ctx, a)
		}
		rest(ctx, time.Duration(50+random.IntN(200))*time.Millisecond)
	}
}

func evict(ctx context.Context, a *goredis.Client) {
	if key, err := a.RandomKey(ctx).Result(); err == nil {
		a.Del(ctx, key)
	}
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
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
