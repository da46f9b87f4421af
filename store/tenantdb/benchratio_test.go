package tenantdb_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"apiengine/internal/testserver"
	"apiengine/store/tenantdb"
)

// What a part of the guarantees costs: runs with it and without it, in short turns one after
// the other, so that what else the machine does hits both alike.

const (
	ratioTurns = 200 // of each kind
	ratioTurn  = 50 * time.Millisecond
)

// contest measures one kind of run against another.
type contest struct {
	clients int
	server  *testserver.PostgresServer // nil: the database is in this process
	with    func(client, n int) error  // one run; n is never the same again
	without func(client, n int) error
}

// turn is what one kind did in its turns.
type turn struct {
	runs int
	wall time.Duration
	cpu  time.Duration // of this process and the server
}

// measure reports the ratio of the throughputs, its spread over quarters of the turns, and
// the ratio of the processor time a run.
func (c contest) measure(b *testing.B) {
	var with, without turn
	var quarters []float64
	c.turn(b, &turn{}, c.with)
	for b.Loop() { // with -benchtime 1x
		var w, o turn // since the last quarter
		for i := range ratioTurns {
			if i%2 == 0 {
				c.turn(b, &w, c.with)
				c.turn(b, &o, c.without)
			} else {
				c.turn(b, &o, c.without)
				c.turn(b, &w, c.with)
			}
			if (i+1)%(ratioTurns/4) == 0 {
				quarters = append(quarters, w.rate()/o.rate())
				with.add(w)
				without.add(o)
				w, o = turn{}, turn{}
			}
		}
	}
	b.ReportMetric(with.rate()/without.rate(), "with/without")
	b.ReportMetric(slices.Min(quarters), "least")
	b.ReportMetric(slices.Max(quarters), "most")
	b.ReportMetric(float64(without.cpu)/float64(without.runs)/(float64(with.cpu)/float64(with.runs)), "cpu-ratio")
	b.ReportMetric(with.rate(), "with/s")
	b.ReportMetric(float64(with.cpu.Microseconds())/float64(with.runs), "with-cpu-us")
}

func (t *turn) rate() float64 { return float64(t.runs) / t.wall.Seconds() }

func (t *turn) add(o turn) { t.runs, t.wall, t.cpu = t.runs+o.runs, t.wall+o.wall, t.cpu+o.cpu }

var ratioRuns = make([]int, 64) // runs of each client, so that n is new

// turn runs one kind for a while.
func (c contest) turn(b *testing.B, t *turn, run func(client, n int) error) {
	var wg sync.WaitGroup
	counts := make([]int, c.clients)
	cpu, began := c.cpu(b), time.Now()
	for i := range c.clients {
		wg.Go(func() {
			for time.Since(began) < ratioTurn {
				ratioRuns[i]++
				if err := run(i, ratioRuns[i]); err != nil {
					b.Error(err)
					return
				}
				counts[i]++
			}
		})
	}
	wg.Wait()
	t.wall += time.Since(began)
	t.cpu += c.cpu(b) - cpu
	for _, n := range counts {
		t.runs += n
	}
}

// cpu is the processor time that this process and the server's processes have used.
func (c contest) cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	used := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	if c.server == nil {
		return used
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", c.server.Pid()))
	if err != nil {
		b.Fatal(err)
	}
	for _, pid := range strings.Fields(string(children)) {
		text, err := os.ReadFile("/proc/" + pid + "/schedstat")
		if err != nil {
			continue // it has ended
		}
		ns, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseInt(ns, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		used += time.Duration(n)
	}
	return used
}

// ratios runs a benchmark on both databases with 1 and 8 clients, every commit on the disk.
func ratios(b *testing.B, of func(b *testing.B, db *tenantdb.DB) (with, without func(client, n int) error)) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		b.Run(dialect, func(b *testing.B) {
			var server *testserver.PostgresServer
			var db *tenantdb.DB
			if dialect == "postgres" {
				server = testserver.NewPostgres(b)
				db = openPostgres(b, newPool(b, server.URL("postgres")+"&pool_max_conns=8"))
			} else {
				var err error
				if db, err = tenantdb.OpenSQLite(b.Context(), tenantdb.SQLiteConfig{Path: filepath.Join(b.TempDir(), "t.db"), Sync: "full"}); err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { db.Close() })
			}
			setup(b, db, "CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0)")
			with, without := of(b, db)
			for _, clients := range []int{1, 8} {
				b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
					contest{clients: clients, server: server, with: with, without: without}.measure(b)
				})
			}
		})
	}
}
