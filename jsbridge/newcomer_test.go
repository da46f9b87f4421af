package jsbridge

import (
	"context"
	"errors"
	"strings"
	"testing"

	"apiengine/fault"
)

func TestInvalidDatesAreRefused(t *testing.T) {
	b := newBridge(t, Config{})
	for _, call := range []string{`DateFormat(NaN)`, `DateFormat(Infinity)`, `DateFormat(8.64e15 + 2)`, `DateFormat(new Date(NaN))`, `DateFormat(null)`,
		`DateFormat('no date')`, `DateAdd(NaN, 'd', 1)`, `DateAdd(new Date('x'), 'd', 1)`} {
		if got := result(t, b, env(), `try { return `+call+` } catch (e) { return e.name }`); got != "TypeError" {
			t.Errorf("%s: got %s, want TypeError", call, got)
		}
	}
	if got := result(t, b, env(), `return DateFormat(8.64e15, 'yyyy').length`); got != "6" {
		t.Errorf("the last date has a year of %s digits, want 6", got)
	}
}

// TestNoPlaceIsNoPlace: what is thrown without a position has none in its particulars.
func TestNoPlaceIsNoPlace(t *testing.T) {
	b := newBridge(t, Config{})
	_, err := b.Run(context.Background(), compile(t, `await Promise.reject(5)`), env())
	details := fault.Details(err)
	_, line := details["Line"]
	_, column := details["Column"]
	if line || column || details["File"] == nil || strings.Contains(err.Error(), ":0") {
		t.Errorf("got %v, %v", err, details)
	}
	_, err = b.Run(context.Background(), compile(t, `throw 5`), env())
	if d := fault.Details(err); d["Line"] != 1 || d["Column"] != 1 {
		t.Errorf("got %v, %v", err, d)
	}
}

func TestConsoleBearsWhatThrows(t *testing.T) {
	b := newBridge(t, Config{})
	for _, value := range []string{`{get x(){ throw 1 }}`, `{toJSON: function(){ throw new Error('a') }}`, `class { static get name(){ throw 1 } }`} {
		rep, err := b.Run(context.Background(), compile(t, `console.log('before', `+value+`); return {Code: 1}`), env())
		if err != nil || len(rep.Console) != 1 || rep.Console[0].Text != "before [getter failed]" {
			t.Errorf("%s: %v, %v", value, rep.Console, err)
		}
	}
	_, err := b.Run(context.Background(), compile(t, `function f(){ f() } console.log({get x(){ f() }})`), env())
	if k := fault.Of(err); k != fault.LimitStack {
		t.Errorf("a limit inside a getter ended as %s", k)
	}
}

func TestMethodOfNoDatabase(t *testing.T) {
	b := newBridge(t, Config{})
	_, err := b.Run(context.Background(), compile(t, `V8.Dbs.FromSql('select 1')`), env())
	var se *ScriptError
	if want := "V8.Dbs has no FromSql: name a database, V8.Dbs.<name>.FromSql"; !errors.As(err, &se) || !strings.Contains(se.Msg, want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if got := result(t, b, env(), `return typeof V8.Dbs.reports`); got != "object" {
		t.Errorf("a database is %s", got)
	}
}

// TestBuiltInNamesAreNotKept: what docs/scripts.md says of a.map = 5.
func TestBuiltInNamesAreNotKept(t *testing.T) {
	b := newBridge(t, Config{})
	for code, want := range map[string]string{
		`var a = [1]; a.map = 5; return typeof a.map`:                                                               "function",
		`'use strict'; var a = [1]; try { a.map = 5 } catch (e) { return e.name }`:                                  "TypeError",
		`var o = {}; o.map = 5; o.toString = 6; return [o.map, o.toString]`:                                         "[5,6]",
		`var a = [1]; Object.defineProperty(a, 'map', {value: 5}); return a.map`:                                    "5",
		`var m = new Map(); m.get = 5; var d = new Date(0); d.getTime = 5; return [typeof m.get, typeof d.getTime]`: `["function","function"]`,
	} {
		if got := result(t, b, env(), code); got != want {
			t.Errorf("%s: got %s, want %s", code, got, want)
		}
	}
}
