package client

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"apiengine/apis"
	"apiengine/fault"
)

const payFile = "/*---\n# in the author's own form\nApiEngineKey: Pay\nMethods: [POST]\nLock: true\nLockKey:   OrderId\n---*/\nreturn { Code: 1 };\n"

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "no file"
	}
	return string(text)
}

// actions is "key action, ..." in the order of the keys.
func actions(r *SyncResult) string {
	var out []string
	for _, f := range r.Files {
		out = append(out, f.Key+" "+string(f.Action))
	}
	return strings.Join(out, ", ")
}

func mustPush(t *testing.T, c *Client, dir string, o PushOptions) *SyncResult {
	t.Helper()
	r, err := c.Push(t.Context(), dir, o)
	if err != nil {
		t.Fatalf("%v\n%s", err, r)
	}
	return r
}

func mustPull(t *testing.T, c *Client, dir string, o PullOptions) *SyncResult {
	t.Helper()
	r, err := c.Pull(t.Context(), dir, o)
	if err != nil {
		t.Fatalf("%v\n%s", err, r)
	}
	return r
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestPush(t *testing.T) {
	f, c := newFake(t)
	dir := t.TempDir()
	write(t, dir, map[string]string{"pay.js": payFile, "hello.ts": "return 1", "notes.txt": "x", "x.d.ts": "x", ".hidden.js": "x",
		"schema/erp/0001_a.sql": "-- +goose Up\nCREATE TABLE a (x int);", "schema/empty/notes.txt": "x",
		"schema/0001_a.sql": "-- +goose Up\nCREATE TABLE a (x int);", "schema/0002_b.sql": "-- +goose Up\nCREATE TABLE b (x int);"})
	r := mustPush(t, c, dir, PushOptions{})
	expect(t, "first", actions(r), "Pay created, hello created")
	expect(t, "schema", fmt.Sprint(r.Schema), "[0001_a.sql 0002_b.sql erp/0001_a.sql]")
	expect(t, "asked", f.changes(), "POST /schema, POST /schema, PUT /definitions/hello, PUT /definitions/Pay")
	r = mustPush(t, c, dir, PushOptions{})
	expect(t, "again", actions(r), "Pay unchanged, hello unchanged")
	expect(t, "asked again", f.changes(), "POST /schema, POST /schema")
	write(t, dir, map[string]string{"pay.js": strings.Replace(payFile, "own form", "own changed form", 1)})
	expect(t, "a comment changed", actions(mustPush(t, c, dir, PushOptions{})), "Pay unchanged, hello unchanged")
	write(t, dir, map[string]string{"pay.js": strings.Replace(payFile, "[POST]", "[PUT]", 1)})
	r = mustPush(t, c, dir, PushOptions{})
	expect(t, "changed", actions(r), "Pay updated, hello unchanged")
	if r.Failed() || r.Files[0].Version != 2 || f.header.Get("If-Match") != `"1"` {
		t.Errorf("result %+v, If-Match %s", r.Files[0], f.header.Get("If-Match"))
	}
	expect(t, "text", strings.Replace(r.String(), dir, "DIR", 1), "updated    DIR/pay.js (version 2)\n1 updated, 1 unchanged\n")
	expect(t, "kept out of repositories", read(t, dir, ".apiengine/.gitignore"), "*\n")
}

func TestPushConflicts(t *testing.T) {
	f, c := newFake(t)
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.js": "return 1", "b.js": "return 1", "c.js": "return 1"})
	mustPush(t, c, dir, PushOptions{})
	f.save(t, "return 'theirs'", "a.js")
	f.drop("b")
	write(t, dir, map[string]string{"a.js": "return 'mine'", "b.js": "return 'mine'", "c.js": "return 'mine'"})
	f.changes()
	r := mustPush(t, c, dir, PushOptions{})
	expect(t, "push", actions(r), "a conflict, b conflict, c updated")
	expect(t, "asked", f.changes(), "PUT /definitions/c")
	if !r.Failed() || r.Files[0].Problems[0].Kind != fault.VersionConflict ||
		!strings.Contains(r.String(), "a.js: the server has version 2, this folder last saw version 1") || !strings.Contains(r.String(), "b.js: it was removed on the server") {
		t.Errorf("says %s", r)
	}
	// Another copy of the folder, which never saw the server.
	fresh := t.TempDir()
	write(t, fresh, map[string]string{"a.js": "return 'other'", "c.js": "return 'mine'"})
	expect(t, "fresh copy", actions(mustPush(t, c, fresh, PushOptions{})), "a conflict, c unchanged")
	expect(t, "forced", actions(mustPush(t, c, dir, PushOptions{Force: true})), "a updated, b created, c unchanged")
	// The same folder against another server starts anew.
	_, other := newFake(t)
	expect(t, "other server", actions(mustPush(t, other, dir, PushOptions{})), "a created, b created, c created")
	expect(t, "first server", actions(mustPush(t, c, dir, PushOptions{})), "a unchanged, b unchanged, c unchanged")
}

func TestPushSendsNothingWithAProblem(t *testing.T) {
	f, c := newFake(t)
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.js": "return 1", "b.js": "/*---\nLok: true\n---*/\nreturn 1", "c.js": "/*---\nLock: false\n---*/\n\nsyntax error"})
	r := mustPush(t, c, dir, PushOptions{Compile: testCompile})
	if got := f.changes(); got != "" || !r.Failed() || len(r.Problems) != 2 {
		t.Errorf("asked %q, %s", got, r)
	}
	expect(t, "text", strings.ReplaceAll(r.String(), dir, "DIR"),
		"DIR/b.js:2:1: Lok is no field of a definition; did you mean Lock?\nDIR/c.js:5:1: unexpected word\n")
	// Without a compiler here the server finds it, at the same place; the others go live.
	write(t, dir, map[string]string{"b.js": "return 1"})
	r = mustPush(t, c, dir, PushOptions{})
	expect(t, "by the server", actions(r), "a created, b created, c failed")
	if got := fmt.Sprint(r.Files[2].Problems[0]); got != filepath.Join(dir, "c.js")+":5:1: unexpected word" {
		t.Errorf("says %s", got)
	}
}

func TestPushPassesAddressesOn(t *testing.T) {
	f, c := newFake(t)
	dir := t.TempDir()
	at := func(address string) string { return "/*---\nApiAddress: " + address + "\n---*/\nreturn 1" }
	write(t, dir, map[string]string{"a.js": at("/x"), "b.js": at("/y"), "c.js": at("/z")})
	mustPush(t, c, dir, PushOptions{})
	write(t, dir, map[string]string{"a.js": at("/y"), "b.js": at("/z"), "c.js": at("/w")})
	expect(t, "moved on", actions(mustPush(t, c, dir, PushOptions{})), "a updated, b updated, c updated")
	f.save(t, at("/taken"), "other.js")
	write(t, dir, map[string]string{"a.js": at("/TAKEN")})
	r := mustPush(t, c, dir, PushOptions{})
	expect(t, "taken", actions(r), "a failed, b unchanged, c unchanged, other only on the server")
	if !strings.Contains(r.String(), `ApiAddress "/TAKEN" has the same shape as "/taken" of the API other`) {
		t.Errorf("says %s", r)
	}
}

func TestPushPrune(t *testing.T) {
	f, c := newFake(t)
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.js": "return 1", "b.js": "return 1", "c.js": "return 1"})
	mustPush(t, c, dir, PushOptions{})
	f.save(t, "return 1", "foreign.js")
	f.save(t, "return 2", "b.js")
	for _, name := range []string{"a.js", "b.js"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, "careful", actions(mustPush(t, c, dir, PushOptions{})), "a only on the server, b only on the server, c unchanged, foreign only on the server")
	r := mustPush(t, c, dir, PushOptions{Prune: true})
	expect(t, "pruned", actions(r), "a removed, b conflict, c unchanged, foreign only on the server")
}

func TestPushStopsAtABrokenSchema(t *testing.T) {
	f, c := newFake(t)
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.js": "return 1", "schema/1_a.sql": "-- +goose Up\nbroken"})
	if _, err := c.Push(t.Context(), dir, PushOptions{}); err == nil || err.Error() != "1_a.sql: no such table" {
		t.Errorf("error %v", err)
	}
	expect(t, "asked", f.changes(), "POST /schema")
}

func TestPull(t *testing.T) {
	f, c := newFake(t)
	dir := filepath.Join(t.TempDir(), "new", "folder")
	f.save(t, payFile, "pay.js")
	f.save(t, "return 1", "hello.ts")
	r := mustPull(t, c, dir, PullOptions{})
	expect(t, "first", actions(r), "hello written, Pay written")
	expect(t, "file", read(t, dir, "Pay.js"), "/*---\nApiEngineKey: Pay\nMethods: [POST]\nLock: true\nLockKey: OrderId\n---*/\nreturn { Code: 1 };\n")
	expect(t, "again", actions(mustPull(t, c, dir, PullOptions{})), "hello unchanged, Pay unchanged")
	f.changes()
	expect(t, "push after pull", actions(mustPush(t, c, dir, PushOptions{})), "Pay unchanged, hello unchanged")
	expect(t, "asked", f.changes(), "")
}

func TestPullKeepsWhatIsChangedHere(t *testing.T) {
	f, c := newFake(t)
	dir := t.TempDir()
	for _, name := range []string{"here.js", "there.js", "both.js", "broken.js", "goneboth.js", "gone.js"} {
		f.save(t, "return 1", name)
	}
	mustPull(t, c, dir, PullOptions{})
	write(t, dir, map[string]string{"here.js": "return 'here'", "both.js": "return 'here'", "broken.js": "/*---\nX: 1\n---*/\nreturn 1", "goneboth.js": "return 'here'", "new.js": "return 'new'"})
	f.save(t, "return 'there'", "there.js")
	f.save(t, "return 'there'", "both.js")
	f.save(t, "return 'there'", "broken.js")
	f.drop("gone")
	f.drop("goneboth")
	r := mustPull(t, c, dir, PullOptions{})
	expect(t, "pull", actions(r), "both conflict, broken conflict, here kept, there written, gone removed, goneboth conflict")
	expect(t, "both", read(t, dir, "both.js"), "return 'here'")
	expect(t, "here", read(t, dir, "here.js"), "return 'here'")
	expect(t, "there", read(t, dir, "there.js"), "/*---\nApiEngineKey: there\n---*/\nreturn 'there'")
	expect(t, "gone", read(t, dir, "gone.js"), "no file")
	r = mustPull(t, c, dir, PullOptions{Force: true})
	expect(t, "forced", actions(r), "both written, broken written, here written, there unchanged, goneboth removed")
	expect(t, "new", read(t, dir, "new.js"), "return 'new'")
	if r.Failed() {
		t.Errorf("failed: %s", r)
	}
}

func TestPullNamesOfFiles(t *testing.T) {
	f, c := newFake(t)
	dir := t.TempDir()
	write(t, dir, map[string]string{"my own name.js": payFile})
	mustPush(t, c, dir, PushOptions{})
	f.save(t, strings.Replace(payFile, "POST", "PUT", 1), "pay.js")
	r := mustPull(t, c, dir, PullOptions{})
	expect(t, "the author's name", filepath.Base(r.Files[0].File), "my own name.js")
	f.save(t, strings.Replace(payFile, "POST", "GET", 1), "pay.ts")
	r = mustPull(t, c, dir, PullOptions{})
	expect(t, "another language", filepath.Base(r.Files[0].File), "Pay.ts")
	expect(t, "the old file", read(t, dir, "my own name.js"), "no file")
	write(t, dir, map[string]string{"taken.js": "/*---\nApiEngineKey: mine\n---*/\nreturn 1"})
	f.save(t, "return 1", "taken.js")
	expect(t, "a name that is taken", actions(mustPull(t, c, dir, PullOptions{})), "Pay unchanged, taken conflict")
}

func TestPullRefusesAHostileServer(t *testing.T) {
	f, c := newFake(t)
	dir := filepath.Join(t.TempDir(), "apis")
	f.text["x"] = []byte(`{"ApiEngineKey":"../../x","ApiV8Code":"return 1"}`)
	_, err := c.Pull(t.Context(), dir, PullOptions{})
	if err == nil || !strings.Contains(err.Error(), "ApiEngineKey must be") {
		t.Errorf("error %v", err)
	}
}

func TestDiff(t *testing.T) {
	f, c := newFake(t)
	dir := t.TempDir()
	write(t, dir, map[string]string{"pay.js": payFile, "same.js": "return 1", "new.js": "return 'new'", "broken.js": "/*---\nX: 1\n---*/\nreturn 1"})
	f.save(t, strings.Replace(payFile, "POST", "PUT", 1), "pay.js")
	f.save(t, "return 1", "same.js")
	f.save(t, "return 1", "foreign.js")
	f.save(t, "return 1", "broken.js")
	r, err := c.Diff(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want := `DIR/broken.js:2:1: X is no field of a definition
--- /dev/null
+++ DIR/new.js
@@ -0,0 +1,4 @@
+/*---
+ApiEngineKey: new
+---*/
+return 'new'
\ No newline at end of file
--- server/Pay.js (version 1)
+++ DIR/pay.js
@@ -1,6 +1,6 @@
 /*---
 ApiEngineKey: Pay
-Methods: [PUT]
+Methods: [POST]
 Lock: true
 LockKey: OrderId
 ---*/
only on the server: foreign
`
	expect(t, "diff", strings.ReplaceAll(r.String(), dir, "DIR"), want)
	if !r.Differs() || f.changes() != "" {
		t.Error("diff says nothing differs, or changed something")
	}
	same := t.TempDir()
	mustPull(t, c, same, PullOptions{})
	if r, err := c.Diff(t.Context(), same); err != nil || r.Differs() || r.String() != "" {
		t.Errorf("after a pull: %v, %s", err, r)
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a.js":           "/*---\nApiAddress: /x/{id}\n---*/\nreturn 1",
		"b.js":           "/*---\nLock: 1\nTimeot: 5\n---*/\nsyntax error",
		"c.js":           "/*---\nApiName: c\nApiAddress: /X/{no}\n---*/\nreturn 1",
		"d.ts":           "/*---\nLock: true\n---*/\n\nsyntax error",
		"e.js":           "/*---\nApiName: e\nApiEngineKey: A\n---*/\nreturn 1",
		"good.js":        "return 1",
		"schema/1_a.sql": "-- +goose Up\n", "schema/01_b.sql": "-- +goose Up\n", "schema/c.sql": "-- +goose Up\n", "schema/3_d.sql": "CREATE TABLE x",
		"schema/erp/1_a.sql": "-- +goose Up\n", "schema/erp/d.sql": "-- +goose Up\n",
	})
	r, err := Check(dir, CheckOptions{Compile: testCompile})
	if err != nil {
		t.Fatal(err)
	}
	want := `DIR/b.js:2:7: Lock must be true or false
DIR/b.js:3:1: Timeot is no field of a definition; did you mean Timeout?
DIR/b.js:5:1: unexpected word
DIR/c.js:3:1: ApiAddress "/X/{no}" has the same shape as "/x/{id}" of the API a
DIR/d.ts:5:1: unexpected word
DIR/e.js:3:1: ApiEngineKey is A, as in DIR/a.js
DIR/schema/1_a.sql:1:1: has the same number as 01_b.sql
DIR/schema/3_d.sql:1:1: has no line -- +goose Up
DIR/schema/c.sql:1:1: the name must be a number, '_' and a word, like 0001_orders.sql
DIR/schema/erp/d.sql:1:1: the name must be a number, '_' and a word, like 0001_orders.sql
5 definitions, 10 problems
`
	expect(t, "check", strings.ReplaceAll(r.String(), dir, "DIR"), want)
	if _, err := Check(filepath.Join(dir, "none"), CheckOptions{}); fault.Of(err) != fault.BadRequest {
		t.Errorf("a folder that is not there: %v", err)
	}
	good := t.TempDir()
	write(t, good, map[string]string{"good.js": "return 1"})
	r, err = Check(good, CheckOptions{})
	if err != nil || r.Failed() || r.String() != "1 definitions, no problem\n" {
		t.Errorf("%v, %s", err, r)
	}
}

// Warnings fail nothing but under Strict, and come with the problems' form.
func TestWarnings(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a.js":        "/*---\nLockKey: Id\nLockMsg: wait\nLockScope: s\nLockWait: 3\n---*/\nreturn 1",
		"b.js":        "/*---\nApiName: b\nMethods: []   # none\n---*/\nreturn 1",
		"c.js":        "/*---\nLock: true\nLockKey: Id\nMethods: [GET]\n---*/\nvar Methods = 1\nMethods: [];return 1",
		"orders/d.js": "this is not read", "orders/e.js": "nor is this", "schema/1_a.sql": "-- +goose Up\n", ".git/f.js": "", "texts/g.txt": "",
	})
	lint := func(defs []apis.Definition) []Discovery {
		if len(defs) != 3 || defs[1].ApiEngineKey != "b" {
			t.Errorf("%+v", defs)
		}
		return []Discovery{{Definition: 1, Line: 5, Column: 8, Msg: "write it in another way"}}
	}
	const want = `DIR/a.js:2:1: warning: LockKey does nothing without Lock: true
DIR/a.js:3:1: warning: LockMsg does nothing without Lock: true
DIR/a.js:4:1: warning: LockScope does nothing without Lock: true
DIR/a.js:5:1: warning: LockWait does nothing without Lock: true
DIR/b.js:3:1: warning: Methods is empty, which means all of GET, POST, PUT, PATCH and DELETE; leave it out for all, or name some; StopHttp: true closes the API
DIR/b.js:5:8: warning: write it in another way
DIR/orders/d.js:1:1: warning: is not read: definitions stand in DIR itself, and a folder of its own is checked and pushed by itself
3 definitions, no problem, 7 warnings
`
	for _, strict := range []bool{false, true} {
		r, err := Check(dir, CheckOptions{Lint: lint, Strict: strict})
		if err != nil || r.Failed() != strict {
			t.Errorf("strict %v: failed %v, %v", strict, r.Failed(), err)
		}
		expect(t, "check", strings.ReplaceAll(r.String(), dir, "DIR"), want)
	}
}

func TestProblemsOf(t *testing.T) {
	_, many := apis.ParseFile("x.js", []byte("/*---\nLock: 1\nTimeout: x\n---*/\nreturn 1"))
	if got := problemsOf(fmt.Errorf("wrapped: %w", many), "y.js"); len(got) != 2 || got[1].Line != 3 || got[1].File != "y.js" {
		t.Errorf("%+v", got)
	}
	if got := problemsOf(errors.New("disk full"), "y.js"); len(got) != 1 || got[0].String() != "y.js: disk full" {
		t.Errorf("%+v", got)
	}
	if problemsOf(nil, "y.js") != nil {
		t.Error("no error is a problem")
	}
}

// A pipe in the folder is a problem: reading it would never end.
func TestCheckRefusesAPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.js"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Check(dir, CheckOptions{})
	if err != nil || len(got.Problems) != 1 || !strings.Contains(got.Problems[0].String(), "pipe.js") {
		t.Errorf("got %+v, %v", got, err)
	}
}
