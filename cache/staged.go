package cache

import (
	"context"
	"sync"

	"apiengine/fault"
)

// maxStaged is how many bytes of keys and values one run may stage.
const maxStaged = 64 << 20

// Staged is a Cache whose plain writes (Set, Remove, Expire, HashSet, HashDelete) wait for
// Flush; reads see them meanwhile, without their ttl: that starts at the flush. What they
// answer, and whether a hash operation meets a hash, is found out when they are staged.
//
// SetIfNotExists, Increment, CompareAndSet, GetAndRemove and HashIncrement act on the base
// at once, and can then not be taken back; but not on a key, or the field of a hash, for
// which the run has staged a value or a removal. There they answer by what is staged, and
// what they write is staged behind it: the base would else get what may be rolled back.
//
// It belongs to one run. Its methods may be called from several goroutines.
type Staged struct {
	base *View

	mu      sync.Mutex
	ops     []staged
	shadows map[key]*shadow
	bytes   int
}

// staged is an op in the order of the run. One that is gone stays, so that marks stay valid.
type staged struct {
	op
	gone bool
}

var _ Cache = (*Staged)(nil)

// NewStaged returns an empty overlay over base.
func NewStaged(base *View) *Staged {
	return &Staged{base: base, shadows: map[key]*shadow{}}
}

// Empty reports whether nothing waits for Flush.
func (s *Staged) Empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.shadows) == 0
}

// Flush applies what waits, in order, in as few round trips as the base can. With the token
// of the run's lock each write is compared with its key's mark in the same step: where a
// larger token has written, a SetFenced is left out, and any other write removes its key. So
// a flush that comes late never replaces what a newer holder has left, and where two locks
// write one key, neither leaves a value that may be old. 0: no lock, nothing is compared.
//
// After an error all of it still waits: calling again does no harm, and Invalidate is the
// way out.
func (s *Staged) Flush(ctx context.Context, token int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.base.driver.apply(ctx, s.fencedBy(token, KeepFlushed)); err != nil {
		return err
	}
	s.clear()
	return nil
}

// Invalidate removes every key that Flush would have changed. It is for a run that must
// not write any more (its lock is lost) or whose Flush failed after the commit: a cache may
// be emptied, never left stale. After an error all still waits.
func (s *Staged) Invalidate(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var removals []op
	for k := range s.shadows {
		removals = append(removals, op{kind: opRemove, key: k})
	}
	if err := s.base.driver.apply(ctx, removals); err != nil {
		return err
	}
	s.clear()
	return nil
}

// Drop forgets what waits. Marks are no longer valid.
func (s *Staged) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
}

// Mark returns the present point, for RollbackTo. It is valid until Flush or Drop.
func (s *Staged) Mark() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ops)
}

// RollbackTo forgets what was staged after mark and still waits.
func (s *Staged) RollbackTo(mark int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mark >= 0 && mark < len(s.ops) {
		s.rebuild(s.ops[:mark])
	}
}

func (s *Staged) clear() { s.rebuild(nil) }

// rebuild makes ops all that was staged.
func (s *Staged) rebuild(ops []staged) {
	clear(s.ops[len(ops):]) // lets go of the values
	s.ops, s.bytes = ops, 0
	clear(s.shadows)
	for _, o := range ops {
		if !o.gone {
			s.fold(o.op)
		}
	}
}

func (s *Staged) fold(o op) {
	sh := s.shadows[o.key]
	if sh == nil {
		sh = &shadow{}
		s.shadows[o.key] = sh
	}
	sh.fold(o)
	s.bytes += o.size()
}

func (o op) size() int { return overhead + len(o.key.name) + len(o.field) + len(o.value) }

// add stages o.
func (s *Staged) add(o op) error {
	if s.bytes+o.size() > maxStaged {
		return fault.New(fault.LimitMemory, "V8.Cache: more than %d MiB of writes wait for the commit", maxStaged>>20)
	}
	s.ops = append(s.ops, staged{op: o})
	s.fold(o)
	return nil
}

func (s *Staged) pending() []op {
	var list []op
	for _, o := range s.ops {
		if !o.gone {
			list = append(list, o.op)
		}
	}
	return list
}

// forget makes nothing wait for k any more.
func (s *Staged) forget(k key) {
	if s.shadows[k] == nil {
		return
	}
	for i := range s.ops {
		if s.ops[i].key == k && !s.ops[i].gone {
			s.bytes -= s.ops[i].size()
			s.ops[i] = staged{op: op{key: k}, gone: true} // without the value
		}
	}
	delete(s.shadows, k)
}
