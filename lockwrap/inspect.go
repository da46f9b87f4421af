package lockwrap

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"apiengine/fault"
)

// Inspector is what a Backend may have besides: a look at the locks of all nodes. What is
// taken or given back during the look may show or not.
type Inspector interface {
	// Locks returns the held locks whose names begin with prefix, in any order.
	Locks(ctx context.Context, prefix string) ([]Holding, error)

	// Lock returns who holds one lock and who waits for it; without an Owner nobody does.
	Lock(ctx context.Context, lock string) (Holding, error)
}

// Holding is one lock as its backend keeps it.
type Holding struct {
	Lock    string
	Owner   Owner // whoever has it can release the lock: not to be shown
	By      Holder
	Left    time.Duration
	Waiting []Waiting // nodes other than the holder's, the first in line first
}

// Waiting is a node in the line for a lock.
type Waiting struct {
	Node  string
	Since time.Time // when the node began to stand in line
	Count int       // how many wait there; 0 when only that node knows
}

// Status is one held lock as an administrator may see it.
type Status struct {
	Lock    string // Key.String of its Key
	Token   int64
	Node    string // the Config.Instance of its holder
	By      Holder
	Left    time.Duration // until the backend drops it unless it is renewed
	Waiting []Waiting
}

// NotHeldError reports a lock that is not held, or not with the token that was named.
type NotHeldError struct {
	Lock  string
	Token int64 // of the holder; 0: nobody holds it
}

func (e *NotHeldError) Error() string { return "lockwrap: " + e.Public() }

// Kind classifies the error.
func (e *NotHeldError) Kind() fault.Kind {
	if e.Token == 0 {
		return fault.NotFound
	}
	return fault.VersionConflict
}

// Public is the text for the caller.
func (e *NotHeldError) Public() string {
	if e.Token == 0 {
		return fmt.Sprintf("nobody holds the lock %s", e.Lock)
	}
	return fmt.Sprintf("the lock %s is held with the token %d by now", e.Lock, e.Token)
}

// UninspectableError reports a backend that is no Inspector.
type UninspectableError struct{}

func (*UninspectableError) Error() string { return "lockwrap: the lock backend cannot list its locks" }

// Kind classifies the error.
func (*UninspectableError) Kind() fault.Kind { return fault.NotFound }

// Public is the text for the caller.
func (*UninspectableError) Public() string { return "this lock backend cannot list its locks" }

// Locks returns the held locks of all nodes whose Key.String begins with prefix, ordered by
// it. How many wait is known of this node only. Errors: *UninspectableError, the backend's.
func (m *Manager) Locks(ctx context.Context, prefix string) ([]Status, error) {
	inspector, ok := m.cfg.Backend.(Inspector)
	if !ok {
		return nil, &UninspectableError{}
	}
	held, err := inspector.Locks(ctx, m.cfg.Prefix+":{"+prefix)
	if err != nil {
		return nil, err
	}
	list := make([]Status, 0, len(held))
	for _, h := range held {
		list = append(list, m.status(h))
	}
	slices.SortFunc(list, func(a, b Status) int { return strings.Compare(a.Lock, b.Lock) })
	return list, nil
}

// Lock returns the state of one lock by its Key.String, or a *NotHeldError.
func (m *Manager) Lock(ctx context.Context, lock string) (Status, error) {
	h, err := m.holding(ctx, lock)
	if err != nil {
		return Status{}, err
	}
	return m.status(h), nil
}

func (m *Manager) holding(ctx context.Context, lock string) (Holding, error) {
	inspector, ok := m.cfg.Backend.(Inspector)
	if !ok {
		return Holding{}, &UninspectableError{}
	}
	h, err := inspector.Lock(ctx, m.name(lock))
	if err == nil && h.Owner.Holder == "" {
		err = &NotHeldError{Lock: lock}
	}
	return h, err
}

// ForceRelease takes a lock, named by its Key.String, away from the holder with this token.
// The holder's run ends with a *LostError: at once where it is this node's, else at its next
// Confirm or renewal. Errors: *NotHeldError, *UninspectableError, the backend's; after an
// *UnknownError it may be repeated.
func (m *Manager) ForceRelease(ctx context.Context, lock string, token int64) error {
	h, err := m.holding(ctx, lock)
	if err != nil {
		return err
	}
	if h.Owner.Token != token {
		return &NotHeldError{Lock: lock, Token: h.Owner.Token}
	}
	r, err := m.cfg.Backend.Release(ctx, m.name(lock), h.Owner, nil)
	if err != nil {
		return err
	}
	if !r.Held {
		return &NotHeldError{Lock: lock}
	}
	if l := m.lines.holder(m.name(lock)); l != nil && l.owner == h.Owner {
		_ = l.fail(&LostError{Cause: TokenMismatch, Last: token}) // Lost tells
	}
	return nil
}

// nodes is what the names of all nodes begin with, see Claim.Node.
func (m *Manager) nodes() string { return m.cfg.Prefix + ":w:" }

// name is a lock's name in the backend.
func (m *Manager) name(lock string) string { return m.cfg.Prefix + ":{" + lock + "}" }

func (m *Manager) status(h Holding) Status {
	instance, _, _ := strings.Cut(h.Owner.Holder, ":")
	s := Status{Lock: strings.TrimSuffix(strings.TrimPrefix(h.Lock, m.cfg.Prefix+":{"), "}"),
		Token: h.Owner.Token, Node: decoded(instance), By: h.By.apart(), Left: h.Left}
	for _, w := range h.Waiting {
		if w.Node != m.node {
			w.Node = decoded(strings.TrimPrefix(w.Node, m.nodes()))
			s.Waiting = append(s.Waiting, w)
		}
	}
	if here := m.lines.waiting(h.Lock); here.Count > 0 {
		here.Node = m.cfg.Instance
		s.Waiting = append(s.Waiting, here)
	}
	slices.SortStableFunc(s.Waiting, func(a, b Waiting) int { return a.Since.Compare(b.Since) })
	return s
}

// decoded reads what encode wrote; a hash stays one.
func decoded(part string) string {
	if plain, err := url.PathUnescape(part); err == nil {
		return plain
	}
	return part
}

// holder is this node's lease on a lock, or nil.
func (ls *lines) holder(lock string) (held *Lease) {
	ls.with(lock, func(l *line) { held = l.held })
	return held
}

// waiting says how many stand in this node's line for a lock, and since when.
func (ls *lines) waiting(lock string) (w Waiting) {
	ls.with(lock, func(l *line) {
		if w.Count = len(l.queue); w.Count > 0 {
			w.Since = l.queue[0].hunt.began
		}
	})
	return w
}

// A holder's note travels in the same text as its API, behind a character that label takes
// out of both, so that a backend need not know of it.
const noteMark = "\t"

func labels(api, note string) string {
	if note == "" {
		return label(api)
	}
	return label(api) + noteMark + label(note)
}

// apart parts what labels joined.
func (h Holder) apart() Holder {
	h.API, h.Note, _ = strings.Cut(h.API, noteMark)
	return h
}
