package jsbridge

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"apiengine/fault"
)

// TestNoCodeGeneration: every way from a string to code is shut.
func TestNoCodeGeneration(t *testing.T) {
	b := newBridge(t, Config{})
	for _, code := range []string{
		`eval('1')`, `(0, eval)('1')`, `globalThis.eval('1')`,
		`new Function('return 1')()`, `Function('return 1')()`,
		`(function(){}).constructor('return 1')()`,
		`(() => 1).constructor('return 1')()`,
		`(function*(){}).constructor('return 1')()`,
		`(async function(){}).constructor('return 1')()`,
		`(async () => 1).constructor('return 1')()`,
		`Object.getPrototypeOf(function*(){}).constructor('yield 1')`,
		`if (Object.getPrototypeOf((function*(){}).constructor)('return 1') === undefined) throw new EvalError('it is Function.prototype')`,
		`class A {}; A.constructor('return 1')`,
		`Reflect.construct(Function, ['return 1'])`,
		`V8.Cache.Get.constructor('return 1')`,
		`class F extends Function { constructor(){ super('return 1') } } new F()`,
	} {
		if got := result(t, b, env(), `try { `+code+`; return 'ran' } catch (e) { return e.name }`); got != "EvalError" {
			t.Errorf("%s: %s", code, got)
		}
	}
}

