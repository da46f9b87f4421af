package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"apiengine/apis"
	"apiengine/engine"
	"apiengine/fault"
	"apiengine/jsbridge"
)

// A transaction that the database has begun only after the run's time, and after everybody
// has stopped waiting for scripts, is rolled back all the same: else it would hold the
// guard row, or SQLite's writer, for ever.
func TestATransactionThatBeginsLate(t *testing.T) {
	for _, event := range []string{"begin+guard", "exec"} {
		t.Run(event, func(t *testing.T) {
			bridge, err := jsbridge.New(jsbridge.Config{StuckGrace: 10 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(bridge.Close)
			d := newDesk(t, func(c *engine.Config) { c.Bridge = bridge })
			d.add(t, apis.Definition{ApiEngineKey: "late", Lock: true, Timeout: 1, Transaction: "auto", Language: "js",
				ApiV8Code: "V8.Db.FromSql('UPDATE t SET n = 1').ExecuteNonQuery(); return { Code: 1 };"})
			d.on[event] = func() error { time.Sleep(1500 * time.Millisecond); return nil } // whatever its context says
			_, err = d.run(context.Background(), "late", "{}")
			if fault.Of(err) != fault.Timeout {
				t.Errorf("%v", err)
			}
			if got := d.history(); !strings.HasSuffix(got, " rollback release") || strings.Contains(got, "commit") {
				t.Errorf("%s", got)
			}
		})
	}
}
