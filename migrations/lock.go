package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver of the lock file
)

// lockID is the key of the PostgreSQL advisory lock: the letters "apiengin".
const lockID int64 = 0x617069656e67696e

// lock waits until no other process migrates the database. goose's own lockers are not
// used: they poll at whole seconds, so that ten nodes take ten seconds to start, they make
// goose's table before they lock, and there is none for SQLite.
func lock(ctx context.Context, t Target) (unlock func() error, err error) {
	if t.Postgres {
		return lockPostgres(ctx, t.DB)
	}
	return lockFile(ctx, t.LockPath)
}

// lockPostgres holds an advisory lock for as long as a transaction, which a transaction
// pooler in between leaves on one session.
func lockPostgres(ctx context.Context, db *sql.DB) (unlock func() error, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", lockID); err != nil {
		return nil, errors.Join(err, rollback(tx))
	}
	return func() error { return rollback(tx) }, nil
}

// lockFile holds an exclusive transaction in a second SQLite file: that works on every
// system and ends with the process that holds it. The database itself cannot serve,
// because a migration begins transactions of its own.
func lockFile(ctx context.Context, path string) (unlock func() error, err error) {
	// Ten minutes is longer than any migration; ctx ends the wait earlier.
	dsn := (&url.URL{Scheme: "file", OmitHost: true, Path: path,
		RawQuery: "_busy_timeout=600000&_txlock=exclusive"}).String()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for another process that migrates (%s): %w", path, err), db.Close())
	}
	return func() error { return errors.Join(rollback(tx), db.Close()) }, nil
}

func rollback(tx *sql.Tx) error {
	if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) { // done: it ended with its context
		return err
	}
	return nil
}
