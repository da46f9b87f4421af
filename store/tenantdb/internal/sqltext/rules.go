package sqltext

import "strings"

// What a script may say is listed, everything else is refused: a word that a later
// version of a database learns is refused until someone has thought about it.

// verbs are the words that a statement may begin with.
var verbs = map[Dialect]map[string]Effect{
	SQLite: {"select": Reads, "values": Reads, "explain": Reads, "insert": Writes, "update": Writes,
		"delete": Writes, "replace": Writes, "create": Defines, "alter": Defines, "drop": Defines},
	Postgres: {"select": Reads, "values": Reads, "table": Reads, "explain": Reads, "insert": Writes,
		"update": Writes, "delete": Writes, "merge": Writes, "truncate": Writes,
		"create": Defines, "alter": Defines, "drop": Defines, "comment": Defines},
}

// objects are what CREATE, ALTER and DROP may be about.
var objects = map[Dialect]map[string]bool{
	SQLite:   {"table": true, "index": true, "view": true},
	Postgres: {"table": true, "index": true, "view": true, "materialized": true, "sequence": true, "type": true},
}

// adminObjects are allowed to an administrator on top.
var adminObjects = map[Dialect]map[string]bool{
	SQLite:   {},
	Postgres: {"function": true, "trigger": true, "extension": true, "domain": true},
}

// between may stand between CREATE and the object.
var between = map[string]bool{"or": true, "replace": true, "unique": true, "unlogged": true}

// reasons explain the refusals that people are likeliest to meet.
var reasons = map[string]string{
	"begin": transactionReason, "start": transactionReason, "commit": transactionReason, "end": transactionReason,
	"rollback": transactionReason, "abort": transactionReason, "savepoint": transactionReason, "release": transactionReason,
	"prepare": transactionReason, "temp": temporaryReason, "temporary": temporaryReason,
	"trigger": schemaReason, "function": schemaReason, "procedure": schemaReason, "virtual": schemaReason,
	"copy": "files and programs of the database server are out of reach",
}

const (
	transactionReason = "the platform begins and ends the run's transaction: return {Code: 1} to commit, anything else rolls back"
	temporaryReason   = "temporary tables would outlive the run"
	schemaReason      = "put it into a schema/*.sql file"
)

// pgFunctions and pgRelations are the only names beginning with pg_ that may be used: as
// functions, and as tables of a statement that only reads.
var (
	pgFunctions = set("pg_typeof pg_size_pretty pg_column_size pg_advisory_xact_lock pg_advisory_xact_lock_shared " +
		"pg_try_advisory_xact_lock pg_try_advisory_xact_lock_shared pg_get_serial_sequence pg_table_size " +
		"pg_total_relation_size pg_relation_size pg_indexes_size pg_get_indexdef pg_get_constraintdef pg_get_expr pg_get_viewdef")
	pgRelations = set("pg_catalog pg_class pg_namespace pg_attribute pg_type pg_tables pg_indexes pg_index pg_constraint pg_views pg_attrdef pg_description")
)

// forbidden names a function that must not be called; a trailing * stands for any rest.
// The xml ones and ts_stat run SQL that is given as text, which would get past all this.
var forbidden = map[Dialect][]string{
	SQLite: {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"},
	Postgres: {"lo_*", "loread", "lowrite", "dblink*", "set_config", "query_to_xml*", "table_to_xml*",
		"schema_to_xml*", "database_to_xml*", "cursor_to_xml*", "ts_stat", "ts_rewrite", "crosstab*", "connectby", "txid_status"},
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

func isForbidden(d Dialect, name string) bool {
	for _, f := range forbidden[d] {
		if stem, open := strings.CutSuffix(f, "*"); open && strings.HasPrefix(name, stem) || name == f {
			return true
		}
	}
	return false
}
