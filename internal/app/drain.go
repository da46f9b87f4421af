package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// running counts the requests that were there before the drain began.
type running struct {
	mu       sync.Mutex
	n        int
	draining bool
	idle     chan struct{} // closed when the drain has begun and none of them is left
}

func newRunning() *running { return &running{idle: make(chan struct{})} }

// count wraps a handler.
func (r *running) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.enter() {
			defer r.leave()
		}
		next.ServeHTTP(w, req)
	})
}

func (r *running) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.draining {
		r.n++
	}
	return !r.draining
}

func (r *running) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n--; r.n == 0 && r.draining {
		close(r.idle)
	}
}

// drain counts no further requests. It is called once.
func (r *running) drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining = true; r.n == 0 {
		close(r.idle)
	}
}

// drain refuses new calls and waits for the running ones, at most the grace. Until they
// are through the server goes on listening, so that /readyz can tell a load balancer, and
// whoever still calls is told to come again instead of being refused a connection.
func (a *App) drain(ctx context.Context, h *http.Server, calls *running) error {
	a.server.Drain()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.Settings.Grace)
	defer cancel()
	calls.drain()
	select {
	case <-calls.idle:
	case <-ctx.Done():
	}
	err := h.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(fmt.Errorf("calls were still running after the grace of %v and are cut off", a.Settings.Grace), h.Close())
	}
	return err
}
