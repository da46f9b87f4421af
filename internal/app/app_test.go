package app

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

func TestMaskURL(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"redis://h:6379/1", "redis://h:6379/1"},
		{"redis://:pw@h", "redis://:********@h"},
		{"redis://user@h", "redis://user@h"},
		{"postgres://u:p@ss@h/d?sslmode=disable", "postgres://u:********@h/d?sslmode=disable"},
		{"postgres://h/d?password=pw&user=u", "postgres://h/d?password=********&user=u"},
		{"redis-sentinel://u:p@h1,h2:26379/m?sentinel_password=x", "redis-sentinel://u:********@h1,h2:26379/m?sentinel_password=********"},
		{"host=h password=pw", "********"},
	} {
		if got := maskURL(c.in); got != c.want {
			t.Errorf("%s is shown as %s, want %s", c.in, got, c.want)
		}
	}
}

func TestSettingText(t *testing.T) {
	for _, c := range []struct {
		in   any
		want string
		bad  bool
	}{
		{"a b", "a b", false}, {true, "true", false}, {uint64(7), "7", false}, {int64(-7), "-7", false}, {1e7, "10000000", false},
		{[]any{"a", uint64(1)}, "a,1", false}, {nil, "", true}, {map[string]any{}, "", true}, {[]any{nil}, "", true},
	} {
		if got, err := settingText(c.in); got != c.want || (err != nil) != c.bad {
			t.Errorf("%v: got %q, %v", c.in, got, err)
		}
	}
}

// The drain waits for the requests that were there when it began, not for later ones.
func TestRunningWaitsForWhatWasThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRunning()
		inside := make(chan struct{})
		h := r.count(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/slow" {
				<-inside
			}
		}))
		call := func(path string) { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)) }
		idle := func() bool {
			select {
			case <-r.idle:
				return true
			default:
				return false
			}
		}
		call("/quick")
		go call("/slow")
		synctest.Wait()
		r.drain()
		call("/quick") // comes and goes while the drain waits
		if idle() {
			t.Error("idle while a request runs")
		}
		close(inside)
		synctest.Wait()
		if !idle() {
			t.Error("not idle after the last request")
		}
		call("/quick")
	})
}

func TestRunningWithNothingThere(t *testing.T) {
	r := newRunning()
	r.drain()
	<-r.idle
}
