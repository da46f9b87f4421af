package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"
)

// booking is one keyed call of a client, which it repeats until it knows what became of it.
type booking struct {
	ID      string // also its Idempotency-Key
	Account int
	Code    int // that the API is to answer with

	sent  bool // a try of it may have arrived: a later refusal does not say that nothing happened
	after time.Time
}

// crowd are clients that book on a fleet while its nodes are killed.
type crowd struct {
	fleet   *fleet
	http    *http.Client
	clients sync.WaitGroup

	mu           sync.Mutex
	stopped      bool
	given        bool // up: the test has failed
	again        []booking
	acknowledged map[string]string // answers by id
	failed       map[string]string // Kinds of definite failures, which were not repeated
	unknown      map[string]string // executions of outcome_unknown by id
	bookings     map[string]booking
	broken       int // connections that broke in a call
	repeated     int // answers that a repeat has brought
}

func newCrowd(f *fleet, clients int) *crowd {
	c := &crowd{fleet: f, acknowledged: map[string]string{}, failed: map[string]string{}, unknown: map[string]string{}, bookings: map[string]booking{},
		http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: clients}}}
	for i := range clients {
		c.clients.Go(func() { c.client(i) })
	}
	return c
}

// finish lets the clients repeat what has no answer yet, unless the test has failed, and
// waits for them.
func (c *crowd) finish(failed bool) {
	c.mu.Lock()
	c.stopped = true
	if failed {
		c.given = true
	}
	c.mu.Unlock()
	c.clients.Wait()
	c.http.CloseIdleConnections()
}

func (c *crowd) client(number int) {
	for i := 0; ; i++ {
		b, more := c.next(number, i)
		switch {
		case !more:
			return
		case b.ID != "":
			c.book(b)
		default:
			time.Sleep(5 * time.Millisecond) // until what is to be repeated is due
		}
	}
}

// accounts are so many that those whose lock a dead node had are not all.
const accounts = 96

// next is a booking to repeat, else a new one. Every ninth is refused by the API itself.
func (c *crowd) next(number, i int) (b booking, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given {
		return b, false
	}
	for n, b := range c.again {
		if time.Now().After(b.after) {
			c.again = append(c.again[:n], c.again[n+1:]...)
			return b, true
		}
	}
	if c.stopped {
		return b, len(c.again) > 0
	}
	b = booking{ID: fmt.Sprintf("c%d-%d", number, i), Account: rand.IntN(accounts), Code: 1}
	if i%9 == 8 {
		b.Code = 0
	}
	return b, true
}

// send makes one try on some node.
func (c *crowd) send(ctx context.Context, n *node, b booking) (answer, error) {
	body, err := json.Marshal(b)
	if err != nil {
		return answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, "POST", n.URL+"/apiengine/book", bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.GetBody = nil // else the client itself repeats what has an Idempotency-Key, and nobody knows
	req.Header.Set("Authorization", "Bearer "+adminToken)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", b.ID)
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	a := answerOf(res)
	if int64(len(a.Body)) != res.ContentLength {
		return a, errors.New("the answer was cut off")
	}
	return a, nil
}

// book makes one try and notes what it has told.
func (c *crowd) book(b booking) {
	a, err := c.send(context.Background(), c.fleet.any(), b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bookings[b.ID] = b
	switch {
	case errors.Is(err, syscall.ECONNREFUSED): // nothing was sent
		c.repeat(b, 20*time.Millisecond)
	case err != nil:
		c.broken++
		b.sent = true
		c.repeat(b, 50*time.Millisecond)
	case a.Status == 200 && a.JSON.Code == 1:
		if c.acknowledged[b.ID] = a.Body; b.sent {
			c.repeated++
		}
	case a.Status == 200:
		c.failed[b.ID] = "its own Code"
	case a.kind() == "outcome_unknown":
		c.unknown[b.ID] = fmt.Sprint(a.JSON.DataAppend.Error["ExecutionId"])
	case !b.sent && b.Account%2 == 0: // a caller that takes no for an answer
		c.failed[b.ID] = a.kind()
	default:
		c.repeat(b, 200*time.Millisecond)
	}
}

func (c *crowd) repeat(b booking, after time.Duration) {
	b.after = time.Now().Add(after)
	c.again = append(c.again, b)
}

func (c *crowd) booked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.acknowledged)
}

// settle repeats a booking whose outcome was unknown until it has its answer.
func (c *crowd) settle(t *testing.T, id string) (a answer) {
	t.Helper()
	c.mu.Lock()
	b := c.bookings[id]
	c.mu.Unlock()
	awaitLong(t, time.Minute, "the answer of "+id, func() bool {
		got, err := c.send(t.Context(), c.fleet.any(), b)
		a = got
		return err == nil && a.Status == 200
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acknowledged[id] = a.Body
	delete(c.unknown, id)
	return a
}

// ask asks until the platform knows what became of an execution.
func (c *crowd) ask(t *testing.T, execution string) (word string) {
	t.Helper()
	awaitLong(t, time.Minute, "the outcome", func() bool {
		a, err := c.fleet.any().try(t.Context(), "GET", "/api/v1/executions/"+execution+"/outcome", nil)
		data, _ := a.JSON.Data.(map[string]any)
		word = fmt.Sprint(data["Outcome"])
		return err == nil && a.Status == 200 && word != "unknown"
	})
	return word
}
