package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// summary is a row: medians of the rounds; the worst wait is that of all rounds, the shares
// are those of the round whose ratio is the median, the commands are the last round's. Beside
// the worst wait is what each would be if all waited the same: the turns of all others.
func (s setting) summary(all []round) string {
	timed, counted := all[:len(all)-1], all[len(all)-1]
	shares := slices.SortedFunc(slices.Values(timed), func(a, b round) int { return cmp.Compare(a.ratio(), b.ratio()) })[len(timed)/2]
	worst := slices.MaxFunc(timed, func(a, b round) int { return cmp.Compare(a.worst, b.worst) }).worst
	rate := median(timed, func(r round) float64 { return r.rate })
	return fmt.Sprintf("%.0f | %s | %s | %s (%s) | %d..%d (%s) | %.2f", rate,
		short(median(timed, func(r round) time.Duration { return r.p50 })),
		short(median(timed, func(r round) time.Duration { return r.p99 })),
		short(worst), short(s.fair(rate)), shares.smallest, shares.largest, ratioText(shares), counted.commands)
}

// fair is the wait for the others' turns at so many turns a second.
func (s setting) fair(rate float64) time.Duration {
	return time.Duration(float64(s.workers-1) / max(rate, 1e-3) * float64(time.Second))
}

func (r round) ratio() float64 { return float64(r.largest) / max(0.5, float64(r.smallest)) }

func ratioText(r round) string {
	if r.smallest == 0 {
		return "one got none"
	}
	return fmt.Sprintf("%.2f", r.ratio())
}

func median[T cmp.Ordered](rounds []round, of func(round) T) T {
	values := make([]T, len(rounds))
	for i, r := range rounds {
		values[i] = of(r)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// short writes three digits at most.
func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.0f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.2f ms", float64(d)/1e6)
}

func (s *server) version(ctx context.Context) string {
	text, _ := s.client.Info(ctx, "server").Result() // without it the first measurement fails too
	_, rest, _ := strings.Cut(text, "redis_version:")
	version, _, _ := strings.Cut(rest, "\r")
	return version
}

// settle waits, at most a minute, until the rest of the machine uses less than most of the
// processors' time, and returns what it used last; 0 where the system does not tell.
func settle(ctx context.Context, most float64) (used float64) {
	for until := time.Now().Add(time.Minute); ; {
		busy, total := processors()
		select {
		case <-ctx.Done():
			return used
		case <-time.After(time.Second):
		}
		busyNow, totalNow := processors()
		if used = float64(busyNow-busy) / float64(max(1, totalNow-total)); used < most || time.Now().After(until) {
			return used
		}
	}
}

// processors returns the ticks that all processors together worked, and all their ticks.
func processors() (busy, total int64) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	var t [8]int64 // user nice system idle iowait irq softirq steal
	first, _, _ := strings.Cut(string(text), "\n")
	_, _ = fmt.Sscanf(strings.TrimPrefix(first, "cpu"), "%d %d %d %d %d %d %d %d", &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7])
	for _, n := range t {
		total += n
	}
	return total - t[3] - t[4], total
}
