package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"apiengine/internal/faultproxy"
)

func ledgerAPIs() fstest.MapFS {
	return fstest.MapFS{
		"schema/0001_ledger.sql": {Data: []byte("-- +goose Up\nCREATE TABLE ledger (id TEXT, run INT);\n-- +goose Down\nDROP TABLE ledger;\n")},
		"book.js": js("Lock: true\nLockKey: Account\nTimeout: 10", `V8.Db.FromSql('INSERT INTO ledger VALUES (@p0, 1)').AddInParameter('@p0', V8.Param.Id).ExecuteNonQuery();
return { Code: 1, Data: V8.Param.Id + ' ' + NewGuid() };`),
	}
}

// book sends one keyed call; an error is a connection that broke.
func (n *node) book(ctx context.Context, id string) (answer, error) {
	body, _ := json.Marshal(map[string]any{"Id": id, "Account": len(id) % 3})
	req, err := http.NewRequestWithContext(ctx, "POST", n.URL+"/apiengine/book", strings.NewReader(string(body)))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", id)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	a := answerOf(res)
	if int64(len(a.Body)) != res.ContentLength {
		return a, fmt.Errorf("the answer was cut off")
	}
	return a, nil
}

// crowd is six clients that book with keys while their node is killed and started again.
// Each repeats its call until it has an answer.
type crowd struct {
	node    atomic.Pointer[node]
	broken  atomic.Int64
	clients sync.WaitGroup
	stop    chan struct{}

	mu           sync.Mutex
	acknowledged map[string]string // answers by id
	later        []string          // claimed by a node that died
	unknown      map[string]string // executions of outcome_unknown by id
}

func newCrowd(n *node) *crowd {
	c := &crowd{stop: make(chan struct{}), acknowledged: map[string]string{}, unknown: map[string]string{}}
	c.node.Store(n)
	for i := range 6 {
		c.clients.Go(func() { c.client(i) })
	}
	return c
}

func (c *crowd) client(number int) {
	for i := 0; ; i++ {
		id := fmt.Sprintf("c%d-%d%s", number, i, strings.Repeat("x", i%3))
		for !c.book(id) {
			time.Sleep(10 * time.Millisecond) // a client's back-off
		}
		select {
		case <-c.stop:
			return
		default:
		}
	}
}

// book sends one call. done: it has its answer, or will be asked for later.
func (c *crowd) book(id string) (done bool) {
	a, err := c.node.Load().book(context.Background(), id)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.broken.Add(1)
		return false
	case a.Status == 200:
		c.acknowledged[id] = a.Body
	case a.Status == 409:
		c.later = append(c.later, id)
	case a.kind() == "outcome_unknown":
		c.unknown[id] = fmt.Sprint(a.JSON.DataAppend.Error["ExecutionId"])
	default:
		return false
	}
	return true
}

func (c *crowd) booked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.acknowledged)
}

