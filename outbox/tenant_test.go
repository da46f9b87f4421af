package outbox_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"apiengine/outbox"
)

func relay(t *testing.T, boxes outbox.Boxes, d deliver) *outbox.Relay {
	t.Helper()
	r, err := outbox.New(outbox.Config{Boxes: boxes, Deliverer: d, Attempts: 4, Lease: 30 * time.Second, Backoff: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Deliver works off what is due and says when it is to be called again.
func TestDeliver(t *testing.T) {
	no := func(context.Context, outbox.Message) error { return errors.New("no") }
	for name, c := range map[string]struct {
		ended    bool // before
		tries    int  // before
		deliver  deliver
		limit    time.Duration // until ctx ends
		from, to time.Duration // when the next one is due; 0: none is
		cut      bool
		log      string
	}{
		"nothing pending": {ended: true, log: "[]"},
		"one due":         {deliver: func(context.Context, outbox.Message) error { return nil }, log: "[delivered]"},
		"it fails":        {deliver: no, from: 5 * time.Second, to: 10 * time.Second, log: "[retry]"},
		"the last try":    {tries: 3, deliver: no, log: "[dead]"},
		"cut off": {deliver: func(ctx context.Context, _ outbox.Message) error { <-ctx.Done(); return ctx.Err() },
			limit: time.Minute, cut: true, log: "[given back]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(c.limit, time.Hour))
				defer cancel()
				s, began := &shelf{ended: c.ended, tries: c.tries}, time.Now()
				next, err := relay(t, s, c.deliver).Deliver(ctx, "t")
				if (err != nil) != c.cut {
					t.Errorf("the error is %v", err)
				}
				switch wait := next.Sub(began); {
				case c.to == 0 && !next.IsZero(), c.to > 0 && (wait < c.from || wait > c.to):
					t.Errorf("the next in %v", wait)
				}
				if got := fmt.Sprint(s.log); got != c.log {
					t.Errorf("%s, want %s", got, c.log)
				}
			})
		})
	}
}

// What another relay has is due when its claim ends.
func TestDeliverWhileAnotherHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := &shelf{}, time.Now()
		var second time.Time
		var r *outbox.Relay
		r = relay(t, s, func(ctx context.Context, _ outbox.Message) (err error) {
			second, err = r.Deliver(ctx, "t")
			return err
		})
		if next, err := r.Deliver(t.Context(), "t"); err != nil || !next.IsZero() || second.Sub(began) != 30*time.Second {
			t.Errorf("next %v, %v; the other was told %v", next, err, second.Sub(began))
		}
	})
}

// queue is an outbox of many messages: Rows of one Key in order, one at a time.
type queue struct {
	mu    sync.Mutex
	rows  []outbox.Message
	due   map[int64]time.Time
	owner map[int64]string
}

func (q *queue) Tenants(context.Context) ([]string, error)                         { return []string{"t"}, nil }
func (q *queue) Box(context.Context, string) (outbox.Box, error)                   { return q, nil }
func (q *queue) Sweep(context.Context, time.Duration, time.Duration) (bool, error) { return false, nil }

func (q *queue) Claim(_ context.Context, c outbox.Claim) (out []outbox.Message, wait time.Duration, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	wait = -1
	seen := map[string]bool{}
	for i, m := range q.rows {
		if seen[m.Key] {
			continue
		}
		seen[m.Key] = true
		left := time.Until(q.due[m.Row])
		if left > 0 {
			if wait < 0 || left < wait {
				wait = left
			}
		} else if len(out) < c.Max {
			q.rows[i].Attempts++
			q.due[m.Row], q.owner[m.Row] = time.Now().Add(c.Lease), c.Name
			out = append(out, q.rows[i])
		}
	}
	if len(out) > 0 {
		wait = 0
	}
	return out, wait, nil
}

func (q *queue) Extend(context.Context, int64, string, time.Duration) (bool, error) { return true, nil }

func (q *queue) End(_ context.Context, row int64, claim string, v outbox.Verdict) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.owner[row] != claim {
		return false, nil
	}
	q.owner[row], q.due[row] = "", time.Now().Add(v.After)
	if v.Outcome == outbox.Delivered {
		q.rows = slices.DeleteFunc(q.rows, func(m outbox.Message) bool { return m.Row == row })
	}
	return true, nil
}

// Several callers at once share a tenant's messages. Each comes back when nothing is due;
// whoever comes back at the time it was told finds what was tried again.
func TestDeliverByMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{due: map[int64]time.Time{}, owner: map[int64]string{}}
		for i := range 120 {
			m := outbox.Message{Row: int64(i)}
			m.Key = fmt.Sprint("k", i%7)
			q.rows = append(q.rows, m)
		}
		var mu sync.Mutex
		got, busy := map[string][]int64{}, map[string]bool{}
		r := relay(t, q, func(_ context.Context, m outbox.Message) error {
			mu.Lock()
			if busy[m.Key] {
				t.Errorf("two messages of %s at once", m.Key)
			}
			busy[m.Key] = true
			mu.Unlock()
			time.Sleep(time.Duration(m.Row%5) * time.Second)
			mu.Lock()
			defer mu.Unlock()
			busy[m.Key] = false
			if m.Row%11 == 0 && m.Attempts == 1 {
				return errors.New("not yet")
			}
			got[m.Key] = append(got[m.Key], m.Row)
			return nil
		})
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				for {
					next, err := r.Deliver(t.Context(), "t")
					if err != nil {
						t.Error(err)
					}
					if err != nil || next.IsZero() {
						return
					}
					time.Sleep(time.Until(next))
				}
			})
		}
		callers.Wait()
		n := 0
		for key, rows := range got {
			if n += len(rows); !slices.IsSorted(rows) {
				t.Errorf("%s: %v", key, rows)
			}
		}
		if n != 120 || len(q.rows) > 0 {
			t.Errorf("%d delivered, %d left", n, len(q.rows))
		}
	})
}
