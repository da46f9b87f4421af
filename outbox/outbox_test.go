package outbox_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"apiengine/engine"
	"apiengine/fault"
	"apiengine/outbox"
)

// shelf is a tenant's outbox in memory with one message.
type shelf struct {
	mu      sync.Mutex
	due     time.Time
	claim   string
	tries   int
	ended   bool
	extends int
	lost    bool // every further word about the claim is refused
	log     []string
}

func (s *shelf) Box(context.Context, string) (outbox.Box, error)           { return s, nil }
func (s *shelf) Sweep(_ context.Context, _, _ time.Duration) (bool, error) { return false, nil }

func (s *shelf) Claim(_ context.Context, c outbox.Claim) ([]outbox.Message, time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch wait := time.Until(s.due); {
	case s.ended:
		return nil, -1, nil
	case wait > 0:
		return nil, wait, nil
	}
	s.tries++
	s.claim, s.due = c.Name, time.Now().Add(c.Lease)
	return []outbox.Message{{Row: 1, Attempts: s.tries}}, 0, nil
}

func (s *shelf) Extend(_ context.Context, _ int64, claim string, lease time.Duration) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extends++
	if s.lost || claim != s.claim {
		return false, nil
	}
	s.due = time.Now().Add(lease)
	return true, nil
}

func (s *shelf) End(_ context.Context, _ int64, claim string, v outbox.Verdict) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost || claim != s.claim {
		s.log = append(s.log, "not mine")
		s.ended = true
		return false, nil
	}
	switch v.Outcome {
	case outbox.Retry:
		s.due = time.Now().Add(v.After)
		s.log = append(s.log, "retry")
	case outbox.GivenBack:
		s.tries--
		s.log = append(s.log, "given back")
	default:
		s.ended = true
		s.log = append(s.log, map[outbox.Outcome]string{outbox.Delivered: "delivered", outbox.Dead: "dead"}[v.Outcome])
	}
	return true, nil
}

type deliver func(ctx context.Context, m outbox.Message) error

func (d deliver) Deliver(ctx context.Context, _ string, m outbox.Message) error { return d(ctx, m) }

func TestRelay(t *testing.T) {
	until := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	for name, c := range map[string]struct {
		deliver deliver
		lost    bool
		stop    time.Duration // when the relay is told to end
		log     string
	}{
		"taken at the third try": {func(_ context.Context, m outbox.Message) error {
			if m.Attempts < 3 {
				return errors.New("no")
			}
			return nil
		}, false, time.Hour, "[retry retry delivered]"},
		"never taken":                      {func(context.Context, outbox.Message) error { return errors.New("no") }, false, 24 * time.Hour, "[retry retry retry dead]"},
		"longer than the lease":            {func(context.Context, outbox.Message) error { time.Sleep(5 * time.Minute); return nil }, false, time.Hour, "[delivered]"},
		"the claim is lost":                {func(ctx context.Context, _ outbox.Message) error { return until(ctx) }, true, time.Hour, "[not mine]"},
		"told to end in a delivery":        {func(ctx context.Context, _ outbox.Message) error { return until(ctx) }, false, time.Minute, "[given back]"},
		"told to end, done in the grace":   {func(context.Context, outbox.Message) error { time.Sleep(65 * time.Second); return nil }, false, time.Minute, "[delivered]"},
		"told to end before there is time": {func(context.Context, outbox.Message) error { return nil }, false, 0, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{lost: c.lost}
				r, err := outbox.New(outbox.Config{Boxes: s, Deliverer: c.deliver, Attempts: 4})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.stop)
				defer cancel()
				for ctx.Err() == nil { // as the queue does
					next, err := r.Deliver(ctx, "t")
					if err != nil || next.IsZero() {
						break
					}
					select {
					case <-ctx.Done():
					case <-time.After(time.Until(next)):
					}
				}
				if got := fmt.Sprint(s.log); got != c.log {
					t.Errorf("%s, want %s", got, c.log)
				}
			})
		})
	}
}

type outside struct {
	header map[string]string
	body   []byte
	status int
}

func (o *outside) Post(_ context.Context, _, _ string, h map[string]string, body []byte) (int, error) {
	o.header, o.body = h, body
	return o.status, nil
}

type secrets map[string]string

func (s secrets) Secret(_ context.Context, tenant, _ string) (string, error) {
	if key, ok := s[tenant]; ok {
		return key, nil
	}
	return "", fault.New(fault.NotFound, "none")
}

// What a receiver does to verify a message, in the words of docs/http.md.
func TestSignature(t *testing.T) {
	key := []byte("0123456789abcdef")
	m := outbox.Message{Attempts: 2, Gap: true, CreatedAt: time.Unix(7, 0).UTC()}
	m.EventID, m.Target, m.Token, m.Hops = "e", "https://example.com/", 9, 1
	o := &outside{status: 200}
	c := outbox.Carrier{Outside: o, Secrets: secrets{"plain": string(key), "encoded": "whsec_" + base64.StdEncoding.EncodeToString(key)}}
	for _, tenant := range []string{"plain", "encoded"} {
		if err := c.Deliver(t.Context(), tenant, m); err != nil {
			t.Fatal(err)
		}
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", o.header["Webhook-Id"], o.header["Webhook-Timestamp"], o.body)
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); o.header["Webhook-Signature"] != want {
			t.Errorf("%s: %v, want %s", tenant, o.header, want)
		}
		if o.header["Idempotency-Key"] != "e" || o.header["X-Fencing-Token"] != "9" || o.header[engine.HopsHeader] != "2" || o.header["X-Outbox-Attempt"] != "2" || o.header[outbox.GapHeader] != "1" {
			t.Errorf("%v", o.header)
		}
	}
	if err := c.Deliver(t.Context(), "none", m); err != nil || o.header["Webhook-Signature"] != "" {
		t.Errorf("without a key: %v, %v", err, o.header)
	}
	for _, status := range []int{199, 302, 404, 500} {
		o.status = status
		if c.Deliver(t.Context(), "none", m) == nil {
			t.Errorf("the status %d counts as delivered", status)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, cfg := range []outbox.Config{{}, {Boxes: &shelf{}}, {Boxes: &shelf{}, Deliverer: deliver(nil), Lease: -1}, {Boxes: &shelf{}, Deliverer: deliver(nil), Attempts: -1}} {
		if _, err := outbox.New(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}
