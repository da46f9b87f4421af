package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder goes to a server and back; nothing that somebody else saved is overwritten
// without --force.
func TestPushPullDiffCheck(t *testing.T) {
	t.Parallel()
	n := startNode(t, "--data-dir", t.TempDir())
	mine, theirs := t.TempDir(), filepath.Join(t.TempDir(), "new")
	hello := write(t, mine, "hello.js", "return { Code: 1, Data: 'one' };")
	write(t, mine, "schema/0001_note.sql", "-- +goose Up\nCREATE TABLE note (id TEXT PRIMARY KEY);\n-- +goose Down\nDROP TABLE note;")
	cli("check", mine).want(t, 0, "no problem")
	n.cli("diff", mine).want(t, 0, "+return { Code: 1, Data: 'one' };")
	n.cli("diff", mine, "--exit-code").want(t, 1, "")
	n.cli("push", mine).want(t, 0, "created")
	n.cli("push", mine).want(t, 0, "1 unchanged")
	n.cli("diff", mine, "--exit-code").want(t, 0, "")
	n.cli("sql", "SELECT count(*) AS n FROM note").want(t, 0, "0")
	n.cli("pull", theirs).want(t, 0, "written")

	write(t, theirs, "hello.js", "return { Code: 1, Data: 'theirs' };")
	n.cli("push", theirs).want(t, 0, "updated")
	write(t, mine, "hello.js", "return { Code: 1, Data: 'mine' };")
	n.cli("push", mine).want(t, 1, "conflict")
	n.cli("pull", mine).want(t, 1, "conflict")
	n.cli("push", mine, "--json").want(t, 1, `"conflict"`)
	if a := n.call(t, "GET", "/apiengine/hello", nil); a.JSON.Data != "theirs" {
		t.Errorf("a refused push changed the API: %s", a.Body)
	}
	n.cli("push", mine, "--force").want(t, 0, "updated")
	n.cli("pull", theirs).want(t, 0, "written")
	if text, _ := os.ReadFile(filepath.Join(theirs, "hello.js")); !strings.Contains(string(text), "'mine'") {
		t.Errorf("pull wrote %s", text)
	}
	if err := os.Remove(hello); err != nil {
		t.Fatal(err)
	}
	n.cli("push", mine).want(t, 0, "only on the server")
	n.cli("push", mine, "--prune").want(t, 0, "removed")
	if a := n.call(t, "GET", "/apiengine/hello", nil); a.Status != 404 {
		t.Errorf("after --prune: %d %s", a.Status, a.Body)
	}
}

// What is wrong in a script is found here, with its place, and nothing is sent.
func TestPushFindsScriptErrorsItself(t *testing.T) {
	n := startNode(t, "--data-dir", t.TempDir())
	dir := t.TempDir()
	write(t, dir, "good.js", "return 1;")
	bad := write(t, dir, "bad.js", "/*---\nTimeout: 5\n---*/\nvar a = ;")
	for _, r := range []ran{cli("check", dir), n.cli("push", dir)} {
		r.want(t, 1, bad+":4:9: ")
	}
	if a := n.call(t, "GET", "/apiengine/good", nil); a.Status != 404 {
		t.Errorf("a part of the folder was sent: %d %s", a.Status, a.Body)
	}
}

// run shows the answer on standard output and the console on standard error.
func TestRunAndPlan(t *testing.T) {
	n := startNode(t, "--data-dir", t.TempDir())
	n.push(t, map[string]any{"ApiEngineKey": "talk", "Lock": true, "LockKey": "Id", "Timeout": 5,
		"ApiV8Code": "console.log('hello');\nif (V8.Param.Id === 'x') { throw new Error('no'); }\nreturn { Code: 1, Data: V8.Param.Id };"})
	r := n.cli("run", "talk", "--param", `{"Id":"a"}`).want(t, 0, "")
	var body struct{ Data string }
	if err := json.Unmarshal([]byte(r.out), &body); err != nil || body.Data != "a" || !strings.Contains(r.err, "hello") {
		t.Errorf("standard output %s, standard error %s", r.out, r.err)
	}
	file := write(t, t.TempDir(), "param.json", `{"Id":"x"}`)
	n.cli("run", "talk", "--param", "@"+file).want(t, 1, "talk.js:2:")
	n.cli("run", "talk").want(t, 1, "Id")
	n.cli("run", "nobody").want(t, 1, "nobody")
	n.cli("plan", "talk", "--param", `{"Id":"a"}`).want(t, 0, "default:Id:a")
	n.cli("plan", "talk", "--param", `{"Id":"a"}`, "--json").want(t, 0, `"LeaseMs": 5000`)
	n.cli("plan", "talk").want(t, 1, "Id")
}

// Tokens and tenants: the text of a token is shown once, and an administrator of every
// tenant sees every token.
func TestTokenAndTenantCommands(t *testing.T) {
	n := startNode(t, "--data-dir", t.TempDir())
	n.push(t, map[string]any{"ApiEngineKey": "who", "ApiRole": []string{"clerk"}, "ApiV8Code": "return V8.CurrentUser;"})
	n.cli("tenant", "create", "acme").want(t, 0, "acme")
	n.cli("tenant", "create", "acme").want(t, 1, "acme")
	n.cli("tenant", "list").want(t, 0, "acme")
	token := strings.TrimSpace(n.cli("token", "create", "till-1", "--role", "clerk").want(t, 0, "aek_").out)
	n.cli("token", "create", "theirs", "--tenant", "acme").want(t, 0, "aek_")
	r := n.cli("token", "list").want(t, 0, "till-1")
	r.want(t, 0, "theirs")
	if strings.Contains(r.out, token) {
		t.Error("token list shows a token's text")
	}
	cli("run", "who", "--url", n.URL, "--token", token).want(t, 1, "role")
	id := strings.Split(token, "_")[1]
	n.cli("token", "revoke", id).want(t, 0, id)
	n.cli("token", "revoke", "nobody").want(t, 1, "nobody")
	cli("token", "list", "--url", n.URL, "--token", token).want(t, 1, "revoked")
}

// migrate brings a new database up to date, and does not touch one that is in use.
func TestMigrate(t *testing.T) {
	dir := t.TempDir()
	cli("migrate", "--data-dir", dir).want(t, 0, "applied")
	cli("migrate", "--data-dir", dir, "--json").want(t, 0, `"Pending": []`)
	startNode(t, "--data-dir", dir)
	cli("migrate", "--data-dir", dir).want(t, 2, "in use")
}
