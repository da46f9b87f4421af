// Package etcd keeps locks in etcd 3.4 or newer.
//
// A lock is two keys. <lock>:s is what is known of it, which every change replaces if it is
// still as it was read: the last token, who holds it, the line of nodes. <lock>:l exists
// while the lock is held; it hangs on an etcd lease of its own, so it ends by etcd's clock.
// etcd counts leases in whole seconds, gives two at least, and looks at them twice a second: a
// holder that died keeps its lock for up to half a second longer than a lease of whole seconds
// from two on. It never loses it sooner. Where etcd is later than that, as after a change of
// its leader, a node that has seen the lock unchanged for the length of its lease takes it.
//
// An acquire is three round trips, two of them writes; a release is two, one a write.
// Operators compact etcd's history themselves (--auto-compaction-retention): every change
// of a lock is a revision.
package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"apiengine/lockwrap"
)

// Config sets up a Backend. Endpoints is required; a zero field takes its default.
type Config struct {
	// Endpoints are http(s)://host:port, several of one cluster parted by commas; the first
	// may have user:password@ before its host.
	Endpoints string
	TLS       *tls.Config   // for https; default the system's authorities
	Timeout   time.Duration // of a dial; default 2s, at least 10ms
}

// Backend is a lockwrap.Backend in etcd. It has clients of its own.
type Backend struct {
	members *members
	memory  memory
	sights  sights
	spent   chan clientv3.LeaseID // of locks that were given back
	work    context.Context
	stop    context.CancelFunc
	worker  sync.WaitGroup
}

var _ lockwrap.Backend = (*Backend)(nil)

// New returns a Backend, or an error that names the first unusable field of cfg. It does
// not wait for a connection: a server that is not there yet is a *lockwrap.BackendError of
// later calls.
func New(cfg Config) (*Backend, error) {
	cfg.Timeout = cmp.Or(cfg.Timeout, 2*time.Second)
	if cfg.Timeout < 10*time.Millisecond {
		return nil, fmt.Errorf("etcd: Config.Timeout must be at least 10ms, not %v", cfg.Timeout)
	}
	c, err := options(&cfg)
	if err != nil {
		return nil, fmt.Errorf("etcd: Config.Endpoints %w", err)
	}
	open := func(ctx context.Context, endpoint string) (*clientv3.Client, error) {
		one := c
		one.Context, one.Endpoints = ctx, []string{endpoint}
		return clientv3.New(one)
	}
	b := &Backend{members: newMembers(c.Endpoints, open), spent: make(chan clientv3.LeaseID, 1000)}
	b.work, b.stop = context.WithCancel(context.Background())
	b.worker.Go(b.revoking)
	return b, nil
}

var errEndpoint = errors.New("must be http://host:port or https://host:port, parted by commas")

// options reads the endpoints. No error repeats them: they may hold a password.
func options(cfg *Config) (clientv3.Config, error) {
	c := clientv3.Config{DialTimeout: cfg.Timeout, DialKeepAliveTime: 5 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		PermitWithoutStream: true, Logger: zap.NewNop(), MaxUnaryRetries: 2, // more is up to who asks
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: cfg.Timeout,
			Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: time.Second}})}}
	for i, part := range strings.Split(cfg.Endpoints, ",") {
		u, err := url.Parse(strings.TrimSpace(part))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Port() == "" ||
			strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil && i > 0 {
			return c, errEndpoint
		}
		if u.User != nil {
			c.Username = u.User.Username()
			c.Password, _ = u.User.Password()
		}
		if u.Scheme == "https" && c.TLS == nil {
			c.TLS = cmp.Or(cfg.TLS, &tls.Config{MinVersion: tls.VersionTLS12})
		}
		c.Endpoints = append(c.Endpoints, u.Scheme+"://"+u.Host)
	}
	return c, nil
}

// Acquire is lockwrap.Backend's.
func (b *Backend) Acquire(ctx context.Context, c lockwrap.Claim) (lockwrap.Reply, error) {
	var r lockwrap.Reply
	err := b.change(ctx, "acquire", c.Lock, func(s *state) plan {
		if s.alive && s.Holder == c.Holder {
			r = lockwrap.Reply{Held: true, Token: s.Token, Left: c.TTL}
			s.lives(c.TTL)
			return plan{life: c.TTL}
		}
		if left, taken := b.sights.taken(c.Lock, s, c.Node); taken {
			r = lockwrap.Reply{Token: s.Token, Left: left}
			if s.alive {
				r.By = lockwrap.Holder{API: s.API, Since: time.UnixMicro(s.Since)}
			}
			return plan{skip: !c.Queue || !s.join(c.Node)}
		}
		s.grant(&c)
		r = lockwrap.Reply{Held: true, Token: s.Token, Left: c.TTL}
		return plan{life: c.TTL, keep: c.Keep}
	})
	return r, err
}

