package lockwrap

import (
	"context"
	"strconv"
	"time"
)

// Backend keeps locks. It knows nothing of waiting, renewal or deadlines: each method is
// one question and one answer, and every one may be repeated without harm.
//
// A method returns soon after its ctx's deadline; it need not notice a cancelled ctx before.
// It returns a *BackendError when it is certain that nothing was changed; any other error
// means that nobody knows, best as an *UnknownError. Package locktest is the full contract.
// A Backend may be an Inspector too.
type Backend interface {
	// Acquire takes the lock if it is free, in one atomic step with the making of its token:
	// the greatest of the last token + 1, c.Floor + 1 and the time in microseconds. When the
	// lock is c.Holder's own already it starts its life again and answers with its token.
	// Held and Token tell of a grant; otherwise By and Left tell of the holder.
	Acquire(ctx context.Context, c Claim) (Reply, error)

	// Confirm answers whether the lock is o's now.
	Confirm(ctx context.Context, lock string, o Owner) (Reply, error)

	// Renew gives o's lock a life of ttl from now. It never takes a lock that is not o's.
	Renew(ctx context.Context, lock string, o Owner, ttl time.Duration) (Reply, error)

	// Release removes the lock if it is o's, and answers whether it was until now. An o
	// without a Token means its Holder's, whatever the token.
	Release(ctx context.Context, lock string, o Owner) (Reply, error)

	// Ping reports whether the backend can be reached.
	Ping(ctx context.Context) error

	// Close frees what the backend holds. Calls under way end with an error.
	Close() error
}

// Claim is a wish for a lock.
type Claim struct {
	Lock   string        // the lock's name: "<prefix>:{<Key.String>}"
	Holder string        // "<instance>:<nonce>", one for each acquisition; without spaces
	TTL    time.Duration // life of the lock; at least 1 ms
	Floor  int64         // the token is greater than this
	Keep   time.Duration // how long the last token must be remembered, at least
	API    string        // shown to those who find the lock taken
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
}

// Holder says who holds a lock, as far as others may know.
type Holder struct {
	API   string    // for a Backend: Claim.API as it came
	Note  string    // Request.Note; a Backend leaves it empty
	Since time.Time // zero when unknown
}
