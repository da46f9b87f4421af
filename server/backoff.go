package server

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// backoff slows guessing (S39). Bad credentials of an address take from its bucket; an
// empty bucket turns their 401 into 429. A good credential is never kept out: whoever
// shares an address with a guesser goes on working, and 256 random bits are not guessed.
type backoff struct {
	burst int
	now   func() time.Time
	mu    sync.Mutex
	by    map[string]*rate.Limiter
	rest  *rate.Limiter // of all addresses that found no place
}

const (
	backoffRefill    = rate.Limit(1) // a second
	backoffAddresses = 10000
)

func newBackoff(burst int) *backoff {
	return &backoff{burst: burst, now: time.Now, by: map[string]*rate.Limiter{}, rest: rate.NewLimiter(backoffRefill, burst)}
}

// add counts one failure of ip and returns how long to wait when it is one too many.
func (b *backoff) add(ip string) time.Duration {
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	res := b.limiter(network(ip), now).ReserveN(now, 1)
	wait := res.DelayFrom(now)
	if wait > 0 {
		res.CancelAt(now)
	}
	return wait
}

func (b *backoff) limiter(key string, now time.Time) *rate.Limiter {
	if l, ok := b.by[key]; ok {
		return l
	}
	if len(b.by) >= backoffAddresses {
		b.forget(now)
	}
	if len(b.by) >= backoffAddresses {
		return b.rest
	}
	l := rate.NewLimiter(backoffRefill, b.burst)
	b.by[key] = l
	return l
}

// forget drops the addresses whose buckets are full again: they are as good as unknown.
func (b *backoff) forget(now time.Time) {
	for k, l := range b.by {
		if l.TokensAt(now) >= float64(b.burst) {
			delete(b.by, k)
		}
	}
}

// network is what one caller owns: an IPv4 address, an IPv6 /64.
func network(ip string) string {
	a, ok := parseAddr(ip)
	if !ok || a.Is4() {
		return ip
	}
	p, err := netip.AddrFrom16(a.As16()).Prefix(64)
	if err != nil {
		return ip
	}
	return p.String()
}
