package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"apiengine/apis"
	"apiengine/engine"
	"apiengine/fault"
)

const (
	writes = "V8.Db.FromSql('UPDATE t SET n = 1').ExecuteNonQuery(); V8.Cache.Set('k', 'v');"
	done   = "return { Code: 1 };"
)

// The order of one call, event by event, for every way in which it can end.
func TestTheOrderOfACall(t *testing.T) {
	broken := errors.New("broken")
	unknown := fault.New(fault.OutcomeUnknown, "who knows")
	fail := func(err error) func() error { return func() error { return err } }
	overrun := func() error { time.Sleep(1100 * time.Millisecond); return nil } // longer than the lease of 1 s
	for _, c := range []struct {
		name    string
		def     apis.Definition // of the API "run"
		child   apis.Definition // of the API "child"
		on      map[string]func() error
		history string
		outcome string
		cached  string // the key k afterwards; "" absent
		apart   bool   // lock and cache do not live together
		emptied bool   // the execution says that the cache was emptied
	}{
		{name: "locked", def: apis.Definition{Lock: true, ApiV8Code: writes + done},
			history: "acquire begin+guard exec confirm commit flush+release", outcome: "ok", cached: "v"},
		{name: "unlocked", def: apis.Definition{ApiV8Code: writes + done}, history: "begin exec commit", outcome: "ok", cached: "v"},
		{name: "nothing to commit", def: apis.Definition{Lock: true, ApiV8Code: done}, history: "acquire release", outcome: "ok"},
		{name: "staged writes alone", def: apis.Definition{Lock: true, ApiV8Code: "V8.Cache.Set('k', 'v');" + done},
			history: "acquire confirm flush+release", outcome: "ok", cached: "v"},
		{name: "Code 0", def: apis.Definition{Lock: true, ApiV8Code: writes + "return { Code: 0 };"},
			history: "acquire begin+guard exec rollback release", outcome: "business"},
		{name: "thrown", def: apis.Definition{Lock: true, ApiV8Code: writes + "throw 1;"},
			history: "acquire begin+guard exec rollback release", outcome: "script_error"},
		{name: "lost before the commit", def: apis.Definition{Lock: true, ApiV8Code: writes + done}, on: map[string]func() error{"confirm": fail(broken)},
			history: "acquire begin+guard exec confirm rollback", outcome: "lease_lost"},
		{name: "a stale holder", def: apis.Definition{Lock: true, ApiV8Code: writes + done},
			on:      map[string]func() error{"begin+guard": fail(fault.New(fault.StaleFence, "stale"))},
			history: "acquire begin+guard release", outcome: "stale_fence"},
		{name: "the commit fails", def: apis.Definition{Lock: true, ApiV8Code: writes + done},
			on:      map[string]func() error{"commit": fail(fault.New(fault.StoreUnavailable, "down"))},
			history: "acquire begin+guard exec confirm commit release", outcome: "store_unavailable"},
		{name: "nobody knows of the commit", def: apis.Definition{Lock: true, ApiV8Code: writes + done}, on: map[string]func() error{"commit": fail(unknown)},
			history: "acquire begin+guard exec confirm commit invalidate release", outcome: "outcome_unknown", emptied: true},
		{name: "the lease runs out in the commit", def: apis.Definition{Lock: true, Timeout: 1, ApiV8Code: writes + done}, on: map[string]func() error{"commit": overrun},
			history: "acquire begin+guard exec confirm commit flush+release", outcome: "ok", emptied: true},
		{name: "the flush fails", def: apis.Definition{Lock: true, ApiV8Code: writes + done}, on: map[string]func() error{"flush+release": fail(broken)},
			history: "acquire begin+guard exec confirm commit flush+release invalidate", outcome: "ok", emptied: true},
		{name: "lock and cache apart", apart: true, def: apis.Definition{Lock: true, ApiV8Code: writes + done},
			history: "acquire begin+guard exec confirm commit flush release", outcome: "ok", cached: "v"},
		{name: "apart, the lease runs out in the commit", apart: true, def: apis.Definition{Lock: true, Timeout: 1, ApiV8Code: writes + done}, on: map[string]func() error{"commit": overrun},
			history: "acquire begin+guard exec confirm commit invalidate release", outcome: "ok", emptied: true},
		{name: "apart, the flush fails", apart: true, def: apis.Definition{Lock: true, ApiV8Code: writes + done}, on: map[string]func() error{"flush": fail(broken)},
			history: "acquire begin+guard exec confirm commit flush invalidate release", outcome: "ok", emptied: true},
		{name: "staged writes alone, lost after the check", def: apis.Definition{Lock: true, Timeout: 1, ApiV8Code: "V8.Cache.Set('k', 'v');" + done},
			on:      map[string]func() error{"flush+release": overrun},
			history: "acquire confirm flush+release", outcome: "lease_lost", emptied: true},
		{name: "two locks", def: apis.Definition{Lock: true, ApiV8Code: writes + "V8.ApiEngine.Run('child', {});" + done},
			child:   apis.Definition{Lock: true, ApiV8Code: writes + done},
			history: "acquire begin+guard exec acquire savepoint guard exec keep confirm commit flush release", outcome: "ok", cached: "v"},
		{name: "a panic in a statement", def: apis.Definition{Lock: true, ApiV8Code: writes + done}, on: map[string]func() error{"exec": func() error { panic("x") }},
			history: "acquire begin+guard exec rollback release", outcome: "internal"},
		{name: "a panic in the commit", def: apis.Definition{Lock: true, ApiV8Code: writes + done}, on: map[string]func() error{"confirm": nil, "commit": func() error { panic("x") }},
			history: "acquire begin+guard exec confirm commit release", outcome: "internal"},
		{name: "each statement by itself", def: apis.Definition{Lock: true, Transaction: "none", ApiV8Code: writes + writes + "return { Code: 0 };"},
			history: "acquire begin+guard exec commit begin+guard exec commit release", outcome: "business", cached: "v"},
		{name: "a child that commits", def: apis.Definition{ApiV8Code: writes + "V8.ApiEngine.Run('child', {});" + done},
			child:   apis.Definition{Lock: true, ApiV8Code: writes + done},
			history: "begin exec acquire savepoint guard exec keep confirm commit flush+release", outcome: "ok", cached: "v"},
		{name: "a child that fails", def: apis.Definition{Lock: true, ApiV8Code: writes + "V8.ApiEngine.Run('child', {});" + done},
			child:   apis.Definition{ApiV8Code: writes + "throw 1;"},
			history: "acquire begin+guard exec savepoint exec rollback-to confirm commit flush+release", outcome: "ok", cached: "v"},
		{name: "a child's way back fails", def: apis.Definition{ApiV8Code: writes + "try { V8.ApiEngine.Run('child', {}); } catch (e) {}" + done},
			child: apis.Definition{ApiV8Code: writes + "throw 1;"}, on: map[string]func() error{"rollback-to": fail(fault.New(fault.StoreUnavailable, "down"))},
			history: "begin exec savepoint exec rollback-to rollback", outcome: "store_unavailable", cached: "v"},
		{name: "a panic in a child", def: apis.Definition{ApiV8Code: "V8.ApiEngine.Run('child', {});" + done},
			child: apis.Definition{Lock: true, Transaction: "own", ApiV8Code: writes + done}, on: map[string]func() error{"commit": func() error { panic("x") }},
			history: "acquire begin+guard exec confirm commit release", outcome: "ok", cached: "v"},
		{name: "always verified", def: apis.Definition{Lock: true, ApiV8Code: writes + done},
			history: "acquire confirm begin+guard exec confirm commit flush+release", outcome: "ok", cached: "v"},
		{name: "always verified, lost before the script", def: apis.Definition{Lock: true, ApiV8Code: writes + done}, on: map[string]func() error{"confirm": fail(broken)},
			history: "acquire confirm", outcome: "lease_lost"},
		{name: "a child's stale guard", def: apis.Definition{ApiV8Code: "try { V8.ApiEngine.Run('child', {}); } catch (e) {}" + writes + done},
			child: apis.Definition{Lock: true, Transaction: "own", ApiV8Code: writes + done}, on: map[string]func() error{"begin+guard": fail(fault.New(fault.StaleFence, "stale"))},
			history: "acquire begin+guard release", outcome: "stale_fence"},
		{name: "nobody knows of a child's commit", def: apis.Definition{ApiV8Code: "try { V8.ApiEngine.Run('child', {}); } catch (e) {}" + done},
			child: apis.Definition{Transaction: "own", ApiV8Code: writes + done}, on: map[string]func() error{"commit": fail(unknown)},
			history: "begin exec commit", outcome: "outcome_unknown", cached: "v"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			c.def.ApiEngineKey, c.child.ApiEngineKey = "run", "child"
			d.add(t, c.def)
			if c.child.ApiV8Code != "" {
				d.add(t, c.child)
			}
			d.on, d.apart = c.on, c.apart
			res, err := d.run(context.Background(), "run", "{}")
			x := res.Execution
			if x.Outcome != c.outcome || len(d.seen) != 1 || d.seen[0] != x {
				t.Errorf("outcome %s, want %s, observed %d times: %v", x.Outcome, c.outcome, len(d.seen), err)
			}
			if x.CacheEmptied != c.emptied {
				t.Errorf("emptied: %v", x.CacheEmptied)
			}
			if got := d.history(); got != c.history {
				t.Errorf("got  %s\nwant %s", got, c.history)
			}
			if v, _, err := d.cache.Get(context.Background(), "k"); err != nil || v != c.cached {
				t.Errorf("the cache has %q, want %q, %v", v, c.cached, err)
			}
			if locked := c.def.Lock && c.outcome != "lease_lost"; locked {
				d.on = nil
				d.add(t, apis.Definition{ApiEngineKey: "next", Lock: true, LockScope: "api:run", LockWait: new(int), ApiV8Code: done})
				if _, err := d.run(context.Background(), "next", "{}"); err != nil {
					t.Errorf("the lock is still taken: %v", err)
				}
			}
		})
	}
}

