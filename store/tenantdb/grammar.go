package tenantdb

import (
	"strings"

	"apiengine/store/tenantdb/internal/sqltext"
)

// grammar is what FormEngine's statements need to know about a dialect.
type grammar struct {
	dialect    sqltext.Dialect
	sign       string // of a numbered placeholder
	now        string // microseconds since 1970
	like       string // LIKE regardless of case, as users of MySQL expect
	tablesSQL  string // T: names of tables and views
	columnsSQL string // T, C, Y: of tables whose folded name is the placeholder's
}

var liteGrammar = grammar{
	dialect:   sqltext.SQLite,
	sign:      "?",
	now:       "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
	like:      "LIKE",
	tablesSQL: `SELECT name AS "T" FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name`,
	columnsSQL: `SELECT m.name AS "T", c.name AS "C", c.type AS "Y" FROM sqlite_master m, pragma_table_xinfo(m.name) c
		WHERE m.type IN ('table', 'view') AND m.name = ?1 COLLATE NOCASE AND c.hidden <> 1 ORDER BY m.name, c.cid`,
}

var pgGrammar = grammar{
	dialect: sqltext.Postgres,
	sign:    "$",
	now:     "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint",
	like:    "ILIKE",
	tablesSQL: `SELECT c.relname AS "T" FROM pg_class c WHERE c.relnamespace = quote_ident(current_schema())::regnamespace
		AND c.relkind IN ('r', 'p', 'v', 'm', 'f') ORDER BY 1`,
	columnsSQL: `SELECT c.relname AS "T", a.attname AS "C", t.typname AS "Y"
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
		WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
		AND lower(c.relname) = lower($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname, a.attnum`,
}

// quote makes a name of the schema part of a statement; both dialects quote alike.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
