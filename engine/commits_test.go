package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"apiengine/apis"
	"apiengine/engine"
	"apiengine/fault"
)

// lost is a commit of which nobody knows.
type lost struct{ error }

func (l lost) Unwrap() error { return l.error }

func (lost) Evidence() json.RawMessage { return json.RawMessage(`{"Xid":"9"}`) }

// Of several databases the tenant's own commits last; what had been committed before one
// fails stays and is told, what follows is rolled back, and staged writes become removals.
func TestTheOrderOfCommits(t *testing.T) {
	const all = "V8.Dbs.zzz.FromSql('UPDATE t SET n = 1').ExecuteNonQuery(); V8.Db.FromSql('UPDATE t SET n = 1').ExecuteNonQuery();" +
		"V8.Dbs.AAA.FromSql('UPDATE t SET n = 1').ExecuteNonQuery(); V8.Cache.Set('k', 'new');"
	const begun = "claim acquire begin+guard:zzz exec:zzz begin+guard exec begin+guard:aaa exec:aaa "
	down, late := fault.New(fault.StoreUnavailable, "down"), fault.New(fault.ScriptError, "too late")
	late.Fields = map[string]any{"SqlCode": "1"}
	unknown := lost{fault.New(fault.OutcomeUnknown, "who knows")}
	for _, c := range []struct {
		name, code string
		fails      string
		err        error
		history    string // after begun, up to the release
		outcome    string
		failed     string // Database and CommittedDatabases of the details
		cached     string
		unknown    string // what the port is told: database, before, rest
	}{
		{name: "all", history: "record confirm commit:aaa commit:zzz commit flush+release kept", outcome: "ok", cached: "new"},
		{name: "Code 0", code: "return { Code: 0 };", history: "rollback:aaa rollback:zzz rollback release free", outcome: "business", cached: "old"},
		{name: "the first fails", fails: "commit:aaa", err: down, history: "record confirm commit:aaa rollback:zzz rollback release free",
			outcome: "store_unavailable", failed: "V8.Dbs.aaa []", cached: "old"},
		{name: "the second fails", fails: "commit:zzz", err: late, history: "record confirm commit:aaa commit:zzz invalidate rollback release free",
			outcome: "script_error", failed: "V8.Dbs.zzz [V8.Dbs.aaa]"},
		{name: "the own fails", fails: "commit", err: down, history: "record confirm commit:aaa commit:zzz commit invalidate release free",
			outcome: "store_unavailable", failed: "V8.Db [V8.Dbs.aaa V8.Dbs.zzz]"},
		{name: "nobody knows of the first", fails: "commit:aaa", err: unknown, history: "record confirm commit:aaa invalidate rollback:zzz rollback release free",
			outcome: "outcome_unknown", failed: "V8.Dbs.aaa []", unknown: "aaa false true"},
		{name: "nobody knows of the second", fails: "commit:zzz", err: unknown, history: "record confirm commit:aaa commit:zzz invalidate rollback release free",
			outcome: "outcome_unknown", failed: "V8.Dbs.zzz [V8.Dbs.aaa]", unknown: "zzz true true"},
		{name: "nobody knows of the own", fails: "commit", err: unknown, history: "record confirm commit:aaa commit:zzz commit invalidate release kept",
			outcome: "outcome_unknown", failed: "V8.Db [V8.Dbs.aaa V8.Dbs.zzz]", unknown: " true false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			told := ""
			d := newDesk(t, func(cfg *engine.Config) {
				cfg.Unknown = func(_ context.Context, u engine.Unknown) { told = fmt.Sprint(u.Database, " ", u.Before, " ", u.Rest) }
			})
			if c.code == "" {
				c.code = done
			}
			d.add(t, apis.Definition{ApiEngineKey: "run", Lock: true, ApiV8Code: all + c.code})
			if err := d.cache.Set(t.Context(), "k", "old", 0); err != nil {
				t.Fatal(err)
			}
			d.on = map[string]func() error{c.fails: func() error { return c.err }}
			res, err := d.Invoke(t.Context(), engine.Call{Tenant: "t", Key: "run", Method: "POST", Origin: engine.OriginHTTP, Caller: engine.Caller{ID: "me"},
				Accept: func(r *engine.Result) error { r.Answer = &engine.Answer{Body: r.Body}; return nil }, IdempotencyKey: "k"})
			got := strings.TrimPrefix(d.history(), begun)
			if got != c.history || res.Execution.Outcome != c.outcome {
				t.Errorf("%s (%v)\ngot  %s\nwant %s", res.Execution.Outcome, err, d.history(), begun+c.history)
			}
			details := fault.Details(err)
			if c.failed != "" && fmt.Sprint(details["Database"], " ", details["CommittedDatabases"]) != c.failed || c.err == late && details["SqlCode"] != "1" {
				t.Errorf("details %v, want %s", details, c.failed)
			}
			if v, _, err := d.cache.Get(t.Context(), "k"); err != nil || v != c.cached {
				t.Errorf("the cache has %q, want %q, %v", v, c.cached, err)
			}
			if told != c.unknown {
				t.Errorf("told of the unknown: %q, want %q", told, c.unknown)
			}
		})
	}
}
