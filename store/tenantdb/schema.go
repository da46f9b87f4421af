package tenantdb

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"apiengine/nearest"
	"apiengine/store/tenantdb/internal/sqltext"
)

// table is what FormEngine knows of a table or view.
type table struct {
	name    string
	columns []column
	read    time.Time
}

type column struct {
	name string
	typ  string // lower case, as the database names it
}

// tableTTL is how long a table's columns are believed: another node may change them.
const tableTTL = time.Second

// tableCache holds tables by their folded names. The zero value is ready.
type tableCache struct {
	mu sync.Mutex
	m  map[string]*table
}

func (c *tableCache) get(name string) *table {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.m[strings.ToLower(name)]
	if t == nil || time.Since(t.read) > tableTTL {
		return nil
	}
	return t
}

func (c *tableCache) put(name string, t *table) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = map[string]*table{}
	}
	c.m[strings.ToLower(name)] = t
}

func (c *tableCache) drop(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.m, strings.ToLower(name))
}

func (c *tableCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m = nil
}

// cache is the transaction's own once it has changed tables: what it sees may be rolled back.
func (tx *Tx) cache() *tableCache {
	if tx.defined {
		return tx.tables
	}
	return &tx.db.tables
}

// table finds a table or view by its name in any case; the error names the nearest.
func (tx *Tx) table(ctx context.Context, name string) (*table, error) {
	if strings.HasPrefix(strings.ToLower(name), Reserved) {
		return nil, badCall("the table %s belongs to the platform", name)
	}
	if t := tx.cache().get(name); t != nil {
		return t, nil
	}
	var rows []struct{ T, C, Y string }
	if err := tx.platform(ctx, tx.db.g.columnsSQL, []any{name}, &rows); err != nil {
		return nil, err
	}
	found := map[string]*table{}
	for _, r := range rows {
		if found[r.T] == nil {
			found[r.T] = &table{name: r.T, read: time.Now()}
		}
		found[r.T].columns = append(found[r.T].columns, column{r.C, strings.ToLower(r.Y)})
	}
	t := found[name]
	switch {
	case t == nil && len(found) == 0:
		return nil, tx.unknownTable(ctx, name)
	case t == nil && len(found) > 1:
		return nil, badCall("several tables are named %s, in different cases: write the name exactly", name)
	case t == nil:
		t = found[rows[0].T]
	}
	tx.cache().put(name, t)
	return t, nil
}

func (tx *Tx) unknownTable(ctx context.Context, name string) error {
	var rows []struct{ T string }
	if err := tx.platform(ctx, tx.db.g.tablesSQL, nil, &rows); err != nil {
		return err
	}
	var names []string
	for _, r := range rows {
		if !strings.HasPrefix(strings.ToLower(r.T), Reserved) {
			names = append(names, r.T)
		}
	}
	return badCall("there is no table %s%s", name, meant(name, names))
}

// platform runs a statement of ours that reads and decodes its rows.
func (tx *Tx) platform(ctx context.Context, sql string, args []any, rows any) error {
	w := tx.db.writer(objects)
	st := statement{Statement: sqltext.Statement{SQL: sql, Args: args}, platform: true}
	if _, err := tx.run(ctx, st, w); err != nil {
		return err
	}
	return json.Unmarshal(w.json(), rows)
}

// column finds a column by its name in any case.
func (t *table) column(name string) (column, bool) {
	var found []column
	for _, c := range t.columns {
		if c.name == name {
			return c, true
		}
		if strings.EqualFold(c.name, name) {
			found = append(found, c)
		}
	}
	if len(found) == 1 {
		return found[0], true
	}
	return column{}, false
}

func (t *table) unknownColumn(name string) error {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return &columnError{SQLError{Msg: "the table " + t.name + " has no column " + name + meant(name, names)}}
}

// columnError is an unknown column: the cached table may be out of date.
type columnError struct{ SQLError }

// Unwrap makes it an ordinary SQLError for the caller.
func (e *columnError) Unwrap() error { return &e.SQLError }

// meant names the known name that is likeliest meant, or nothing.
func meant(name string, known []string) string {
	near := nearest.Name(name, known)
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}
