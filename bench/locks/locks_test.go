package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"apiengine/internal/testserver"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// A contender that does not lock would win every table. That a waiter of another library is
// never woken (seen once, of rueidislock) is told and no failure of ours.
func TestContendersExclude(t *testing.T) {
	addr := strings.TrimPrefix(testserver.Redis(t).URL(), "redis://")
	for _, c := range contenders {
		t.Run(c.id, func(t *testing.T) {
			t.Parallel()
			var nodes [2]locker
			for i := range nodes {
				l, err := c.open(addr)
				if err != nil {
					t.Fatal(err)
				}
				nodes[i] = l
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var inside atomic.Int32
			turns := 0 // under the lock alone
			err := each(8, func(i int) error {
				for range 2 {
					unlock, err := nodes[i%2].Lock(ctx, t.Name())
					if err != nil {
						return err
					}
					if inside.Add(1) != 1 {
						t.Error("two are inside")
					}
					turns++
					time.Sleep(100 * time.Microsecond)
					inside.Add(-1)
					if err := unlock(); err != nil {
						return err
					}
				}
				return nil
			})
			switch {
			case c.id != "apiengine" && turns > 0 && errors.Is(err, context.DeadlineExceeded):
				t.Logf("%d turns of 16, then a waiter that nobody woke: %v", turns, err)
			case err != nil || turns != 16:
				t.Errorf("%d turns of 16, error %v", turns, err)
			}
			for _, l := range nodes {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestSentByClient(t *testing.T) {
	for line, want := range map[string]bool{
		`+1764440000.1 [0 127.0.0.1:5000] "EVALSHA" "abc" "2"` + "\r\n":    true,
		`+1764440000.1 [0 127.0.0.1:5000] "set" "a [0 lua] b"` + "\r\n":    true,
		`+1764440000.1 [0 lua] "GET" "k"` + "\r\n":                         false,
		`+1764440000.1 [0 127.0.0.1:5000] "client" "setinfo" "x"` + "\r\n": false,
		`+1764440000.1 [0 127.0.0.1:5000] "HELLO" "3"` + "\r\n":            false,
		"+OK\r\n": false,
	} {
		if got := sentByClient(line); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

func TestFigures(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	o := outcome{Counts: []int{60, 40}, Pending: []time.Duration{0, ms(500)}}
	for i := range 100 {
		o.Waits = append(o.Waits, ms(100-i))
	}
	got := o.figures(2 * time.Second)
	want := round{rate: 50, p50: ms(51), p99: ms(100), worst: ms(500), smallest: 40, largest: 60}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// 64 workers who get 640 turns a second wait for the 63 turns of the others.
func TestFair(t *testing.T) {
	if got := (setting{workers: 64}).fair(640); got.Round(time.Millisecond) != 98*time.Millisecond {
		t.Errorf("got %v", got)
	}
	if got := (setting{workers: 1}).fair(100); got != 0 {
		t.Errorf("alone: %v", got)
	}
}
