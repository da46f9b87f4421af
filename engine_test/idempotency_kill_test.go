package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
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

	"apiengine/internal/testserver"
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

// P5 and E2: a node is killed at random instants while clients book with keys, and started
// again. Each client repeats its call until it has an answer. In the end every booking is
// in the ledger once, and a repeat gets the answer that was acknowledged.
func TestKilledNodesBookOnce(t *testing.T) {
	kills := 8 // of each database: a start of a race-built node takes seconds
	if os.Getenv("APIENGINE_FAULTS") == "long" {
		kills = 500
	}
	for _, database := range []string{"SQLite", "PostgreSQL"} {
		t.Run(database, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 1))
			args := []string{"--data-dir", t.TempDir()}
			if database == "PostgreSQL" {
				args = append(args, "--database-url", testserver.Database(t))
			}
			n := startNode(t, args...)
			n.pushFiles(t, ledgerAPIs())
			var current atomic.Pointer[node]
			current.Store(n)
			var mu sync.Mutex
			acknowledged := map[string]string{}
			var later []string
			record := func(id, body string) {
				mu.Lock()
				defer mu.Unlock()
				acknowledged[id] = body
			}
			booked := func() int {
				mu.Lock()
				defer mu.Unlock()
				return len(acknowledged)
			}
			var broken atomic.Int64
			stop := make(chan struct{})
			var clients sync.WaitGroup
			for c := range 6 {
				clients.Go(func() {
					for i := 0; ; i++ {
						select {
						case <-stop:
							return
						default:
						}
						id := fmt.Sprintf("c%d-%d%s", c, i, strings.Repeat("x", i%3))
						for {
							a, err := current.Load().book(context.Background(), id)
							if err == nil && a.Status == 200 {
								record(id, a.Body)
								break
							}
							if err == nil && a.Status == 409 { // claimed by a node that died: later
								mu.Lock()
								later = append(later, id)
								mu.Unlock()
								break
							}
							if err != nil {
								broken.Add(1)
							}
							time.Sleep(10 * time.Millisecond) // a client's back-off
						}
					}
				})
			}
			for range kills {
				want := booked() + 1 + random.IntN(20)
				await(t, "some bookings", func() bool { return booked() >= want })
				time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond) // the random instant
				n.stop(syscall.SIGKILL)
				n = startNode(t, args...)
				current.Store(n)
			}
			close(stop)
			clients.Wait()
			for _, id := range later {
				await(t, "the claim's lease to end", func() bool {
					a, err := n.book(t.Context(), id)
					if err == nil && a.Status == 200 {
						record(id, a.Body)
					}
					return err == nil && a.Status == 200
				})
			}
			t.Logf("%d booked, %d of them after a dead claim, %d connections broken by %d kills", len(acknowledged), len(later), broken.Load(), kills)
			if got := n.scalar(t, "SELECT count(*) FROM ledger"); got != fmt.Sprint(len(acknowledged)) {
				t.Errorf("the ledger has %s bookings, %d were acknowledged", got, len(acknowledged))
			}
			if got := n.scalar(t, "SELECT count(DISTINCT id) FROM ledger"); got != fmt.Sprint(len(acknowledged)) {
				t.Errorf("the ledger has %s different bookings, %d were acknowledged", got, len(acknowledged))
			}
			for id, body := range acknowledged {
				if a, err := n.book(t.Context(), id); err != nil || a.Body != body || a.Header.Get("Idempotency-Replayed") != "true" {
					t.Errorf("%s: %v %s, acknowledged %s", id, err, a.Body, body)
				}
			}
			if broken.Load() == 0 {
				t.Error("no kill broke a call")
			}
		})
	}
}
