package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"apiengine/jsbridge"
	"apiengine/lint"
)

// TestRules: each ⟦ in a script is taken out and marks the place of a warning; a script
// without one has none.
func TestRules(t *testing.T) {
	for _, c := range []struct{ name, code, text string }{
		{"value by +", "var r = V8.Db.FromSql('SELECT a FROM t WHERE n = ' + ⟦V8.Param.N).ToArray(); return r", "V8.Param.N; write @p0"},
		{"value in quotes", `return V8.Db.FromSql("SELECT a FROM t WHERE n = '" + ⟦V8.Param.N + "'").First()`, "value in it: V8.Param.N"},
		{"value in a template", "return V8.DbTrans.FromSql(`SELECT a FROM t WHERE n = ${⟦V8.Param.N}`).First()", "V8.Param.N"},
		{"value through a variable", "var n = V8.Param.N;\nvar sql = 'SELECT a FROM t WHERE n = ' + ⟦n;\nreturn V8.Db.FromSql(sql).First()", "value in it: n"},
		{"value by +=", "var sql = 'SELECT a FROM t';\nif (V8.Param.N) sql += ' WHERE n = ' + ⟦V8.Param.N;\nreturn V8.Db.FromSql(sql).First()", "AddInParameter"},
		{"a whole value by +=", "var sql = 'SELECT a FROM t ';\nsql += ⟦V8.Param.Where;\nreturn V8.Db.FromSql(sql).First()", "V8.Param.Where"},
		{"value in one of two", "return V8.Db.FromSql(V8.Param.A ? 'SELECT 1' : 'SELECT ' + ⟦V8.Param.B).First()", "V8.Param.B"},
		{"list of values", "return V8.Db.FromSql('SELECT a FROM t WHERE id IN (' + ⟦V8.Param.Ids.join(',') + ')').ToArray()", "V8.Param.Ids.join"},
		{"join of pushed values", "var w = ['1=1']; w.push('n = ' + V8.Param.N);\nreturn V8.Db.FromSql('SELECT a FROM t WHERE ' + ⟦w.join(' AND ')).ToArray()", "w.join"},
		{"another database", "return V8.Dbs.erp.FromSql('SELECT ' + ⟦V8.Param.A).First()", ""},
		{"async", "var r = await V8.Db.FromSql('SELECT ' + ⟦V8.Param.A).FirstAsync(); return r", ""},
		{"through concat", "return V8.Db.FromSql('SELECT '.concat(⟦V8.Param.A)).First()", ""},
		{"loose variable", "for (const i of V8.Param.List) { V8.Db.FromSql('SELECT ' + ⟦i).First() }", "value in it: i"},

		{"text alone", "return V8.Db.FromSql('SELECT a FROM t WHERE n = @p0').AddInParameter('@p0', V8.Param.N).First()", ""},
		{"text in pieces", "var cols = 'a, b', t = 'people';\nreturn V8.Db.FromSql('SELECT ' + cols + ' FROM ' + t + ` WHERE ${'n'} = 1`).First()", ""},
		{"named parameters", "var ids = V8.Param.Ids; var q = V8.Db.FromSql('SELECT a FROM t WHERE id IN (' + ids.map((id, i) => '@p' + i).join(',') + ')');\nids.forEach(function (id, i) { q.AddInParameter('@p' + i, id) });\nreturn q.ToArray()", ""},
		{"named parameters in a template", "var ids = V8.Param.Ids;\nreturn V8.Db.FromSql(`SELECT a FROM t WHERE id IN (${ids.map(function (id, i) { return `@p${i}` }).join(', ')})`).ToArray()", ""},
		{"conditions", "var w = ['1 = 1'];\nif (V8.Param.N) w.push('n = @n');\nreturn V8.Db.FromSql('SELECT a FROM t WHERE ' + w.join(' AND ')).ToArray()", ""},
		{"conditions by +=", "var sql = 'SELECT a FROM t WHERE 1 = 1';\nif (V8.Param.N) { sql += ' AND n = @n'; }\nsql = sql + ' LIMIT 10';\nreturn V8.Db.FromSql(sql).ToArray()", ""},
		{"direction", "return V8.Db.FromSql('SELECT a FROM t ORDER BY a ' + (V8.Param.Desc ? 'DESC' : 'ASC')).ToArray()", ""},
		{"a list of the author's", "var by = { name: 'Name', age: 'Age' };\nreturn V8.Db.FromSql('SELECT a FROM t ORDER BY ' + by[V8.Param.By]).ToArray()", ""},
		{"a counter", "for (var i = 0; i < 2; i++) { V8.Db.FromSql('SELECT ' + i).First() }", ""},
		{"marks", "return V8.Db.FromSql('SELECT a FROM t WHERE a IN (' + new Array(3).fill('@p').join(',') + ')').ToArray()", ""},
		{"built elsewhere", "function run(sql) { return V8.Db.FromSql(sql).ToArray() }\nreturn run('SELECT 1')", ""},
		{"other texts", "return 'hello ' + V8.Param.Name", ""},
		{"silenced", "// apiengine:ignore the name was checked\nreturn V8.Db.FromSql('SELECT ' + V8.Param.N).First()", ""},
		{"silenced on its line", "return V8.Db.FromSql('SELECT ' + V8.Param.N).First() // apiengine:ignore", ""},

		{"lock of SetIfNotExists", "var k = 'lock:' + V8.Param.Id;\nif (!⟦V8.Cache.SetIfNotExists(k, '1', 10)) return { Code: 0 };\nV8.Cache.Remove(k);\nreturn { Code: 1 }", "write Lock: true"},
		{"in finally", "if (⟦V8.Cache.SetIfNotExists('a', '1', 10)) { try { f() } finally { V8.Cache.Del('a') } }\nfunction f() {}", "SetIfNotExists and Remove"},
		{"through a variable", "var c = V8.Cache;\nconst ok = await ⟦c.SetIfNotExistsAsync('a', '1', 9);\nc.Delete( 'a' )", ""},
		{"lock of Get, Set and Remove", "if (⟦V8.Cache.Get('busy')) return { Code: 0 };\nV8.Cache.Set('busy', '1', 60);\nV8.Cache.Remove('busy');\nreturn { Code: 1 }", "two callers"},
		{"looked at later", "var l = ⟦V8.Cache.Get('busy');\nif (l !== null) { return { Code: 0 } }\nV8.Cache.Set('busy', '1');\nV8.Cache.Remove('busy')", ""},
		{"taken apart", "const { Cache } = V8;\nwhile (⟦Cache.Exists('busy')) {}\nCache.Set('busy', '1'); Cache.Remove('busy')", ""},
		{"a cached value", "var v = V8.Cache.Get('v');\nif (v) return JSON.parse(v);\nV8.Cache.Set('v', '1', 60);\nif (V8.Param.Drop) V8.Cache.Remove('v');\nreturn 1", ""},
		{"two keys", "if (V8.Cache.SetIfNotExists('a', '1')) V8.Cache.Remove('b')", ""},
		{"once only", "return V8.Cache.SetIfNotExists('seen:' + V8.Param.Id, '1', 60)", ""},
		{"removed before", "V8.Cache.Remove('a'); return V8.Cache.SetIfNotExists('a', '1')", ""},

		{"query in a loop", "for (var i = 0; i < 3; i++) {\n  ⟦V8.Db.FromSql('SELECT a FROM t WHERE n = @n').AddInParameter('n', i).ToArray();\n}", "LIMIT"},
		{"in a callback", "V8.Param.List.forEach(function (x) { ⟦V8.Db.FromSql('SELECT a FROM t').ToArray() })", ""},
		{"through a statement's variable", "while (true) { const q = ⟦V8.Db.FromSql('SELECT a FROM t'); q.ToArray() }", ""},
		{"table in a loop", "V8.Param.Ids.map(id => ⟦V8.FormEngine.GetTableData('t', { _Where: [['Owner', '=', id]] }))", "_PageSize"},
		{"options in a variable", "for (const id of V8.Param.Ids) { const o = { _Where: [['Owner', '=', id]] }; ⟦V8.FormEngine.GetTableData('t', o) }", ""},
		{"one object", "for (;;) { ⟦V8.FormEngine.GetTableData({ FormEngineKey: 't' }) }", ""},
		{"the loop's own list", "for (const row of V8.Db.FromSql('SELECT a FROM t').ToArray()) { row.a }", ""},
		{"with LIMIT", "for (;;) { V8.Db.FromSql('SELECT a FROM t LIMIT 10').ToArray() }", ""},
		{"with LIMIT in a piece", "for (;;) { var s = 'SELECT a FROM t'; s += ' limit @n'; V8.Db.FromSql(s).ToArray() }", ""},
		{"one row", "for (;;) { V8.Db.FromSql('SELECT a FROM t').First() }", ""},
		{"one by its Id", "for (;;) { V8.Db.FromSql('SELECT a FROM t WHERE Id = @id').ToArray() }", ""},
		{"a count", "for (;;) { V8.Db.FromSql('SELECT COUNT(*) AS n FROM t WHERE a = 1').ToArray() }", ""},
		{"a page", "for (;;) { V8.FormEngine.GetTableData('t', { _PageSize: 10 }) }", ""},
		{"a page set later", "for (;;) { var o = {}; o._PageSize = 10; V8.FormEngine.GetTableData('t', o) }", ""},
		{"options from elsewhere", "for (const o of V8.Param.List) { V8.FormEngine.GetTableData('t', o) }", ""},
		{"outside a loop", "return V8.Db.FromSql('SELECT a FROM t').ToArray()", ""},

		{"unknown part", "return ⟦V8.Chache.Get('a')", "V8 has no Chache; did you mean Cache?"},
		{"unknown function", "return ⟦V8.Cache.Gett('a')", "V8.Cache has no Gett; did you mean Get?"},
		{"unknown of a statement", "return ⟦V8.Db.FromSql('SELECT 1').ToLst()", "statement has no ToLst"},
		{"unknown of a named database", "return ⟦V8.Dbs.erp.FromSqll('SELECT 1')", "FromSqll"},
		{"not offered", "return ⟦V8.Office.ExportExcel({})", "is not offered"},
		{"unknown through a variable", "var m = V8.Method; return ⟦m.NewGuidd()", "NewGuid"},
		{"in brackets", "return ⟦V8['Chache']", "Cache"},
		{"all known", "V8.Result = [V8.Param.Anything.At.All, V8.Header.Host, V8.SysConfig.X, V8.CurrentUser.Id, V8.Cache.GetAsync, V8.Lock.IsHeld(), V8.Lock.Key,\n V8.DbRead.FromSql('SELECT 1').First().Whatever, V8.Dbs.any.FromSql('SELECT 1').ToArray().length, V8.Limits.Depth, V8.Response.Status(201), V8.Cache.Get.name]", ""},
		{"a browser's global", "return ⟦fetch('https://a.example')", "fetch is not defined: call addresses with V8.Http"},
		{"Node's global", "var fs = ⟦require('fs'); return fs", "V8.Use"},
		{"a misspelt global", "return ⟦Dateformt(new Date())", "did you mean DateFormat?"},
		{"a misspelt variable", "var order = V8.Param.Order; return ⟦ordre.Id", "ordre is not defined"},
		{"in an object", "var a = 1; return { a, ⟦b }", "b is not defined"},
		{"text as code", "return ⟦eval('1 + 1')", "text as code"},
		{"a function of text", "return new ⟦Function('return 1')()", "text as code"},
		{"a timer", "⟦setTimeout(function () {}, 1)", "task"},
		{"what there is", "label: for (var i = 0; i < 1; i++) { if (i) continue label; break label }\n" +
			"function f(a, { b, c: [d] }, ...e) { return [a, b, d, e, arguments.length, new.target] } class K { m() { return K } }\n" +
			"var { x, y: z = 1, ...rest } = V8.Param; let [p, , q] = [1, 2, 3]; const g = (h) => h; try { f() } catch (err) { err.message }\n" +
			"implicit = 1; ({ m: n, o } = V8.Param); [r, s] = [1, 2]; for (t of []) t; for (u in {}) u; for (const w of []) w;\n" +
			"var value = typeof fetch === 'function' ? fetch : eval; late();\n" +
			"function late() { return [x, z, rest, p, q, g, implicit, n, o, r, s, t, u, value, undefined, NaN, Infinity, globalThis, Symbol, console, isNaN(1), escape('a'), setTimeout, Function.prototype, DateNow(), System.Guid] }\n" +
			"return V8.Param.window + ({ document: 1 }).document", ""},
		{"a promise let go", "async function save() { }\n⟦save(); return { Code: 1 }", "nobody awaits save()"},
		{"an arrow's promise", "const save = async () => 1;\nif (1) { ⟦save(); }", "write await"},
		{"a twin's promise", "⟦V8.Cache.SetAsync('a', '1'); return 1", "nobody awaits V8.Cache.SetAsync"},
		{"promises kept", "async function save() { } async function twice() { } function other(twice) { twice() }\nawait save(); save().catch(() => 1); const p = save(); await Promise.all([p, V8.Cache.GetAsync('a')]);" +
			" V8.Cache.Set('a', '1'); function plain() { } plain(); async function* g() { } g(); return save()", ""},
		{"code for Code", "return { ⟦code: 1, msg: 'ok' }", "the result has no Code but code"},
		{"a text for Code", "V8.Result = { Code: ⟦'1' }", "write Code: 1"},
		{"Code in order", "function f() { return { code: 1 } } if (f()) return { Code: 0, code: 1 }; if (1) return { code: 1, ...f() }; const Code = 1; if (2) return { Code, code: 2 }; V8.Result = { Code: f() }; return { Total: 1 }", ""},
		{"another V8's", "var o = { Chache: 1 }; return o.Chache", ""},
	} {
		for _, ts := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				code, want := marked(c.code)
				s := lint.Script{Key: "a", Source: jsbridge.Source{Name: "a.js", Code: code, Language: "js", FirstLine: 4}}
				if ts {
					s.Source.Code, s.Source.Name, s.Source.Language = "type N = number;\n"+code, "a.ts", "ts"
				}
				if _, err := jsbridge.Compile(s.Source); err != nil {
					t.Fatal(err)
				}
				got := lint.Folder([]lint.Script{s})
				if len(got) != len(want) {
					t.Fatalf("%+v, want %d", got, len(want))
				}
				for i, w := range want {
					line := w.line + 3
					if ts {
						line++
					}
					// What esbuild prints anew has its places at the names.
					if got[i].Line != line || !ts && got[i].Column != w.col || !strings.Contains(got[i].Msg, c.text) {
						t.Errorf("%+v, want %d:%d %s", got[i], line, w.col, c.text)
					}
				}
			})
		}
	}
}

