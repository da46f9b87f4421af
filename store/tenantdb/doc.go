// Package tenantdb is one tenant's own database, SQLite or PostgreSQL: what scripts reach
// as V8.Db and V8.FormEngine.
//
// A run has one transaction. Under a lock its first statement is the guard, an upsert of
// the lock's row that a stale holder cannot pass (lock-protocol.md section 1); the row
// stays locked until the transaction ends, so transactions of one lock are serial in token
// order, and afterwards it is the witness of a commit whose answer was lost.
//
// # Isolation
//
// PostgreSQL runs READ COMMITTED. On SQLite a transaction without a guard takes the one
// writer connection at its first writing statement (or savepoint); its reads before that
// see the last commit each, as they would in PostgreSQL, and keep nobody waiting. A guarded
// one takes the writer at once.
//
// # A statement that fails
//
// A statement that fails leaves the transaction as it was before it, so that a script may
// catch the error and go on, as users of the original platform (MySQL) and of SQLite
// expect. On PostgreSQL, which would abort the transaction, each script statement runs
// between SAVEPOINT and RELEASE, sent in the same flush: no further round trip, and some
// 30 us of the server's time on top of 150 us for a read by key (BenchmarkSavepoint).
//
// # Values
//
// Parameters are nil, bool, int64, float64 and string. A number without a fraction is
// bound as an integer. PostgreSQL is given values as untyped literals: '5' fits an integer,
// a text and a numeric column alike, and `SELECT @p0` alone is text (write @p0::int).
//
// Results: integers that a JavaScript number does not give back with the same digits and
// PostgreSQL's numeric are strings; what is floating point is a number, but NaN and infinities
// are the strings "NaN", "Infinity", "-Infinity"; bytes are base64; json, jsonb (and text
// in SQLite columns declared JSON) are spliced in as values. PostgreSQL's timestamp is
// 2026-01-02T03:04:05.123, its timestamptz has the session's offset (+08:00, or Z), date
// and time are as they are; SQLite gives text as it was stored. PostgreSQL's arrays,
// intervals and other types are their text. Of two columns with one name the last counts,
// as in an object literal.
package tenantdb
