package jsbridge

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"apiengine/fault"
)

func TestCacheNatives(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct{ code, want string }{
		{`return [V8.Cache.Get('none'), V8.Cache.Set('a', '1'), V8.Cache.Get('a')]`, `[null,true,"1"]`},
		{`V8.Cache.Set('a', 'x'); return [V8.Cache.Remove('a'), V8.Cache.Del('a'), V8.Cache.Delete('a')]`, `[true,false,false]`},
		{`V8.Cache.Set('a', 'x'); return [V8.Cache.Exists('a'), V8.Cache.KeyExist('b')]`, `[true,false]`},
		{`return [V8.Cache.SetIfNotExists('a', 'x', 10), V8.Cache.SetIfNotExists('a', 'y', 10), V8.Cache.Get('a')]`, `[true,false,"x"]`},
		{`return [V8.Cache.Increment('n'), V8.Cache.Increment('n', 5), V8.Cache.Increment('n', -1, 60)]`, `[1,6,5]`},
		{`V8.Cache.Set('a', 'x'); return [V8.Cache.GetAndRemove('a'), V8.Cache.GetAndRemove('a')]`, `["x",null]`},
		{`V8.Cache.Set('a', 'x'); return [V8.Cache.CompareAndSet('a', 'y', 'z'), V8.Cache.CompareAndSet('a', 'x', 'z'), V8.Cache.Get('a')]`, `[false,true,"z"]`},
		{`V8.Cache.HashSet('h', 'f', '1'); V8.Cache.HashSet('h', 'e', '2'); return [V8.Cache.HashGet('h', 'f'), V8.Cache.HashGet('h', 'x'), V8.Cache.HashGetAll('h'), V8.Cache.HashGetAllKeys('h'), V8.Cache.HashLength('h')]`, `["1",null,{"e":"2","f":"1"},["e","f"],2]`},
		{`V8.Cache.HashSet('h', 'f', '1'); return [V8.Cache.HashExists('h', 'f'), V8.Cache.HashDelete('h', 'f'), V8.Cache.HashDelete('h', 'f'), V8.Cache.HashIncrement('h', 'n', 3), V8.Cache.HashGetAll('none')]`, `[true,true,false,3,{}]`},
		{`return await V8.Cache.SetAsync('a', 'x') && await V8.Cache.GetAsync('a')`, `x`},
		{`return V8.Cache.GetAsync('none').then(function(v){ return [v] })`, `[null]`},
		{`return V8.Cache.GetAsync().catch(function(e){ return e.message })`, `V8.Cache.Get: argument "key" is missing`},
		{`V8.Cache.Set('a', 'x', undefined); return V8.Cache.Get('a', undefined)`, `x`},
	} {
		e := env()
		e.Cache = &memCache{}
		if got := result(t, b, e, c.code); got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
}

func TestTTL(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct {
		ttl  string
		want time.Duration
		text string
	}{
		{`60`, time.Minute, ""},
		{`0.5`, 500 * time.Millisecond, ""},
		{`'60'`, time.Minute, ""},
		{`'1.02:03:04'`, 24*time.Hour + 2*time.Hour + 3*time.Minute + 4*time.Second, ""},
		{`'00:10:00'`, 10 * time.Minute, ""},
		{`undefined`, 0, ""},
		{`0`, 0, "more than 0"},
		{`-1`, 0, "more than 0"},
		{`NaN`, 0, "more than 0"},
		{`Infinity`, 0, "more than 0"},
		{`'soon'`, 0, "d.HH:mm:ss"},
		{`'1.25:00:00'`, 0, "d.HH:mm:ss"},
		{`'00:10:00x'`, 0, "d.HH:mm:ss"},
		{`{}`, 0, "seconds"},
	} {
		e := env()
		cache := &memCache{}
		e.Cache = cache
		got := result(t, b, e, `try { V8.Cache.Set('k', 'v', `+c.ttl+`); return 'ok' } catch (e) { return e.name + ': ' + e.message }`)
		if c.text == "" && (got != "ok" || cache.ttl["k"] != c.want) || c.text != "" && !strings.Contains(got, c.text) {
			t.Errorf("%s: %s, ttl %v, want %v %s", c.ttl, got, cache.ttl["k"], c.want, c.text)
		}
	}
}

// TestWrongArguments: each is an error that names function and argument.
func TestWrongArguments(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct{ code, want string }{
		{`V8.Cache.Get()`, `TypeError: V8.Cache.Get: argument "key" is missing`},
		{`V8.Cache.Get(null)`, `argument "key" is missing`},
		{`V8.Cache.Get(5)`, `V8.Cache.Get: argument "key" must be a string, not the number 5`},
		{`V8.Cache.Set('k', {a:1})`, `argument "value" must be a string, not an object`},
		{`V8.Cache.Set('k', function(){})`, `argument "value" must not be a function`},
		{`V8.Cache.Get('a', 'b')`, `takes (key), but was given 2 arguments`},
		{`V8.Cache.Increment('n', 1.5)`, `must be a whole number`},
		{`V8.Db.FromSql('SELECT @p0', 1)`, `V8.Db.FromSql takes (sql), but was given 2 arguments`},
		{`V8.Db.FromSql('x').AddInParameter('@p0', {a:1})`, `not an object`},
		{`V8.Db.FromSql('x').AddInParameter('@p0', 1).AddInParameter('p0', 2)`, `given twice`},
		{`V8.Db.FromSql('x').AddInParameter('@', 1)`, `name is empty`},
		{`var f = V8.Db.FromSql; f('x')`, `must be called on V8.Db`},
		{`V8.Db.FromSql('x').ToArray.call({})`, `must be called on what FromSql returned`},
		{`V8.FormEngine.GetFormData(5, {})`, `V8.FormEngine.GetFormData: the first argument must be a name`},
		{`V8.FormEngine.GetFormData({Id: 1})`, `FormEngineKey is missing`},
		{`V8.FormEngine.GetFormData('t', 'x')`, `second argument must be an object`},
		{`V8.FormEngine.GetFormData('t', [1])`, `second argument must be an object`},
		{`V8.ApiEngine.Run()`, `argument "key" is missing`},
		{`V8.Response.Status(99)`, `not from 200 to 599`},
		{`DateFormat('never', 'yyyy')`, `"never" is no date`},
		{`DateAdd(0, 'x', 1)`, `none of s m h`},
	} {
		e := env()
		e.Cache = &memCache{}
		e.DB = func(string) (Database, error) { return &fakeDB{}, nil }
		if got := fault.Public(failure(t, b, e, c.code)); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.code, got, c.want)
		}
	}
}

