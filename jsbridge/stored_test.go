package jsbridge

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"apiengine/fault"
)

// formLog notes which database a FormEngine call reached, and with what.
type formLog struct {
	fakeDB
	name string
	log  *[]string
}

func (d *formLog) Form(_ context.Context, _, _ string, options json.RawMessage) (FormResult, error) {
	*d.log = append(*d.log, d.name+" "+string(options))
	return FormResult{Code: 1}, nil
}

// TestFormReachesTheDatabaseThatIsNamed: or none at all.
func TestFormReachesTheDatabaseThatIsNamed(t *testing.T) {
	b := newBridge(t, Config{})
	const refused = "TypeError"
	for _, c := range []struct{ call, want string }{
		{`AddFormData('t', {})`, ` {}`}, {`AddFormData('t', {}, undefined)`, ` {}`}, {`AddFormData('t', {}, null)`, ` {}`}, {`AddFormData('t', {}, V8.Db)`, ` {}`},
		{`AddFormData('t', {}, V8.DbTrans)`, ` {}`}, {`AddFormData('t', {}, V8.Dbs.stock)`, `stock {}`}, {`AddFormData({FormEngineKey: 't'}, V8.Dbs.stock)`, `stock {}`},
		{`AddFormData({FormEngineKey: 't'}, null, V8.Dbs.stock)`, `stock {}`}, {`AddTableData([{}], V8.Dbs.stock)`, `stock [{}]`}, {`AddTableData('t', [{}], V8.DbTrans)`, ` [{}]`},
		{`GetTableData('t', V8.Dbs.stock)`, `stock {}`}, {`GetTableData('t', V8.DbTrans)`, ` {}`},
		{`AddFormData('t', {}, V8.Dbs)`, refused}, {`AddFormData('t', {}, {})`, refused}, {`AddFormData('t', {}, 'stock')`, refused}, {`AddFormData('t', {}, 5)`, refused},
		{`AddFormData('t', {}, V8.DbRead)`, refused}, {`AddFormData({FormEngineKey: 't'}, V8.Dbs)`, refused}, {`AddFormData({FormEngineKey: 't'}, {})`, refused},
		{`AddFormData({FormEngineKey: 't'}, 'stock')`, refused}, {`AddTableData([{}], V8.DbRead)`, refused}, {`AddTableData([{}], {})`, refused}, {`AddTableData('t', [{}], [])`, refused},
		{`GetTableData('t', V8.Dbs)`, refused}, {`GetTableData('t', V8.Dbs.a, V8.Dbs.b)`, refused}, {`AddFormData({FormEngineKey: 't'}, V8.Dbs.a, V8.Dbs.b)`, refused},
	} {
		got := formRun(t, b, c.call)
		if c.want == refused {
			if !strings.HasPrefix(got, "TypeError: ") || !strings.Contains(got, "V8.Dbs.<name>") && !strings.Contains(got, "two databases") {
				t.Errorf("%s: got %s, want a TypeError that says what belongs there", c.call, got)
			}
		} else if got != c.want {
			t.Errorf("%s: got %s, want %s", c.call, got, c.want)
		}
	}
}

// TestFormTakesOnlyWhatColumnsHold: JSON would make null of it, and a condition on nothing
// match other rows.
func TestFormTakesOnlyWhatColumnsHold(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct{ call, want string }{
		{`AddFormData('t', {Qty: NaN})`, "Code 0 NaN at Qty cannot be stored"}, {`AddFormData('t', {Qty: -Infinity})`, "Code 0 -Infinity at Qty"}, {`AddFormData('t', {At: new Date(NaN)})`, "Code 0 an invalid Date at At"},
		{`AddFormData({FormEngineKey: 't', Qty: 0 / 0})`, "Code 0 NaN at Qty"}, {`AddTableData('t', [{Qty: 1}, {Qty: NaN}])`, "Code 0 NaN at [1].Qty"}, {`AddTableData([{FormEngineKey: 't', At: new Date(NaN)}])`, "Code 0 an invalid Date at [0].At"},
		{`AddFormData('t', {Qty: new Number(NaN)})`, "Code 0 NaN at Qty"}, {`AddFormData('t', {j: {a: NaN}, u: undefined, list: [undefined]})`, ` {"j":{"a":null},"list":[null]}`},
		{`AddFormData('t', {At: new Date(0), n: Math.pow(2, 60)})`, ` {"At":"1970-01-01T00:00:00.000Z","n":1.152921504606847e+18}`},
		{`GetTableData('t', {_Where: [['Qty', '=', undefined]]})`, "TypeError: V8.FormEngine.GetTableData: argument \"options\" cannot be JSON: undefined where a condition needs a value"},
		{`GetTableData('t', {_Where: [{Name: 'Qty', Value: undefined}]})`, "TypeError"}, {`GetTableData('t', {_Where: [['Qty', '=', NaN]]})`, "TypeError"}, {`GetTableData('t', {_Where: [['Qty', 'In', [1, undefined]]]})`, "TypeError"},
		{`GetTableData('t', {_Where: [['Qty', '>', new Date(NaN)]]})`, "TypeError"}, {`GetTableData('t', {_Where: [{Name: 'Qty', Value: 1, AndOr: undefined}]})`, ` {"_Where":[{"Name":"Qty","Value":1}]}`},
		{`GetTableData('t', {_Where: [['Qty', '=', null]], x: undefined})`, ` {"_Where":[["Qty","=",null]]}`},
	} {
		if got := formRun(t, b, c.call); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %s, want %s", c.call, got, c.want)
		}
	}
}

// formRun is what the call sent to which database, its answer with Code 0, or what it threw.
func formRun(t *testing.T, b *Bridge, call string) string {
	t.Helper()
	var log []string
	e := env()
	e.DB = func(name string) (Database, error) { return &formLog{name: name, log: &log}, nil }
	e.DBRead = func() (Database, error) { return &formLog{name: "read", log: &log}, nil }
	rep, err := b.Run(t.Context(), compile(t, `var r = V8.FormEngine.`+call+`; return r.Code === 1 ? 'done' : 'Code ' + r.Code + ' ' + r.Msg`), e)
	switch {
	case err != nil && len(log) == 0:
		return fault.Public(err)
	case err != nil || rep.Outcome.Text == "done":
		return strings.Join(log, "; ")
	}
	return rep.Outcome.Text
}
