package jsbridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dop251/goja"

	"apiengine/fault"
)

// query is the Go state behind what FromSql returns.
type query struct {
	db     Database
	sql    string
	params map[string]any
	obj    *goja.Object // what the script holds
}

// dbHandle is the Go state behind V8.Db, V8.DbTrans, V8.DbRead and V8.Dbs.<name>.
type dbHandle struct {
	name  string
	reads bool // V8.DbRead
}

// database opens the database behind a handle; once a run, the engine remembers more.
func (c *Call) database(h dbHandle) (Database, error) {
	r := c.run
	if db, ok := r.dbs[h]; ok {
		return db, nil
	}
	var db Database
	var err error
	switch {
	case h.reads && c.Env.DBRead == nil:
		return nil, errNoService("DbRead")
	case h.reads:
		db, err = c.Env.DBRead()
	case c.Env.DB == nil:
		return nil, errNoService("Db")
	default:
		db, err = c.Env.DB(h.name)
	}
	if err != nil {
		return nil, err
	}
	if r.dbs == nil {
		r.dbs = map[dbHandle]Database{}
	}
	r.dbs[h] = db
	return db, nil
}

func dbFuncs() []Func {
	return []Func{
		Fn("Db.FromSql", "begins a statement, with V8.Dbs.<name> in the place of V8.Db in that database; values come by AddInParameter, never in the text",
			func(c *Call, in struct {
				SQL string `js:"sql"`
			}) (any, error) {
				h, ok := c.this.(*dbHandle)
				if !ok {
					return nil, argErrorf("FromSql must be called on V8.Db, V8.DbTrans, V8.DbRead or V8.Dbs.<name>")
				}
				db, err := c.database(*h)
				if err != nil {
					return nil, err
				}
				return &query{db: db, sql: in.SQL}, nil
			}),
		Fn("Query.AddInParameter", "gives the parameter name (with or without @) its value and returns the statement", addInParameter),
		queryFn("ToArray", "all rows, as an array of objects", func(c *Call, q *query) (any, error) {
			rows, _, err := q.db.Query(c, q.sql, q.params)
			return rows, err
		}),
		queryFn("First", "the first row as an object, or null", func(c *Call, q *query) (any, error) {
			rows, n, err := q.db.Query(c, q.sql, q.params)
			if err != nil || n == 0 {
				return nil, err
			}
			return firstRow(rows)
		}),
		queryFn("ToScalar", "the first column of the first row, or null", func(c *Call, q *query) (any, error) {
			return q.db.Scalar(c, q.sql, q.params)
		}),
		queryFn("ExecuteNonQuery", "runs the statement; the number of rows it changed", func(c *Call, q *query) (any, error) {
			return q.db.Exec(c, q.sql, q.params)
		}),
	}
}

// queryFn is a row that sends a statement.
func queryFn(name, doc string, f func(c *Call, q *query) (any, error)) Func {
	return hostFn("Query."+name, doc, func(c *Call, _ struct{}) (any, error) {
		q, ok := c.this.(*query)
		if !ok {
			return nil, argErrorf("%s must be called on what FromSql returned", name)
		}
		defer c.databaseTime(time.Now())
		return f(c, q)
	})
}

// databaseTime adds the time since then to the run's; the call that measures defers it.
func (c *Call) databaseTime(since time.Time) { c.run.stats.DBTime += time.Since(since) }

func addInParameter(c *Call, in struct {
	Name  string
	Value any
}) (any, error) {
	q, ok := c.this.(*query)
	if !ok {
		return nil, argErrorf("AddInParameter must be called on what FromSql returned")
	}
	if _, isObject := in.Value.(json.RawMessage); isObject {
		return nil, argErrorf("AddInParameter: the value of %q must be a string, number, boolean, Date, Uint8Array or null, not an object", in.Name)
	}
	name := strings.TrimPrefix(in.Name, "@")
	if name == "" {
		return nil, argErrorf("AddInParameter: the name is empty")
	}
	if _, twice := q.params[name]; twice {
		return nil, argErrorf("AddInParameter: the parameter %q was given twice", in.Name)
	}
	if q.params == nil {
		q.params = map[string]any{}
	}
	q.params[name] = in.Value
	return q, nil
}