// What Accept refuses is refused before the commit; its panic too.
func TestAcceptComesBeforeTheCommit(t *testing.T) {
	for name, accept := range map[string]func(*engine.Result) error{
		"result_invalid": func(*engine.Result) error { return fault.New(fault.ResultInvalid, "cannot be sent") },
		"internal":       func(*engine.Result) error { panic("x") },
	} {
		d := newDesk(t)
		d.add(t, apis.Definition{ApiEngineKey: "run", Lock: true, ApiV8Code: writes + done})
		res, _ := d.Invoke(context.Background(), engine.Call{Tenant: "t", Key: "run", Method: "POST", Origin: engine.OriginHTTP,
			Caller: engine.Caller{ID: "me"}, Accept: accept})
		if got := d.history(); res.Execution.Outcome != name || got != "acquire begin+guard exec rollback release" {
			t.Errorf("%s: %s after %s", name, res.Execution.Outcome, got)
		}
	}
}

// Where the claim of an Idempotency-Key and its answer stand in the order of a call.
func TestTheOrderOfAKeyedCall(t *testing.T) {
	unknown := fault.New(fault.OutcomeUnknown, "who knows")
	accept := func(r *engine.Result) error { r.Answer = &engine.Answer{Body: r.Body}; return nil }
	for _, c := range []struct {
		name, code string
		kept       *engine.Answer
		on         map[string]func() error
		history    string
		outcome    string
	}{
		{name: "committed", code: writes + done, history: "claim acquire begin+guard exec record confirm commit flush+release kept", outcome: "ok"},
		{name: "no work", code: done, history: "claim acquire begin+guard record confirm commit release kept", outcome: "ok"},
		{name: "Code 0", code: writes + "return { Code: 0 };", history: "claim acquire begin+guard exec rollback release free", outcome: "business"},
		{name: "thrown", code: writes + "throw 1;", history: "claim acquire begin+guard exec rollback release free", outcome: "script_error"},
		{name: "replayed", code: writes + done, kept: &engine.Answer{Execution: "first"}, history: "claim", outcome: "ok"},
		{name: "in progress", code: done, on: map[string]func() error{"claim": func() error { return fault.New(fault.IdempotencyInProgress, "runs") }},
			history: "claim", outcome: "idempotency_in_progress"},
		{name: "taken over", code: writes + done, on: map[string]func() error{"record": func() error { return fault.New(fault.IdempotencyInProgress, "taken over") }},
			history: "claim acquire begin+guard exec record rollback release free", outcome: "idempotency_in_progress"},
		{name: "lost", code: writes + done, on: map[string]func() error{"confirm": func() error { return errors.New("lost") }},
			history: "claim acquire begin+guard exec record confirm rollback free", outcome: "lease_lost"},
		{name: "commit refused", code: writes + done, on: map[string]func() error{"commit": func() error { return fault.New(fault.StoreUnavailable, "down") }},
			history: "claim acquire begin+guard exec record confirm commit release free", outcome: "store_unavailable"},
		{name: "nobody knows", code: writes + done, on: map[string]func() error{"commit": func() error { return unknown }},
			history: "claim acquire begin+guard exec record confirm commit invalidate release kept", outcome: "outcome_unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			d.add(t, apis.Definition{ApiEngineKey: "run", Lock: true, ApiV8Code: c.code})
			d.on, d.kept = c.on, c.kept
			res, err := d.Invoke(context.Background(), engine.Call{Tenant: "t", Key: "run", Method: "POST", Origin: engine.OriginHTTP,
				Caller: engine.Caller{ID: "me"}, Accept: accept, IdempotencyKey: "k"})
			if got := d.history(); got != c.history || res.Execution.Outcome != c.outcome {
				t.Errorf("%s (%v)\ngot  %s\nwant %s", res.Execution.Outcome, err, got, c.history)
			}
			if res.Replayed != (c.kept != nil) {
				t.Errorf("replayed: %v", res.Replayed)
			}
		})
	}
}

// BenchmarkInvoke is the engine's own cost of a call that does nothing.
func BenchmarkInvoke(b *testing.B) {
	d := newDesk(b, func(c *engine.Config) { c.Observe = nil })
	d.add(b, apis.Definition{ApiEngineKey: "run", ApiV8Code: "return { Code: 1 };"})
	d.add(b, apis.Definition{ApiEngineKey: "locked", Lock: true, ApiV8Code: "return { Code: 1 };"})
	for _, key := range []string{"run", "locked"} {
		b.Run(key, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.run(context.Background(), key, "{}"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