// Confirm is lockwrap.Backend's.
func (b *Backend) Confirm(ctx context.Context, lock string, o lockwrap.Owner) (lockwrap.Reply, error) {
	s, err := b.read(ctx, lock)
	if err != nil {
		return lockwrap.Reply{}, &lockwrap.BackendError{Op: "confirm", Err: err} // it changes nothing in any case
	}
	if !s.owns(o) {
		return lockwrap.Reply{Token: s.Token}, nil
	}
	var life *clientv3.LeaseTimeToLiveResponse
	err = b.members.find(ctx, func(ctx context.Context, c *clientv3.Client) (err error) {
		life, err = c.TimeToLive(ctx, s.lease)
		return err
	})
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound), err == nil && life.TTL < 0: // it has just ended
		return lockwrap.Reply{Token: s.Token}, nil
	case err != nil:
		return lockwrap.Reply{}, &lockwrap.BackendError{Op: "confirm", Err: err}
	}
	least := time.Duration(life.TTL) * time.Second // whole seconds, cut off
	return lockwrap.Reply{Held: true, Token: s.Token, Left: min(max(s.left(), least), least+time.Second)}, nil
}

// Renew is lockwrap.Backend's.
func (b *Backend) Renew(ctx context.Context, lock string, o lockwrap.Owner, ttl time.Duration) (lockwrap.Reply, error) {
	var r lockwrap.Reply
	err := b.change(ctx, "renew", lock, func(s *state) plan {
		r = lockwrap.Reply{Token: s.Token}
		if !s.owns(o) {
			return plan{skip: true}
		}
		r.Held, r.Left = true, ttl
		s.lives(ttl)
		return plan{life: ttl}
	})
	return r, err
}

// Release is lockwrap.Backend's.
func (b *Backend) Release(ctx context.Context, lock string, o lockwrap.Owner, next *lockwrap.Claim) (lockwrap.Reply, error) {
	var r lockwrap.Reply
	err := b.change(ctx, "release", lock, func(s *state) plan {
		r = lockwrap.Reply{Token: s.Token}
		switch {
		case next != nil && s.alive && s.Holder == next.Holder: // done before
			r = lockwrap.Reply{Held: true, Token: o.Token, Next: s.Token, Left: next.TTL}
			s.lives(next.TTL)
			return plan{life: next.TTL}
		case !s.owns(o):
			return plan{skip: true}
		case next == nil || next.Yield && len(s.Line) > 0:
			r.Held = true
			s.pass()
			if next != nil && next.Queue {
				s.join(next.Node)
			}
			return plan{free: true, tell: s.Kept}
		}
		s.grant(next)
		r.Held, r.Next, r.Left = true, s.Token, next.TTL
		return plan{life: next.TTL, keep: next.Keep}
	})
	return r, err
}

// Leave is lockwrap.Backend's.
func (b *Backend) Leave(ctx context.Context, lock, node string) error {
	return b.change(ctx, "leave", lock, func(s *state) plan {
		out := s.leave(node)
		if s.alive || s.Kept != node || b.sights.see(lock, s) == 0 { // a keeping that is over is nobody's to pass on
			return plan{skip: !out}
		}
		s.pass()
		return plan{tell: s.Kept}
	})
}

// Notify is lockwrap.Backend's.
func (b *Backend) Notify(ctx context.Context, node string, hear func(lock string)) error {
	if err := b.members.watch(ctx, node, hear); err != nil && ctx.Err() == nil {
		return fmt.Errorf("etcd: the watch ended: %w", err)
	}
	return nil
}

// Ping is lockwrap.Backend's.
func (b *Backend) Ping(ctx context.Context) error { return b.members.ping(ctx) }

// Close is lockwrap.Backend's.
func (b *Backend) Close() error {
	b.stop()
	b.worker.Wait()
	return b.members.close()
}
