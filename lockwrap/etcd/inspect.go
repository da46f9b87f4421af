package etcd

import (
	"context"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"apiengine/lockwrap"
)

var _ lockwrap.Inspector = (*Backend)(nil)

// page is how many keys are read at once.
const page = 1000

// Locks is lockwrap.Inspector's. It walks over the names of the keys, and reads each held lock.
func (b *Backend) Locks(ctx context.Context, prefix string) ([]lockwrap.Holding, error) {
	var list []lockwrap.Holding
	end := clientv3.GetPrefixRangeEnd(prefix)
	for from := prefix; ; {
		var r *clientv3.GetResponse
		err := b.members.find(ctx, func(ctx context.Context, c *clientv3.Client) (err error) {
			r, err = c.Get(ctx, from, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(page))
			return err
		})
		if err != nil {
			return nil, &lockwrap.BackendError{Op: "locks", Err: err}
		}
		for _, kv := range r.Kvs {
			from = string(kv.Key) + "\x00"
			lock, ok := strings.CutSuffix(string(kv.Key), ":l")
			if !ok {
				continue
			}
			h, err := b.Lock(ctx, lock)
			if err != nil {
				return nil, err
			}
			if h.Owner.Holder != "" {
				list = append(list, h)
			}
		}
		if !r.More {
			return list, nil
		}
	}
}

// Lock is lockwrap.Inspector's.
func (b *Backend) Lock(ctx context.Context, lock string) (h lockwrap.Holding, err error) {
	s, err := b.read(ctx, lock)
	switch {
	case err != nil:
		return h, &lockwrap.BackendError{Op: "lock", Err: err}
	case !s.alive:
		return h, nil
	}
	h = lockwrap.Holding{Lock: lock, Owner: lockwrap.Owner{Token: s.Token, Holder: s.Holder},
		By: lockwrap.Holder{API: s.API, Since: time.UnixMicro(s.Since)}, Left: s.left()}
	for _, node := range s.Line {
		w := lockwrap.Waiting{Node: node}
		if us := s.Came[node]; us > 0 { // a node of an older version says nothing of it
			w.Since = time.UnixMicro(us)
		}
		h.Waiting = append(h.Waiting, w)
	}
	return h, nil
}
