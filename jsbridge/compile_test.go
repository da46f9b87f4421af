package jsbridge

import (
	"errors"
	"strings"
	"testing"
	"time"

	"apiengine/fault"
)

func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct {
		name      string
		src       Source
		line, col int
		text      string
	}{
		{"unexpected token", Source{Code: "var a = 1;\nvar b = = 2;"}, 2, 9, "Unexpected"},
		{"first line", Source{Code: "var = 1"}, 1, 5, "Unexpected"},
		{"first line, shifted", Source{Code: "var = 1", FirstLine: 12}, 12, 5, "Unexpected"},
		{"second line", Source{Code: "var = 1", FirstLine: 2}, 2, 5, "Unexpected"},
		{"with await", Source{Code: "await 1;\nvar = 1"}, 2, 5, "Unexpected"},
		{"early error", Source{Code: "let a = 1;\nlet a = 2"}, 2, 0, "already been declared"},
		{"open bracket", Source{Code: "if (true) {"}, 1, 11, "the { opened here is never closed"},
		{"open object", Source{Code: "var a = 1;\nreturn { Code", FirstLine: 7}, 8, 8, "the { opened here"},
		{"open object, more behind", Source{Code: "return { Code: 1\nvar z = 3;"}, 2, 1, "the { of line 1 is never closed"},
		{"open call", Source{Code: "var a = f(1,\n  [2, 3]"}, 1, 10, "the ( opened here"},
		{"open template", Source{Code: "var a = `x ${ b;\n"}, 1, 0, "the ${ of line 1"},
		{"open bracket, TypeScript", Source{Code: "const a: number = 1;\nif (a) {\n  return { Code: a }\n", Language: "ts", FirstLine: 3}, 4, 8, "the { opened here"},
		{"open bracket, await", Source{Code: "await f();\nreturn { Code"}, 2, 8, "the { opened here"},
		{"wrong bracket", Source{Code: "f(1]"}, 1, 4, "unexpected ]"},
		{"closing the wrapper", Source{Code: "}); (function(){"}, 1, 1, "unexpected }"},
		{"closing the wrapper, evenly", Source{Code: "return 1 }, function(){ return 2"}, 1, 10, "unexpected }"},
		{"TypeScript", Source{Code: "const a: = 1", Language: "ts"}, 1, 10, ""},
		{"TypeScript, shifted", Source{Code: "let a = 1;\nconst b: = 1", Language: "ts", FirstLine: 5}, 6, 10, ""},
		{"language", Source{Code: "1", Language: "py"}, 0, 0, "py"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.src.Name = "f.js"
			_, err := Compile(c.src)
			var se *SyntaxError
			if !errors.As(err, &se) || fault.Of(err) != fault.ScriptSyntax {
				t.Fatalf("got %v", err)
			}
			if c.line > 0 && se.Line != c.line || c.col > 0 && se.Column != c.col || !strings.Contains(se.Msg, c.text) {
				t.Errorf("got %+v, want %d:%d %s", se, c.line, c.col, c.text)
			}
		})
	}
}

// TestHostileSources: each would end the process or take minutes in a parser; the scan
// refuses it at once, whatever the source hides it behind.
func TestHostileSources(t *testing.T) {
	rep := strings.Repeat
	for _, code := range []string{
		rep("(", 500_000), rep("[", 500_000), rep("{", 500_000), rep("`${", 300_000), rep("!", 500_000), rep("~", 500_000), rep("-+", 300_000),
		rep("typeof ", 100_000) + "1", rep("new ", 100_000) + "A", rep("a=>", 200_000) + "1", rep("a=", 300_000) + "1", rep("a?b:", 200_000) + "1",
		rep("a**", 200_000) + "1", "1" + rep("+1", 300_000), "f" + rep("()", 300_000), "f" + rep(".a", 300_000), "f" + rep("[0]", 300_000), "f" + rep("``", 300_000),
		rep("if(a)b;else ", 80_000) + "c", rep("if(a){}else ", 80_000) + "c", rep("a:", 300_000) + ";", rep("for(;;)", 140_000) + ";", rep("do ", 300_000),
		rep("await ", 150_000) + "1", rep("a\nin ", 100_000) + "b", rep("a\n+", 200_000) + "b", rep("a\ninstanceof ", 60_000) + "b",
		"if(x)/`/;" + rep("(", 500_000), "a++ /1;" + rep("(", 500_000), "'\\\n';" + rep("(", 500_000), "//\u2028" + rep("(", 500_000), "<!-- `\n" + rep("(", 500_000),
		"x = {}/`/1;" + rep("(", 500_000), "a.if(x)/`/1;" + rep("(", 500_000), "/[/`]/;" + rep("(", 500_000), "`${`${1}`}`;" + rep("(", 500_000),
		"/*" + rep("*", 100) + "/" + rep("(", 500_000), rep(" ", 1<<20+1),
	} {
		start := time.Now()
		for _, lang := range []string{"js", "ts"} {
			if _, err := Compile(Source{Name: "x", Code: code, Language: lang}); fault.Of(err) != fault.ScriptSyntax {
				t.Errorf("%.30q: %v", code, err)
			}
		}
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("%.30q took %v", code, d)
		}
	}
}

