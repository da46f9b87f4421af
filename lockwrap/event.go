package lockwrap

import "time"

// Event is something that befell a lock of this node, for those who count.
type Event struct {
	What What
	Key  Key
	// Took is how long the caller waited (Acquired, Refused), or the lock was held (Released,
	// Lost).
	Took   time.Duration
	Handed bool  // Acquired: by the node's last holder, in the step that ended its own lease
	Err    error // Refused, Lost, RenewalFailed: why
}

// What says what befell it.
type What string

// What can befall a lock.
const (
	Acquired      What = "acquired"
	Refused       What = "refused"  // Acquire returned an error
	Released      What = "released" // it was ours until then
	Lost          What = "lost"     // once a lease, with a *LostError
	RenewalFailed What = "renewal_failed"
	CleanedUp     What = "cleaned_up" // a clean-up began behind a caller that could not wait for an answer
)

func (m *Manager) note(e Event) {
	if m.cfg.Observe != nil {
		m.cfg.Observe(e)
	}
}
