package engine_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"apiengine/internal/faultproxy"
	"apiengine/internal/testserver"
)

// bankAPIs book into a ledger and send a message of each booking, by which the receiver
// books it a second time. counter is a column that counts the rows. A dead node's lock lasts
// for the timeout where it is not embedded.
func bankAPIs(counter, timeout string) fstest.MapFS {
	return fstest.MapFS{
		"schema/0001_bank.sql": {Data: []byte("-- +goose Up\nCREATE TABLE ledger (id TEXT, account INT, token BIGINT);\n" +
			"CREATE TABLE received (seq " + counter + ", id TEXT, account INT, token BIGINT);\n")},
		"book.js": js("Lock: true\nLockKey: Account\nLockWait: 1\nTimeout: "+timeout, `var P = V8.Param;
V8.Db.FromSql('INSERT INTO ledger VALUES (@i, @a, @t)').AddInParameter('@i', P.ID).AddInParameter('@a', P.Account).AddInParameter('@t', V8.FencingToken).ExecuteNonQuery();
V8.Outbox.Send({EventId: P.ID, Type: 'booked', Key: 'account ' + P.Account, Target: 'receive', Data: {Account: P.Account}});
return { Code: P.Code, Data: 'booked ' + P.ID + ' ' + NewGuid() };`),
		"receive.js": js("StopHttp: true", `var P = V8.Param;
if (V8.Inbox.Once(P.EventId)) V8.Db.FromSql('INSERT INTO received (id, account, token) VALUES (@i, @a, @t)').AddInParameter('@i', P.EventId).AddInParameter('@a', P.Data.Account).AddInParameter('@t', P.FencingToken).ExecuteNonQuery();
return { Code: 1 };`),
	}
}

// bookingCommits matches the COMMIT of a booking, which has its answer in the same flush.
func bookingCommits(r faultproxy.Request) bool {
	return commits(r) && bytes.Contains(r.Data, []byte(hex.EncodeToString([]byte("booked "))))
}

// P5 and E2: nodes are killed at random instants, in their starts too, while clients book
// with keys; now and then PostgreSQL goes away in two commits. In the end every acknowledged
// booking is in the ledger once and a repeat gets the answer that was acknowledged, none
// that failed for certain is there, and the messages that arrived are those of the ledger,
// of each account in the order of its tokens.
func TestKilledNodesBookOnce(t *testing.T) {
	t.Parallel()
	kills, sqlites, postgreses := 4, 1, 2
	if os.Getenv("APIENGINE_FAULTS") == "long" {
		kills, sqlites, postgreses = 1000, 3, 3
	}
	flags := []string{"--claim-lease", "2s", "--outbox-lease", "5s", "--outbox-backoff", "50ms", "--outbox-attempts", "1000", "--log-level", "error"}
	for i := range sqlites { // a file has one node: several files at once
		t.Run(fmt.Sprintf("SQLite %d", i+1), func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, append([]string{"--data-dir", t.TempDir()}, flags...))
			f.ready(t).pushFiles(t, bankAPIs("INTEGER PRIMARY KEY", "30"))
			chaos{kills: (kills + sqlites - 1) / sqlites}.run(t, newCrowd(f, 4))
		})
	}
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		proxy, through, _ := proxiedDatabase(t)
		var nodes [][]string
		prefix := fmt.Sprintf("killed%d", prefixes.Add(1))
		for range postgreses {
			nodes = append(nodes, append([]string{"--data-dir", t.TempDir(), "--database-url", through, "--redis-url", testserver.Redis(t).URL(), "--prefix", prefix}, flags...))
		}
		f := newFleet(t, nodes...)
		f.ready(t).pushFiles(t, bankAPIs("BIGINT GENERATED ALWAYS AS IDENTITY", "5"))
		for _, s := range f.seats {
			n := s.node.Load()
			await(t, "the API to be live on every node", func() bool {
				return n.call(t, "POST", "/admin/api/v1/definitions/book/plan", map[string]any{"Param": booking{}}).Status == 200
			})
		}
		chaos{kills: kills, outages: max(1, kills/250), database: proxy}.run(t, newCrowd(f, 8))
	})
}

// chaos is what happens to a fleet.
type chaos struct {
	kills, outages int
	database       *faultproxy.Proxy
}

func (x chaos) run(t *testing.T, c *crowd) {
	stop := sync.OnceFunc(func() { c.finish(t.Failed()) })
	defer stop()
	seed, began := uint64(time.Now().UnixNano()), time.Now()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for kill := range x.kills {
		s := c.fleet.seats[kill%len(c.fleet.seats)]
		if random.IntN(8) > 0 { // else in its start
			s.awaitReady(t)
			want := c.booked() + 1 + random.IntN(12)
			awaitLong(t, 3*time.Minute, "some bookings", func() bool { return c.booked() >= want })
		}
		if x.outages > 0 && kill%(x.kills/x.outages) == x.kills/x.outages/2 {
			for _, s := range c.fleet.seats {
				s.awaitReady(t)
			}
			c.outage(t, x.database)
		}
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond) // the random instant
		s.kill()
		s.launch(t)
		if kill%100 == 99 {
			t.Logf("%d kills in %v, %d booked", kill+1, time.Since(began).Round(time.Second), c.booked())
		}
	}
	for _, s := range c.fleet.seats {
		s.awaitReady(t)
	}
	stop()
	for id := range maps.Clone(c.unknown) { // told after an outage's own were asked for
		c.settle(t, id)
	}
	kinds := map[string]int{}
	for _, kind := range c.failed {
		kinds[kind]++
	}
	t.Logf("%d kills in %v: %d booked, %d of them by a repeat, %d connections broken, failed for certain: %v",
		x.kills, time.Since(began).Round(time.Second), len(c.acknowledged), c.repeated, c.broken, kinds)
	c.check(t)
}

