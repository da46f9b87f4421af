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
// Tokens travel as text: a Lua number printed by tostring loses digits.
var (
	acquireScript = newScript(`
-- ARGV: holder, lease in ms, floor, life of the counter in ms, api
local value = redis.call('GET', KEYS[1])
if value then
	local token, holder, info = string.match(value, '^(%d+):(%S+) ?(.*)$')
	if holder == ARGV[1] then
		redis.call('PEXPIRE', KEYS[1], ARGV[2])
		return {1, token, tonumber(ARGV[2]), ''}
	end
	return {0, token or '0', redis.call('PTTL', KEYS[1]), info or ''}
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
local token = string.format('%.0f', math.max(last + 1, ARGV[3] + 1, now))
redis.call('SET', KEYS[2], token, 'PX', ARGV[4])
local info = string.format('%.0f', math.floor(now / 1000)) .. ' ' .. ARGV[5]
redis.call('SET', KEYS[1], token .. ':' .. ARGV[1] .. ' ' .. info, 'PX', ARGV[2])
return {1, token, tonumber(ARGV[2]), ''}
`)

	// A holder's own key is recognised by its whole first word.
	confirmScript = newScript(`
-- ARGV: owner
local value = redis.call('GET', KEYS[1])
if value and string.match(value, '^%S+') == ARGV[1] then
	return {1, '0', redis.call('PTTL', KEYS[1]), ''}
end
return {0, redis.call('GET', KEYS[2]) or '0', 0, ''}
`)

	// A key that is gone stays gone: a late renewal must not take the lock back.
	renewScript = newScript(`
-- ARGV: owner, lease in ms
local value = redis.call('GET', KEYS[1])
if value and string.match(value, '^%S+') == ARGV[1] then
	redis.call('PEXPIRE', KEYS[1], ARGV[2])
	return {1, '0', tonumber(ARGV[2]), ''}
end
return {0, redis.call('GET', KEYS[2]) or '0', 0, ''}
`)

	// The first write is the DEL, which Redis allows also when its memory is full.
	releaseScript = newScript(`
-- ARGV: holder, token or 0 for any
local value = redis.call('GET', KEYS[1])
if value then
	local token, holder = string.match(value, '^(%d+):(%S+)')
	if holder == ARGV[1] and (ARGV[2] == '0' or ARGV[2] == token) then
		redis.call('DEL', KEYS[1])
		return {1, token, 0, ''}
	end
end
return {0, redis.call('GET', KEYS[2]) or '0', 0, ''}
`)
)
