//go:build mutation

package lock_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutations are faults of the past, of other locks mostly, put into the code: each must make
// its test fail. An edit that fits no more is a failure too: say it anew for the new code.
var mutations = []struct {
	name, file, old, new string
	pkg, test            string
}{
	{"the token in a second command, after the lock", "lockwrap/redis/redis.go",
		"	if err == nil && !r.Held {\n", "	if err == nil && r.Held {\n\t\tr.Token, err = b.client.Incr(ctx, c.Lock+\":f\").Result()\n\t}\n	if err == nil && !r.Held {\n",
		"./lock_test", "TestAnAcquireIsOneCommand"},
	{"a token that only counts", "lockwrap/redis/scripts.go",
		"string.format('%.0f', math.max(last + 1, floor + 1, now))", "string.format('%.0f', math.max(last + 1, floor + 1))",
		"./lock_test", "TestTokensRiseOverManyGrants"},
	{"a release that does not compare", "lockwrap/redis/scripts.go",
		"	if holder == ARGV[1] and (ARGV[2] == '0' or ARGV[2] == token) then\n		redis.call('DEL', KEYS[1])", "	if holder then\n		redis.call('DEL', KEYS[1])",
		"./lock_test", "TestRedisFollowsTheModel"},
	{"a hand-over that does not compare", "lockwrap/redis/scripts.go",
		"if holder ~= ARGV[9] or ARGV[10] ~= '0' and ARGV[10] ~= token then", "if not holder then",
		"./lock_test", "TestRedisFollowsTheModel"},
	{"a renewal that takes a free lock", "lockwrap/redis/scripts.go",
		"	return tonumber(ARGV[2])\nend\n", "	return tonumber(ARGV[2])\nend\nif redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return tonumber(ARGV[2]) end\n",
		"./lock_test", "TestRedisFollowsTheModel"},
	{"a grant's deadline counted from the reply", "lockwrap/lease.go",
		"good: sent,", "good: time.Now(),",
		"./lock_test", "TestTheDeadlineCountsFromTheSending"},
	{"a renewal's deadline counted from the reply", "lockwrap/renew.go",
		"l.good, l.trouble = sent, nil", "l.good, l.trouble = time.Now(), nil",
		"./lockwrap", "TestARenewedDeadlineCountsFromTheSending"},
	{"renewal that ends with its first error", "lockwrap/renew.go",
		"return l.plan.Lease / 12", "return l.plan.Hold",
		"./lockwrap", "TestRenewal"},
	{"a waiter that leaves without passing the baton", "lockwrap/line.go",
		"l.queue = l.queue[1:] // the usual case, without moving the rest\n\t\tl.wake()", "l.queue = l.queue[1:] // the usual case, without moving the rest",
		"./lockwrap", "TestTheBatonIsPassedOn"},
	{"an heir that left keeps the lock", "lockwrap/handover.go",
		"if !n.give(lease) {\n\t\t\tn.sweep(sent)\n\t\t}", "n.give(lease)",
		"./lockwrap", "TestTheHeirLeavesMeanwhile"},
	{"a node that never yields", "lockwrap/handover.go",
		"const turns = 4", "const turns = 1 << 30",
		"./lockwrap", "TestNodesTakeTurnsWithoutAsking"},
	{"a keeping whose end nobody looks at", "lockwrap/acquire.go",
		"h.patient, h.errs, h.left = true, 0, Grace", "h.patient, h.errs, h.left = true, 0, 0",
		"./lockwrap", "TestADeadNodeInLine"},
	{"a script that fails after a write", "lockwrap/redis/scripts.go",
		"redis.pcall('ZADD', KEYS[3], 'NX', ", "redis.call('ZADD', KEYS[3], 'NX', ",
		"./lock_test", "TestAScriptThatFailsHasDoneNothing"},
	{"a release that keeps the lock for nobody in line", "lockwrap/redis/scripts.go",
		"redis.pcall('SET', KEYS[1], 'kept:' .. first, 'PX', grace)", "",
		"./lock_test", "TestRedisFollowsTheModel"},
	{"a lock that anybody takes who asks while it is kept", "lockwrap/redis/scripts.go",
		"if stored[1] and stored[1] ~= 'kept:' .. ARGV[6] then", "if stored[1] and string.sub(stored[1], 1, 5) ~= 'kept:' then",
		"./lock_test", "TestRedisFollowsTheModel"},
	{"a node that waits comes anew each time it asks", "lockwrap/redis/scripts.go",
		"redis.pcall('ZADD', KEYS[3], 'NX', ", "redis.pcall('ZADD', KEYS[3], ",
		"./lockwrap/redis", "TestContract/inspect:_nodes_in_line_show_since_when,_in_their_order"},
	{"a node that leaves takes its keeping along", "lockwrap/redis/scripts.go",
		"redis.call('DEL', KEYS[1])\n	pass(ARGV[2], ARGV[3])", "redis.call('DEL', KEYS[1])",
		"./lock_test", "TestRedisFollowsTheModel"},
	{"a lock in etcd that others take before its life is over", "lockwrap/etcd/sights.go",
		"return max(0, life-x.since.Sub(old.since))", "return max(0, life/2-x.since.Sub(old.since))",
		"./lock_test", "TestEtcdFollowsTheModel"},
	{"a member of etcd that is silent and not left", "lockwrap/etcd/members.go",
		"if m.silentSince(sent) {", "if m.silentSince(sent) && false {",
		"./lock_test", "TestASilentMemberOfEtcd"},
}

func TestMutations(t *testing.T) {
	for _, m := range mutations {
		mutation{m.name, m.file, []edit{{m.old, m.new}}, m.pkg, m.test}.run(t)
	}
}

// mutation is a fault as edits of one file, and the test that must tell.
type mutation struct {
	name, file string
	edits      []edit
	pkg, test  string
}

type edit struct{ old, new string }

// run is a test of its own that runs beside others: much of its time is one processor's, in
// the linker, or nobody's, in the test.
func (m mutation) run(t *testing.T) {
	t.Run(m.name, func(t *testing.T) {
		t.Parallel()
		root, err := filepath.Abs("..")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(root, filepath.FromSlash(m.file))
		bytes, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(bytes)
		for _, e := range m.edits {
			if n := strings.Count(text, e.old); n != 1 {
				t.Fatalf("the edit of %q fits %d times in %s, want once: write it anew for the code as it is", e.old, n, m.file)
			}
			text = strings.Replace(text, e.old, e.new, 1)
		}
		out, err := testWith(t, root, file, text, m.pkg, m.test)
		switch {
		case err == nil:
			t.Errorf("%s passes all the same", m.test)
		case !strings.Contains(out, "--- FAIL: "+m.test) && !strings.Contains(out, "test timed out"):
			t.Errorf("%s was not run to a failure:\n%s", m.test, out)
		}
	})
}

// testWith runs one test of the code with another text for one file.
func testWith(t *testing.T, root, file, text, pkg, test string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-vet=off", "-count=1", "-timeout=60s", "-run=^"+test+"$", pkg)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err
}
