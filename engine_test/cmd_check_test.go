package engine_test

import (
	"os"
	"path/filepath"
	"testing"
)

// `apiengine check` says everything about every file in one run, as lines and as JSON.
func TestCheckCommand(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"pay.js":   "/*---\nTimeuot: 5\n---*/\nreturn { Code",
		"find.ts":  "/*---\nApiName: find\n---*/\nconst n: string = V8.Param.Name;\nreturn V8.Db.FromSql(`SELECT a FROM t WHERE n = '${n}'`).First();",
		"claim.js": "/*---\nLockKey: Id\n---*/\nif (!V8.Cache.SetIfNotExists('a', '1')) return 0;\nV8.Cache.Remove('a');\nreturn V8.Use('lib/none');",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cli("check", dir).wantAll(t, 1, "pay.js:2:1: Timeuot is no field of a definition; did you mean Timeout?\n",
		"pay.js:4:8: the { opened here is never closed\n",
		"find.ts:5:52: warning: the SQL text has a value in it: n; write @p0",
		"claim.js:2:1: warning: LockKey does nothing without Lock: true\n",
		"claim.js:4:6: warning: a lock made of SetIfNotExists and Remove on 'a'",
		`claim.js:6:8: warning: there is no library "none" in this folder`,
		"3 definitions, 2 problems, 4 warnings\n")
	if err := os.Remove(filepath.Join(dir, "pay.js")); err != nil {
		t.Fatal(err)
	}
	cli("check", dir).wantAll(t, 0, "no problem, 4 warnings")
	cli("check", "--strict", dir).wantAll(t, 1, "no problem, 4 warnings")
	cli("check", "--json", dir).wantAll(t, 0, `"Problems": [],`, `"Line": 6,`)
	cli("check", "--json", t.TempDir()).wantAll(t, 0, `"Problems": [],`, `"Warnings": []`)
}

// wantAll is want of several texts.
func (r ran) wantAll(t testing.TB, code int, texts ...string) {
	t.Helper()
	for _, text := range texts {
		r.want(t, code, text)
	}
}
