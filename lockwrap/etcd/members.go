package etcd

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"apiengine/lockwrap"
)

// members has a client for each endpoint and uses one of them until it fails. A client of all
// endpoints spreads its requests over them: of the three that make a change one would go to a
// member that has fallen silent, each time, for the 13 seconds until gRPC notices (it pings
// every ten at most).
type members struct {
	open func(ctx context.Context, endpoint string) (*clientv3.Client, error)
	all  []*member
	work context.Context
	stop context.CancelFunc
	wait sync.WaitGroup

	mu    sync.Mutex
	used  int           // index of the one in use
	moved chan struct{} // closed when that is left; each use has another
	heard time.Time     // when the one in use last answered
}

type member struct {
	endpoint string
	silences int // since it last answered; under the lock of members

	mu      sync.Mutex
	opening *opening // nil: not yet, or in vain
	closed  bool
}

// opening is a client being made, which takes a while where a password has to be changed for
// a token.
type opening struct {
	done   chan struct{}
	client *clientv3.Client
	err    error
}

var errClosed = errors.New("the backend is closed")

func newMembers(endpoints []string, open func(context.Context, string) (*clientv3.Client, error)) *members {
	m := &members{open: open, moved: make(chan struct{}), used: rand.IntN(len(endpoints))}
	for _, e := range endpoints {
		m.all = append(m.all, &member{endpoint: e})
	}
	m.work, m.stop = context.WithCancel(context.Background())
	return m
}

// use is a member while it is in use.
type use struct {
	*member
	moved <-chan struct{} // closed when it is left
}

func (m *members) now() use {
	m.mu.Lock()
	defer m.mu.Unlock()
	return use{m.all[m.used], m.moved}
}

// leave turns to another member, unless that has been done since: to the next of those that
// have been silent least, as each silence costs a request its whole time.
func (m *members) leave(u use, silent bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if u.moved != m.moved || len(m.all) == 1 {
		return
	}
	if silent {
		u.silences++
	}
	next := (m.used + 1) % len(m.all)
	for i := range len(m.all) - 1 {
		if at := (m.used + 1 + i) % len(m.all); m.all[at].silences < m.all[next].silences {
			next = at
		}
	}
	close(m.moved)
	m.used, m.moved, m.heard = next, make(chan struct{}), time.Time{}
}

// client returns the member's client, which is made when it is first needed.
func (m *members) client(ctx context.Context, one *member) (*clientv3.Client, error) {
	one.mu.Lock()
	o := one.opening
	if o == nil {
		if one.closed {
			one.mu.Unlock()
			return nil, errClosed
		}
		o = &opening{done: make(chan struct{})}
		one.opening = o
		m.wait.Go(func() { m.make(one, o) })
	}
	one.mu.Unlock()
	select {
	case <-o.done:
		return o.client, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *members) make(one *member, o *opening) {
	defer close(o.done)
	if o.client, o.err = m.open(m.work, one.endpoint); o.err != nil {
		one.mu.Lock()
		defer one.mu.Unlock()
		one.opening = nil
	}
}

// ask sends a request to the member in use, and leaves that one if it does not serve: when it
// cannot be reached, has no leader, or has said nothing to anybody since the request was sent.
func (m *members) ask(ctx context.Context, request func(context.Context, *clientv3.Client) error) error {
	u, sent := m.now(), time.Now()
	c, err := m.client(ctx, u.member)
	if err == nil {
		err = request(clientv3.WithRequireLeader(ctx), c) // without a leader it could say nothing for long
	}
	switch {
	case unreachable(err):
		m.leave(u, false)
	case errors.Is(err, context.DeadlineExceeded):
		if m.silentSince(sent) {
			m.leave(u, true)
		}
	case !errors.Is(err, context.Canceled):
		m.answered(u)
	}
	return err
}

// find is ask for what may be asked again: it goes from member to member while they cannot be
// reached.
func (m *members) find(ctx context.Context, request func(context.Context, *clientv3.Client) error) (err error) {
	for range m.all {
		if err = m.ask(ctx, request); !unreachable(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

func unreachable(err error) bool { return err != nil && code(err) == codes.Unavailable }

func (m *members) silentSince(sent time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heard.Before(sent)
}

func (m *members) answered(u use) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if u.moved == m.moved {
		m.heard, u.silences = time.Now(), 0
	}
}

// watch calls hear for each value that is put under key, first with "" when it has begun. It
// ends with an error, or with nil when ctx has ended.
func (m *members) watch(ctx context.Context, key string, hear func(value string)) error {
	u := m.now()
	c, err := m.client(ctx, u.member)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := c.Watch(clientv3.WithRequireLeader(ctx), key, clientv3.WithCreatedNotify(), clientv3.WithFilterDelete())
	for {
		select {
		case <-u.moved:
			return errors.New("the member is not used any more")
		case r, ok := <-events:
			switch {
			case ctx.Err() != nil:
				return nil
			case !ok:
				return errors.New("it has no more events")
			case r.Err() != nil:
				m.leave(u, false)
				return r.Err()
			case r.Created:
				hear("")
			}
			for _, e := range r.Events {
				hear(string(e.Kv.Value))
			}
		}
	}
}

// grant makes a lease. One whose answer is lost ends by itself.
func (m *members) grant(ctx context.Context, seconds int64) (id clientv3.LeaseID, err error) {
	err = m.find(ctx, func(ctx context.Context, c *clientv3.Client) error {
		g, err := c.Grant(ctx, seconds)
		if err == nil {
			id = g.ID
		}
		return err
	})
	return id, err
}

func (m *members) close() (err error) {
	for _, one := range m.all {
		one.mu.Lock()
		one.closed = true
		one.mu.Unlock()
	}
	m.stop()
	m.wait.Wait()
	for _, one := range m.all {
		if one.opening != nil {
			err = errors.Join(err, one.opening.client.Close())
		}
	}
	return err
}

// ping is answered by the leader, or by nobody.
func (m *members) ping(ctx context.Context) error {
	err := m.find(ctx, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Get(ctx, "lockwrap", clientv3.WithCountOnly())
		return err
	})
	if err != nil && code(err) != codes.PermissionDenied {
		return &lockwrap.BackendError{Op: "ping", Err: err}
	}
	return nil
}
