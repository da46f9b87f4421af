package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
)

// options are the command's flags.
type options struct {
	redis    string
	rounds   int
	time     time.Duration
	only     string
	settings string
	leases   int
	locks    int
	quiet    float64
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		if err := work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.StringVar(&o.redis, "redis-server", "redis-server", "the program")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds of each contender in each setting")
	flag.DurationVar(&o.time, "time", 2*time.Second, "length of a round")
	flag.StringVar(&o.only, "only", "", "contenders, separated by commas; none: all")
	flag.StringVar(&o.settings, "settings", "", "settings whose name holds this text")
	flag.IntVar(&o.leases, "leases", 10_000, "held leases of the renewal test; 0: leave it out")
	flag.IntVar(&o.locks, "locks", 100_000, "locks that are used once; 0: leave that test out")
	flag.Float64Var(&o.quiet, "quiet", 0.25, "wait, at most a minute a setting, until others use less than this share of the processors")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "locks:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) error {
	s, err := startServer(o.redis)
	if err != nil {
		return err
	}
	defer s.stop()
	fmt.Printf("%s, %d processors, redis-server %s; %d rounds of %v each; %s\n\n", runtime.Version(), runtime.NumCPU(),
		s.version(ctx), o.rounds, o.time, time.Now().UTC().Format(time.DateTime))
	if err := o.compare(ctx, s); err != nil {
		return err
	}
	if o.leases > 0 {
		if err := renewals(ctx, s, o.leases); err != nil {
			return err
		}
	}
	if o.locks == 0 {
		return nil
	}
	// A server of its own: Redis lets expired keys lie about among many that are alive.
	fresh, err := startServer(o.redis)
	if err != nil {
		return err
	}
	defer fresh.stop()
	return usedOnce(ctx, fresh, o.locks)
}

// compare puts every contender into every setting and prints a table.
func (o options) compare(ctx context.Context, s *server) error {
	var chosen []contender
	for _, c := range contenders {
		if o.only == "" || slices.Contains(strings.Split(o.only, ","), c.id) {
			chosen = append(chosen, c)
		}
	}
	fmt.Println("| setting | contender | acquisitions/s | p50 | p99 | worst wait (if fair) | shares (largest / smallest) | commands each |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, set := range settings() {
		if !strings.Contains(set.String(), o.settings) {
			continue
		}
		others := settle(ctx, o.quiet)
		played, err := o.rows(ctx, s, set, chosen)
		if err != nil {
			return err
		}
		for i, c := range chosen {
			fmt.Printf("| %s | %s | %s |\n", set, c.label, set.summary(played[i]))
		}
		fmt.Fprintf(os.Stderr, "%s: others used %.0f %% of the processors just before\n", set, others*100)
	}
	fmt.Println()
	return nil
}

// rows plays the rounds of one setting and, after them, one that only counts commands:
// MONITOR costs the server too much to be on while time counts.
func (o options) rows(ctx context.Context, s *server, set setting, chosen []contender) ([][]round, error) {
	rows := make([][]round, len(chosen))
	for n := range o.rounds + 1 {
		order := slices.Collect(indexes(len(chosen), n%2 == 1))
		for _, i := range order {
			r, err := o.one(ctx, s, set, chosen[i], n)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", set, chosen[i].label, err)
			}
			rows[i] = append(rows[i], r)
		}
	}
	return rows, nil
}

func indexes(n int, reversed bool) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if reversed {
				i = n - 1 - i
			}
			if !yield(i) {
				return
			}
		}
	}
}

// one is round n of one contender; the last round counts commands.
func (o options) one(ctx context.Context, s *server, set setting, c contender, n int) (r round, err error) {
	j := job{Contender: c.id, Addr: s.addr, Lock: fmt.Sprintf("%s-%d-%d-%v-%d", c.id, set.processes, set.workers, set.hold, n),
		Workers: set.workers / set.processes, Hold: set.hold, Time: o.time}
	if n < o.rounds {
		return play(ctx, j, set.processes, func() error { return nil })
	}
	j.Time = min(o.time, time.Second)
	stop := func() int { return 0 }
	r, err = play(ctx, j, set.processes, func() error {
		stop, err = s.monitor()
		return err
	})
	r.commands = float64(stop()) / max(1, r.rate*j.Time.Seconds())
	return r, err
}
