package tenantdb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"apiengine/fault"
)

// A tenant's database in PostgreSQL is two schemas. The one that cfg names is the script's:
// its tables belong to the tenant's role, which has no other rights. The other holds the
// platform's tables, which that role cannot see. A session changes between the two by
// search_path and role together, see pgMode.

// ownSuffix ends the name of the schema with the platform's tables of one tenant.
const ownSuffix = ":own"

// pgOwnTables make the platform's tables of one tenant, in order, with search_path on its
// own schema. Each must do no harm when what it makes is there.
var pgOwnTables = append([]string{
	`CREATE TABLE IF NOT EXISTS _apiengine_fence (
		lock_key text PRIMARY KEY, token bigint NOT NULL, owner text NOT NULL, sealed_at timestamptz NOT NULL
	) WITH (fillfactor = 50)`,
	`CREATE TABLE IF NOT EXISTS _apiengine_fence_floor (bucket int PRIMARY KEY, token bigint NOT NULL)`,
	`CREATE OR REPLACE FUNCTION _apiengine_fence_floor_of(int) RETURNS bigint LANGUAGE sql VOLATILE AS
		'SELECT coalesce((SELECT token FROM _apiengine_fence_floor WHERE bucket = $1), 0)'`,
	pgIdempotencyTable, schemaFiles,
}, append(strings.Split(pgBox+";"+pgTasks, ";"), pgTasksBest)...)

// create makes what is missing: the tenant's role, its schemas and the platform's tables.
// What an earlier version had made in the tenant's schema is moved, and what belongs to the
// platform's role there is given to the tenant's. Nodes that start together take turns.
func (b *pgBackend) create(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", "apiengine:"+b.schema); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, "SELECT current_setting('role')").Scan(&b.self); err != nil {
		return err
	}
	for _, schema := range []string{b.schema, b.schema + ownSuffix} {
		if err := createSchema(ctx, tx, schema); err != nil {
			return err
		}
	}
	b.role = b.self
	if !b.shared {
		if err := b.createRole(ctx, tx); err != nil {
			return err
		}
	}
	if err := eachOf(ctx, tx, pgMove, b.schema, b.schema+ownSuffix, b.role); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "SELECT set_config('search_path', $1, true)", b.own); err != nil {
		return err
	}
	for _, table := range pgOwnTables {
		if _, err := tx.Exec(ctx, table); err != nil {
			return err
		}
	}
	if b.shared {
		return nil
	}
	if err := eachOf(ctx, tx, pgHandOver, b.schema, b.role); err != nil {
		return err
	}
	return b.seal(ctx, tx)
}

// createSchema looks first: CREATE SCHEMA IF NOT EXISTS needs the right even when there is
// nothing to do.
func createSchema(ctx context.Context, tx pgx.Tx, name string) error {
	var exists bool
	if err := tx.QueryRow(ctx, "SELECT count(*) = 1 FROM pg_namespace WHERE nspname = $1", name).Scan(&exists); err != nil || exists {
		return err
	}
	_, err := tx.Exec(ctx, "CREATE SCHEMA "+quote(name))
	return err
}

const (
	// pgMove gives the statements that move the platform's tables out of a tenant's schema.
	// One that belongs to the tenant's role is none of the platform's, whatever its name.
	pgMove = `SELECT format('ALTER TABLE %I.%I SET SCHEMA %I', $1::text, c.relname, $2::text) FROM pg_class c
		WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND c.relkind IN ('r', 'p')
		AND c.relname LIKE '\_apiengine\_%' AND c.relname <> '` + schemaTable + `' AND pg_get_userbyid(c.relowner) <> $3
		AND to_regclass(format('%I.%I', $2::text, c.relname)) IS NULL`

	// pgHandOver gives the statements that make the tenant's role the owner of what the
	// platform's has in its schema. What hangs on a table or an extension goes with that.
	pgHandOver = `SELECT format('ALTER %s %s OWNER TO %I', o.kind, o.name, $2::text) FROM (
			SELECT CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE'
				WHEN 'c' THEN 'TYPE' WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END AS kind,
				format('%I.%I', $1::text, c.relname) AS name, c.relnamespace AS namespace, c.relowner AS owner,
				'pg_class'::regclass AS class, c.oid AS oid
			FROM pg_class c WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f', 'c')
			UNION ALL
			SELECT 'ROUTINE', p.oid::regprocedure::text, p.pronamespace, p.proowner, 'pg_proc'::regclass, p.oid FROM pg_proc p
			UNION ALL
			SELECT 'TYPE', format('%I.%I', $1::text, t.typname), t.typnamespace, t.typowner, 'pg_type'::regclass, t.oid
			FROM pg_type t WHERE t.typtype IN ('d', 'e', 'r')
		) o
		WHERE o.namespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)
		AND o.owner = (SELECT oid FROM pg_roles WHERE rolname = current_user)
		AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = o.class AND d.objid = o.oid AND d.deptype IN ('a', 'i', 'e'))`

	// pgSeal gives the statements that keep a tenant's routines from changing the role they
	// run under: PostgreSQL refuses that inside SECURITY DEFINER, by whatever statement.
	pgSeal = `SELECT format('ALTER ROUTINE %s SECURITY DEFINER', p.oid::regprocedure) FROM pg_proc p
		WHERE p.proowner = (SELECT oid FROM pg_roles WHERE rolname = $1) AND NOT p.prosecdef AND p.prokind IN ('f', 'p')`
)