// TestBombs: one built-in that would take all memory or time is refused at once.
func TestBombs(t *testing.T) {
	b := newBridge(t, Config{})
	for _, code := range []string{
		`'x'.repeat(1e9)`, `'xx'.repeat(2**53)`, `'x'.padStart(1e9)`, `'x'.padEnd(2**31, 'ab')`,
		`new Array(1e9).fill(0)`, `new Array(4e9).join('x')`, `var a = []; a.length = 4e9; a.sort()`,
		`new Array(4e9).forEach(function(){})`, `Array.prototype.indexOf.call({length: 2**53}, 1)`,
		`Array.from({length: 1e9})`, `Math.max.apply(null, {length: 1e9})`, `Reflect.apply(Math.max, null, {length: 1e9})`,
		`new ArrayBuffer(64e9)`, `new Uint8Array(1e10)`, `new Float64Array(2**40)`, `new Float64Array({length: 2**40})`,
		`'x'.repeat(1 << 21).split('')`, `'x'.repeat(1e6).replaceAll('x', 'y'.repeat(1e6))`,
		`var a = [1]; for (var i = 0; i < 40; i++) a = [a, a]; a.flat(Infinity)`,
		`var a = []; for (var i = 0; i < 1e5; i++) a = [a]; a.flat(Infinity)`,
		`var a = []; for (var i = 0; i < 1e5; i++) a = [a]; String(a)`,
		`var a = []; for (var i = 0; i < 1e5; i++) a = [a]; JSON.stringify(a)`,
		`JSON.parse('['.repeat(3e6))`, `JSON.parse('{"a":'.repeat(3e6))`, `JSON.parse('['.repeat(600) + ']'.repeat(600))`,
		`var p = {}; for (var i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x`,
		`String.raw({raw: {length: 1e9}})`,
	} {
		e := env()
		e.Limits.Deadline = time.Now().Add(20 * time.Second)
		start := time.Now()
		rep, err := b.Run(context.Background(), compile(t, `try { `+code+` } catch (e) { return e.name } return 'ran'`), e)
		if err != nil || !strings.Contains("RangeError TypeError SyntaxError", rep.Outcome.Text) || time.Since(start) > 10*time.Second {
			t.Errorf("%s: %q %v after %v", code, rep.Outcome.Text, err, time.Since(start))
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("heap from the system: %d MB", m.HeapSys>>20)
}

// TestSharedGraph: a result whose text doubles with every level ends at the output limit.
func TestSharedGraph(t *testing.T) {
	b := newBridge(t, Config{})
	start := time.Now()
	e := env()
	e.Limits.MaxResult = 1 << 20
	err := failure(t, b, e, `var a = [1]; for (var i = 0; i < 40; i++) a = [a, a]; return a`)
	if fault.Of(err) != fault.LimitOutput || time.Since(start) > 3*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

// TestStuckRun: a native that does not come back costs its runtime, not the caller.
func TestStuckRun(t *testing.T) {
	left := ""
	b := newBridge(t, Config{StuckGrace: 20 * time.Millisecond, OnStuck: func(e *Env) { left = e.APIKey }})
	result(t, b, env(), `return 1`) // a runtime is ready, so that the deadline meets the native
	hang := make(chan struct{})
	e := env()
	e.Limits.Deadline = time.Now().Add(100 * time.Millisecond)
	library := compile(t, `return 1`)
	e.Library = func(context.Context, string) (*Program, error) { <-hang; return library, nil } // like a built-in that takes long
	p := compile(t, `V8.Use('x'); for(;;){}`)
	if _, err := b.Run(context.Background(), p, e); fault.Of(err) != fault.Timeout {
		t.Fatalf("got %v", err)
	}
	if b.Stuck() != 1 || b.idle.Load() != 0 || left != "test" {
		t.Errorf("stuck %d, idle %d", b.Stuck(), b.idle.Load())
	}
	if got := result(t, b, env(), `return 1`); got != "1" {
		t.Errorf("others do not go on: %s", got)
	}
	close(hang)
	for deadline := time.Now().Add(5 * time.Second); b.Stuck() != 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the stuck run was never taken back")
		}
	}
}

// A run that is stopped in a host function is waited for, however long that takes: its
// caller ends the transaction that the function works in. Nothing of the script runs after.
func TestStoppedInAHostFunction(t *testing.T) {
	p := compile(t, `for (;;) { try { V8.ApiEngine.Run('x', {}) } catch (e) {} }`)
	synctest.Test(t, func(t *testing.T) {
		b := newBridge(t, Config{StuckGrace: time.Second})
		e := env()
		e.Limits.Deadline = time.Now().Add(50 * time.Millisecond)
		var ended atomic.Bool
		calls := 0
		e.Invoke = func(ctx context.Context, _ string, _ jsonRaw) (jsonRaw, error) {
			calls++
			<-ctx.Done()
			time.Sleep(2*time.Second - time.Nanosecond) // a disk that does not answer; the second second of grace is about to end
			ended.Store(true)
			return jsonRaw(`{}`), nil
		}
		_, err := b.Run(context.Background(), p, e)
		if fault.Of(err) != fault.Timeout || !ended.Load() || calls != 1 || b.Stuck() != 0 {
			t.Errorf("%v; the function had ended: %v, %d calls, %d stuck", err, ended.Load(), calls, b.Stuck())
		}
		b.Close()
	})
}

// TestGraceBeginsWithTheFunctionsEnd: a run that unwinds for less than a grace after its host
// function is no stuck one, whatever of the grace the function took; one that unwinds for longer is.
func TestGraceBeginsWithTheFunctionsEnd(t *testing.T) {
	for _, c := range []struct {
		inFunction, unwinding time.Duration
		stopped               bool
	}{{0, 900 * time.Millisecond, true}, {0, 1100 * time.Millisecond, false}, {1900 * time.Millisecond, 900 * time.Millisecond, true},
		{1500 * time.Millisecond, 900 * time.Millisecond, true}, {1500 * time.Millisecond, 3 * time.Second, false}} {
		synctest.Test(t, func(t *testing.T) {
			b, m, r := &Bridge{cfg: Config{StuckGrace: time.Second}}, &machine{done: make(chan struct{}, 1)}, &run{}
			b.serving.Add(1)
			m.state.Store(machineBusy)
			r.hosting.Store(c.inFunction > 0)
			var script sync.WaitGroup
			script.Go(func() {
				time.Sleep(c.inFunction)
				r.hosting.Store(false)
				time.Sleep(c.unwinding)
				m.done <- struct{}{}
			})
			if got := b.awaitStop(m, r, &Env{}); got != c.stopped || (b.Stuck() == 0) != c.stopped {
				t.Errorf("%v in a function, %v after: stopped %v, %d stuck", c.inFunction, c.unwinding, got, b.Stuck())
			}
			script.Wait()
		})
	}
}

// TestEnginePanic: a Go panic in a service is one failed run.
func TestEnginePanic(t *testing.T) {
	b := newBridge(t, Config{})
	e := env()
	e.Invoke = func(context.Context, string, jsonRaw) (jsonRaw, error) { panic("a defect") }
	err := failure(t, b, e, `try { V8.ApiEngine.Run('x') } catch (e) { return 1 }`)
	if fault.Of(err) != fault.Internal || strings.Contains(fault.Public(err), "defect") {
		t.Errorf("%v, public %q", err, fault.Public(err))
	}
	if b.idle.Load() != 0 {
		t.Error("the runtime was kept")
	}
}

func TestClose(t *testing.T) {
	b, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	result(t, b, env(), `return 1`)
	b.Close()
	b.Close()
	if err := failure(t, b, env(), `return 1`); fault.Of(err) != fault.Draining {
		t.Error(err)
	}
}

func TestConfig(t *testing.T) {
	if _, err := New(Config{MaxRuns: -1}); err == nil || !strings.Contains(err.Error(), "MaxRuns") {
		t.Error(err)
	}
	b := newBridge(t, Config{})
	if _, err := b.Run(context.Background(), compile(t, `return 1`), &Env{}); err == nil || !strings.Contains(err.Error(), "Deadline") {
		t.Error(err)
	}
}

// TestManyAtOnce runs many scripts of several tenants at once, nested ones too.
func TestManyAtOnce(t *testing.T) {
	b := newBridge(t, Config{MaxIdle: 2})
	inner, outer := compile(t, `return {Code: 1, T: V8.OsClient, N: V8.Param.n}`), compile(t, `return V8.ApiEngine.Run('x', V8.Param)`)
	done := make(chan string)
	for g := range 8 {
		go func() {
			tenant, bad := string(rune('a'+g%3)), ""
			for i := range 20 {
				e := env()
				e.Limits.Deadline = time.Now().Add(time.Minute)
				n := string(rune('0' + i%10))
				e.Tenant, e.Param = tenant, jsonRaw(`{"n":`+n+`}`)
				e.Invoke = func(ctx context.Context, _ string, param jsonRaw) (jsonRaw, error) {
					child := *e
					child.Param = param
					rep, err := b.Run(ctx, inner, &child)
					return rep.Outcome.Result, err
				}
				rep, err := b.Run(context.Background(), outer, e)
				if want := `{"Code":1,"T":"` + tenant + `","N":` + n + `}`; err != nil || string(rep.Outcome.Result) != want {
					bad = string(rep.Outcome.Result) + " want " + want
				}
			}
			done <- bad
		}()
	}
	for range 8 {
		if bad := <-done; bad != "" {
			t.Error(bad)
		}
	}
}

// TestCompilingRunsNothing: nothing of a script runs before Run (S4).
func TestCompilingRunsNothing(t *testing.T) {
	for _, code := range []string{`for (;;) {}`, `throw 1`, `class A { static x = (() => { for (;;) {} })() }`, "`${(() => { for (;;) {} })()}`", `2n ** 99999999n`} {
		compile(t, code)
	}
}

// TestLateInterrupts: an interrupt that comes about when its run ends never meets another
// run of the same runtime (S14).
func TestLateInterrupts(t *testing.T) {
	b := oneMachine(t)
	p, next := compile(t, `for (var i = 0; i < 200; i++);`), compile(t, `for (var i = 0; i < 200; i++); return 1`)
	ended := map[fault.Kind]int{}
	for i := range 300 {
		e := env()
		e.Limits.Deadline = time.Now().Add(time.Duration(i%60) * 10 * time.Microsecond)
		_, err := b.Run(context.Background(), p, e)
		ended[fault.Of(err)]++
		if got, err := b.Run(context.Background(), next, env()); err != nil || string(got.Outcome.Result) != "1" {
			t.Fatalf("after run %d: %v", i, err)
		}
	}
	t.Logf("the runs ended as %v", ended)
}

// TestCoarseClock: scripts see whole milliseconds, and nothing counts finer (S18).
func TestCoarseClock(t *testing.T) {
	b := newBridge(t, Config{})
	if got := result(t, b, env(), `for (var i = 0; i < 1000; i++) if (Date.now() % 1 !== 0 || +new Date() % 1 !== 0) return 'fine';
		return [typeof performance, typeof SharedArrayBuffer, typeof Atomics, typeof process]`); got != `["undefined","undefined","undefined","undefined"]` {
		t.Error(got)
	}
}