func TestUnknownNames(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct{ code, want string }{
		{`V8.Parm`, `V8 has no Parm; did you mean Param?`},
		{`V8.Zzz.Send('x')`, `V8 has no Zzz`}, {`V8.Sms.Send('x')`, `V8.Sms is not offered: call the provider's API with V8.Http`},
		{`V8.Cache.Gett('x')`, `V8.Cache has no Gett; did you mean Get?`},
		{`V8.Db.Query(1)`, `V8.Db has no Query; it has FromSql`}, {`V8.EncryptHelper.MD5(1)`, `has no MD5; did you mean MD5Encrypt?`},
		{`V8.Db.FromSQL2('x')`, `V8.Db has no FromSQL2; did you mean FromSql?`},
		{`V8.Db.FromSql('x').ToList()`, `statement.ToList is not offered: use ToArray()`},
		{`V8.Office.ExportExcel({})`, `V8.Office is not offered: make CSV text`}, {`V8.Method.Upload({})`, `V8.Method.Upload is not offered`},
		{`fetch('x')`, `ReferenceError: fetch is not defined: call addresses with V8.Http`}, {`Dateformat()`, `Dateformat is not defined; did you mean DateFormat?`},
		{`nobody`, `ReferenceError: nobody is not defined`},
		{`System.Guid.NewGuidd()`, `System.Guid has no NewGuidd; did you mean NewGuid?`}, {`System.DateTime.Now`, `use DateNow()`},
		{`V8.DbTrans.Commit()`, `commits when it returns Code 1`}, {`V8.Method.NewGuidd()`, `did you mean NewGuid?`},
		{`V8.FormEngine.GetTableDat('x')`, `did you mean GetTableData?`},
	} {
		e := env()
		e.DB = func(string) (Database, error) { return &fakeDB{}, nil }
		if got := fault.Public(failure(t, b, e, c.code)); !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.code, got, c.want)
		}
	}
	if got := result(t, b, env(), `return ['Parm' in V8, String(V8), JSON.stringify(V8.Cache), typeof (await V8)]`); got != `[false,"[object Object]","{}","object"]` {
		t.Error(got)
	}
}