// finish repeats a call until its key's claim has ended.
func (c *crowd) finish(t *testing.T, id string) (a answer) {
	t.Helper()
	await(t, "the claim's lease to end", func() bool {
		got, err := c.node.Load().book(t.Context(), id)
		a = got
		return err == nil && a.Status == 200
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acknowledged[id] = a.Body
	return a
}

// outage takes the database away while it commits one run and has not heard of another's
// commit. What the platform then tells of each is what a repeat finds.
func (c *crowd) outage(t *testing.T, p *faultproxy.Proxy) {
	t.Helper()
	for range 3 { // the held COMMIT may have been the outbox's, which sweeps when a node starts
		words := c.away(t, p)
		if words["committed"] > 0 && words["rolled_back"] > 0 {
			return
		}
		t.Logf("an outage met %v", words)
	}
	t.Error("the test is void: no outage met a run of each kind")
}

// away is one outage; it returns what became of the runs that it met.
func (c *crowd) away(t *testing.T, p *faultproxy.Proxy) (words map[string]int) {
	t.Helper()
	for _, f := range []faultproxy.Fault{faultproxy.HoldReply, faultproxy.HoldCall} {
		caught(t, p.Add(faultproxy.Rule{Match: commits, Times: 1, Fault: f}))
	}
	p.Refuse(true)
	unknown, began := map[string]string{}, time.Now()
	awaitLong(t, time.Minute, "both to hear outcome_unknown", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for id, execution := range c.unknown {
			unknown[id] = execution
		}
		return len(unknown) >= 2 || time.Since(began) > 25*time.Second
	})
	p.Refuse(false)
	words = map[string]int{}
	for id, execution := range unknown {
		word := c.ask(t, execution)
		words[word]++
		if replayed := c.finish(t, id).Header.Get("Idempotency-Replayed") == "true"; replayed != (word == "committed") {
			t.Errorf("%s was %s, its repeat replayed: %v", id, word, replayed)
		}
		if again := c.ask(t, execution); again != word {
			t.Errorf("%s was %s, then %s", id, word, again)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.unknown, func(id, _ string) bool { return unknown[id] != "" })
	return words
}

// ask asks until the platform knows what became of an execution.
func (c *crowd) ask(t *testing.T, execution string) (word string) {
	t.Helper()
	await(t, "the outcome", func() bool {
		a, err := c.node.Load().try(t.Context(), "GET", "/api/v1/executions/"+execution+"/outcome", nil)
		data, _ := a.JSON.Data.(map[string]any)
		word = fmt.Sprint(data["Outcome"])
		return err == nil && a.Status == 200 && word != "unknown"
	})
	return word
}

// check compares the ledger with what was acknowledged, and each answer with its repeat.
func (c *crowd) check(t *testing.T) {
	t.Helper()
	n, want := c.node.Load(), fmt.Sprint(len(c.acknowledged))
	for _, what := range []string{"count(*)", "count(DISTINCT id)"} {
		if got := n.scalar(t, "SELECT "+what+" FROM ledger"); got != want {
			t.Errorf("%s of the ledger is %s, %s were acknowledged", what, got, want)
		}
	}
	for id, body := range c.acknowledged {
		if a, err := n.book(t.Context(), id); err != nil || a.Body != body || a.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: %v %s, acknowledged %s", id, err, a.Body, body)
		}
	}
	if c.broken.Load() == 0 {
		t.Error("the test is void: no kill broke a call")
	}
}

// P5 and E2: a node is killed at random instants while clients book with keys, and started
// again; now and then PostgreSQL goes away in two commits. In the end every booking is in
// the ledger once, and a repeat gets the answer that was acknowledged.
func TestKilledNodesBookOnce(t *testing.T) {
	kills, every := 3, 3 // of each database: a start of a race-built node takes seconds
	if os.Getenv("APIENGINE_FAULTS") == "long" {
		kills, every = 500, 100
	}
	for _, database := range []string{"SQLite", "PostgreSQL"} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 1))
			// Embedded locks end with their node; others last until their lease ends, too long for a kill a second.
			args := []string{"--data-dir", t.TempDir(), "--claim-lease", "2s", "--log-level", "error", "--lock-backend", "embedded"}
			var p *faultproxy.Proxy
			if database == "PostgreSQL" {
				proxy, through, _ := proxiedDatabase(t)
				p, args = proxy, append(args, "--database-url", through)
			}
			n := startNode(t, args...)
			n.pushFiles(t, ledgerAPIs())
			c := newCrowd(n)
			outages := 0
			for kill := range kills {
				want := c.booked() + 1 + random.IntN(20)
				await(t, "some bookings", func() bool { return c.booked() >= want })
				if p != nil && kill%every == every/2 {
					c.outage(t, p)
					outages++
				}
				time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond) // the random instant
				n.stop(syscall.SIGKILL)
				n = startNode(t, args...)
				c.node.Store(n)
			}
			close(c.stop)
			c.clients.Wait()
			for _, id := range c.later {
				c.finish(t, id)
			}
			for id := range c.unknown { // told after an outage's own were asked for
				c.finish(t, id)
			}
			t.Logf("%d booked, %d of them after a dead claim, %d connections broken by %d kills, %d outages",
				len(c.acknowledged), len(c.later), c.broken.Load(), kills, outages)
			c.check(t)
		})
	}
}