// TestOrdinarySources: the scan lets through what people write.
func TestOrdinarySources(t *testing.T) {
	rep := strings.Repeat
	for _, code := range []string{
		"var a = b / c / d; var r = /[(/`'\"]/g; return x", "return /a/.test(b) ? /\\//.exec(c) : 1 / 2", "if (x) /re[(]/ .test; return 1",
		"var s = '((((' + \"[[\" + `{{${a + `${b}`}`; return 1", "// ((((\n/* [[[[ */ return 1", "a = b\n/c/1\nreturn 1", "var o = {a: 1}\nvar p = o.a / 2; return {}",
		"x++ / 2; return a[0] / b()", rep("a = a + 1\nif (a) { b() }\n", 5000), rep("f(a, b).c.d({x: 1})\n", 5000), "switch (a) {" + rep("case 1: b(); break\n", 3000) + "}",
		"var o = {" + rep("a: 1 + 2,\n", 5000) + "}", rep("if (a) { b } else if (c) { d }\n", 2000), "var a = [" + rep("[1,2],", 20000) + "]", rep("(", 200) + "1" + rep(")", 200),
		"return a ? b : c ? d : e", "label: for (;;) { break label }", "return (function(){ return 1 })()", "class A { #p = 1; get x(){ return this.#p } static y = 2 } return 1",
	} {
		if _, err := Compile(Source{Name: "x", Code: code}); err != nil {
			t.Errorf("%.40q: %v", code, err)
		}
	}
}

func TestTypeScript(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct{ code, want string }{
		{"interface P { id: number }\nconst f = (p: P): number => p.id! + 1;\nreturn { Code: 1, N: f({ id: 1 } as P) }", `{"Code":1,"N":2}`},
		{"enum E { A, B = 5 }\nreturn [E.A, E.B, E[5]]", `[0,5,"B"]`},
		{"const v: number = await Promise.resolve<number>(3);\nreturn v satisfies number", `3`},
		{"class A<T> { constructor(private x: T) {} get(): T { return this.x } }\nreturn new A<string>('y').get()", `y`},
		{"async function g(): Promise<number> { return 4 }\nreturn g()", `4`},
		{"V8.Result = { Code: 1 } as any", `{"Code":1}`},
		{"declare const V8: any;\nreturn typeof V8.Cache", `object`},
	} {
		p, err := Compile(Source{Name: "t.ts", Code: c.code, Language: "ts"})
		if err != nil {
			t.Errorf("%s: %v", c.code, err)
			continue
		}
		rep, err := b.Run(t.Context(), p, env())
		if got := string(rep.Outcome.Result); err != nil || got != c.want && rep.Outcome.Text != c.want {
			t.Errorf("%s: got %s, want %s (%v)", c.code, got, c.want, err)
		}
	}
}

// FuzzPrescan: whatever the source, the scan ends and keeps its place inside it.
func FuzzPrescan(f *testing.F) {
	for _, s := range []string{"a / b", "`${`${a}`}`", "/[/]/", "if(x)/`/", "}", "'\\", "/*", "${", "a\n++b", "\\u0061", "\xff\u2028"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if e := prescan(src); e != nil && (e.offset < 0 || e.offset > len(src) || e.msg == "") {
			t.Fatalf("%q: %+v", src, e)
		}
		if len(src) < 2000 {
			_, err := Compile(Source{Name: "f", Code: src})
			var se *SyntaxError
			if err != nil && !errors.As(err, &se) {
				t.Fatalf("%q: %v", src, err)
			}
		}
	})
}

// What belongs to modules is refused with what there is instead, at the author's place.
func TestNoModules(t *testing.T) {
	for _, c := range []struct{ language, code string }{
		{"js", "var a = 1;\nimport x from 'y';"}, {"js", "var a = 1;\nexport default a;"}, {"js", "var a = 1;\nimport { b } from './b.js';"},
		{"ts", "var a = 1;\nimport x from 'y';"}, {"ts", "var a = 1;\nexport type X = number;"}, {"ts", "var a = 1;\nimport type { X } from './types';"},
		{"ts", "var a = 1;\nnamespace Util { export const k = 3 }"}, {"ts", "var a = 1;\ndeclare namespace V9 { }"}, {"js", "await 1;\nimport x from 'y';"},
	} {
		_, err := Compile(Source{Name: "a." + c.language, Code: c.code, Language: c.language})
		var e *SyntaxError
		if !errors.As(err, &e) || e.Line != 2 || !strings.Contains(e.Msg, "V8.Use") {
			t.Errorf("%s: %v", c.code, err)
		}
	}
	for _, code := range []string{"var important = (;", "return importing(;", "x = { export: 1, (};"} {
		if _, err := Compile(Source{Name: "a.js", Code: code}); err == nil || strings.Contains(err.Error(), "V8.Use") {
			t.Errorf("%s: %v", code, err)
		}
	}
}
