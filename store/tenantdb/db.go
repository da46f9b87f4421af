package tenantdb

import (
	"cmp"
	"context"
	"database/sql"
	"sync"
	"time"

	"apiengine/fault"
	"apiengine/store/tenantdb/internal/sqltext"
)

// Limits of one query's result unless the configuration says otherwise.
const (
	defaultMaxRows  = 10000
	defaultMaxBytes = 16 << 20
)

// DB is one tenant's database. It may be used by many goroutines.
type DB struct {
	b       backend
	g       grammar
	limits  limits
	tables  tableCache
	schemas sync.Mutex // one ApplySchema at a time
	closing sync.Once
	closed  error // what the first Close returned
}

type limits struct{ rows, bytes int }

func newLimits(rows, bytes int) limits {
	return limits{cmp.Or(rows, defaultMaxRows), cmp.Or(bytes, defaultMaxBytes)}
}

// Guard is a holder's claim to a lock, made good by the first statement of a transaction.
type Guard struct {
	Key   string // the lock's identity; empty: no lock, no guard row
	Token int64  // > 0
	Owner string // unique to the run
	// Until is the end of the run's budget. On PostgreSQL no statement, no wait for a row
	// and no idle time in the transaction lasts beyond it, even when this process stalls.
	// Zero: no such limits.
	Until time.Time
	// Connect bounds the wait for a connection on PostgreSQL: a run that holds another one
	// must give up (overloaded) rather than stand still with all the others that wait for
	// theirs. 0: as long as ctx lasts.
	Connect time.Duration
}

// valid refuses a claim that nothing could be compared with: a mistake of the caller's.
func (g Guard) valid() error {
	if g.Key != "" && (g.Token <= 0 || g.Owner == "") {
		return fault.New(fault.Internal, "tenantdb: the guard of lock %s has token %d and owner %q", g.Key, g.Token, g.Owner)
	}
	return nil
}

// backend is one kind of database.
type backend interface {
	begin(ctx context.Context, g Guard) (session, error)
	ping(ctx context.Context) error
	close() error
	// forSchema opens plain connections for ApplySchema, which calls done when it is through.
	forSchema(ctx context.Context) (conns *sql.DB, done func() error, err error)
	cleanFence(ctx context.Context, age time.Duration) (removed int, err error) // one batch
	idempotency
	outcomes
}

// session is one transaction. After an error that is no *SQLError it can only be rolled back.
type session interface {
	// run runs one statement; a script's leaves the transaction as it was when it fails.
	run(ctx context.Context, st statement, w *rowWriter) (changed int64, err error)
	guard(ctx context.Context, g Guard) error
	savepoint(ctx context.Context, verb, name string) error
	complete(ctx context.Context, a *Attempt, head string, body []byte) (ours bool, err error)
	witness() Witness // what tells of a commit without an answer
	commit(ctx context.Context) error
	rollback() // also after commit; gives back what the session holds
}

// statement is what a session runs.
type statement struct {
	sqltext.Statement
	platform bool // ours, not a script's: no savepoint, no questions
	reads    bool // and may not change anything
	own      bool // on the platform's tables, which a script's statement cannot see; implies platform
}

// Dialect is "sqlite" or "postgres".
func (db *DB) Dialect() string { return string(db.g.dialect) }

// Close gives up the connections, after the transactions that are open have ended. A pool
// that was passed in stays open. A second Close returns what the first did.
func (db *DB) Close() error {
	db.closing.Do(func() { db.closed = db.b.close() })
	return db.closed
}

// Ping asks the database whether it is there: store_unavailable, or ctx's cause.
func (db *DB) Ping(ctx context.Context) error { return db.b.ping(ctx) }

// Begin starts a transaction. With a lock (g.Key) its guard row is taken first, which
// waits for an older holder's open transaction; a *StaleError says that a newer holder was
// there. Otherwise the error is store_unavailable or ctx's cause. The caller must end the
// transaction by Commit or Rollback.
func (db *DB) Begin(ctx context.Context, g Guard) (*Tx, error) {
	if ctx.Err() != nil {
		return nil, ended(ctx)
	}
	if err := g.valid(); err != nil {
		return nil, err
	}
	s, err := db.b.begin(ctx, g)
	if err != nil {
		return nil, err
	}
	return &Tx{db: db, s: s}, nil
}
