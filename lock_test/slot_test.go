package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"apiengine/internal/testserver"
	"apiengine/lockwrap"
)

// An error that says "nothing was done" is true, also in a slot that moves, where a key
// that does not exist is refused in the middle of a script.
func TestAScriptThatFailsHasDoneNothing(t *testing.T) {
	t.Parallel()
	c := testserver.NewCluster(t)
	b, err := open(c.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	refused, n := 0, 0
	for _, state := range []string{"free", "held", "held, one waits", "kept", "kept, one waits"} {
		for _, op := range []string{"acquire", "acquire again", "release", "hand over", "yield", "leave"} {
			t.Run(state+": "+op, func(t *testing.T) {
				n++
				lock := fmt.Sprintf("%s:{moves:%d}", prefix, n)
				owner := prepare(t, b, lock, state)
				c.MoveSlot(t, lock, func() {
					before := inSlot(t, c, lock)
					err := once(t.Context(), b, lock, op, owner)
					var nothing *lockwrap.BackendError
					if errors.As(err, &nothing) {
						refused++
						if after := inSlot(t, c, lock); after != before {
							t.Errorf("%v: was %s, is %s", err, before, after)
						}
					} else if err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
	if refused == 0 {
		t.Error("the test is void: nothing was refused")
	}
}

func wish(lock, node, nonce string) lockwrap.Claim {
	return lockwrap.Claim{Lock: lock, Holder: node + ":" + nonce, TTL: 20 * time.Second, Keep: time.Hour, Node: prefix + ":w:" + node, Queue: true}
}

// prepare brings the lock into a state. A lock that is kept is kept for n2.
func prepare(t *testing.T, b lockwrap.Backend, lock, state string) lockwrap.Owner {
	t.Helper()
	ask := func(c lockwrap.Claim) lockwrap.Owner {
		r, err := b.Acquire(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return lockwrap.Owner{Token: r.Token, Holder: c.Holder}
	}
	owner := ask(wish(lock, "n1", "a"))
	var waiting []string
	switch state {
	case "held, one waits", "kept":
		waiting = []string{"n2"}
	case "kept, one waits":
		waiting = []string{"n2", "n3"}
	}
	for _, node := range waiting {
		ask(wish(lock, node, "w"))
	}
	if state[0] != 'h' {
		if _, err := b.Release(t.Context(), lock, owner, nil); err != nil {
			t.Fatal(err)
		}
	}
	return owner
}

// once asks one question about the lock.
func once(ctx context.Context, b lockwrap.Backend, lock, op string, owner lockwrap.Owner) (err error) {
	next := wish(lock, "n1", "b")
	switch op {
	case "acquire":
		_, err = b.Acquire(ctx, wish(lock, "n2", "w"))
	case "acquire again":
		_, err = b.Acquire(ctx, wish(lock, "n1", "a"))
	case "release":
		_, err = b.Release(ctx, lock, owner, nil)
	case "hand over":
		_, err = b.Release(ctx, lock, owner, &next)
	case "yield":
		next.Yield = true
		_, err = b.Release(ctx, lock, owner, &next)
	case "leave":
		err = b.Leave(ctx, lock, prefix+":w:n2")
	}
	return err
}

// inSlot tells all that the cluster has of a lock: who holds it, its last token and its
// line, at whichever server they are. What is merely kept runs out by itself and is left out.
func inSlot(t *testing.T, c *testserver.Cluster, lock string) (all string) {
	t.Helper()
	for i, s := range c.Servers {
		pipe := admin(t, s).Pipeline()
		read := func(args ...any) *goredis.Cmd {
			pipe.Do(t.Context(), "ASKING")
			return pipe.Do(t.Context(), args...)
		}
		found := []*goredis.Cmd{read("GET", lock+":l"), read("GET", lock+":f"), read("ZRANGE", lock+":q", 0, -1)}
		_, _ = pipe.Exec(t.Context()) // what is elsewhere is refused
		for _, cmd := range found {
			text := fmt.Sprint(cmd.Val())
			if cmd.Err() == nil && text != "[]" && !strings.HasPrefix(text, "kept:") {
				all += fmt.Sprintf("%d: %s; ", i, text)
			}
		}
	}
	return all
}
