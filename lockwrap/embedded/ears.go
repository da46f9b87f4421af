package embedded

import (
	"context"
	"sync"
)

// ears are the nodes that listen, each with the function that it hears by.
type ears struct {
	mu  sync.Mutex
	all map[string]func(lock string)
}

// Notify is lockwrap.Backend's.
func (b *Backend) Notify(ctx context.Context, node string, hear func(lock string)) error {
	b.ears.set(node, hear)
	defer b.ears.set(node, nil)
	hear("")
	<-ctx.Done()
	return nil
}

func (e *ears) set(node string, hear func(lock string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if hear == nil {
		delete(e.all, node)
		return
	}
	if e.all == nil {
		e.all = map[string]func(string){}
	}
	e.all[node] = hear
}

// tell lets node, if there is one, hear of its lock.
func (e *ears) tell(node, lock string) {
	if node == "" {
		return
	}
	e.mu.Lock()
	hear := e.all[node]
	e.mu.Unlock()
	if hear != nil {
		hear(lock)
	}
}
