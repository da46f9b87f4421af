package tenantdb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// forSchema opens connections for schema files, which may hold any statement. They sign in
// as the tenant's role, by a password that is good for these minutes only: such a session
// has no other role to go back to. done takes the password back and binds the routines
// that the files have made.
func (b *pgBackend) forSchema(ctx context.Context) (conns *sql.DB, done func() error, err error) {
	cfg := b.pool.Config().ConnConfig.Copy()
	if cfg.RuntimeParams == nil {
		cfg.RuntimeParams = map[string]string{}
	}
	cfg.RuntimeParams["search_path"] = b.path
	if b.shared {
		conns = stdlib.OpenDB(*cfg)
		return conns, conns.Close, nil
	}
	delete(cfg.RuntimeParams, "role")
	cfg.User = b.role
	turn, err := b.takeTurn(ctx)
	if err != nil {
		return nil, nil, err
	}
	cfg.Password = rand.Text()
	if _, err := turn.Exec(ctx, fmt.Sprintf("ALTER ROLE %s LOGIN PASSWORD '%s' VALID UNTIL '%s'", quote(b.role), cfg.Password,
		time.Now().UTC().Add(time.Hour).Format("2006-01-02 15:04:05Z"))); err != nil {
		return nil, nil, errors.Join(err, b.giveTurn(turn))
	}
	conns = stdlib.OpenDB(*cfg)
	return conns, func() error { return errors.Join(conns.Close(), b.giveTurn(turn)) }, nil
}

// takeTurn returns a connection that holds the lock under which the role may sign in.
func (b *pgBackend) takeTurn(ctx context.Context) (*pgxpool.Conn, error) {
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", lockID("apiengine sign-in:"+b.schema)); err != nil {
		conn.Conn().Close(ctx) // the lock may be taken all the same
		conn.Release()
		return nil, err
	}
	return conn, nil
}

// signOutLimit bounds the end of a sign-in, which must not be cut off by the caller's end.
const signOutLimit = 15 * time.Second

func (b *pgBackend) giveTurn(conn *pgxpool.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), signOutLimit)
	defer cancel()
	defer conn.Release()
	_, err := conn.Exec(ctx, "ALTER ROLE "+quote(b.role)+" NOLOGIN PASSWORD NULL")
	err = errors.Join(err, pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return b.seal(ctx, tx) }))
	if _, unlock := conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", lockID("apiengine sign-in:"+b.schema)); unlock != nil {
		conn.Conn().Close(ctx) // which gives the lock back
	}
	return err
}

// lockID is an advisory lock's number for a name.
func lockID(name string) int64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return int64(h.Sum64())
}
