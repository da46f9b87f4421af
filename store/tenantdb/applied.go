package tenantdb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing/fstest" // for its in-memory folder; it does not import testing

	"apiengine/store/tenantdb/internal/sqltext"
)

// The library that applies schema files knows them by their versions alone: a file whose
// version another one had is passed over in silence, and so is one that was changed.

// schemaFiles makes the table of the files that were applied. Those applied before there was
// such a table are noted as they are at their next push.
const schemaFiles = `CREATE TABLE IF NOT EXISTS _apiengine_schema_files (version bigint PRIMARY KEY, name text NOT NULL, sum text NOT NULL)`

// checkApplied refuses files that have the version of another one, or that were changed. It
// takes those that are noted as applied out of versions.
func (db *DB) checkApplied(ctx context.Context, folder fstest.MapFS, versions map[int64]string) error {
	var rows []struct {
		Version   int64
		Name, Sum string
	}
	if _, err := db.one(ctx, ourStatement{sql: `SELECT version AS "Version", name AS "Name", sum AS "Sum" FROM _apiengine_schema_files`, rows: &rows}); err != nil {
		return err
	}
	next := slices.Max(slices.Collect(maps.Keys(versions))) + 1
	for _, r := range rows {
		next = max(next, r.Version+1)
	}
	for _, r := range rows {
		name := versions[r.Version]
		switch {
		case name == "":
		case schemaSum(folder[name]) == r.Sum:
			delete(versions, r.Version)
		case name == r.Name:
			return &SchemaError{File: name, Msg: fmt.Sprintf("was applied before with another text; write what is new into another file, such as %d_...", next)}
		default:
			return &SchemaError{File: name, Msg: fmt.Sprintf("has the number %d, as %s has, which was applied; give it another one, such as %d", r.Version, r.Name, next)}
		}
	}
	return nil
}

// noteApplied keeps which files were applied.
func (db *DB) noteApplied(ctx context.Context, folder fstest.MapFS, versions map[int64]string) error {
	if len(versions) == 0 {
		return nil
	}
	tx, err := db.Begin(ctx, Guard{})
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	for version, name := range versions {
		_, err := tx.ours(ctx, ourStatement{sql: `INSERT INTO _apiengine_schema_files (version, name, sum) VALUES ($1, $2, $3) ON CONFLICT (version) DO NOTHING`,
			args: []any{version, name, schemaSum(folder[name])}, effect: sqltext.Writes})
		if err != nil {
			return err
		}
	}
	return tx.Commit(ctx)
}

// schemaSum tells two texts apart that differ in more than the ends of their lines.
func schemaSum(f *fstest.MapFile) string {
	var text strings.Builder
	for line := range strings.Lines(string(f.Data)) {
		text.WriteString(strings.TrimRight(line, " \t\r\n") + "\n")
	}
	sum := sha256.Sum256([]byte(strings.TrimRight(text.String(), "\n")))
	return hex.EncodeToString(sum[:])
}
