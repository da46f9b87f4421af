package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"apiengine/lockwrap"
)

// plan is what a change does beside writing the state.
type plan struct {
	skip bool          // nothing is to be written
	life time.Duration // of a new etcd lease for <lock>:l; 0: it stays as it is
	free bool          // <lock>:l goes
	keep time.Duration // how long the state is remembered from now on; 0: as long as before
	tell string        // the node that is told of the lock
}

// change reads the lock, lets decide look at and alter its state, and writes that, all over
// again while others change the lock in between.
func (b *Backend) change(ctx context.Context, op, lock string, decide func(s *state) plan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.work, cancel)()
	s, err := b.read(ctx, lock)
	for err == nil {
		was := s.lease
		p := decide(s)
		if p.skip {
			return nil
		}
		var w write
		if w, err = b.prepare(ctx, s, p); err != nil {
			break
		}
		var r *clientv3.TxnResponse
		err = b.members.ask(ctx, func(ctx context.Context, c *clientv3.Client) (err error) {
			r, err = c.Txn(ctx).If(s.unchanged(lock)...).Then(w.ops(lock, s, p)...).Else(reading(lock)...).Commit()
			return err
		})
		switch {
		case errors.Is(err, rpctypes.ErrLeaseNotFound): // nothing was done; the state's lease is the one that can be gone
			b.memory.forget()
			b.spend(w.lease)
			s, err = b.read(ctx, lock)
		case err != nil:
			return classify(op, err)
		case r.Succeeded:
			if p.free || p.life > 0 {
				b.spend(was)
			}
			if p.tell != "" { // from now on, not from when somebody looks
				s.alive, s.held = false, 0
				b.sights.see(lock, s)
			}
			return nil
		default:
			b.spend(w.lease)
			s, err = parse(r.Responses)
		}
		if err != nil {
			return &lockwrap.BackendError{Op: op, Err: err}
		}
	}
	return &lockwrap.BackendError{Op: op, Err: err} // nothing of the lock's was written
}

func reading(lock string) []clientv3.Op {
	return []clientv3.Op{clientv3.OpGet(lock + ":s"), clientv3.OpGet(lock + ":l")}
}

func (b *Backend) read(ctx context.Context, lock string) (s *state, err error) {
	err = b.members.find(ctx, func(ctx context.Context, c *clientv3.Client) error {
		r, err := c.Txn(ctx).Then(reading(lock)...).Commit()
		if err == nil {
			s, err = parse(r.Responses)
		}
		return err
	})
	return s, err
}

func parse(responses []*etcdserverpb.ResponseOp) (*state, error) {
	s := &state{}
	if kvs := responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		if err := json.Unmarshal(kvs[0].Value, s); err != nil {
			return nil, fmt.Errorf("key %s is not a lock's: %w", kvs[0].Key, err)
		}
		s.known, s.memory = kvs[0].ModRevision, clientv3.LeaseID(kvs[0].Lease)
	}
	if kvs := responses[1].GetResponseRange().Kvs; len(kvs) > 0 {
		s.held, s.lease = kvs[0].ModRevision, clientv3.LeaseID(kvs[0].Lease)
		s.alive = true
	}
	return s, nil
}

func (s *state) unchanged(lock string) []clientv3.Cmp {
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(lock+":s"), "=", s.known),
		clientv3.Compare(clientv3.ModRevision(lock+":l"), "=", s.held),
	}
}

// write is what a transaction needs that has to be made before it.
type write struct {
	text          string
	lease, memory clientv3.LeaseID
	notice        clientv3.LeaseID
}

func (b *Backend) prepare(ctx context.Context, s *state, p plan) (w write, err error) {
	text, err := json.Marshal(s)
	if err != nil {
		return w, err
	}
	w.text, w.memory = string(text), s.memory
	if p.keep > 0 || s.memory == 0 {
		if w.memory, err = b.memory.lease(ctx, b.members, p.keep); err != nil {
			return w, err
		}
	}
	if p.tell != "" {
		if w.notice, err = b.memory.lease(ctx, b.members, 0); err != nil {
			return w, err
		}
	}
	if p.life > 0 { // the last, so that it is whole when it is used
		w.lease, err = b.members.grant(ctx, seconds(p.life))
	}
	return w, err
}

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

func (w *write) ops(lock string, s *state, p plan) []clientv3.Op {
	ops := []clientv3.Op{clientv3.OpPut(lock+":s", w.text, clientv3.WithLease(w.memory))}
	switch {
	case p.free:
		ops = append(ops, clientv3.OpDelete(lock+":l"))
	case p.life > 0:
		ops = append(ops, clientv3.OpPut(lock+":l", lockwrap.Owner{Token: s.Token, Holder: s.Holder}.String(), clientv3.WithLease(w.lease)))
	}
	if p.tell != "" {
		ops = append(ops, clientv3.OpPut(p.tell, lock, clientv3.WithLease(w.notice)))
	}
	return ops
}

// classify says whether a failed transaction can have been executed. What etcd refuses without
// doing it has one of these codes. About everything else nobody knows: a proposal that timed
// out, or ErrNoSpace, which also tells of the change that has just filled the space.
func classify(op string, err error) error {
	switch code(err) {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.NotFound, codes.FailedPrecondition, codes.OutOfRange:
		return &lockwrap.BackendError{Op: op, Err: err}
	}
	return &lockwrap.UnknownError{Op: op, Err: err}
}

func code(err error) codes.Code {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code()
	}
	return status.Code(err)
}

// memory has the leases that states and notices hang on, so that both are gone some day. One
// serves many locks for an hour.
type memory struct {
	mu  sync.Mutex
	all map[int64]remembrance // by whole hours
}

type remembrance struct {
	id    clientv3.LeaseID
	until time.Time // end of its use
}

func (m *memory) lease(ctx context.Context, members *members, keep time.Duration) (clientv3.LeaseID, error) {
	hours := int64((keep + time.Hour - 1) / time.Hour)
	m.mu.Lock()
	defer m.mu.Unlock() // also while it is made: whoever needs one meanwhile needs the same
	now := time.Now()
	if x, ok := m.all[hours]; ok && now.Before(x.until) {
		return x.id, nil
	}
	id, err := members.grant(ctx, (hours+2)*3600) // it is used for one, and outlives what is put last by what was asked for
	if err != nil {
		return 0, err
	}
	if m.all == nil {
		m.all = map[int64]remembrance{}
	}
	m.all[hours] = remembrance{id, now.Add(time.Hour)}
	return id, nil
}

// forget is for when etcd does not know one of the leases any more.
func (m *memory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.all)
}

// spend gives a lease to the worker that revokes it. One that finds no place ends by itself.
func (b *Backend) spend(id clientv3.LeaseID) {
	if id == 0 {
		return
	}
	select {
	case b.spent <- id:
	default:
	}
}

func (b *Backend) revoking() {
	for {
		select {
		case <-b.work.Done():
			return
		case id := <-b.spent:
			ctx, cancel := context.WithTimeout(b.work, time.Second)
			_ = b.members.ask(ctx, func(ctx context.Context, c *clientv3.Client) error { // else it ends by itself
				_, err := c.Revoke(ctx, id)
				return err
			})
			cancel()
		}
	}
}
