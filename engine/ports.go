package engine

import (
	"context"
	"encoding/json"
	"time"

	"apiengine/jsbridge"
	"apiengine/lockwrap"
)

// Databases opens a tenant's databases. Opened ones are kept by the implementation.
type Databases interface {
	// Open returns the tenant's database; name "" is V8.Db, else V8.Dbs.<name>.
	Open(ctx context.Context, tenant, name string) (Database, error)
}

// Database is one database of one tenant.
type Database interface {
	// Begin starts a transaction whose first statement is the fence guard, when g has a key.
	Begin(ctx context.Context, g Guard) (Tx, error)
	// Serial reports that a second transaction would wait for an open one (SQLite).
	Serial() bool
	// Claim claims an Idempotency-Key, or returns the answer that is kept for it. Errors:
	// idempotency_in_progress, idempotency_mismatch, store_unavailable.
	Claim(ctx context.Context, c Claim) (Attempt, *Answer, error)
}

// Guard asks for the fence guard of one lock (lock-protocol.md section 1).
type Guard struct {
	Key   string // the lock's printable identity; empty: no lock, no guard
	Token int64
	Owner string
	Until time.Time // end of the run's budget
	// Connect bounds the wait for a connection, of a run that holds another; 0: it lasts as
	// long as ctx does.
	Connect time.Duration
}

// Tx is a transaction. Its errors carry the Kinds stale_fence, store_unavailable,
// outcome_unknown or script_error.
type Tx interface {
	Mailbox
	Queries
	Guard(ctx context.Context, g Guard) error
	// Reader returns the transaction for statements that may change nothing.
	Reader() Queries
	Exec(ctx context.Context, sql string, params map[string]any) (int64, error)
	Form(ctx context.Context, f Form) (jsbridge.FormResult, error)
	Savepoint(ctx context.Context) (name string, err error)
	RollbackTo(ctx context.Context, name string) error
	ReleaseSavepoint(ctx context.Context, name string) error
	// Complete writes the answer of an attempt of this database; idempotency_in_progress
	// when another attempt has taken its key over.
	// It may be written at the commit only: then Commit tells of it.
	Complete(ctx context.Context, a Attempt, ans Answer) error
	// Commit does not end with ctx: a commit that is under way is seen through.
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// Queries run statements that return rows.
type Queries interface {
	Query(ctx context.Context, sql string, params map[string]any) (json.RawMessage, int, error)
	Scalar(ctx context.Context, sql string, params map[string]any) (json.RawMessage, error)
}

// Form is one FormEngine call.
type Form struct {
	Op, Table string
	Options   json.RawMessage
	UserID    string
	UserName  string
	Tenant    string
	Token     int64 // the run's fencing token, for _Fence; 0 without a lock
}

// Caches gives each tenant its cache.
type Caches interface {
	For(tenant string) jsbridge.Cache
	// Stage returns an overlay over the tenant's cache that keeps writes until Flush.
	Stage(tenant string) Staged
}

// Staged is a cache whose plain writes wait for the commit (contract.md section 5.4). A
// reader sees its own writes.
type Staged interface {
	jsbridge.Cache
	Empty() bool
	Mark() int
	RollbackTo(mark int)
	// Flush applies the writes in order, each unless a larger token has written its key.
	// token 0: the writer holds no lock.
	Flush(ctx context.Context, token int64) error
	Invalidate(ctx context.Context) error // remove every key that was to be written
	// Effects are the writes in a form that the release of the lock can take along and apply
	// in its own step; nil where lock and cache do not live together, or there are too many.
	// They go on waiting until RollbackTo(0).
	Effects(token int64) lockwrap.Effects
}

// Settings are what an administrator set for a tenant.
type Settings interface {
	SysConfig(tenant string) json.RawMessage
	Secret(ctx context.Context, tenant, name string) (string, error)
}

// Versions loads an older version of an API, for test runs.
type Versions interface {
	Load(ctx context.Context, tenant, key string, version int) (*API, error)
}
