package locktest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"apiengine/lockwrap"
)

var keyTests = []test{
	{"odd keys are locks like any other, each its own", oddKeys},
	{"an odd instance and an odd API name do no harm", oddNames},
	{"what cannot be used is refused by name", refusals},
}

func oddKeys(s *suite) {
	a, b := s.node("n1"), s.node("n2")
	big := strings.Repeat("x", 1<<20)
	values := []string{"", " ", "{", "}", "{}", "a}b{c", ":", "a:b", "\x00", "a\x00", "\n", "a\nb", "\xff\xfe", "\xff",
		"%41", "A%", "~", "订单", "é", "🙂", "l", ":l", "f", "q", big, big + "y", strings.Repeat("x", 256), strings.Repeat("x", 257),
		strings.Repeat(":", 256), strings.Repeat(":", 255)}
	var held []*lockwrap.Lease
	for i, v := range values {
		r := request("", 20*time.Second, 0)
		r.Key.Value = v
		l, err := a.Acquire(s.Context(), r)
		if err != nil {
			s.Fatalf("value %d %.20q: %v", i, v, err)
		}
		held = append(held, l)
		var busy *lockwrap.BusyError
		if _, err := b.Acquire(s.Context(), r); !errors.As(err, &busy) {
			s.Fatalf("value %d %.20q on another node: %v, want busy", i, v, err)
		}
	}
	for i, l := range held {
		if err := l.Release(s.Context()); err != nil {
			s.Errorf("value %d %.20q: %v", i, values[i], err)
		}
	}
}

func oddNames(s *suite) {
	a, b := s.node("n 1:{x}\n\x00"), s.node("n2")
	r := request("x", 20*time.Second, 0)
	r.API = "名 {a}\n\x00 \xff" + strings.Repeat("z", 300)
	l := s.acquire(a, r)
	_, err := b.Acquire(s.Context(), r)
	var busy *lockwrap.BusyError
	if !errors.As(err, &busy) || !strings.HasPrefix(busy.Holder.API, "名 {a} z") || len(busy.Holder.API) > 100 {
		s.Fatalf("got %v (%+v), want busy with the name in one line of at most 100 bytes", err, busy)
	}
	if err := l.Confirm(s.Context()); err != nil {
		s.Error(err)
	}
	s.release(l)
}

func refusals(s *suite) {
	m := s.node("n1")
	for _, c := range []struct {
		field string
		spoil func(*lockwrap.Request)
	}{
		{"Key.Tenant", func(r *lockwrap.Request) { r.Key.Tenant = "" }},
		{"Key.Scope", func(r *lockwrap.Request) { r.Key.Scope = "" }},
		{"Plan.Lease", func(r *lockwrap.Request) { r.Plan.Lease = 0 }},
		{"Plan.Lease", func(r *lockwrap.Request) { r.Plan.Lease = -time.Second }},
		{"Plan.Lease", func(r *lockwrap.Request) { r.Plan.Lease = 999 * time.Microsecond }},
		{"Plan.Lease", func(r *lockwrap.Request) { r.Plan.Lease, r.Plan.Margin = 4*time.Millisecond, 0 }},
		{"Plan.Hold", func(r *lockwrap.Request) { r.Plan.Lease, r.Plan.Hold = math.MaxInt64, math.MaxInt64 }},
		{"Plan.Hold", func(r *lockwrap.Request) { r.Plan.Hold = 0 }},
		{"Plan.Hold", func(r *lockwrap.Request) { r.Plan.Hold = 49 * time.Hour }},
		{"Plan.Renew", func(r *lockwrap.Request) { r.Plan.Renew = -1 }},
		{"Plan.Renew", func(r *lockwrap.Request) { r.Plan.Renew = 1 }},
		{"Plan.Renew", func(r *lockwrap.Request) { r.Plan.Renew = r.Plan.Lease }},
		{"Plan.LockWait", func(r *lockwrap.Request) { r.Plan.Wait = -1 }},
		{"Plan.LockWait", func(r *lockwrap.Request) { r.Plan.Wait = math.MaxInt64 }},
		{"Floor", func(r *lockwrap.Request) { r.Floor = -1 }},
		{"Floor", func(r *lockwrap.Request) { r.Floor = 1 << 53 }},
		{"Floor", func(r *lockwrap.Request) { r.Floor = math.MaxInt64 }},
	} {
		r := request("x", 5*time.Second, 0)
		c.spoil(&r)
		_, err := m.Acquire(s.Context(), r)
		var bad *lockwrap.InvalidError
		if !errors.As(err, &bad) || bad.Field != c.field || !strings.Contains(fmt.Sprint(err), c.field) {
			s.Errorf("got %v, want a refusal of %s", err, c.field)
		}
	}
	s.wantFree(m, "x")
}