func TestDatabaseNatives(t *testing.T) {
	b := newBridge(t, Config{})
	db := &fakeDB{rows: `[{"a":1,"b":"x"},{"a":2,"b":null}]`, n: 2}
	var opened []string
	run := func(code string) string {
		e := env()
		e.DB = func(name string) (Database, error) { opened = append(opened, name); return db, nil }
		e.DBRead = func() (Database, error) { opened = append(opened, "read"); return db, nil }
		return result(t, b, e, code)
	}
	if got := run(`return V8.Db.FromSql('S').AddInParameter('@p0', 'v').AddInParameter('p1', 2.5).AddInParameter('@p2', 7)
		.AddInParameter('@p3', null).AddInParameter('@p4', true).AddInParameter('@p5', new Date(0)).AddInParameter('@p6', undefined).AddInParameter('@p7', new Uint8Array([0, 255])).AddInParameter('@p8', 9007199254740993n).ToArray()`); got != db.rows {
		t.Errorf("rows %s", got)
	}
	want := map[string]any{"p0": "v", "p1": 2.5, "p2": int64(7), "p3": nil, "p4": true, "p5": "1970-01-01T00:00:00.000Z", "p6": nil,
		"p7": []byte{0, 255}, "p8": "9007199254740993"}
	if db.sql != "S" || !reflect.DeepEqual(db.params, want) {
		t.Errorf("sent %s %v", db.sql, db.params)
	}
	if got := run(`return V8.DbTrans.FromSql('S').First()`); got != `{"a":1,"b":"x"}` {
		t.Errorf("first %s", got)
	}
	if got := run(`return V8.DbTrans.FromSql('S').ExecuteNonQuery()`); got != `2` {
		t.Errorf("exec %s", got)
	}
	opened = nil
	if got := run(`V8.Db.FromSql('S').First(); V8.DbRead.FromSql('S').First(); return V8.DbRead.FromSql('S').First()`); got != `{"a":1,"b":"x"}` || !reflect.DeepEqual(opened, []string{"", "read"}) {
		t.Errorf("%s, opened %q", got, opened)
	}
	opened = nil
	if got := run(`V8.Dbs.stock.FromSql('S').ToArray(); V8.Dbs.stock.FromSql('S').ToArray(); return V8.Db.FromSql('S').ToArray().length`); got != `2` || !reflect.DeepEqual(opened, []string{"stock", ""}) {
		t.Errorf("%s, opened %q", got, opened)
	}
	db.rows, db.n = `[]`, 0
	if got := run(`return [V8.Db.FromSql('S').First(), V8.Db.FromSql('S').ToArray(), await V8.Db.FromSql('S').ToArrayAsync()]`); got != `[null,[],[]]` {
		t.Errorf("no rows: %s", got)
	}
	db.rows = `"12345678901234567890.5"`
	if got := run(`return V8.Db.FromSql('S').ToScalar()`); got != `12345678901234567890.5` {
		t.Errorf("scalar %s", got)
	}
}

