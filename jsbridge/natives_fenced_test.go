package jsbridge

import "testing"

// SetFenced and removals carry the token of the run's lock.
func TestFencedCacheCalls(t *testing.T) {
	b := newBridge(t, Config{})
	for _, c := range []struct {
		code, want string
		lock       Lock
		token      int64
	}{
		{`return [V8.Cache.SetFenced('k', 'v'), V8.Cache.Get('k')]`, `[true,"v"]`, &fakeLock{}, 42},
		{`return V8.Cache.SetFenced('k', 'v', 60)`, `true`, &fakeLock{}, 42},
		{`V8.Cache.Set('k', 'v'); return V8.Cache.Remove('k')`, `true`, &fakeLock{}, 42},
		{`V8.Cache.Set('k', 'v'); return V8.Cache.Remove('k')`, `true`, nil, 0},
		{`try { V8.Cache.SetFenced('k', 'v') } catch (e) { return e.message.indexOf('V8.Cache.SetFenced works in an API with Lock: true') === 0 }`, `true`, nil, 0},
	} {
		e, m := env(), &memCache{}
		e.Cache, e.Lock = m, c.lock
		if got := result(t, b, e, c.code); got != c.want || m.token != c.token {
			t.Errorf("%s: %s with token %d, want %s with %d", c.code, got, m.token, c.want, c.token)
		}
	}
}
