package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// job is what one worker process does: so many goroutines take one lock again and again.
type job struct {
	Contender string
	Addr      string
	Lock      string
	Workers   int
	Hold      time.Duration
	Time      time.Duration
}

// outcome is what a worker process saw.
type outcome struct {
	Waits   []time.Duration // of each acquisition
	Counts  []int           // acquisitions of each goroutine
	Pending []time.Duration // how long those had waited that still did at the end
}

// work reads a job, says when it is ready, waits for the word and does it.
func work(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	text, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	c, err := contenderNamed(j.Contender)
	if err != nil {
		return err
	}
	l, err := c.open(j.Addr)
	if err != nil {
		return err
	}
	if err := warm(l, j); err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	if _, err := lines.ReadBytes('\n'); err != nil {
		return err
	}
	o, err := j.run(l)
	if err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(o)
}

// warm makes every goroutine's connection, on a lock of its own. It tries again: on a busy
// machine rueidislock's attempts time out after 20 ms, and nothing wakes it afterwards.
func warm(l locker, j job) error {
	return each(j.Workers, func(i int) (err error) {
		for range 10 {
			if err = once(l, fmt.Sprintf("%s-warm-%d-%d", j.Lock, os.Getpid(), i)); !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
		}
		return err
	})
}

// once takes a lock and gives it back.
func once(l locker, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	unlock, err := l.Lock(ctx, name)
	if err != nil {
		return err
	}
	return unlock()
}

func (j job) run(l locker) (outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), j.Time)
	defer cancel()
	o := outcome{Counts: make([]int, j.Workers)}
	var mu sync.Mutex
	err := each(j.Workers, func(i int) error {
		waits, pending, err := j.loop(ctx, l)
		mu.Lock()
		defer mu.Unlock()
		o.Waits, o.Pending, o.Counts[i] = append(o.Waits, waits...), append(o.Pending, pending), len(waits)
		return err
	})
	return o, err
}

// loop is one goroutine's: lock, hold, unlock, until the time is over.
func (j job) loop(ctx context.Context, l locker) (waits []time.Duration, pending time.Duration, err error) {
	for ctx.Err() == nil {
		began := time.Now()
		unlock, err := l.Lock(ctx, j.Lock)
		waited := time.Since(began)
		if err != nil && (ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded)) {
			return waits, waited, nil
		}
		if err != nil {
			return nil, 0, err
		}
		waits = append(waits, waited)
		if j.Hold > 0 {
			time.Sleep(j.Hold)
		}
		if err := unlock(); err != nil {
			return nil, 0, fmt.Errorf("unlock: %w", err)
		}
	}
	return waits, 0, nil
}

// each runs f for 0 to n-1 side by side.
func each(n int, f func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func contenderNamed(id string) (contender, error) {
	for _, c := range contenders {
		if c.id == id {
			return c, nil
		}
	}
	return contender{}, fmt.Errorf("no contender %q", id)
}
