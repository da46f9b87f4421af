package lockwrap

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// Key is a lock's identity. Two Keys that differ in any part are two locks, whatever
// characters the parts hold.
type Key struct {
	Tenant string // required
	Scope  string // what Value names, such as "OrderId"; required
	Value  string // empty: one lock for the whole scope
}

// String returns "tenant:scope:value" with each part encoded: ASCII, Latin and Chinese letters,
// digits and -_.,/@=+ stay, every other byte becomes %XX, and a part that would be longer than 256 bytes (so
// every part over 256 bytes) becomes ~ and its SHA-256. It is at most 770 bytes of valid
// UTF-8 without spaces, colons inside parts or braces, and the same for ever: it is stored
// as the guard's lock_key.
func (k Key) String() string {
	return encode(k.Tenant) + ":" + encode(k.Scope) + ":" + encode(k.Value)
}

func (k Key) check() error {
	switch {
	case k.Tenant == "":
		return &InvalidError{"Key.Tenant", "is missing"}
	case k.Scope == "":
		return &InvalidError{"Key.Scope", "is missing"}
	}
	return nil
}

const maxPart = 256 // bytes of an encoded part

// encode maps s to text that can stand between colons and inside a Redis hash tag. No two
// strings share a result: a hash is marked by ~, which otherwise never stays.
func encode(s string) string {
	if len(s) > maxPart {
		return hashed(s)
	}
	if plain(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if keeps(r, n) {
			b.WriteString(s[i : i+n])
		} else {
			percent(&b, s[i:i+n])
		}
		i += n
	}
	if b.Len() > maxPart {
		return hashed(s)
	}
	return b.String()
}

func hashed(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "~" + hex.EncodeToString(sum[:])
}

// plain reports whether encode would change nothing, for the usual case.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf || !keeps(rune(s[i]), 1) {
			return false
		}
	}
	return true
}

// keeps reports whether a decoded rune of n bytes stands for itself.
func keeps(r rune, n int) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.,/@=+", r)
	}
	// Fixed ranges, not unicode.IsLetter: what is a letter changes with Go's versions.
	return n > 1 && (r >= 0xC0 && r <= 0x24F || r >= 0x4E00 && r <= 0x9FA5)
}

func percent(b *strings.Builder, bytes string) {
	const hexDigits = "0123456789ABCDEF"
	for i := range len(bytes) {
		b.WriteByte('%')
		b.WriteByte(hexDigits[bytes[i]>>4])
		b.WriteByte(hexDigits[bytes[i]&15])
	}
}
