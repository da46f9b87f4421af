package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"apiengine/fault"
	"apiengine/internal/testserver"
	"apiengine/lockwrap"
	"apiengine/lockwrap/postgres"
)

const lease = 20 * time.Second

// admin is a plain connection for a look behind the scenes.
func admin(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func exec(t *testing.T, c *pgx.Conn, sql string, args ...any) int64 {
	t.Helper()
	tag, err := c.Exec(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	return tag.RowsAffected()
}

// terminate ends the sessions of this database that match, once there is one.
func terminate(t *testing.T, c *pgx.Conn, where string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; <-time.After(2 * time.Millisecond) {
		if exec(t, c, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND "+where) > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no session where %s", where)
		}
	}
}

const waitsForRow = "wait_event_type = 'Lock'"

// stuck holds the lock's row while f runs, so that statements wait in their middle.
func stuck(t *testing.T, url string, f func(c *pgx.Conn)) {
	t.Helper()
	c := admin(t, url)
	exec(t, c, "BEGIN")
	exec(t, c, "SELECT FROM lockwrap.locks WHERE lock = $1 FOR UPDATE", lockName)
	f(c)
	exec(t, c, "COMMIT")
}

func TestASessionEndedInTheStatement(t *testing.T) {
	url := testserver.Database(t)
	b := open(t, postgres.Config{URL: url})
	defer b.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	first, err := b.Acquire(ctx, claim(lockName, "n1:aa", lease))
	if err != nil {
		t.Fatal(err)
	}
	o := lockwrap.Owner{Token: first.Token, Holder: "n1:aa"}
	for name, op := range map[string]func() error{
		"acquire": func() error { _, err := b.Acquire(ctx, claim(lockName, "n2:bb", lease)); return err },
		"renew":   func() error { _, err := b.Renew(ctx, lockName, o, lease); return err },
		"release": func() error { _, err := b.Release(ctx, lockName, o, nil); return err },
	} {
		stuck(t, url, func(c *pgx.Conn) {
			done := make(chan error, 1)
			go func() { done <- op() }()
			terminate(t, c, waitsForRow)
			var unknown *lockwrap.UnknownError
			if err := <-done; !errors.As(err, &unknown) {
				t.Errorf("%s: %v, want an *UnknownError", name, err)
			}
		})
		if r, err := b.Confirm(ctx, lockName, o); err != nil || !r.Held {
			t.Errorf("after the %s: %+v, %v", name, r, err)
		}
	}
}

func TestAManagerWhoseSessionEnds(t *testing.T) {
	url := testserver.Database(t)
	m := node(t, "n1", url)
	first := acquire(t, m, request(lease, 0))
	release(t, first)
	stuck(t, url, func(c *pgx.Conn) {
		got := make(chan *lockwrap.Lease, 1)
		go func() {
			l, err := m.Acquire(t.Context(), request(lease, 10*time.Second))
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		terminate(t, c, waitsForRow)
		exec(t, c, "COMMIT")
		l := <-got
		if l == nil {
			return
		}
		if l.Token() <= first.Token() {
			t.Errorf("token %d after %d", l.Token(), first.Token())
		}
		release(t, l)
	})
	if exec(t, admin(t, url), "SELECT FROM lockwrap.locks WHERE lock = $1 AND holder = ''", lockName) != 1 {
		t.Error("something is left behind")
	}
}

func TestALeaseOutlivesACrash(t *testing.T) {
	s := testserver.NewPostgres(t)
	m, other := node(t, "n1", s.URL("postgres")), node(t, "n2", s.URL("postgres"))
	last := int64(0)
	for range 2 {
		l := acquire(t, m, request(lease, 10*time.Second))
		if l.Token() <= last {
			t.Errorf("token %d after %d", l.Token(), last)
		}
		last = l.Token()
		s.Restart(t)
		_, err := other.Acquire(t.Context(), request(lease, 2*time.Second))
		if fault.Of(err) != fault.LockBusy {
			t.Errorf("another node after the crash: %v, want lock_busy", err)
		}
		if err := l.Confirm(t.Context()); err != nil {
			t.Errorf("confirm after the crash: %v", err)
		}
		release(t, l)
	}
}

func TestAMissingServer(t *testing.T) {
	s := testserver.NewPostgres(t)
	m := node(t, "n1", s.URL("postgres"))
	release(t, acquire(t, m, request(lease, 0)))
	s.Kill()
	b, err := postgres.New(postgres.Config{URL: s.URL("postgres")})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var refused *lockwrap.BackendError
	if _, err := b.Acquire(t.Context(), claim(lockName, "n2:bb", lease)); !errors.As(err, &refused) {
		t.Errorf("acquire from a server that is not there: %v, want a *BackendError", err)
	}
	l, err := m.Acquire(t.Context(), request(lease, 300*time.Millisecond))
	for tries := 0; err == nil && tries < 1000; tries++ { // what serves a connection outlives its killed server by a moment
		_ = l.Release(t.Context()) // on a server that ends meanwhile
		l, err = m.Acquire(t.Context(), request(lease, 300*time.Millisecond))
	}
	if fault.Of(err) != fault.LockUnavailable {
		t.Errorf("acquire: %v", err)
	}
	s.Restart(t)
	release(t, acquire(t, m, request(lease, 20*time.Second)))
}

func TestALostSubscription(t *testing.T) {
	url := testserver.Database(t)
	a, b := node(t, "n1", url), node(t, "n2", url)
	c := admin(t, url)
	l := acquire(t, a, request(lease, 0))
	got := make(chan error, 1)
	go func() {
		next, err := b.Acquire(t.Context(), request(lease, 15*time.Second))
		if err == nil {
			err = next.Release(t.Context())
		}
		got <- err
	}()
	for exec(t, c, "SELECT FROM lockwrap.locks WHERE lock = $1 AND line <> '{}'", lockName) == 0 {
		<-time.After(2 * time.Millisecond) // until the waiter stands in line
	}
	terminate(t, c, "query LIKE 'LISTEN%'")
	release(t, l)
	if err := <-got; err != nil {
		t.Errorf("who waited without notices: %v", err)
	}
}

func TestATableThatManyMakeAtOnce(t *testing.T) {
	url := testserver.Database(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			b, err := postgres.New(postgres.Config{URL: url, Schema: `odd "schema"`, PoolSize: 1})
			if err != nil {
				t.Error(err)
				return
			}
			defer b.Close()
			if r, err := b.Acquire(t.Context(), claim(fmt.Sprint(i), "n1:aa", lease)); err != nil || !r.Held {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	all.Wait()
}

func TestRowsAreForgotten(t *testing.T) {
	url := testserver.Database(t)
	b := open(t, postgres.Config{URL: url, Clean: 10 * time.Millisecond})
	defer b.Close()
	c := admin(t, url)
	kept := claim("kept", "n1:aa", time.Millisecond) // its token is to be remembered for an hour
	held := claim("held", "n1:aa", time.Hour)
	held.Keep = time.Millisecond
	for _, x := range []lockwrap.Claim{kept, held} {
		if _, err := b.Acquire(t.Context(), x); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, c, `INSERT INTO lockwrap.locks SELECT 'old' || i, 1, '', '', now(), now() - interval '1 hour', '', '{}', now() - interval '1 hour' FROM generate_series(1, 2500) i`)
	for deadline := time.Now().Add(20 * time.Second); exec(t, c, "SELECT FROM lockwrap.locks WHERE lock LIKE 'old%'") > 0; <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("old rows are still there")
		}
	}
	if n := exec(t, c, "SELECT FROM lockwrap.locks WHERE lock IN ('kept', 'held')"); n != 2 {
		t.Errorf("%d of 2 rows are left that had to stay", n)
	}
}