func TestFormAndApiNatives(t *testing.T) {
	b := newBridge(t, Config{})
	db := &fakeDB{form: FormResult{Code: 1, Data: json.RawMessage(`{"Id":"a"}`), DataCount: 1}}
	e := env()
	e.DB = func(string) (Database, error) { return db, nil }
	e.Invoke = func(_ context.Context, key string, param json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"Code":1,"Key":"` + key + `","Param":` + string(param) + `}`), nil
	}
	for _, c := range []struct{ code, want, sent string }{
		{`return V8.FormEngine.GetFormData('orders', {Id: 'a'})`, `{"Code":1,"Data":{"Id":"a"},"DataCount":1,"Msg":""}`, `GetFormData orders {"Id":"a"}`},
		{`return V8.FormEngine.UptFormData('orders', {Id: 'a'}, V8.DbTrans).Code`, `1`, `UptFormData orders {"Id":"a"}`},
		{`return V8.FormEngine.AddFormData({FormEngineKey: 'orders', Qty: 1, When: new Date(0)}, V8.DbTrans).Data.Id`, `a`, `AddFormData orders {"Qty":1,"When":"1970-01-01T00:00:00.000Z"}`},
		{`return V8.FormEngine.GetTableData('orders').DataCount`, `1`, `GetTableData orders {}`},
		{`return (await V8.FormEngine.DelFormDataAsync('orders', {Id: 'a'})).Code`, `1`, `DelFormData orders {"Id":"a"}`},
		{`return V8.FormEngine.AddTableData([{FormEngineKey: 'a', n: 10n}, {FormEngineKey: 'b', raw: new Uint8Array([255])}], V8.DbTrans).Code`, `1`, `AddTableData  [{"FormEngineKey":"a","n":"10"},{"FormEngineKey":"b","raw":"/w=="}]`},
		{`return V8.FormEngine.UptTableData('orders', [{Id: 1}]).Code`, `1`, `UptTableData orders [{"Id":1}]`},
		{`return V8.FormEngine.UptFormDataByWhere('orders', {_Where: [['a', '=', 1]], b: undefined, c: new ArrayBuffer(1)}).Code`, `1`, `UptFormDataByWhere orders {"_Where":[["a","=",1]],"c":"AA=="}`},
		{`return V8.ApiEngine.Run('child', {a: [1]})`, `{"Code":1,"Key":"child","Param":{"a":[1]}}`, ``},
		{`return V8.ApiEngine.Run('child', {a: 1}, V8.DbTrans).Param.a`, `1`, ``},
		{`return V8.ApiEngine.Run({ApiEngineKey: 'child', b: 2})`, `{"Code":1,"Key":"child","Param":{"b":2}}`, ``},
		{`return V8.ApiEngine.Run('child')`, `{"Code":1,"Key":"child","Param":{}}`, ``},
		{`return V8.ApiEngine.Run('child', V8.Param).Code`, `1`, ``},
	} {
		db.op = ""
		if got := result(t, b, e, c.code); got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
		if sent := db.op + " " + db.table + " " + db.opts; c.sent != "" && sent != c.sent {
			t.Errorf("%s: sent %s, want %s", c.code, sent, c.sent)
		}
	}
}

// TestServiceErrors: what a script may catch and what ends the run.
func TestServiceErrors(t *testing.T) {
	b := newBridge(t, Config{})
	for _, k := range []fault.Kind{fault.LeaseLost, fault.StaleFence, fault.Timeout, fault.Canceled, fault.OutcomeUnknown, fault.Draining, fault.LimitDepth} {
		for _, call := range []string{`V8.Cache.Get('k')`, `await V8.Cache.GetAsync('k').catch(function(){})`} {
			e := env()
			cause := fault.New(k, "from the service")
			e.Cache = &memCache{err: cause}
			err := failure(t, b, e, `try { `+call+` } catch (e) {} finally { return 1 } return 2`)
			if !errors.Is(err, cause) {
				t.Errorf("%s %s: %v", k, call, err)
			}
		}
	}
	cause := fault.Wrap(fault.StoreUnavailable, errors.New("dial 10.0.0.1: password=secret"), "no database")
	e := env()
	e.Cache = &memCache{err: cause}
	if got := result(t, b, e, `try { V8.Cache.Get('k') } catch (e) { return [e instanceof Error, e.Kind, e.message, JSON.stringify(e), e.stack.includes('secret')] }`); got != `[true,"store_unavailable","no database","{\"Kind\":\"store_unavailable\"}",false]` {
		t.Error(got)
	}
	err := failure(t, b, e, "\nV8.Cache.Get('k')")
	var se *ScriptError
	if !errors.As(err, &se) || se.Line != 2 || fault.Of(err) != fault.StoreUnavailable || !errors.Is(err, cause) || fault.Public(err) != "no database" {
		t.Errorf("uncaught: %+v", err)
	}
	e.Cache = &memCache{err: errors.New("raw text with a path /var/lib")}
	if got := result(t, b, e, `try { V8.Cache.Get('k') } catch (e) { return e.Kind + e.message }`); strings.Contains(got, "/var") || !strings.HasPrefix(got, "internal") {
		t.Error(got)
	}
}

func TestLockNatives(t *testing.T) {
	b := newBridge(t, Config{})
	if got := result(t, b, env(), `return [V8.Lock, V8.FencingToken]`); got != `[null,0]` {
		t.Error(got)
	}
	e := env()
	lock := &fakeLock{}
	e.Lock = lock
	if got := result(t, b, e, `return [V8.Lock, V8.FencingToken, V8.Lock.RemainingMs(), V8.Lock.IsHeld(), V8.Lock.EnsureHeld()]`); got != `[{"Key":"ae:{t1:OrderId:7}","FencingToken":42},42,3000,true,true]` {
		t.Error(got)
	}
	lock.confirm = fault.New(fault.LeaseLost, "gone")
	if err := failure(t, b, e, `try { V8.Lock.EnsureHeld() } catch (e) { return 1 }`); !errors.Is(err, lock.confirm) {
		t.Error(err)
	}
}

func TestContextValues(t *testing.T) {
	b := newBridge(t, Config{})
	e := env()
	e.Param = json.RawMessage(`{"Id":9007199254740993,"n":1.5,"__proto__":{"x":1},"a":[1]}`)
	e.Header = map[string]string{"Content-Type": "text/x", "X-Key": "k"}
	e.Files = map[string]string{"a.txt": "YQ=="}
	e.User = json.RawMessage(`{"Id":"u1","Roles":["r"]}`)
	e.SysConfig = json.RawMessage(`{"Title":"T"}`)
	e.Request = Request{Method: "POST", Path: "/p", IP: "1.2.3.4", ID: "r1"}
	e.Limits.Depth = 3
	e.Secret = func(_ context.Context, name string) (string, error) { return "secret of " + name, nil }
	for _, c := range []struct{ code, want string }{
		{`return V8.Param`, string(e.Param)[:6] + `"9007199254740993","n":1.5,"__proto__":{"x":1},"a":[1]}`},
		{`return [V8.Param.Id, V8.Param.x, typeof ({}).x]`, `["9007199254740993",null,"undefined"]`},
		{`V8.Param.extra = 1; V8.Param.a.push(2); return [V8.Param.extra, V8.Param.a]`, `[1,[1,2]]`},
		{`V8.Param = {b: 1}; return V8.Param`, `{"b":1}`},
		{`return [V8.Header['content-type'], V8.Header['X-KEY'], V8.Header.none === undefined, 'x-key' in V8.Header, Object.keys(V8.Header)]`, `["text/x","k",true,true,["Content-Type","X-Key"]]`},
		{`return V8.FilesByteBase64`, `{"a.txt":"YQ=="}`},
		{`V8.CurrentUser.Id = 'root'; V8.CurrentUser.Roles.push2 = 1; return V8.CurrentUser`, `{"Id":"u1","Roles":["r"]}`},
		{`try { V8.CurrentUser.Roles.push('admin') } catch (e) {} return V8.CurrentUser.Roles`, `["r"]`},
		{`try { V8.CurrentUser = {Id: 'root'} } catch (e) { return e.message }`, `V8.CurrentUser cannot be set`},
		{`try { V8.FencingToken = 99 } catch (e) {} return V8.FencingToken`, `0`},
		{`V8.SysConfig.Title = 'x'; return V8.SysConfig.Title`, `T`},
		{`return [V8.OsClient, V8.ApiEngineKey, V8.InvokeType]`, `["t1","test","Client"]`},
		{`return V8.Request`, `{"Method":"POST","Path":"/p","Ip":"1.2.3.4","Id":"r1"}`},
		{`return [V8.Limits.Depth, V8.Limits.RemainingMs > 0, V8.Limits.RemainingMs <= 5000]`, `[3,true,true]`},
		{`return V8.Secret('k')`, `secret of k`},
	} {
		if got := result(t, b, e, c.code); got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
	rep, err := b.Run(context.Background(), compile(t, `V8.Response.Status(201); V8.Response.Header('X-A', 'b'); V8.Response.Redirect('/x'); return 1`), e)
	if r := rep.Outcome.Response; err != nil || r.Status != 201 || r.Header["X-A"] != "b" || r.Redirect != "/x" {
		t.Errorf("%+v %v", r, err)
	}
	if got := result(t, b, &Env{Limits: env().Limits}, `return [V8.Param, V8.CurrentUser, V8.SysConfig, V8.FilesByteBase64]`); got != `[{},{},{},{}]` {
		t.Errorf("nothing given: %s", got)
	}
}

func TestConsole(t *testing.T) {
	b := newBridge(t, Config{})
	rep, err := b.Run(context.Background(), compile(t, "console.log('a', 1, {b: [2]}, null, undefined, true);\nconsole.warn('x\\n\\u001b[31m', function f(){});\n console.error(new TypeError('bad')); console.info([1n].length); var c = {}; c.c = c; console.log(c, Symbol('s'))\nthrow new Error('end')"), env())
	if err == nil {
		t.Fatal("no error")
	}
	want := []Line{{Level: "log", Line: 1, Text: `a 1 {"b":[2]} null undefined true`}, {Level: "warn", Line: 2, Text: `x\n\u001b[31m [function f]`},
		{Level: "error", Line: 3, Text: `TypeError: bad (line 3)`}, {Level: "info", Line: 3, Text: `1`}, {Level: "log", Line: 3, Text: `[Object: a structure that contains itself at .c] Symbol()`}}
	for i := range rep.Console {
		if rep.Console[i].Time.IsZero() {
			t.Error("no time")
		}
		rep.Console[i].Time = time.Time{}
	}
	if !reflect.DeepEqual(rep.Console, want) {
		t.Errorf("got  %+v\nwant %+v", rep.Console, want)
	}
	rep, err = b.Run(context.Background(), compile(t, `for (var i = 0; i < 500; i++) console.log('line ' + i); console.log('x'.repeat(1e6))`), env())
	if err != nil || len(rep.Console) != maxConsoleLines+1 || !strings.Contains(rep.Console[maxConsoleLines].Text, "301 more") {
		t.Errorf("%d lines, %v", len(rep.Console), err)
	}
	rep, _ = b.Run(context.Background(), compile(t, `for (var i = 0; i < 100; i++) console.log('x'.repeat(1000))`), env())
	size := 0
	for _, l := range rep.Console {
		size += len(l.Text)
	}
	if size > defaultConsole+100 || size < defaultConsole-2000 {
		t.Errorf("%d bytes kept", size)
	}
	rep, _ = b.Run(context.Background(), compile(t, `Promise.reject(new Error('lost')); return 1`), env())
	if len(rep.Console) != 1 || !strings.Contains(rep.Console[0].Text, "lost") {
		t.Errorf("unhandled rejection: %+v", rep.Console)
	}
}

func TestGlobals(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct{ code, want string }{
		{`return DateFormat('2026-03-04 05:06:07', 'yyyy/MM/dd HH:mm:ss.fff yy-M-d')`, `2026/03/04 05:06:07.000 26-3-4`},
		{`return DateFormat(new Date(2026, 0, 2, 3, 4, 5, 6), 'yyyy-MM-dd HH:mm:ss.fff')`, `2026-01-02 03:04:05.006`},
		{`return DateFormat('2026-01-02')`, `2026-01-02 00:00:00`},
		{`return DateAdd('2026-01-31', 'M', 1, 'yyyy-MM-dd')`, `2026-02-28`},
		{`return DateAdd('2024-02-29', 'y', 1, 'yyyy-MM-dd')`, `2025-02-28`},
		{`return DateAdd('2026-01-31', 'q', -1, 'yyyy-MM-dd')`, `2025-10-31`},
		{`return ['s','m','h','d','w'].map(u => DateAdd('2026-01-01 00:00:00', u, 2))`, `["2026-01-01 00:00:02","2026-01-01 00:02:00","2026-01-01 02:00:00","2026-01-03 00:00:00","2026-01-15 00:00:00"]`},
		{`return /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/.test(DateNow())`, `true`},
		{`return DateFormat(DateNow('yyyy-MM-dd HH:mm:ss'), 'yyyy') === String(new Date().getFullYear())`, `true`},
		{`return [NewGuid() !== NewGuid(), /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(crypto.randomUUID())]`, `[true,true]`},
		{`return [System.Convert.ToBase64String('订单'), System.Convert.FromBase64String('6K6i5Y2V')]`, `["6K6i5Y2V","订单"]`},
		{`return [btoa('a\xff'), atob('Yf8=').charCodeAt(1), atob('Yf8').length]`, `["Yf8=",255,2]`},
		{`return [...new TextEncoder().encode('é')].concat(new TextDecoder().decode(new Uint8Array([0xc3, 0xa9, 0xff])))`, `[195,169,"é` + "\ufffd" + `"]`},
		{`var u = new URL('/p/q?a=1&b=2#h', 'HTTPS://User:Pw@Example.com:443/x'); return [u.href, u.origin, u.host, u.pathname, u.search, u.hash, u.searchParams.get('b')]`, `["https://User:Pw@example.com/p/q?a=1&b=2#h","https://example.com","example.com","/p/q","?a=1&b=2","#h","2"]`},
		{`var u = new URL('http://a:8080/x y?q=1'); u.searchParams.set('q', 'a b'); u.hash = 'z'; u.port = '90'; return String(u)`, `http://a:90/x%20y?q=a+b#z`},
		{`try { new URL('nope') } catch (e) { return e.name }`, `TypeError`},
		{`var p = new URLSearchParams('a=1&a=2&b=%E8%AE%A2+x'); p.append('c', '&='); p.delete('b'); return [p.getAll('a'), p.has('b'), p.toString(), [...p].length]`, `[["1","2"],false,"a=1&a=2&c=%26%3D",3]`},
		{`return new URLSearchParams({x: 1, y: 'é'}).toString()`, `x=1&y=%C3%A9`},
		{`var d = {d: new Date(0), m: new Map([[1, {a: 1}]]), s: new Set([1])}; d.self = d; var c = structuredClone(d); return [c !== d, c.self === c, c.d.getTime(), c.m.get(1).a, c.s.has(1)]`, `[true,true,0,1,true]`},
		{`try { structuredClone({f(){}}) } catch (e) { return e.name }`, `TypeError`},
		{`return await new Promise(function(ok){ queueMicrotask(function(){ ok(5) }) })`, `5`},
	} {
		if got := result(t, b, env(), c.code); got != c.want {
			t.Errorf("%s: got %s, want %s", c.code, got, c.want)
		}
	}
}

func TestStats(t *testing.T) {
	b := newBridge(t, Config{})
	e := env()
	e.Cache = &memCache{}
	e.DB = func(string) (Database, error) { return &fakeDB{rows: "[]"}, nil }
	rep, err := b.Run(context.Background(), compile(t, `NewGuid(); V8.Cache.Get('a'); V8.Db.FromSql('x').AddInParameter('a', 1).ToArray()`), e)
	if err != nil || rep.Stats.HostCalls != 2 || rep.Stats.CacheTime <= 0 || rep.Stats.DBTime <= 0 {
		t.Errorf("%+v %v", rep.Stats, err)
	}
}

func TestReference(t *testing.T) {
	ref := Reference()
	for _, want := range []string{"`V8.Cache.Set(key, value, ttl?)`", "`V8.Param`", "`DateNow(format?)`", "`V8.Db.FromSql(sql).AddInParameter(name, value)`"} {
		if !strings.Contains(ref, want) {
			t.Errorf("no %s in the reference", want)
		}
	}
}
