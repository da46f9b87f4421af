package jsbridge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"apiengine/fault"
)

// TestAuthorPlaces: an error, its stack and the text of error.stack point into the author's
// file, whatever was done to the script on its way to the engine. Each ⟦ in the source is
// taken out and marks a place, the first one where the error is, the next its caller. Of
// the caller only the line counts: a call is at its name or at its bracket.
func TestAuthorPlaces(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct{ name, file, code string }{
		{"JavaScript", "a.js", "var o;\nreturn o.⟦x"},
		{"first line", "a.js", "var o; return o.⟦x"},
		{"behind other letters", "a.js", "var o, s = '价格𝒳'; return [s, o.⟦x]"},
		{"function", "a.js", "function f(o) {\n  return o.⟦x;\n}\nvar a = 1;\nreturn ⟦f()"},
		{"arrow and callback", "a.js", "var f = o =>\n   o.⟦x;\nreturn [1].map(function (n) {\n  return ⟦f()\n})"},
		{"throw", "a.js", "if (true) {\n    throw ⟦new Error('x')\n}"},
		{"await", "a.js", "await 1;\nvar o;\nreturn o.⟦x"},
		{"rejected", "a.js", "var f = async function () {\n  await 1;\n  var o;\n  return o.⟦x\n};\nreturn f()"},
		{"TypeScript", "a.ts", "interface A { x: number }\nconst f = (o?: A): number => {\n    return (o as any).⟦x;\n};\ntype B = string;\nreturn ⟦f()"},
		{"TypeScript, first line", "a.ts", "let o: any; return o.⟦x"},
		{"TypeScript, other letters", "a.ts", "type T = string;\nconst o: any = undefined; const s: T = '价格𝒳'; const r = [s, o.⟦x, '价格'];\nreturn r"},
		{"TypeScript, await", "a.ts", "type T = string;\nawait Promise.resolve<T>('');\nlet o: any;\n  return o.⟦x"},
		{"TypeScript, enum and class", "a.ts", "enum E { A, B }\nclass C<T> {\n  constructor(private v?: any) {}\n  get(): T {\n    return this.v.⟦x\n  }\n}\nreturn new C<number>().⟦get()"},
		{"TypeScript, last line", "a.ts", "type A = 1;\n\n\nlet o: any = null;\n\n// end\no.⟦x"},
		{"lowered JavaScript", "a.js", "for await (const o of [undefined]) {\n  o.⟦x\n}"},
	} {
		for _, first := range []int{1, 2, 9} {
			t.Run(c.name, func(t *testing.T) {
				code, want := marked(c.code, first)
				p, err := Compile(Source{Name: c.file, Code: code, Language: c.file[2:], FirstLine: first})
				if err != nil {
					t.Fatal(err)
				}
				_, err = b.Run(t.Context(), p, env())
				var e *ScriptError
				if !errors.As(err, &e) {
					t.Fatal(err)
				}
				if (place{e.Line, e.Column}) != want[0] {
					t.Errorf("at %d:%d, want %v: %v", e.Line, e.Column, want[0], e)
				}
				checkStack(t, c.file, e.Stack, want)
			})
		}
	}
}

type place struct{ line, col int }

// marked takes the marks out of code and returns their places, code's first line being first.
func marked(code string, first int) (string, []place) {
	var out []place
	for {
		before, after, ok := strings.Cut(code, "⟦")
		if !ok {
			return code, out
		}
		last := before[strings.LastIndexByte(before, '\n')+1:]
		col := 1
		for _, r := range last {
			if col++; r > 0xffff {
				col++
			}
		}
		out = append(out, place{first + strings.Count(before, "\n"), col})
		code = before + after
	}
}

func checkStack(t *testing.T, file, stack string, want []place) {
	t.Helper()
	lines := strings.Split(stack, "\n")
	if strings.Contains(stack, entry) || len(lines) < len(want) {
		t.Fatalf("the stack is\n%s\nwant the places %v", stack, want)
	}
	for i, w := range want {
		at, _, _ := strings.Cut(strings.TrimPrefix(lines[i], "at "), " ")
		if at != spot(file, w) && (i == 0 || !strings.HasPrefix(at, fmt.Sprintf("%s:%d:", file, w.line))) {
			t.Errorf("line %d of the stack is %q, want %s", i+1, lines[i], spot(file, w))
		}
	}
}

func spot(file string, p place) string {
	return fmt.Sprintf("%s:%d:%d", file, p.line, p.col)
}

