package engine

import (
	"fmt"
	"math"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/time/rate"

	"apiengine/apis"
	"apiengine/fault"
)

// rates keeps one token bucket for each (tenant, API, caller); the least used of too many
// are dropped. None expires: that would need a goroutine, and a full bucket is like none.
type rates struct {
	buckets *otter.Cache[rateKey, *rate.Limiter]
}

type rateKey struct{ tenant, api, limit, caller string }

func newRates() *rates {
	return &rates{buckets: otter.Must(&otter.Options[rateKey, *rate.Limiter]{
		MaximumSize: 100_000,
	})}
}

// take uses one call of the caller's allowance, or returns rate_limited with the details
// Limit, WindowSeconds and RetryAfterMs.
func (r *rates) take(c Call, d *apis.Definition) error {
	if d.RateLimit == "" {
		return nil
	}
	count, per, err := apis.ParseRate(d.RateLimit)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the API's RateLimit is unusable") // refused when saved
	}
	caller := "token:" + c.Caller.ID
	if c.Caller.Anonymous() {
		caller = "addr:" + c.ClientIP
	}
	key := rateKey{c.Tenant, d.ApiEngineKey, d.RateLimit, caller}
	every := rate.Limit(float64(count) / per.Seconds())
	bucket, _ := r.buckets.ComputeIfAbsent(key, func() (*rate.Limiter, bool) {
		return rate.NewLimiter(every, count), false
	})
	if bucket.Allow() {
		return nil
	}
	wait := time.Duration(math.Max(0, 1-bucket.Tokens()) / float64(every) * float64(time.Second))
	e := fault.New(fault.RateLimited, "%s", fmt.Sprintf("at most %d calls in %v", count, per))
	e.Fields = map[string]any{"Limit": count, "WindowSeconds": int(per.Seconds()), "RetryAfterMs": wait.Milliseconds() + 1}
	return e
}
