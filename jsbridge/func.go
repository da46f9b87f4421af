package jsbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Func is one native function: a row that the runtime binds, counts and documents.
//
// Name is what follows "V8." ("Cache.Get"); a name that starts with "." is a global
// (".DateNow", ".System.Convert.ToBase64String"), one that starts with "Query." is a
// method of what FromSql returns.
type Func struct {
	Name string
	Doc  string
	// Host marks a call that leaves the process or waits; those are counted in Stats.
	Host bool

	args argPlan
	call func(c *Call, in []jsArg) (any, error)
}

// Call is what a native sees of the run that calls it. Its context ends when the run
// must end.
type Call struct {
	context.Context
	Env *Env

	run  *run
	this any // the Go state behind the object that the function was called on
}

// Fn makes a row. The fields of In are the positional arguments; a field's type says
// what is accepted:
//
//	string, bool, int64, float64   that JS type (whole numbers for int64)
//	any                            nil, bool, int64, float64, string, []byte, json.RawMessage
//	json.RawMessage                any value, as JSON text
//	[]byte                         a string, as UTF-8, or a buffer
//	time.Duration                  a ttl: seconds, or 'd.HH:mm:ss'
//	inDatabase                     V8.Db, V8.DbTrans or V8.Dbs.<name>
//	orDatabase                     one of these, or what any takes
//	orStored                       orDatabase, of which values go into columns
//
// The tag `js:"name"` names the argument in messages; `js:"name,optional"` lets it be
// missing, undefined or null, and then the field keeps its zero value.
func Fn[In any](name, doc string, f func(c *Call, in In) (any, error)) Func {
	plan := planArgs(reflect.TypeFor[In]())
	return Func{Name: name, Doc: doc, args: plan, call: func(c *Call, args []jsArg) (any, error) {
		var in In
		if err := plan.decode(name, args, reflect.ValueOf(&in).Elem()); err != nil {
			return nil, err
		}
		return f(c, in)
	}}
}

// hostFn is Fn for a call that leaves the process. It must end soon after its context: the
// run is not left behind while f works on what belongs to the caller of Bridge.Run.
func hostFn[In any](name, doc string, f func(c *Call, in In) (any, error)) Func {
	row := Fn(name, doc, func(c *Call, in In) (any, error) {
		defer c.run.atHost()()
		return f(c, in)
	})
	row.Host = true
	return row
}

// inDatabase is an argument in the place of V8.DbTrans: one of the databases that a run writes
// to, by its name. orDatabase is one that may stand there, or is what it is. orStored takes
// no number or Date that a column cannot hold (refused says which) and no condition without
// a value.
type (
	inDatabase struct {
		name  string
		given bool
	}
	orDatabase struct {
		value any
		inDatabase
	}
	orStored struct {
		orDatabase
		refused string
	}
)

// jsArg is one argument of a call, still a JS value behind the methods.
type jsArg interface {
	// plain gives nil, bool, int64, float64, string, []byte for buffers, or json.RawMessage
	// for other objects.
	plain() (any, error)
	// json gives JSON text.
	json() (json.RawMessage, error)
	// bytes gives a string's UTF-8, or the content of a buffer.
	bytes() ([]byte, error)
	// stored is plain for values that go into columns.
	stored() (v any, refused string, err error)
	missing() bool
	// database tells which of V8.Db, V8.DbTrans and V8.Dbs.<name> it is, if any; an error for
	// V8.DbRead and V8.Dbs, which can only be meant as one.
	database() (inDatabase, error)
}

type argPlan []argField

type argField struct {
	name     string
	optional bool
	typ      reflect.Type
}

func planArgs(t reflect.Type) argPlan {
	plan := make(argPlan, t.NumField())
	for i := range plan {
		f := t.Field(i)
		name, opt, _ := strings.Cut(f.Tag.Get("js"), ",")
		if name == "" {
			name = strings.ToLower(f.Name[:1]) + f.Name[1:]
		}
		plan[i] = argField{name: name, optional: opt == "optional", typ: f.Type}
	}
	return plan
}

// argError is a wrong argument; it is thrown as a TypeError.
type argError struct{ msg string }

func (e *argError) Error() string { return e.msg }

func argErrorf(format string, args ...any) error {
	return &argError{msg: fmt.Sprintf(format, args...)}
}

var (
	typeRaw      = reflect.TypeFor[json.RawMessage]()
	typeBytes    = reflect.TypeFor[[]byte]()
	typeDuration = reflect.TypeFor[time.Duration]()
	typeInDB     = reflect.TypeFor[inDatabase]()
	typeOrDB     = reflect.TypeFor[orDatabase]()
	typeStored   = reflect.TypeFor[orStored]()
	typeAny      = reflect.TypeFor[any]()
)

func (p argPlan) decode(name string, args []jsArg, in reflect.Value) error {
	name = shownName(name)
	for len(args) > len(p) && args[len(args)-1].missing() {
		args = args[:len(args)-1]
	}
	if len(args) > len(p) {
		return argErrorf("%s takes %s, but was given %d arguments", name, p, len(args))
	}
	for i, f := range p {
		if i >= len(args) || args[i].missing() {
			if !f.optional && (f.typ != typeAny || i >= len(args)) {
				return argErrorf("%s: argument %q is missing", name, f.name)
			}
			continue
		}
		if err := f.set(args[i], in.Field(i)); err != nil {
			return argErrorf("%s: argument %q %v", name, f.name, err)
		}
	}
	return nil
}

