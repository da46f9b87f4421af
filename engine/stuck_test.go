package engine_test

import (
	"context"
	"testing"
	"time"

	"apiengine/apis"
	"apiengine/engine"
	"apiengine/fault"
	"apiengine/jsbridge"
)

// A script that does not stop keeps its call's place among those in flight until it has
// ended, though its caller has the answer; so does one of a nested call. What is held back
// is a pattern that goes on for a second and looks at no interrupt.
func TestAScriptThatDoesNotStopKeepsItsPlace(t *testing.T) {
	const slow = "var until = Date.now() + 700; while (Date.now() < until) ;\nreturn (/(?=(a+))(a+)+$/).test('a'.repeat(40) + 'b');"
	for _, c := range []struct {
		name              string
		calls, tenants    int
		definition, child string
		want              fault.Kind
	}{
		{"of the node", 1, 1, slow, "return 1;", fault.Overloaded},
		{"of the tenant", 2, 1, slow, "return 1;", fault.TenantBusy},
		{"of a nested call", 1, 1, "try { V8.ApiEngine.Run('child', {}); } catch (e) {}", slow, fault.Overloaded},
	} {
		t.Run(c.name, func(t *testing.T) {
			bridge, err := jsbridge.New(jsbridge.Config{StuckGrace: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(bridge.Close)
			d := newDesk(t, func(cfg *engine.Config) { cfg.Bridge, cfg.MaxCalls, cfg.MaxTenantCalls = bridge, c.calls, c.tenants })
			for key, code := range map[string]string{"slow": c.definition, "child": c.child, "next": "return { Code: 1 };"} {
				d.add(t, apis.Definition{ApiEngineKey: key, Timeout: 1, Transaction: "auto", Language: "js", ApiV8Code: code})
			}
			if !refusedWhileStuck(t, d, bridge, c.want) {
				t.Fatal("the next call never came while the script went on")
			}
			for bridge.Stuck() > 0 {
				time.Sleep(time.Millisecond)
			}
			eventually(t, func() bool { _, err := d.run(context.Background(), "next", "{}"); return err == nil })
		})
	}
}

// refusedWhileStuck calls slow until a call after it came while its script still went on,
// and looks how that one ended.
func refusedWhileStuck(t *testing.T, d *desk, bridge *jsbridge.Bridge, want fault.Kind) bool {
	for range 10 {
		if _, err := d.run(context.Background(), "slow", "{}"); fault.Of(err) != fault.Timeout && fault.Of(err) != fault.LimitRegex && fault.Of(err) != want {
			t.Fatalf("the slow call ended with %v", err)
		}
		_, err := d.run(context.Background(), "next", "{}")
		if bridge.Stuck() > 0 { // so it did all the time between
			if fault.Of(err) != want {
				t.Errorf("the next call: %v, want %s", err, want)
			}
			return true
		}
	}
	return false
}

func eventually(t *testing.T, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came")
		}
	}
}
