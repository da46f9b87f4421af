package redis

import (
	"crypto/sha1"
	"encoding/hex"
)

// script is a Lua script with the digest that EVALSHA knows it by.
type script struct{ text, digest string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

// The scripts of lock-protocol.md section 3. Each is idempotent for one holder, and each
// gets its keys, which share one hash tag, through KEYS:
//
//	KEYS[1]  <lock>:l  "<token>:<instance>:<nonce> <since in unix ms> <api>", with the lease as its
//	                   life; or "kept:<node>", with lockwrap.Grace as its life
//	KEYS[2]  <lock>:f  the last token given out
//	KEYS[3]  <lock>:q  a sorted set of the nodes that wait, by the time in us when they began
//
// A node's name is also the channel that it is told by.
//
// The usual answer is one value, the cheapest that Redis can make of a script: the token as
// text (a Lua number printed by tostring loses digits), or the life left in ms. A refusal is
// {last token, life left in ms, "<since> <api>"}, a hand-over {token, token of the next}.
var (
	// grant makes a token and gives the lock to a holder; join puts a node in line. A node
	// that waits asks at least every second, so a line that nobody renews is soon gone.
	//
	// An error means that nothing was done. So the lock's own key is written last of what may
	// fail, and nothing fails after it: while a cluster's slot moves, a key that does not
	// exist (the line) is refused in the middle of a script.
	grant = `
local function grant(last, holder, lease, floor, keep, api, node)
	local time = redis.call('TIME')
	local now = time[1] * 1000000 + time[2]
	local token = string.format('%.0f', math.max(last + 1, floor + 1, now))
	local value = string.format('%s:%s %.0f %s', token, holder, now / 1000, api)
	redis.call('SET', KEYS[2], token, 'PX', keep)
	redis.call('SET', KEYS[1], value, 'PX', lease)
	redis.pcall('ZREM', KEYS[3], node)
	return token
end
local function join(node)
	local time = redis.call('TIME')
	redis.pcall('ZADD', KEYS[3], 'NX', string.format('%.0f', time[1] * 1000000 + time[2]), node)
	redis.pcall('PEXPIRE', KEYS[3], 10000)
end
`

	// pass keeps a lock that is free for the first node in line. After the DEL that came
	// before it nothing may fail: a full memory refuses the SET, a user without channels the
	// PUBLISH, a slot that moves everything. Then the nodes' own asking finds the lock.
	pass = `
local function pass(grace, lock)
	local first = redis.pcall('ZPOPMIN', KEYS[3])[1]
	if type(first) == 'string' then
		redis.pcall('SET', KEYS[1], 'kept:' .. first, 'PX', grace)
		redis.pcall('PUBLISH', first, lock)
	end
end
`

	acquireScript = newScript(grant + `
-- ARGV: holder, lease in ms, floor, life of the counter in ms, api, node, 1 to join the line
local stored = redis.call('MGET', KEYS[1], KEYS[2])
if stored[1] and stored[1] ~= 'kept:' .. ARGV[6] then
	local token, holder, info = string.match(stored[1], '^(%d+):(%S+) ?(.*)$')
	if holder == ARGV[1] then
		redis.call('PEXPIRE', KEYS[1], ARGV[2])
		return token
	end
	if ARGV[7] == '1' then
		join(ARGV[6])
	end
	return {token or '0', redis.call('PTTL', KEYS[1]), info or ''}
end
if not stored[1] and redis.call('EXISTS', KEYS[1]) == 1 then -- not a string: nothing of ours
	return {'0', redis.call('PTTL', KEYS[1]), ''}
end
return grant(stored[2] and tonumber(stored[2]) or 0, ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6])
`)

	// A holder's own key is recognised by its whole first word.
	confirmScript = newScript(`
-- ARGV: owner
local value = redis.call('GET', KEYS[1])
if value and string.match(value, '^%S+') == ARGV[1] then
	return redis.call('PTTL', KEYS[1])
end
return {redis.call('GET', KEYS[2]) or '0', 0, ''}
`)

	// A key that is gone stays gone: a late renewal must not take the lock back.
	renewScript = newScript(`
-- ARGV: owner, lease in ms
local value = redis.call('GET', KEYS[1])
if value and string.match(value, '^%S+') == ARGV[1] then
	redis.call('PEXPIRE', KEYS[1], ARGV[2])
	return tonumber(ARGV[2])
end
return {redis.call('GET', KEYS[2]) or '0', 0, ''}
`)

	// The first write is the DEL, which Redis allows also when its memory is full.
	releaseScript = newScript(pass + `
-- ARGV: holder, token or 0 for any, grace in ms, lock
local value = redis.call('GET', KEYS[1])
if value then
	local token, holder = string.match(value, '^(%d+):(%S+)')
	if holder == ARGV[1] and (ARGV[2] == '0' or ARGV[2] == token) then
		redis.call('DEL', KEYS[1])
		pass(ARGV[3], ARGV[4])
		return token
	end
end
return {redis.call('GET', KEYS[2]) or '0', 0, ''}
`)

	// The next holder's ARGV are those of an acquire.
	handOverScript = newScript(grant + pass + `
-- ARGV: next holder, lease in ms, floor, life of the counter in ms, api, node, 1 to join the line,
--       1 to yield to the line, holder, token, grace in ms, lock
local stored = redis.call('MGET', KEYS[1], KEYS[2])
local token, holder = string.match(stored[1] or '', '^(%d+):(%S+)')
if holder == ARGV[1] then -- done before
	redis.call('PEXPIRE', KEYS[1], ARGV[2])
	return {ARGV[10], token}
end
if holder ~= ARGV[9] or ARGV[10] ~= '0' and ARGV[10] ~= token then
	return {stored[2] or '0', 0, ''}
end
if ARGV[8] == '1' and redis.pcall('EXISTS', KEYS[3]) == 1 then
	redis.call('DEL', KEYS[1])
	pass(ARGV[11], ARGV[12])
	if ARGV[7] == '1' then
		join(ARGV[6])
	end
	return token
end
local last = math.max(tonumber(token), stored[2] and tonumber(stored[2]) or 0)
return {token, grant(last, ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6])}
`)

	leaveScript = newScript(pass + `
-- ARGV: node, grace in ms, lock
redis.pcall('ZREM', KEYS[3], ARGV[1])
if redis.call('GET', KEYS[1]) == 'kept:' .. ARGV[1] then
	redis.call('DEL', KEYS[1])
	pass(ARGV[2], ARGV[3])
end
return 0
`)
)
