package postgres

import (
	"regexp"
	"strings"
)

// statements are the operations on the table "<schema>".locks. A row's lock is held while
// holder is not empty and expires lies ahead, and kept for a node while holder is empty, kept
// is not, and expires lies ahead. The row stays, to remember the token, until forget. line
// has "<node> <us since it stands there>" for each node that waits, the longest first.
//
// Each statement is idempotent for one holder. What it decides by is the row as it is once
// the statement has it to itself, and the time by then: never excluded nor now(), which are
// older than a wait for the row. The time is taken once for each decision (OFFSET 0 keeps
// the planner from copying the call), so that all columns follow the same one.
//
// Each answers with one row of these columns:
//
//	done bool, token, holder, api, since (us), left (us), before
type statements struct {
	acquire, confirm, renew, release, handOver, leave, clean, table, locks, lock string
}

// newStatements takes the schema in quotes.
func newStatements(schema string) *statements {
	parts := strings.NewReplacer(
		"{schema}", schema,
		"{table}", schema+".locks",
		"{clock}", "(SELECT clock_timestamp() AS now OFFSET 0) AS t",
		"{micros}", "(extract(epoch FROM t.now) * 1000000)::bigint",
		"{left}", "(extract(epoch FROM expires - clock_timestamp()) * 1000000)::bigint",
		"{since}", "(extract(epoch FROM since) * 1000000)::bigint",
		"{first}", "split_part(coalesce(line[1], ''), ' ', 1)",
		"{columns}", "(token, holder, api, since, expires, kept, line, forget)",
		"{tell}", tell,
	)
	fill := func(text string) string {
		return parts.Replace(stands.ReplaceAllString(others.ReplaceAllString(text,
			"ARRAY(SELECT x FROM unnest($1) WITH ORDINALITY AS u (x, i) WHERE split_part(x, ' ', 1) <> $2 ORDER BY i)"),
			"EXISTS (SELECT FROM unnest($1) AS x WHERE split_part(x, ' ', 1) = $2)"))
	}
	return &statements{fill(acquire), fill(confirm), fill(renew), fill(release), fill(handOver), fill(leave), fill(clean), fill(table),
		fill(locks), fill(one)}
}

// {line without node} and {line has node} name a node by its name alone.
var (
	others = regexp.MustCompile(`\{(\S+) without (\S+)\}`)
	stands = regexp.MustCompile(`\{(\S+) has (\S+)\}`)
)

// tell notifies the node that the row is kept for by now; see channel.
const tell = `(SELECT pg_notify('lockwrap_' || left(encode(sha256(convert_to(kept, 'UTF8')), 'hex'), 40), $1::text)::text FROM done WHERE kept <> '')`