// outage takes the database away while it commits one booking and has not heard of
// another's commit. What the platform then tells of each is what a repeat finds.
func (c *crowd) outage(t *testing.T, p *faultproxy.Proxy) {
	t.Helper()
	words := map[string]int{}
	for try := 0; try < 5 && (words["committed"] == 0 || words["rolled_back"] == 0); try++ {
		maps.Copy(words, c.outageOf(t, p))
	}
	if words["committed"] == 0 || words["rolled_back"] == 0 {
		t.Errorf("the test is void: the outages met %v", words)
	}
}

// outageOf returns the words that were told. On a slow machine a commit that was caught
// first may be out of time before the second is, and tells something else.
func (c *crowd) outageOf(t *testing.T, p *faultproxy.Proxy) (words map[string]int) {
	t.Helper()
	traps := []*faultproxy.Trap{p.Add(faultproxy.Rule{Match: bookingCommits, Times: 1, Fault: faultproxy.HoldReply}),
		p.Add(faultproxy.Rule{Match: bookingCommits, Times: 1, Fault: faultproxy.HoldCall})}
	for _, trap := range traps {
		caught(t, trap)
	}
	p.Refuse(true)
	var met map[string]string
	for began := time.Now(); len(met) < 2 && time.Since(began) < 20*time.Second; {
		time.Sleep(20 * time.Millisecond) // a look
		c.mu.Lock()
		met = maps.Clone(c.unknown)
		c.mu.Unlock()
	}
	p.Refuse(false)
	words = map[string]int{}
	for id, execution := range met {
		word := c.ask(t, execution)
		words[word]++
		if replayed := c.settle(t, id).Header.Get("Idempotency-Replayed") == "true"; replayed != (word == "committed") {
			t.Errorf("%s was %s, its repeat replayed: %v", id, word, replayed)
		}
		if again := c.ask(t, execution); again != word {
			t.Errorf("%s was %s, then %s", id, word, again)
		}
	}
	return words
}

// check compares the ledger with what was acknowledged, and what was received with the ledger.
func (c *crowd) check(t *testing.T) {
	t.Helper()
	n := c.fleet.ready(t)
	ledger := n.column(t, "ledger")
	if want := slices.Sorted(maps.Keys(c.acknowledged)); !slices.Equal(ledger, want) {
		t.Errorf("the ledger has %d bookings, %d were acknowledged: %v", len(ledger), len(want), difference(ledger, want))
	}
	for id, kind := range c.failed {
		if _, found := slices.BinarySearch(ledger, id); found {
			t.Errorf("%s has failed with %s and is in the ledger", id, kind)
		}
	}
	pending := func() int {
		list := n.messages(t, "?state=pending&limit=1000")
		for _, m := range list { // kills and stalls have made the pauses of some long
			if m["Delivering"] == false && m["Attempts"].(float64) > 3 {
				n.call(t, "POST", fmt.Sprintf("/admin/api/v1/outbox/%v/retry", m["Id"]), nil)
			}
		}
		return len(list)
	}
	began, backlog := time.Now(), pending()
	awaitLong(t, 5*time.Minute, "the messages to arrive", func() bool { return pending() == 0 })
	t.Logf("%d messages were still to be delivered and took %v", backlog, time.Since(began).Round(time.Millisecond))
	if dead := n.messages(t, "?state=dead"); len(dead) > 0 {
		t.Errorf("dead letters: %v", dead)
	}
	if got := n.column(t, "received"); !slices.Equal(got, ledger) {
		t.Errorf("%d messages of %d bookings: %v", len(got), len(ledger), difference(got, ledger))
	}
	if late := n.scalar(t, `SELECT count(*) FROM (SELECT token, lag(token) OVER (PARTITION BY account ORDER BY seq) AS earlier FROM received) x WHERE earlier >= token`); late != "0" {
		t.Errorf("%s messages came after a later one of their account", late)
	}
	for id, body := range c.acknowledged {
		if a, err := c.send(t.Context(), n, c.bookings[id]); err != nil || a.Body != body || a.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: %v %s, acknowledged %s", id, err, a.Body, body)
		}
	}
	t.Logf("checked in %v", time.Since(began).Round(time.Millisecond))
	if c.broken == 0 {
		t.Error("the test is void: no kill broke a call")
	}
}

// column are all ids of a table, sorted as bytes.
func (n *node) column(t *testing.T, table string) (ids []string) {
	t.Helper()
	const page = 1000
	for {
		a := n.call(t, "POST", "/admin/api/v1/sql", map[string]any{"Sql": fmt.Sprintf("SELECT id FROM %s ORDER BY id, token LIMIT %d OFFSET %d", table, page, len(ids))})
		var out struct{ Data struct{ Rows [][]string } }
		if err := json.Unmarshal([]byte(a.Body), &out); err != nil || a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		for _, row := range out.Data.Rows {
			ids = append(ids, row[0])
		}
		if len(out.Data.Rows) < page {
			slices.Sort(ids)
			return ids
		}
	}
}

// difference is what only one of the lists has, or has more often.
func difference(a, b []string) (only []string) {
	count := map[string]int{}
	for _, x := range a {
		count[x]++
	}
	for _, x := range b {
		count[x]--
	}
	for _, id := range slices.Sorted(maps.Keys(count)) {
		if count[id] != 0 {
			only = append(only, fmt.Sprintf("%s %+d", id, count[id]))
		}
	}
	return only[:min(len(only), 20)]
}
