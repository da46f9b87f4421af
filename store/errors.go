package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"apiengine/fault"
)

// NotFoundError reports that nothing of that name is stored.
type NotFoundError struct {
	What string // definition, version, tenant, secret, token
	Name string
}

func (e *NotFoundError) Error() string    { return "store: " + e.Public() }
func (e *NotFoundError) Kind() fault.Kind { return fault.NotFound }

// Public is the text for the caller.
func (e *NotFoundError) Public() string { return fmt.Sprintf("there is no %s %q", e.What, e.Name) }

// ConflictError reports that what is stored is not what the caller expected.
type ConflictError struct {
	What string // definition, tenant
	Name string
	Want int // the version the caller expected; 0: it must not exist
	Live int // the version that is stored; 0: none
}

func (e *ConflictError) Error() string    { return "store: " + e.Public() }
func (e *ConflictError) Kind() fault.Kind { return fault.VersionConflict }

// Public is the text for the caller.
func (e *ConflictError) Public() string {
	switch {
	case e.Want == 0:
		return fmt.Sprintf("the %s %q exists already", e.What, e.Name)
	case e.Live == 0:
		return fmt.Sprintf("the %s %q was expected at version %d and does not exist", e.What, e.Name, e.Want)
	}
	return fmt.Sprintf("the %s %q was expected at version %d and is at version %d", e.What, e.Name, e.Want, e.Live)
}

// Details hold the live version.
func (e *ConflictError) Details() map[string]any { return map[string]any{"Version": e.Live} }

// classify gives err a Kind. An error that has one keeps it; when ctx has ended the error
// is ctx's; what the database says about its own state is store_unavailable; the rest (a
// broken statement) stays a defect of ours.
func classify(ctx context.Context, op string, err error) error {
	var kinded interface {
		error
		Kind() fault.Kind
	}
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kinded):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("store: %s: %w (%v)", op, context.Cause(ctx), err)
	case defect(err):
		return fault.Wrap(fault.Internal, fmt.Errorf("store: %s: %w", op, err),
			"an internal error; the request id leads to it in the server's log")
	}
	return fault.Wrap(fault.StoreUnavailable, fmt.Errorf("store: %s: %w", op, err),
		"the platform's database cannot be reached")
}

// found turns what a query for one row gave into v, missing, or a classified error.
func found[T any](ctx context.Context, v T, err error, missing *NotFoundError) (T, error) {
	var none T
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return none, missing
	case err != nil:
		return none, classify(ctx, missing.What, err)
	}
	return v, nil
}

// defect reports whether the database understood us and objected to the statement itself.
func defect(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		// Classes that speak of the server and not of the statement: connection,
		// authorization, transaction rollback (a retry may work), insufficient resources,
		// operator intervention, system error, corruption; and a read-only standby.
		switch {
		case pg.Code == "25006", strings.HasPrefix(pg.Code, "55P"):
			return false
		default:
			return !strings.Contains(" 08 28 40 53 57 58 XX ", " "+pg.Code[:min(2, len(pg.Code))]+" ")
		}
	}
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		switch lite.Code() & 0xff { // the primary code
		case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH,
			sqlite3.SQLITE_MISUSE, sqlite3.SQLITE_RANGE, sqlite3.SQLITE_TOOBIG:
			return true
		}
		return false
	}
	return strings.HasPrefix(err.Error(), "sql: Scan")
}

var (
	keyPattern    = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)
	tenantPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`) // stored in lower case
)

// checkName refuses a name that is not of the pattern that keys and secrets share.
func checkName(field, name string) error {
	if !keyPattern.MatchString(name) {
		return fault.New(fault.BadRequest, "%s %.120q: 1 to 100 of A-Z a-z 0-9 _ . - are allowed", field, name)
	}
	return nil
}

// checkText refuses text that a database cannot hold.
func checkText(field, text string, limit int) error {
	switch {
	case len(text) > limit:
		return fault.New(fault.BadRequest, "%s is longer than %d bytes", field, limit)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return fault.New(fault.BadRequest, "%s is not valid UTF-8 text", field)
	}
	return nil
}