// eachOf runs the statements that a query of the catalog gives.
func eachOf(ctx context.Context, tx pgx.Tx, query string, args ...any) error {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, s := range statements {
		if err == nil {
			_, err = tx.Exec(ctx, s)
		}
	}
	return err
}

// seal binds the tenant's routines to its role.
func (b *pgBackend) seal(ctx context.Context, tx pgx.Tx) error {
	return eachOf(ctx, tx, pgSeal, b.role)
}

// bindRoutines is seal inside a transaction.
func (s *pgSession) bindRoutines(ctx context.Context) error {
	if s.b.shared {
		return nil
	}
	rows, err := s.ours(ctx, pgStatement{sql: pgSeal, args: texts(s.b.role)})
	for _, r := range rows {
		if err == nil {
			_, err = s.ours(ctx, pgStatement{sql: r[0]})
		}
	}
	return err
}

// createRole finds or makes the tenant's role, which cannot sign in and has rights on the
// tenant's schema alone, and makes sure that this session may change to it.
func (b *pgBackend) createRole(ctx context.Context, tx pgx.Tx) error {
	err := tx.QueryRow(ctx, pgFindRole, b.schema).Scan(&b.role)
	if errors.Is(err, pgx.ErrNoRows) {
		err = b.newRole(ctx, tx)
	}
	if err != nil {
		return err
	}
	if b.assume(ctx, tx) == nil {
		return nil
	}
	if err := attempt(ctx, tx, "GRANT "+quote(b.role)+" TO CURRENT_USER"); err != nil {
		return b.noRole(err)
	}
	if err := b.assume(ctx, tx); err != nil {
		return b.noRole(err)
	}
	return nil
}

// pgFindRole is the role that a tenant's schema was given to: it keeps its name when the
// database is renamed or copied.
const pgFindRole = `SELECT r.rolname FROM pg_namespace n, aclexplode(n.nspacl) a JOIN pg_roles r ON r.oid = a.grantee
	WHERE n.nspname = $1 AND a.privilege_type = 'CREATE' AND r.rolname LIKE replace($1, '_', '\_') || '@%'`

// newRole makes a role. Roles are the server's, schemas a database's, hence the suffix.
func (b *pgBackend) newRole(ctx context.Context, tx pgx.Tx) error {
	var database string
	if err := tx.QueryRow(ctx, "SELECT current_database()").Scan(&database); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(database))
	b.role = b.schema + "@" + hex.EncodeToString(sum[:2])
	var exists bool
	if err := tx.QueryRow(ctx, "SELECT count(*) = 1 FROM pg_roles WHERE rolname = $1", b.role).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		err := attempt(ctx, tx, "CREATE ROLE "+quote(b.role)+" NOLOGIN NOINHERIT")
		if e := new(pgconn.PgError); errors.As(err, &e) && (e.Code == "42710" || e.Code == "23505") {
			err = nil // made in another database of the server at the same time
		}
		if err != nil {
			return b.noRole(err)
		}
	}
	_, err := tx.Exec(ctx, fmt.Sprintf("GRANT USAGE, CREATE ON SCHEMA %s TO %s", b.path, quote(b.role)))
	return err
}

// assume changes to the tenant's role and back.
func (b *pgBackend) assume(ctx context.Context, tx pgx.Tx) error {
	return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT set_config('role', $1, true)", b.role); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "SELECT set_config('role', $1, true)", b.self)
		return err
	})
}

// attempt runs a statement that may fail without ending the transaction.
func attempt(ctx context.Context, tx pgx.Tx, sql string) error {
	return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, sql); return err })
}

// noRole tells whoever operates the database what to do when a role cannot be had.
func (b *pgBackend) noRole(cause error) error {
	e := new(pgconn.PgError)
	if !errors.As(cause, &e) || !strings.HasPrefix(e.Code, "42") {
		return cause
	}
	return fault.Wrap(fault.StoreUnavailable, cause, `the tenant's database role cannot be made (%s): let an administrator of the database run`+
		` CREATE ROLE %s NOLOGIN; GRANT %[2]s TO <the role of --database-url>; or give that role CREATEROLE, or start with --tenant-roles=off`,
		e.Message, quote(b.role))
}