// firstRow cuts the first element out of the text of an array.
func firstRow(rows json.RawMessage) (any, error) {
	p := &jsonScan{s: string(rows)}
	if p.space(); p.pos >= len(p.s) || p.s[p.pos] != '[' {
		return nil, fmt.Errorf("jsbridge: rows are no array")
	}
	p.pos++
	p.space()
	start := p.pos
	if _, err := p.value(); err != nil {
		return nil, fmt.Errorf("jsbridge: rows are no JSON: %w", err)
	}
	return json.RawMessage(p.s[start:p.pos]), nil
}

func apiFuncs() []Func {
	return []Func{
		hostFn("ApiEngine.Run", "runs another API of this tenant in this process and returns its answer",
			func(c *Call, in struct {
				Key   any        `js:"key"`
				Param orDatabase `js:"param,optional"`
				Trans inDatabase `js:"trans,optional"` // the child joins all of the caller's anyway
			}) (any, error) {
				key, param, err := keyAndObject("ApiEngine.Run", "ApiEngineKey", in.Key, in.Param.value)
				if err != nil {
					return nil, err
				}
				if _, named := in.Key.(string); !named {
					if _, err := in.Param.afterObject("ApiEngine.Run", in.Trans); err != nil {
						return nil, err
					}
				}
				if c.Env.Invoke == nil {
					return nil, errNoService("ApiEngine")
				}
				return c.Env.Invoke(c, key, param)
			}),
		hostFn("Secret", "the tenant's secret of that name",
			func(c *Call, in struct{ Name string }) (any, error) {
				if c.Env.Secret == nil {
					return nil, errNoService("Secret")
				}
				return c.Env.Secret(c, in.Name)
			}),
	}
}

// keyAndObject reads (key, object[, trans]) or ({<keyName>: key, ...}[, trans]).
func keyAndObject(fn, keyName string, first, second any) (string, json.RawMessage, error) {
	key, ok := first.(string)
	object := second
	if !ok {
		raw, isObject := first.(json.RawMessage)
		if !isObject {
			return "", nil, argErrorf("V8.%s: the first argument must be a name or an object with %s, not %s", fn, keyName, got(first))
		}
		key, object = takeMember(raw, keyName)
	}
	if key == "" {
		return "", nil, argErrorf("V8.%s: %s is missing", fn, keyName)
	}
	switch o := object.(type) {
	case nil:
		return key, json.RawMessage("{}"), nil
	case json.RawMessage:
		if text := bytes.TrimLeft(o, " \t\r\n"); len(text) > 0 && text[0] == '{' {
			return key, o, nil
		}
	}
	return "", nil, argErrorf("V8.%s: the second argument must be an object", fn)
}

// takeMember splits the string member name off an object.
func takeMember(obj json.RawMessage, name string) (string, json.RawMessage) {
	p := &jsonScan{s: string(obj)}
	p.space()
	p.pos++ // the brace
	var value string
	rest := []byte{'{'}
	for more := !p.empty('}'); more; {
		p.space()
		start := p.pos
		key, _, _, err := p.member()
		if err != nil {
			return "", obj
		}
		if key == name {
			text := p.s[start:p.pos]
			_ = json.Unmarshal([]byte(text[strings.IndexByte(text, ':')+1:]), &value)
		} else {
			if len(rest) > 1 {
				rest = append(rest, ',')
			}
			rest = append(rest, p.s[start:p.pos]...)
		}
		if more, err = p.next('}'); err != nil {
			return "", obj
		}
	}
	return value, append(rest, '}')
}

func lockFuncs() []Func {
	held := func(c *Call) (Lock, error) {
		if c.Env.Lock == nil {
			return nil, fault.New(fault.LeaseLost, "this run holds no lock")
		}
		return c.Env.Lock, nil
	}
	return []Func{
		Fn("Lock.RemainingMs", "milliseconds until the lease ends, by the local clock",
			func(c *Call, _ struct{}) (any, error) {
				l, err := held(c)
				if err != nil {
					return nil, err
				}
				return max(0, l.Remaining().Milliseconds()), nil
			}),
		Fn("Lock.IsHeld", "tells whether the lease still runs, by the local clock",
			func(c *Call, _ struct{}) (any, error) {
				l, err := held(c)
				if err != nil {
					return nil, err
				}
				return l.Held(), nil
			}),
		hostFn("Lock.EnsureHeld", "asks the lock's backend; the run ends when the lease is lost",
			func(c *Call, _ struct{}) (any, error) {
				l, err := held(c)
				if err != nil {
					return nil, err
				}
				return true, l.Confirm(c)
			}),
	}
}