const (
	// $1 lock, $2 holder, $3 ttl, $4 floor, $5 keep, $6 api, $7 node, $8 queue.
	// Where neither a grant nor a place in line is to be written, the answer comes from the
	// table as it was when the statement began: a hint of who holds it.
	acquire = `
WITH done AS (
	INSERT INTO {table} AS l (lock, token, holder, api, since, expires, kept, line, forget)
	SELECT $1::text, greatest($4::bigint + 1, {micros}), $2::text, $6::text, t.now, t.now + $3::bigint * interval '1 microsecond',
		'', '{}'::text[], t.now + $5::bigint * interval '1 microsecond' FROM {clock}
	ON CONFLICT (lock) DO UPDATE SET {columns} = (
		SELECT g.* FROM (SELECT t.now, l.expires <= t.now OR l.holder = '' AND l.kept IN ('', $7::text) AS free FROM {clock}) AS t, LATERAL (
			SELECT greatest(l.token + 1, $4::bigint + 1, {micros}), $2::text, $6::text, t.now, t.now + $3::bigint * interval '1 microsecond',
				'', {l.line without $7::text}, t.now + $5::bigint * interval '1 microsecond' WHERE t.free
			UNION ALL
			SELECT l.token, l.holder, l.api, l.since, t.now + $3::bigint * interval '1 microsecond',
				'', l.line, l.forget WHERE NOT t.free AND l.holder = $2::text
			UNION ALL
			SELECT l.token, l.holder, l.api, l.since, l.expires, l.kept,
				CASE WHEN $8::bool AND NOT {l.line has $7::text} THEN l.line || ($7::text || ' ' || {micros}) ELSE l.line END, l.forget
				WHERE NOT t.free AND l.holder <> $2::text) AS g)
	WHERE l.expires <= clock_timestamp() OR l.holder = $2::text OR l.holder = '' AND l.kept IN ('', $7::text)
		OR $8::bool AND NOT {l.line has $7::text}
	RETURNING token, holder, api, since, expires)
SELECT true, token, holder, api, {since}, {left}, token FROM done
UNION ALL
SELECT false, token, holder, api, {since}, {left}, token FROM {table} WHERE lock = $1::text AND NOT EXISTS (SELECT FROM done)`

	// $1 lock, $2 holder, $3 token.
	confirm = `
SELECT holder = $2::text AND token = $3::bigint AND left_us > 0, token, holder, api, {since}, left_us, token
FROM (SELECT *, {left} AS left_us FROM {table} WHERE lock = $1::text OFFSET 0) AS l`

	// $1 lock, $2 holder, $3 token, $4 ttl.
	renew = `
WITH done AS (
	UPDATE {table} AS l SET expires = clock_timestamp() + $4::bigint * interval '1 microsecond'
	WHERE lock = $1::text AND holder = $2::text AND token = $3::bigint AND expires > clock_timestamp()
	RETURNING token, holder, api, since)
SELECT true, token, holder, api, {since}, $4::bigint, token FROM done
UNION ALL
SELECT false, token, holder, api, {since}, 0, token FROM {table} WHERE lock = $1::text AND NOT EXISTS (SELECT FROM done)`

	// $1 lock, $2 holder, $3 token or 0 for any, $4 grace.
	release = `
WITH done AS (
	UPDATE {table} AS l SET holder = '', api = '', kept = {first}, line = line[2:],
		expires = clock_timestamp() + sign(cardinality(line)) * $4::bigint * interval '1 microsecond'
	WHERE lock = $1::text AND holder = $2::text AND $3::bigint IN (0, token) AND expires > clock_timestamp()
	RETURNING token, kept)
SELECT true, token, coalesce({tell}, ''), '', 0::bigint, 0::bigint, token FROM done
UNION ALL
SELECT false, token, '', '', 0, 0, token FROM {table} WHERE lock = $1::text AND NOT EXISTS (SELECT FROM done)`

	// $1 to $4 as for release, $5 to $11 as $2 to $8 for acquire, $12 yield. before is the
	// token until now.
	handOver = `
WITH done AS (
	UPDATE {table} AS l SET {columns} = (
		SELECT g.* FROM (SELECT t.now, l.holder = $5::text AS again, $12::bool AND cardinality(l.line) > 0 AS yields FROM {clock}) AS t, LATERAL (
			SELECT l.token, l.holder, l.api, l.since, t.now + $6::bigint * interval '1 microsecond',
				'', l.line, l.forget WHERE t.again
			UNION ALL
			SELECT l.token, '', '', l.since, t.now + $4::bigint * interval '1 microsecond', {first},
				CASE WHEN $11::bool AND NOT {l.line[2:] has $10::text} THEN l.line[2:] || ($10::text || ' ' || {micros}) ELSE l.line[2:] END, l.forget
				WHERE NOT t.again AND t.yields
			UNION ALL
			SELECT greatest(l.token + 1, $7::bigint + 1, {micros}), $5::text, $9::text, t.now, t.now + $6::bigint * interval '1 microsecond',
				'', {l.line without $10::text}, t.now + $8::bigint * interval '1 microsecond'
				WHERE NOT t.again AND NOT t.yields) AS g)
	WHERE lock = $1::text AND expires > clock_timestamp() AND (holder = $5::text OR holder = $2::text AND $3::bigint IN (0, token))
	RETURNING token, holder, kept)
SELECT true, token, holder, coalesce({tell}, ''), 0::bigint, 0::bigint,
	coalesce((SELECT token FROM {table} WHERE lock = $1::text), 0) FROM done
UNION ALL
SELECT false, token, '', '', 0, 0, token FROM {table} WHERE lock = $1::text AND NOT EXISTS (SELECT FROM done)`

	// $1 lock, $2 node, $3 grace.
	leave = `
WITH done AS (
	UPDATE {table} AS l SET (expires, kept, line) = (
		SELECT g.* FROM (SELECT t.now, {l.line without $2::text} AS rest, l.holder = '' AND l.kept = $2::text AND l.expires > t.now AS goes FROM {clock}) AS t, LATERAL (
			SELECT t.now + sign(cardinality(t.rest)) * $3::bigint * interval '1 microsecond', split_part(coalesce(t.rest[1], ''), ' ', 1), t.rest[2:] WHERE t.goes
			UNION ALL
			SELECT l.expires, l.kept, t.rest WHERE NOT t.goes) AS g)
	WHERE lock = $1::text AND ({line has $2::text} OR holder = '' AND kept = $2::text)
	RETURNING kept, token)
SELECT true, token, coalesce({tell}, ''), '', 0::bigint, 0::bigint, token FROM done`

	// $1 the beginning of their names.
	locks = holdings + ` AND starts_with(lock, $1::text)`

	// $1 lock.
	one = holdings + ` AND lock = $1::text`

	holdings = `
SELECT lock, token, holder, api, {since}, {left}, line FROM {table} WHERE holder <> '' AND expires > clock_timestamp()`

	clean = `
DELETE FROM {table} WHERE forget < clock_timestamp() AND expires < clock_timestamp() AND lock IN (
	SELECT lock FROM {table} WHERE forget < clock_timestamp() AND expires < clock_timestamp() LIMIT 1000 FOR UPDATE SKIP LOCKED)`

	// The advisory lock is for nodes that find the table missing at the same time. A page is
	// half empty and no index holds a column that changes, so that updates stay in their page.
	table = `
SELECT pg_advisory_xact_lock(4710219635537128);
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {table} (
	lock    text COLLATE "C" PRIMARY KEY,
	token   bigint NOT NULL,
	holder  text NOT NULL,
	api     text NOT NULL,
	since   timestamptz NOT NULL,
	expires timestamptz NOT NULL,
	kept    text NOT NULL,
	line    text[] NOT NULL,
	forget  timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05)`
)