func (p argPlan) String() string {
	names := make([]string, len(p))
	for i, f := range p {
		names[i] = f.name
		if f.optional {
			names[i] += "?"
		}
	}
	return "(" + strings.Join(names, ", ") + ")"
}

// shownName is a row's name as authors write it.
func shownName(name string) string {
	switch {
	case strings.HasPrefix(name, "."):
		return name[1:]
	case strings.HasPrefix(name, "Query."):
		return name[len("Query."):]
	}
	return "V8." + name
}

func (f argField) set(a jsArg, dst reflect.Value) error {
	switch f.typ {
	case typeRaw:
		text, err := a.json()
		dst.SetBytes(text)
		return err
	case typeBytes:
		b, err := a.bytes()
		dst.SetBytes(b)
		return err
	case typeInDB, typeOrDB, typeStored:
		return f.setDatabase(a, dst)
	}
	v, err := a.plain()
	if err != nil {
		return err
	}
	switch f.typ {
	case typeAny:
		if v != nil {
			dst.Set(reflect.ValueOf(v))
		}
		return nil
	case typeDuration:
		d, err := parseTTL(v)
		dst.SetInt(int64(d))
		return err
	}
	return setPlain(dst, v)
}

// errNoDatabase says what belongs in the place of V8.DbTrans.
var errNoDatabase = errors.New("must be V8.Db, V8.DbTrans or V8.Dbs.<name> (or be left out)")

func (f argField) setDatabase(a jsArg, dst reflect.Value) error {
	db, err := a.database()
	switch {
	case err != nil:
		return err
	case f.typ == typeInDB && !db.given:
		return errNoDatabase
	case f.typ == typeInDB:
		dst.Set(reflect.ValueOf(db))
		return nil
	}
	o := orStored{orDatabase: orDatabase{inDatabase: db}}
	switch {
	case db.given:
	case f.typ == typeOrDB:
		o.value, err = a.plain()
	default:
		o.value, o.refused, err = a.stored()
	}
	if f.typ == typeOrDB {
		dst.Set(reflect.ValueOf(o.orDatabase))
	} else {
		dst.Set(reflect.ValueOf(o))
	}
	return err
}

// afterObject is the database of a call whose first argument is an object, in which what stands
// second can only be that.
func (o orDatabase) afterObject(fn string, trans inDatabase) (inDatabase, error) {
	switch {
	case o.value != nil:
		return o.inDatabase, argErrorf("V8.%s: after an object, the second argument %v", fn, errNoDatabase)
	case o.given && trans.given:
		return o.inDatabase, argErrorf("V8.%s: two databases are given", fn)
	case o.given:
		return o.inDatabase, nil
	}
	return trans, nil
}

func setPlain(dst reflect.Value, v any) error {
	switch v := v.(type) {
	case string:
		if dst.Kind() == reflect.String {
			dst.SetString(v)
			return nil
		}
	case bool:
		if dst.Kind() == reflect.Bool {
			dst.SetBool(v)
			return nil
		}
	case int64:
		switch dst.Kind() {
		case reflect.Int64:
			dst.SetInt(v)
			return nil
		case reflect.Float64:
			dst.SetFloat(float64(v))
			return nil
		}
	case float64:
		if dst.Kind() == reflect.Float64 {
			dst.SetFloat(v)
			return nil
		}
	}
	return fmt.Errorf("must be %s, not %s", wanted(dst.Kind()), got(v))
}

func wanted(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int64:
		return "a whole number"
	}
	return "a number"
}

func got(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64, float64:
		return fmt.Sprintf("the number %v", v)
	case []byte:
		return "bytes"
	}
	return "an object"
}

// parseTTL reads seconds or 'd.HH:mm:ss' (also 'HH:mm:ss').
func parseTTL(v any) (time.Duration, error) {
	var seconds float64
	switch v := v.(type) {
	case int64:
		seconds = float64(v)
	case float64:
		seconds = v
	case string:
		return parseSpan(v)
	default:
		return 0, fmt.Errorf("must be seconds or 'd.HH:mm:ss', not %s", got(v))
	}
	const tenYears = 10 * 366 * 24 * 3600
	if !(seconds > 0 && seconds <= tenYears) {
		return 0, fmt.Errorf("must be more than 0 and at most %d seconds, not %v", tenYears, v)
	}
	return max(time.Millisecond, time.Duration(seconds*float64(time.Second))), nil
}

var errSpan = errors.New("must be seconds or 'd.HH:mm:ss'")

func parseSpan(s string) (time.Duration, error) {
	var days, h, m, sec int64
	clock := s
	if d, rest, ok := strings.Cut(s, "."); ok {
		if n, err := fmt.Sscanf(d+" ", "%d ", &days); err != nil || n != 1 {
			return 0, errSpan
		}
		clock = rest
	} else if !strings.Contains(s, ":") {
		if n, err := fmt.Sscanf(s+"|", "%d|", &sec); err != nil || n != 1 { // '60'
			return 0, errSpan
		}
		return parseTTL(sec)
	}
	if n, err := fmt.Sscanf(clock+"|", "%d:%d:%d|", &h, &m, &sec); err != nil || n != 3 {
		return 0, errSpan
	}
	if days < 0 || h < 0 || h > 23 || m < 0 || m > 59 || sec < 0 || sec > 59 {
		return 0, errSpan
	}
	return parseTTL(days*86400 + h*3600 + m*60 + sec)
}
