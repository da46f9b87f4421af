package storetest

import (
	"slices"
	"testing"
	"time"

	"apiengine/store"
)

// What people have seen of a task never goes back, and is its tenant's.
func shownKept(t *testing.T, open Opener) {
	s := open(t)
	for _, p := range []store.Shown{
		{Task: "a", Run: "r1", Current: 5, Total: 10, Best: 500, Msg: "half"},
		{Task: "a", Run: "r2", Current: 3, Total: 30, Best: 100, Msg: "again"},
		{Task: "b", Run: "r3", Current: 1 << 52, Msg: "much"},
	} {
		if err := s.KeepShown(t.Context(), "t", []store.Shown{p}); err != nil {
			t.Fatal(err)
		}
	}
	got := must(s.Shown(t.Context(), "t", []string{"a", "b", "c"}))(t)
	slices.SortFunc(got, func(x, y store.Shown) int { return int(x.Task[0]) - int(y.Task[0]) })
	want := []store.Shown{{Task: "a", Run: "r2", Current: 5, Total: 30, Best: 500, Msg: "again"}, {Task: "b", Run: "r3", Current: 1 << 52, Msg: "much"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := must(s.Shown(t.Context(), "u", []string{"a"}))(t); len(got) != 0 {
		t.Errorf("another tenant sees %+v", got)
	}
	if n := must(s.ForgetShown(t.Context(), time.Hour))(t); n != 0 {
		t.Errorf("%d young ones forgotten", n)
	}
	if n := must(s.ForgetShown(t.Context(), -time.Hour))(t); n != 2 {
		t.Errorf("%d of 2 forgotten", n)
	}
}
