// Package lockwrap runs a function while it holds a lock that many processes share, and
// gives it a fencing token: an integer greater than that of every earlier holder.
//
//	locks, err := lockwrap.New(lockwrap.Config{Backend: backend, Instance: "node-1"})
//	...
//	err = locks.Do(ctx, lockwrap.Request{
//		Key:  lockwrap.Key{Tenant: "acme", Scope: "OrderId", Value: "42"},
//		Plan: plan, // package budget derives it from one number of seconds
//	}, func(ctx context.Context, l *lockwrap.Lease) error {
//		return pay(ctx, order, l.Token()) // the store refuses a token smaller than one it has seen
//	})
//
// # What it promises
//
// While nothing goes wrong at most one holder of a Key is inside its function, over all
// processes that use one Backend. Leases, clocks and networks do go wrong: a holder may be
// paused past the end of its lease and go on, unaware. So a lock alone never makes a write
// safe; the token does, when what is written to compares it. Tokens rise strictly for each
// lock, also after expiry, a restart of the backend and the loss of its memory, and stay
// below 2^53, so that a double holds them.
//
// # A lease and its end
//
// A lease is trusted until Deadline, which is counted on the local monotonic clock from
// before the acquire was sent, less a margin. An ordinary lease is never renewed. One whose
// Plan has a renewal interval is kept alive until it is released or its longest hold is
// over. A lease ends in one of three bad ways, see LossCause; then Lost is closed and the
// context of Do's function ends with the *LostError as its cause.
//
// Release asks the backend to remove the lock if it is still the holder's. Its answer is
// therefore also the check that the lock was held until the very end, and an uncontended
// locked call needs two round trips.
//
// # Waiting
//
// Waiters for one lock stand in line on each node, first come first served; only the first
// of them talks to the backend, so a thousand waiters cost no more than one. A release hands
// the lock to the next in line of its node in the same step, one round trip a turn. Nodes
// stand in line too, at the backend: after four turns in a row a node yields to the one that
// has waited longest, for which the lock is kept for a moment (Grace) and which is told over
// the one subscription that each node has. A notice is a hint: the first in line also asks
// when the holder's lease or the keeping may have ended, and every second; without a subscription it asks
// after short random pauses.
//
// # What can be seen
//
// Config.Observe hears of every event for metrics. Manager.Locks tells who holds and who
// waits, where the backend is an Inspector, and Manager.ForceRelease takes a lock away.
//
// # Errors
//
// Every error classifies itself for package fault: *BusyError and *QueueFullError (others
// have it), *LostError (the lease ended under its holder), *BackendError and *UnknownError
// (the backend refused, or never said), *ClosedError and *InvalidError. When the caller's
// context ends first, its cause is returned as it is.
//
// # Backends
//
// A Backend keeps locks and makes tokens, nothing else: waiting, renewal and deadlines are
// here. Package embedded serves one process, packages redis, postgres and etcd many; package
// locktest holds the suite that all pass and that a further one must pass.
package lockwrap
