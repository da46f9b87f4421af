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
//	KEYS[1]  <lock>:l  "<token>:<instance>:<nonce> <since in unix ms> <api>", with the lease as its life
//	KEYS[2]  <lock>:f  the last token given out
//
// The usual answer is one value, the cheapest that Redis can make of a script: the token as
// text (a Lua number printed by tostring loses digits), or the life left in ms. A refusal is
// {last token, life left in ms, "<since> <api>"}.
var (
	acquireScript = newScript(`
-- ARGV: holder, lease in ms, floor, life of the counter in ms, api
local stored = redis.call('MGET', KEYS[1], KEYS[2])
if stored[1] then
	local token, holder, info = string.match(stored[1], '^(%d+):(%S+) ?(.*)$')
	if holder == ARGV[1] then
		redis.call('PEXPIRE', KEYS[1], ARGV[2])
		return token
	end
	return {token or '0', redis.call('PTTL', KEYS[1]), info or ''}
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = stored[2] and tonumber(stored[2]) or 0
local token = string.format('%.0f', math.max(last + 1, ARGV[3] + 1, now))
local value = string.format('%s:%s %.0f %s', token, ARGV[1], now / 1000, ARGV[5])
if not redis.call('SET', KEYS[1], value, 'NX', 'PX', ARGV[2]) then -- not a string: nothing of ours
	return {'0', redis.call('PTTL', KEYS[1]), ''}
end
redis.call('SET', KEYS[2], token, 'PX', ARGV[4])
return token
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
	releaseScript = newScript(`
-- ARGV: holder, token or 0 for any
local value = redis.call('GET', KEYS[1])
if value then
	local token, holder = string.match(value, '^(%d+):(%S+)')
	if holder == ARGV[1] and (ARGV[2] == '0' or ARGV[2] == token) then
		redis.call('DEL', KEYS[1])
		return token
	end
end
return {redis.call('GET', KEYS[2]) or '0', 0, ''}
`)
)
