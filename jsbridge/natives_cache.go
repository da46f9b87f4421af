package jsbridge

import (
	"encoding/json"
	"slices"
	"time"

	"apiengine/fault"
)

type keyArg struct {
	Key string
}

type keyTTL struct {
	Key string
	TTL time.Duration `js:"ttl"`
}

type setArgs struct {
	Key   string
	Value string
	TTL   time.Duration `js:"ttl,optional"`
}

type fieldArgs struct {
	Key   string
	Field string
}

// errNoService is what a script gets when the run was not given the service it calls.
func errNoService(name string) error {
	return fault.New(fault.Forbidden, "V8.%s is not available in this run", name)
}

// cacheFn is a row whose function gets the tenant's cache.
func cacheFn[In any](name, doc string, f func(c *Call, cache Cache, in In) (any, error)) Func {
	return hostFn("Cache."+name, doc, func(c *Call, in In) (any, error) {
		if c.Env.Cache == nil {
			return nil, errNoService("Cache")
		}
		start := time.Now()
		defer func() { c.run.stats.CacheTime += time.Since(start) }()
		return f(c, c.Env.Cache, in)
	})
}

func orNull(value string, found bool, err error) (any, error) {
	if err != nil || !found {
		return nil, err
	}
	return value, nil
}

func cacheFuncs() []Func {
	remove := func(c *Call, cache Cache, in keyArg) (any, error) {
		if c.Env.Lock != nil {
			return cache.RemoveFenced(c, in.Key, c.Env.Lock.Token())
		}
		return cache.Remove(c, in.Key)
	}
	exists := func(c *Call, cache Cache, in keyArg) (any, error) { return cache.Exists(c, in.Key) }
	return append([]Func{
		cacheFn("Get", "the string stored under key, or null",
			func(c *Call, cache Cache, in keyArg) (any, error) { return orNull(cache.Get(c, in.Key)) }),
		cacheFn("Set", "stores a string, for ever or for ttl; true",
			func(c *Call, cache Cache, in setArgs) (any, error) {
				return true, cache.Set(c, in.Key, in.Value, in.TTL)
			}),
		cacheFn("Remove", "removes key; tells whether it existed", remove),
		cacheFn("Del", "Remove", remove),
		cacheFn("Delete", "Remove", remove),
		cacheFn("Exists", "tells whether key exists", exists),
		cacheFn("KeyExist", "Exists", exists),
		cacheFn("Expire", "gives key a new ttl; tells whether it existed",
			func(c *Call, cache Cache, in keyTTL) (any, error) { return cache.Expire(c, in.Key, in.TTL) }),
		cacheFn("SetIfNotExists", "stores a string unless key exists; tells whether it did",
			func(c *Call, cache Cache, in setArgs) (any, error) {
				return cache.SetIfNotExists(c, in.Key, in.Value, in.TTL)
			}),
		cacheFn("Increment", "adds by (default 1) to the number under key and returns the sum; a ttl counts from now",
			func(c *Call, cache Cache, in struct {
				Key string
				By  any           `js:"by,optional"`
				TTL time.Duration `js:"ttl,optional"`
			}) (any, error) {
				by, err := wholeOr(in.By, 1, "Cache.Increment")
				if err != nil {
					return nil, err
				}
				return cache.Increment(c, in.Key, by, in.TTL)
			}),
		cacheFn("GetAndRemove", "the string stored under key, which is removed, or null",
			func(c *Call, cache Cache, in keyArg) (any, error) { return orNull(cache.GetAndRemove(c, in.Key)) }),
		cacheFn("CompareAndSet", "stores value if old is stored now; tells whether it did",
			func(c *Call, cache Cache, in struct {
				Key   string
				Old   string
				Value string
				TTL   time.Duration `js:"ttl,optional"`
			}) (any, error) {
				return cache.CompareAndSet(c, in.Key, in.Old, in.Value, in.TTL)
			}),
		cacheFn("SetFenced", "Set for the holder of a lock: false, and nothing is stored, when a larger token has written key",
			func(c *Call, cache Cache, in setArgs) (any, error) {
				if c.Env.Lock == nil {
					return nil, fault.New(fault.ScriptError, "V8.Cache.SetFenced works in an API with Lock: true: without a lock there is no fencing token")
				}
				return cache.SetFenced(c, in.Key, in.Value, in.TTL, c.Env.Lock.Token())
			}),
	}, hashFuncs()...)
}

func hashFuncs() []Func {
	return []Func{
		cacheFn("HashSet", "stores a string under a field of the hash; true",
			func(c *Call, cache Cache, in struct{ Key, Field, Value string }) (any, error) {
				return true, cache.HashSet(c, in.Key, in.Field, in.Value)
			}),
		cacheFn("HashGet", "the string under a field of the hash, or null",
			func(c *Call, cache Cache, in fieldArgs) (any, error) {
				return orNull(cache.HashGet(c, in.Key, in.Field))
			}),
		cacheFn("HashGetAll", "all fields of the hash as an object",
			func(c *Call, cache Cache, in keyArg) (any, error) { return cache.HashGetAll(c, in.Key) }),
		cacheFn("HashGetAllKeys", "the names of all fields, sorted",
			func(c *Call, cache Cache, in keyArg) (any, error) {
				all, err := cache.HashGetAll(c, in.Key)
				if err != nil {
					return nil, err
				}
				names := make([]string, 0, len(all))
				for name := range all {
					names = append(names, name)
				}
				slices.Sort(names)
				text, err := json.Marshal(names)
				return json.RawMessage(text), err
			}),
		cacheFn("HashDelete", "removes a field; tells whether it existed",
			func(c *Call, cache Cache, in fieldArgs) (any, error) {
				return cache.HashDelete(c, in.Key, in.Field)
			}),
		cacheFn("HashExists", "tells whether the hash has the field",
			func(c *Call, cache Cache, in fieldArgs) (any, error) {
				_, found, err := cache.HashGet(c, in.Key, in.Field)
				return found, err
			}),
		cacheFn("HashLength", "the number of fields",
			func(c *Call, cache Cache, in keyArg) (any, error) {
				all, err := cache.HashGetAll(c, in.Key)
				return int64(len(all)), err
			}),
		cacheFn("HashIncrement", "adds by (default 1) to a field and returns the sum",
			func(c *Call, cache Cache, in struct {
				Key   string
				Field string
				By    any `js:"by,optional"`
			}) (any, error) {
				by, err := wholeOr(in.By, 1, "Cache.HashIncrement")
				if err != nil {
					return nil, err
				}
				return cache.HashIncrement(c, in.Key, in.Field, by)
			}),
	}
}

// wholeOr returns v as a whole number, or def when it was not given.
func wholeOr(v any, def int64, name string) (int64, error) {
	switch v := v.(type) {
	case nil:
		return def, nil
	case int64:
		return v, nil
	}
	return 0, argErrorf("V8.%s: argument \"by\" must be a whole number, not %s", name, got(v))
}