type mark struct{ line, col int }

func marked(code string) (string, []mark) {
	var out []mark
	for {
		before, after, ok := strings.Cut(code, "⟦")
		if !ok {
			return code, out
		}
		out = append(out, mark{strings.Count(before, "\n") + 1, len(before) - strings.LastIndexByte(before, '\n')})
		code = before + after
	}
}

// Libraries are looked at together, whatever order their files come in.
func TestLibraries(t *testing.T) {
	script := func(key, code string, library bool) lint.Script {
		return lint.Script{Key: key, Library: library, Source: jsbridge.Source{Name: key + ".js", Code: code, FirstLine: 1}}
	}
	for _, c := range []struct {
		name    string
		scripts []lint.Script
		want    string
	}{
		{"there", []lint.Script{script("a", "return V8.Use('lib/M')", false), script("m", "return {}", true)}, ""},
		{"not there", []lint.Script{script("a", "var x = 1;\nreturn V8.Use('lib/mony')", false), script("money", "return {}", true)},
			`0 2:8 there is no library "mony" in this folder; did you mean money?`},
		{"no library", []lint.Script{script("a", "V8.Use('b')", false), script("b", "return {}", false)}, `0 1:1 "b" is no library; its definition says no Library: true`},
		{"itself", []lint.Script{script("a", "return V8.Use('a')", true)}, "0 1:8 libraries use one another in a circle: a -> a"},
		{"circle", []lint.Script{script("x", "V8.Use('b')", false), script("b", "return V8.Use('c')", true), script("c", "return V8.Use('lib/b')", true)},
			"2 1:8 libraries use one another in a circle: b -> c -> b"},
		{"two ways", []lint.Script{script("a", "V8.Use('b'); V8.Use('c')", false), script("b", "return V8.Use('c')", true), script("c", "return {}", true)}, ""},
		{"name made up", []lint.Script{script("a", "V8.Use('x' + V8.Param.N)", false)}, ""},
		{"broken", []lint.Script{script("a", "return {", false), script("b", "V8.Nope", false)}, "1 1:1 V8 has no Nope"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, w := range lint.Folder(c.scripts) {
				got = append(got, fmt.Sprintf("%d %d:%d %s", w.Script, w.Line, w.Column, w.Msg))
			}
			if s := strings.Join(got, "\n"); s != c.want && !(c.want != "" && strings.HasPrefix(s, c.want)) {
				t.Errorf("got\n%s\nwant\n%s", s, c.want)
			}
		})
	}
}
