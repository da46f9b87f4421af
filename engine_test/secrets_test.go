package engine_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// A secret that a script has read shows nowhere but where the script sends it: not in the
// console, not in the log, not in the text of an error, a nested call's included (S48).
func TestSecretsAreHiddenByValue(t *testing.T) {
	const secret = `p4ss"word&more`
	n := startNode(t, "--data-dir", t.TempDir())
	n.pushFiles(t, fstest.MapFS{
		"show.js": js("LogParam: true\nLogResult: true", `var s = V8.Secret('key');
			console.log('key is ' + s, { s: s, b: btoa('' + s), u: encodeURIComponent(s) });
			console.warn(new Error(s));
			V8.ApiEngine.Run('inner', {});
			return { Code: 1, Data: s };`),
		"inner.js": js("StopHttp: true", `console.error(V8.Secret('key')); throw new Error('inner ' + V8.Secret('key'))`),
		"fail.js":  js("Category: x", `throw new Error('no luck with ' + V8.Secret('key'))`),
		"plain.js": js("Category: x", `console.log('key ' + V8.Param.K, 'abc'); return V8.Secret('short')`),
	})
	for name, value := range map[string]string{"key": secret, "short": "abc"} {
		if a := n.call(t, "PUT", "/admin/api/v1/tenants/default/secrets/"+name, map[string]string{"Value": value}); a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	a := n.call(t, "POST", "/apiengine/show", map[string]string{"K": secret})
	if a.Status != 200 || !strings.Contains(fmt.Sprint(a.JSON.Data), secret) {
		t.Errorf("what the script itself returns is its own: %s", a.Body)
	}
	if a := n.call(t, "POST", "/apiengine/fail", nil); a.kind() != "script_error" || a.JSON.Msg != "no luck with [redacted]" {
		t.Errorf("the error says %s", a.Body)
	}
	// Who has not read it may hold it: what a caller sends is no secret by itself. Nor is a
	// value so short that it is in every text.
	n.call(t, "POST", "/apiengine/plain", map[string]string{"K": "plain-words"})
	shown := n.cli("run", "show", "--param", `{"K":1}`) // the console as the admin API gives it, apart from the answer
	n.stop(9)
	log := n.log.String()
	for _, form := range []string{secret, `p4ss`, base64.StdEncoding.EncodeToString([]byte(secret)), "p4ss%22word"} {
		if strings.Contains(log, form) {
			t.Errorf("the log has %s", form)
		}
	}
	for _, want := range []string{"key is [redacted]", `"caller_api":"show"`, "inner [redacted]", "no luck with [redacted]", "key plain-words abc"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has not %s", want)
		}
	}
	if strings.Contains(shown.err, "p4ss") || !strings.Contains(shown.err, "key is [redacted]") {
		t.Errorf("the console shows %s", shown.err)
	}
}
