package cache

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"apiengine/fault"
)

// View is one tenant's part of a cache. It checks what scripts pass and implements Cache.
type View struct {
	tenant string
	driver driver
}

var _ Cache = (*View)(nil)

// key names an entry. A tenant's name has neither colon nor upper-case letters.
type key struct{ tenant, name string }

// key turns the script's key into the stored one. Handlers of the original platform also
// pass the full form "Microi:<tenant>:<name>"; their own tenant's means <name>, another's
// is refused.
func (v *View) key(script string) (key, error) {
	name := script
	if rest, ok := strings.CutPrefix(script, "Microi:"); ok {
		if tenant, rest, ok := strings.Cut(rest, ":"); ok {
			if !strings.EqualFold(tenant, v.tenant) {
				return key{}, fault.New(fault.ScriptError, "V8.Cache: the key %.100q belongs to another tenant", script)
			}
			name = rest
		}
	}
	return key{v.tenant, name}, checkWord("key", name)
}

func checkWord(what, word string) error {
	switch {
	case word == "":
		return fault.New(fault.ScriptError, "V8.Cache: the %s is empty", what)
	case len(word) > MaxKey:
		return fault.New(fault.ScriptError, "V8.Cache: the %s has %d bytes, at most %d are allowed", what, len(word), MaxKey)
	case !utf8.ValidString(word):
		return fault.New(fault.ScriptError, "V8.Cache: the %s is not valid UTF-8", what)
	}
	return nil
}

// entry checks the key and a value to be stored under it.
func (v *View) entry(script, value string) (key, error) {
	k, err := v.key(script)
	if err == nil && len(value) > MaxValue {
		err = fault.New(fault.ScriptError, "V8.Cache: the value of %.100q has %d bytes, at most %d are allowed", script, len(value), MaxValue)
	}
	return k, err
}

// timed checks the key, the value and the ttl of an entry.
func (v *View) timed(script, value string, ttl time.Duration) (key, time.Duration, error) {
	k, err := v.entry(script, value)
	switch {
	case err != nil:
		return k, 0, err
	case ttl < 0:
		return k, 0, fault.New(fault.ScriptError, "V8.Cache: the ttl of %.100q is negative", script)
	case ttl > forever:
		return k, 0, nil
	case ttl%time.Millisecond != 0:
		ttl += time.Millisecond - ttl%time.Millisecond
	}
	return k, ttl, nil
}

// hashed checks the key, a field and a value of a hash.
func (v *View) hashed(script, field, value string) (key, error) {
	k, err := v.entry(script, value)
	if err == nil {
		err = checkWord("field", field)
	}
	return k, err
}

// Get implements Cache.
func (v *View) Get(ctx context.Context, key string) (string, bool, error) {
	k, err := v.key(key)
	if err != nil {
		return "", false, err
	}
	return v.driver.get(ctx, k)
}

// Set implements Cache.
func (v *View) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	k, ttl, err := v.timed(key, value, ttl)
	if err != nil {
		return err
	}
	return v.driver.set(ctx, k, value, ttl)
}

// Remove implements Cache.
func (v *View) Remove(ctx context.Context, key string) (bool, error) {
	k, err := v.key(key)
	if err != nil {
		return false, err
	}
	return v.driver.remove(ctx, k)
}

// Exists implements Cache.
func (v *View) Exists(ctx context.Context, key string) (bool, error) {
	k, err := v.key(key)
	if err != nil {
		return false, err
	}
	return v.driver.exists(ctx, k)
}

// Expire implements Cache.
func (v *View) Expire(ctx context.Context, key string, ttl time.Duration) (bool, error) {
	k, ttl, err := v.timed(key, "", ttl)
	if err != nil {
		return false, err
	}
	return v.driver.expire(ctx, k, ttl)
}

// SetIfNotExists implements Cache.
func (v *View) SetIfNotExists(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	k, ttl, err := v.timed(key, value, ttl)
	if err != nil {
		return false, err
	}
	return v.driver.setIfNotExists(ctx, k, value, ttl)
}

// Increment implements Cache.
func (v *View) Increment(ctx context.Context, key string, by int64, ttl time.Duration) (int64, error) {
	k, ttl, err := v.timed(key, "", ttl)
	if err != nil {
		return 0, err
	}
	return v.driver.increment(ctx, k, by, ttl)
}

// GetAndRemove implements Cache.
func (v *View) GetAndRemove(ctx context.Context, key string) (string, bool, error) {
	k, err := v.key(key)
	if err != nil {
		return "", false, err
	}
	return v.driver.getAndRemove(ctx, k)
}

// CompareAndSet implements Cache.
func (v *View) CompareAndSet(ctx context.Context, key, old, value string, ttl time.Duration) (bool, error) {
	k, ttl, err := v.timed(key, value, ttl)
	if err != nil {
		return false, err
	}
	return v.driver.compareAndSet(ctx, k, old, value, ttl)
}

// HashSet implements Cache.
func (v *View) HashSet(ctx context.Context, key, field, value string) error {
	k, err := v.hashed(key, field, value)
	if err != nil {
		return err
	}
	return v.driver.hashSet(ctx, k, field, value)
}

// HashGet implements Cache.
func (v *View) HashGet(ctx context.Context, key, field string) (string, bool, error) {
	k, err := v.hashed(key, field, "")
	if err != nil {
		return "", false, err
	}
	return v.driver.hashGet(ctx, k, field)
}

// HashGetAll implements Cache.
func (v *View) HashGetAll(ctx context.Context, key string) (map[string]string, error) {
	k, err := v.key(key)
	if err != nil {
		return nil, err
	}
	return v.driver.hashGetAll(ctx, k)
}

// HashDelete implements Cache.
func (v *View) HashDelete(ctx context.Context, key, field string) (bool, error) {
	k, err := v.hashed(key, field, "")
	if err != nil {
		return false, err
	}
	return v.driver.hashDelete(ctx, k, field)
}

// HashIncrement implements Cache.
func (v *View) HashIncrement(ctx context.Context, key, field string, by int64) (int64, error) {
	k, err := v.hashed(key, field, "")
	if err != nil {
		return 0, err
	}
	return v.driver.hashIncrement(ctx, k, field, by)
}
