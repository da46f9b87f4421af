package lockwrap

import (
	"context"
	"time"
)

// listen keeps the node's one subscription, as long as the Manager lives. While there is
// none, heads ask more often; when one stands, every head asks, as it may have missed a notice.
func (m *Manager) listen() {
	for try := 1; ; try++ {
		began := time.Now()
		_ = m.cfg.Backend.Notify(m.work, m.node, func(lock string) { // whatever ended it, the next one is on its way
			m.hears.Store(true)
			if m.lines.wake(lock); lock != "" && !m.closing() {
				m.unwanted(lock)
			}
		})
		m.hears.Store(false)
		m.lines.wake("")
		if time.Since(began) > time.Minute {
			try = 1
		}
		if !rest(m.work, jitter(25*time.Millisecond, time.Second, try)) {
			return
		}
	}
}

// unwanted takes the node out of the backend's line where nobody here waits for the lock: it
// may have come there after the last one had left, and would hold the others up.
func (m *Manager) unwanted(lock string) {
	var nobody bool
	m.lines.with(lock, func(l *line) {
		if nobody = len(l.queue) == 0 && l.held == nil; nobody {
			l.queued = false
		}
	})
	if nobody {
		m.quitLine(lock)
	}
}

// quitLine takes the node out of the backend's line of a lock that nobody here waits for.
func (m *Manager) quitLine(lock string) {
	m.calls.add()
	m.spawn(func() {
		defer m.calls.done()
		ctx, cancel := context.WithTimeout(context.Background(), m.cfg.Attempt)
		defer cancel()
		_ = m.cfg.Backend.Leave(ctx, lock, m.node) // else a keeping of Grace is for nobody
		m.lines.wake(lock)                         // whoever has come meanwhile may have lost the place
	})
}