// A library's error points into the library, its stack on to the script that uses it; both
// may be TypeScript, and error.stack says the same as the report.
func TestAuthorPlacesInLibraries(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct{ name, lib, code string }{
		{"TypeScript in JavaScript", "type T = { a: any };\nconst get = (o?: T): any => {\n  return (o as any).⟦a;\n};\nreturn { get };", "var l = V8.Use('m');\nreturn l.⟦get()"},
		{"TypeScript in TypeScript", "interface T { a: any }\nreturn {\n  get(o?: T): any { return (o as any).⟦a }\n};", "type X = 1;\nconst l: any = V8.Use('m');\n\nreturn l.⟦get() as X"},
		{"while it is loaded", "let o: any;\n\no.⟦x;\nreturn {};", "type X = 1;\nreturn V8.⟦Use('m')"},
	} {
		t.Run(c.name, func(t *testing.T) {
			libCode, libWant := marked(c.lib, 5)
			code, want := marked(c.code, 3)
			lib, err := Compile(Source{Name: "m.ts", Code: libCode, Language: "ts", FirstLine: 5})
			if err != nil {
				t.Fatal(err)
			}
			p, err := Compile(Source{Name: "a.ts", Code: code, Language: "ts", FirstLine: 3})
			if err != nil {
				t.Fatal(err)
			}
			e := env()
			e.Library = func(context.Context, string) (*Program, error) { return lib, nil }
			_, err = b.Run(t.Context(), p, e)
			var se *ScriptError
			if !errors.As(err, &se) || se.File != "m.ts" || (place{se.Line, se.Column}) != libWant[0] {
				t.Fatalf("%v, want m.ts %v", err, libWant[0])
			}
			if !strings.Contains(se.Stack, fmt.Sprintf("at a.ts:%d:", want[0].line)) {
				t.Errorf("the stack does not lead to a.ts %v:\n%s", want[0], se.Stack)
			}
		})
	}
}

// error.stack, which scripts log and send on, has the author's places too, those of a
// message that is written of it as well.
func TestStackText(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct{ name, file, code string }{
		{"TypeScript", "a.ts", "interface A { x: number }\ntry {\n  (undefined as any).⟦x\n} catch (e) {\n  return String(e.stack)\n}"},
		{"TypeScript, first line", "a.ts", "try { (undefined as any).⟦x } catch (e) { return e.stack }"},
		{"TypeScript, other letters", "a.ts", "let s: string = '价格𝒳';\ntry { s = '价格𝒳', (undefined as any).⟦x } catch (e) { return e.stack }"},
		{"JavaScript", "a.js", "var o;\ntry {\n  o.⟦x\n} catch (e) { return e.stack }"},
		{"JavaScript, first line", "a.js", "try { undefined.⟦x } catch (e) { return e.stack }"},
		{"JavaScript, first line thrown", "a.js", "try { throw ⟦new Error('x') } catch (e) { return e.stack }"},
		{"JavaScript, other letters", "a.js", "var s = '价格𝒳', o; // 价格\n/* 价𝒳格 */ try { s = '价格𝒳' + o.⟦x } catch (e) { return e.stack }"},
		{"JavaScript, other letters on the first line", "a.js", "var s = '价格𝒳'; try { s = `价格𝒳` + s.no.⟦x } catch (e) { return e.stack }"},
		{"JavaScript, implicit names", "a.js", "long_name_one = 1; long_name_two = 2; try { null.⟦x } catch (e) { return e.stack }"},
		{"JavaScript, await", "a.js", "await 1; try { null.⟦x } catch (e) { return e.stack }"},
		{"JavaScript with guards", "a.js", "var a = [2n], s = '价'; try { Math.max(...a.map(String)); s = 2n * a[0], null.⟦x } catch (e) { return e.stack }"},
		{"JavaScript in a function", "a.js", "var f = function (o) { return o.⟦x }; try { f() } catch (e) { return e.stack }"},
		{"lowered JavaScript", "a.js", "for await (const o of [undefined]) { try { o.⟦x } catch (e) { return e.stack } }"},
	} {
		for _, first := range []int{1, 2, 3, 9} {
			t.Run(c.name, func(t *testing.T) {
				code, want := marked(c.code, first)
				p, err := Compile(Source{Name: c.file, Code: code, Language: c.file[2:], FirstLine: first})
				if err != nil {
					t.Fatal(err)
				}
				rep, err := b.Run(t.Context(), p, env())
				if err != nil || !strings.Contains(rep.Outcome.Text, spot(c.file, want[0])+"(") {
					t.Errorf("line %d first: %s (%v), want %v", first, rep.Outcome.Text, err, want[0])
				}
			})
		}
	}
}

