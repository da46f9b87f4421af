#!/bin/sh
# Prints docs/tour.md: the five-minute tour of README.md, run with the built binary on the
# embedded default in a folder of its own. What differs from run to run (tokens, ids, the
# port, times) is written as a word in angle brackets, so that a test can compare.
# Usage: scripts/tour.sh [BINARY]; without one, the source is built.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
server=
clean() {
	[ -z "$server" ] || kill "$server" 2>/dev/null && wait "$server" 2>/dev/null || true
	rm -rf "$work"
}
trap clean EXIT
mkdir "$work/bin"
if [ $# -gt 0 ]; then
	cp "$1" "$work/bin/apiengine"
else
	(cd "$root" && go build -o "$work/bin/apiengine" ./cmd/apiengine)
fi
PATH="$work/bin:$PATH"
for name in $(env | sed -n 's/^\(APIENGINE_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
cd "$work"

normal() {
	sed -E -e 's/aek_[A-Za-z0-9_-]+/<token>/g' -e 's/127\.0\.0\.1:[0-9]+/localhost:8080/g' \
		-e 's/"(Token|FencingToken)": ?[0-9]+/"\1": <fencing token>/g' \
		-e 's/"(RequestId|ExecutionId)": ?"[^"]*"/"\1": "<id>"/g' \
		-e 's/^apiengine (dev|v)[^ ]* /apiengine <version> /'
}
# run shows a command and what it prints; a failure is part of the show.
run() {
	printf '$ %s\n' "$1"
	rc=0
	sh -c "$(printf '%s' "$1" | sed "s/localhost:8080/$addr/g")" >out 2>err || rc=$?
	cat err out | normal
	[ -z "$(tail -c 1 out)" ] || echo
	[ "$rc" = 0 ] || echo "(exit code $rc)"
}
code() { printf '\n```%s\n' "$1"; }
end() { printf '```\n\n'; }
# await runs a command until it prints the text, at most 10 s.
await() {
	i=0
	until sh -c "$2" 2>/dev/null | grep -q "$1"; do
		i=$((i + 1))
		[ $i -lt 200 ] || { echo "tour: waited for $1" >&2; cat log >&2; exit 1; }
		sleep 0.05
	done
}

addr=
cat <<'T'
# The tour

Everything here was run, by `scripts/tour.sh`, with nothing but the binary; a test runs it again and compares.
What changes from run to run stands in angle brackets.

## 1. An endpoint is a file

T
mkdir my-apis
cat >my-apis/visit.js <<'T'
/*---
ApiEngineKey: visit
Lock: true
LockKey: Page
Timeout: 5
AllowAnonymous: true
---*/
var n = Number(V8.Cache.Get('visits:' + V8.Param.Page) || 0) + 1;
V8.Cache.Set('visits:' + V8.Param.Page, String(n));
return { Code: 1, Data: { Page: V8.Param.Page, Visits: n, Token: V8.FencingToken } };
T
echo '`my-apis/visit.js`:'
code js
cat my-apis/visit.js
end
echo 'Its settings are in the first comment, the rest is a function body. `check` needs no server:'
code sh
run 'apiengine check my-apis'
end

cat <<'T'
## 2. Save it, call it
T
code sh
echo '$ apiengine serve --apis-dir my-apis'
apiengine serve --apis-dir my-apis --addr 127.0.0.1:0 >greeting 2>log &
server=$!
await 'answers at' 'cat greeting'
await '^  aek_' 'cat greeting'
normal <greeting
end
addr=$(sed -n 's!.*http://!!p' greeting)
APIENGINE_URL=http://$addr APIENGINE_TOKEN=$(cat data/admin-token)
export APIENGINE_URL APIENGINE_TOKEN
echo 'The admin token is shown this once and kept in `data/admin-token`. Calls for one page take turns, each with a larger fencing token than the one before:'
code sh
run "curl -s 'localhost:8080/apiengine/visit?Page=home'"
run "curl -s 'localhost:8080/apiengine/visit?Page=home'"
run "curl -s 'localhost:8080/apiengine/visit?Page=about'"
end
echo 'Without the parameter that names the lock, nothing runs:'
code sh
run "curl -s 'localhost:8080/apiengine/visit'"
end
echo 'Change the file; the next call runs the new text:'
code sh
run "sed -i 's/Visits: n,/Visits: n, Hello: true,/' my-apis/visit.js"
await '"Hello"' "curl -s 'http://$addr/apiengine/visit?Page=other'"
run "curl -s 'localhost:8080/apiengine/visit?Page=home'"
end
echo 'Break it: the log says where, and what was live stays live.'
code sh
run "cp my-apis/visit.js good.js; echo 'var oops = ;' >>my-apis/visit.js"
await 'not loaded' 'cat log'
run "curl -s 'localhost:8080/apiengine/visit?Page=home'"
run 'apiengine check my-apis'
run 'cp good.js my-apis/visit.js'
end
cat <<'T'
## 3. See what the lock would do

The commands find the server by `APIENGINE_URL` and speak with `APIENGINE_TOKEN`:
T
code sh
echo '$ export APIENGINE_URL=http://localhost:8080 APIENGINE_TOKEN=$(cat data/admin-token)'
run "apiengine plan visit --param '{\"Page\":\"home\"}'"
run "apiengine run visit --param '{\"Page\":\"home\"}'"
end
cat <<'T'
## 4. Check, compare, send

A folder need not be on the server's machine. Here are a new endpoint and a table that it uses:
T
mkdir -p team/schema
cat >team/note_add.js <<'T'
/*---
Methods: [POST]
---*/
console.log('adding', V8.Param.Text);
return V8.FormEngine.AddFormData('note', { Id: V8.Param.Id, Text: V8.Param.Text });
T
cat >team/schema/0001_note.sql <<'T'
-- +goose Up
CREATE TABLE note (Id TEXT PRIMARY KEY, Text TEXT NOT NULL);
-- +goose Down
DROP TABLE note;
T
code sh
run 'cat team/note_add.js team/schema/0001_note.sql'
run 'apiengine check team'
run 'apiengine diff team'
run 'apiengine push team'
run "apiengine run note_add --param '{\"Id\":\"1\",\"Text\":\"hello\"}'"
run "apiengine sql 'SELECT * FROM note'"
end
echo 'A push never overwrites what somebody else saved meanwhile:'
code sh
run 'apiengine pull colleague'
run "sed -i 's/adding/colleague adds/' colleague/note_add.js && apiengine push colleague"
run "sed -i 's/adding/I add/' team/note_add.js && apiengine push team"
run 'apiengine push team --force'
end
cat <<'T'
## 5. Tokens

The admin token is for administrators. A caller gets one of its own, with roles if an API's `ApiRole` asks for them:
T
code sh
run 'apiengine token create shop-front --expires 720h >caller'
run "curl -s -H \"Authorization: Bearer \$(cat caller)\" -d '{\"Id\":\"2\",\"Text\":\"hi\"}' -H 'Content-Type: application/json' localhost:8080/apiengine/note_add"
run "curl -s -X POST localhost:8080/apiengine/note_add"
end
echo 'Ctrl-C ends the server: running calls finish first. Everything is in `data`; the next start goes on from there.'
