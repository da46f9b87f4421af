package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/redis/go-redis/v9"

	"apiengine/internal/testserver"
)

// listAPIs append an element to a list, read and written back as a whole.
func listAPIs() fstest.MapFS {
	return fstest.MapFS{
		"schema/0001_list.sql": {Data: []byte("-- +goose Up\nCREATE TABLE list (id TEXT PRIMARY KEY, elements TEXT NOT NULL);\nINSERT INTO list VALUES ('l', '');\n-- +goose Down\nDROP TABLE list;")},
		"append.js": js("Lock: true\nTimeout: 2\nLockWait: 5", `var was = V8.Db.FromSql("SELECT elements FROM list WHERE id = 'l'").ToScalar();
V8.Db.FromSql("UPDATE list SET elements = @p0 WHERE id = 'l'").AddInParameter('@p0', was + V8.Param.Element + ',').ExecuteNonQuery();
return { Code: 1 };`),
	}
}

// appended is what callers heard of their elements.
type appended struct {
	mu      sync.Mutex
	yes, no map[string]bool // acknowledged, definitely refused; of the rest nobody knows
	kinds   map[string]int
}

func (p *appended) note(element string, a answer, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kind := "ok"
	switch {
	case err != nil:
		kind = "connection"
	case a.JSON.Code == 1:
		p.yes[element] = true
	default:
		if kind = a.kind(); kind != "outcome_unknown" {
			p.no[element] = true
		}
	}
	p.kinds[kind]++
}

func (p *appended) acknowledged() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.yes)
}

// L3: unique elements are appended by read-modify-write in locked runs on two nodes, while
// nodes are stopped past their leases, connections to Redis are killed, and Redis forgets
// every lock. Each acknowledged element is there once, no refused one is.
func TestNoUpdateIsLostUnderFaults(t *testing.T) {
	t.Parallel()
	length := 10 * time.Second
	if os.Getenv("APIENGINE_FAULTS") == "long" {
		length = 2 * time.Minute
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 3))
	server := testserver.NewRedis(t)
	shared := []string{"--redis-url", server.URL(), "--database-url", testserver.Database(t), "--secret-key", strings.Repeat("ab", 32)}
	var nodes []*node
	for range 2 {
		nodes = append(nodes, startNode(t, append([]string{"--data-dir", t.TempDir(), "--log-level", "error"}, shared...)...))
	}
	nodes[0].pushFiles(t, listAPIs())
	nodes[1].awaitAPI(t, "append")
	p := &appended{yes: map[string]bool{}, no: map[string]bool{}, kinds: map[string]int{}}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var clients sync.WaitGroup
	for c := range 6 {
		clients.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				element := fmt.Sprintf("c%d-%d", c, i)
				a, err := nodes[c%2].try(context.WithoutCancel(ctx), "POST", "/apiengine/append", map[string]any{"Element": element})
				p.note(element, a, err)
			}
		})
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	faults := faultsOf(ctx, t, random, client, nodes, p)
	clients.Wait()
	t.Logf("%d appended under %d faults; the callers heard %v", len(p.yes), faults, p.kinds)
	p.check(t, nodes[0].scalar(t, "SELECT elements FROM list WHERE id = 'l'"))
	if faults < 5 || len(p.yes) < 10 {
		t.Error("the test is void")
	}
}

// faultsOf does one thing after another until ctx ends, each when something was
// acknowledged since the last, and returns how many. It leaves every node running.
func faultsOf(ctx context.Context, t *testing.T, random *rand.Rand, client *redis.Client, nodes []*node, p *appended) (done int) {
	t.Helper()
	rest := func(d time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	var kinds []int // each kind once before one comes again: stops take long
	for ; ctx.Err() == nil; done++ {
		if len(kinds) == 0 {
			kinds = random.Perm(4)
		}
		kind := kinds[0]
		kinds = kinds[1:]
		for before := p.acknowledged(); p.acknowledged() == before && ctx.Err() == nil; {
			rest(5 * time.Millisecond)
		}
		rest(time.Duration(random.IntN(100)) * time.Millisecond)
		var err error
		switch kind {
		case 0:
			err = client.FlushAll(t.Context()).Err()
		case 1:
			err = client.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err()
		case 2:
			err = client.Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub").Err()
		case 3: // often past the lease of 2 s and more
			n := nodes[random.IntN(len(nodes))]
			err = n.cmd.Process.Signal(syscall.SIGSTOP)
			rest(time.Duration(100+random.IntN(3000)) * time.Millisecond)
			if err == nil {
				err = n.cmd.Process.Signal(syscall.SIGCONT)
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
	return done
}

// check compares the list with what the callers heard.
func (p *appended) check(t *testing.T, list string) {
	t.Helper()
	there := map[string]bool{}
	for element := range strings.SplitSeq(strings.TrimSuffix(list, ","), ",") {
		if there[element] {
			t.Errorf("%s is there twice", element)
		}
		if there[element] = true; p.no[element] {
			t.Errorf("%s was refused and is there", element)
		}
	}
	for element := range p.yes {
		if !there[element] {
			t.Errorf("%s was acknowledged and is not there", element)
		}
	}
}
