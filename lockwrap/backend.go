package lockwrap

import (
	"context"
	"strconv"
	"time"
)

// Backend keeps locks, and a line of the nodes that wait for each. It knows nothing of
// waiting, renewal or deadlines: each method but Notify is one question and one answer, and
// every one may be repeated without harm.
//
// A method returns soon after its ctx's deadline; it need not notice a cancelled ctx before.
// It returns a *BackendError when it is certain that nothing was changed; any other error
// means that nobody knows, best as an *UnknownError. Package locktest is the full contract.
// A Backend may be an Inspector too.
type Backend interface {
	// Acquire takes the lock if it is free or kept for c.Node, in one atomic step with the
	// making of its token: the greatest of the last token + 1, c.Floor + 1 and the time in
	// microseconds; c.Node leaves the lock's line of nodes. When the lock is c.Holder's own
	// already it starts its life again and answers with its token. Held and Token tell of a
	// grant; otherwise By and Left tell of the holder, or Left alone of how long the lock is
	// kept for another node, and with c.Queue the node joins the line unless it stands there.
	Acquire(ctx context.Context, c Claim) (Reply, error)

	// Confirm answers whether the lock is o's now.
	Confirm(ctx context.Context, lock string, o Owner) (Reply, error)

	// Renew gives o's lock a life of ttl from now. It never takes a lock that is not o's.
	Renew(ctx context.Context, lock string, o Owner, ttl time.Duration) (Reply, error)

	// Release removes the lock if it is o's, and answers whether it was until now. An o
	// without a Token means its Holder's, whatever the token.
	//
	// In the same step the lock becomes next's, if next is not nil, as by Acquire; Reply.Next
	// is its token. But where next.Yield is set and nodes stand in line, the first of them
	// comes before it: then, and where there is no next, that node leaves the line, the lock
	// is kept for it during Grace, and it is notified; next.Node joins the line's end if
	// next.Queue is set. A Release that finds the lock to be next's already says what the
	// first said.
	Release(ctx context.Context, lock string, o Owner, next *Claim) (Reply, error)

	// Leave takes node out of the lock's line. If the lock was kept for it, it is kept for
	// the next one in line, or free.
	Leave(ctx context.Context, lock, node string) error

	// Notify calls hear with "" as soon as it listens, then with each lock that has begun to
	// be kept for node. It returns nil when ctx has ended, and an error when it cannot
	// listen any more; it does not try again by itself. hear returns at once. What happens
	// while nobody listens is not told later: a notice is a hint.
	Notify(ctx context.Context, node string, hear func(lock string)) error

	// Ping reports whether the backend can be reached.
	Ping(ctx context.Context) error

	// Close frees what the backend holds. Calls under way end with an error.
	Close() error
}

// Applier is a Backend that lives where other data lives too, and can change it in the step
// that gives a lock back.
type Applier interface {
	// ReleaseWith is Release, and in the same step applies e: as writes of the holder if the
	// lock was o's until now, else as removals of what it would have written. A release that
	// finds the lock to be next's already has applied them before, and does not do so again.
	// Reply.Failed counts the writes that could not be done. An e that is of no use to the
	// backend is a *BackendError.
	ReleaseWith(ctx context.Context, r Handback, e Effects) (Reply, error)
}

// Handback is what Backend.Release takes.
type Handback struct {
	Lock  string
	Owner Owner
	Next  *Claim // may be nil
}

// Effects are writes in a form that only the Backend and their maker know.
type Effects any

// Grace is how long a released lock is kept for the node that has waited longest: enough
// for a notice and an acquire, and what a node that died in line costs the others.
const Grace = 100 * time.Millisecond

// Claim is a wish for a lock.
type Claim struct {
	Lock   string        // the lock's name: "<prefix>:{<Key.String>}"
	Holder string        // "<instance>:<nonce>", one for each acquisition; without spaces
	TTL    time.Duration // life of the lock; at least 1 ms
	Floor  int64         // the token is greater than this
	Keep   time.Duration // how long the last token must be remembered, at least
	API    string        // shown to those who find the lock taken
	Node   string        // the node that asks, as it stands in line: "<prefix>:w:<instance>"
	Queue  bool          // if others come first, Node is to stand in line
	Yield  bool          // for Release: nodes in line come first
}

// Owner is what a holder is recognised by.
type Owner struct {
	Token  int64
	Holder string // as in Claim
}

// String is the stored form "<token>:<instance>:<nonce>".
func (o Owner) String() string { return strconv.FormatInt(o.Token, 10) + ":" + o.Holder }

// Reply is a backend's answer about one lock.
type Reply struct {
	Held  bool          // the lock is the asker's; for Release: it was until now
	Token int64         // Acquire: the grant's token; else the last one issued, 0 when forgotten
	Left  time.Duration // life left of the lock, whoever holds it; 0 when unknown
	By    Holder        // Acquire that found the lock taken: who holds it
	Next  int64         // Release that handed the lock over: the token of the next holder

	Failed int // ReleaseWith: writes that could not be done
}

// Holder says who holds a lock, as far as others may know.
type Holder struct {
	API   string    // for a Backend: Claim.API as it came
	Note  string    // Request.Note; a Backend leaves it empty
	Since time.Time // zero when unknown
}