// What does not compile points at the author's place, whoever found it: the scan before, the
// parser, esbuild or the compiler behind them.
func TestSyntaxPlaces(t *testing.T) {
	for _, c := range []struct{ name, file, code string }{
		{"parser", "a.js", "var a = 1;\nvar b = ⟦*;"},
		{"parser, first line", "a.js", "var a = ⟦*;"},
		{"parser, other letters", "a.js", "var s = '价格𝒳', a = ⟦*;"},
		{"compiler", "a.js", "var a = 1;\nlet b = 1; let ⟦b = 2;"},
		{"compiler, first line", "a.js", "let b = 1; let ⟦b = 2;"},
		{"compiler, other letters", "a.js", "let b = '价格𝒳'; let ⟦b = 2;"},
		{"compiler, break", "a.js", "var s = '价';\nif (s) { ⟦break }"},
		{"esbuild", "a.ts", "type T = 1;\nlet a: T = ⟦*;"},
		{"esbuild, first line", "a.ts", "let a: any = ⟦*;"},
		{"esbuild, other letters", "a.ts", "const s = '价格𝒳', a: any = ⟦*;"},
		{"esbuild, names", "a.ts", "const s = '价'; let b = 1; let ⟦b = 2;"},
	} {
		for _, first := range []int{1, 2, 9} {
			t.Run(c.name, func(t *testing.T) {
				code, want := marked(c.code, first)
				_, err := Compile(Source{Name: c.file, Code: code, Language: c.file[2:], FirstLine: first})
				var e *SyntaxError
				if !errors.As(err, &e) || (place{e.Line, e.Column}) != want[0] {
					t.Errorf("line %d first: %v, want %v", first, err, want[0])
				}
			})
		}
	}
}

// Maps survive reading and writing, and lookups go by bytes.
func TestSourceMapNumbers(t *testing.T) {
	list := []segment{{0, 0, 3, 9}, {0, 7, 0, 0}, {2, 1, 100, 70000}, {2, 90, 5, 1}, {5, 0, 0, 0}}
	got, err := readMappings(writeMappings(list))
	if err != nil || len(got) != len(list) {
		t.Fatalf("%v (%v)", got, err)
	}
	for i := range list {
		if got[i] != list[i] {
			t.Errorf("%v, want %v", got[i], list[i])
		}
	}
	for _, bad := range []string{"A!", "g", "AA", "AAA", strings.Repeat("g", 20) + "A"} {
		if _, err := readMappings(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	for n, want := range map[int]int{0: 0, 1: 1, 2: 4, 4: 8, 9: 8} {
		if got := byteColumn("a价𝒳", n); got != want {
			t.Errorf("unit %d is at byte %d, want %d", n, got, want)
		}
	}
}

// A run that is ended at a limit says where it was, as one that threw does.
func TestWhereALimitWas(t *testing.T) {
	b := newBridge(t, Config{Memory: 1 << 30, RunMemory: 24 << 20})
	for _, c := range []struct {
		name, code string
		kind       fault.Kind
		line       int
	}{
		{"deadline in a loop", "var a = 1;\n\nfor (;;) a++;", fault.Timeout, 3},
		{"deadline in a function", "function f() {\n  for (var i = 0;;) i++;\n}\nf();", fault.Timeout, 2},
		{"deadline in an empty loop", "function f() {\n  for (;;) { }\n}\nf();", fault.Timeout, 4},
		{"deadline in nothing else", "while (true);", fault.Timeout, 0},
		{"deadline in a built-in", "var a = [];\nfor (;;)\n  [1, 2].map(function () { for (;;) { } });", fault.Timeout, 3},
		{"deadline in a host call", "1;\n2;\nV8.ApiEngine.Run('x', {});", fault.Timeout, 3},
		{"after an await", "var i = 0; await null;\nfor (;;) i++;", fault.Timeout, 2},
		{"recursion", "var n = 0;\nfunction f() {\n  return f() + 1;\n}\nf();", fault.LimitStack, 3},
		{"memory", "var a = [];\nfor (;;)\n  a.push({a: 1});", fault.LimitMemory, 3},
		{"host calls", "1;\nfor (;;) V8.Cache.Get('a');", fault.LimitOutput, 2},
		{"a pattern", "1;\nreturn /^(a+)+(?=b)$/.test('a'.repeat(50))", fault.LimitRegex, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := env()
			e.Cache = &memCache{}
			e.Limits.Deadline = time.Now().Add(30 * time.Second)
			if c.kind == fault.Timeout {
				e.Limits.Deadline = time.Now().Add(200 * time.Millisecond)
			}
			e.Limits.MaxHostCalls = 1000
			e.Invoke = func(ctx context.Context, _ string, _ jsonRaw) (jsonRaw, error) { <-ctx.Done(); return nil, ctx.Err() }
			err := failure(t, b, e, c.code)
			var limit *LimitError
			if !errors.As(err, &limit) || limit.K != c.kind || limit.Line != c.line || (limit.File == "test.js" && limit.Column > 0) != (c.line > 0) {
				t.Errorf("%v, want %s in line %d", err, c.kind, c.line)
			}
			if d := fault.Details(err); c.line > 0 && d["Line"] != c.line || strings.Contains(fault.Public(err), "test.js") {
				t.Errorf("%v, %q", d, fault.Public(err))
			}
		})
	}
}
