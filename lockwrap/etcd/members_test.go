package etcd

import "testing"

// A member that was silent is used again when the others have been as often.
func TestLeave(t *testing.T) {
	m := newMembers([]string{"a", "b", "c"}, nil)
	m.used = 0
	for i, step := range []struct {
		silent bool
		want   string
	}{
		{true, "b"}, {false, "c"}, {false, "b"}, // a is silent, the others have no leader
		{true, "c"}, {true, "a"}, // so are the others
		{true, "b"}, {true, "c"}, {false, "c"},
	} {
		if i == 7 { // b has answered since, and c too
			m.all[1].silences, m.all[2].silences = 5, 0
			m.used = 1
		}
		old := m.now()
		m.leave(old, step.silent)
		m.leave(old, step.silent) // a second request that was under way
		if got := m.now().endpoint; got != step.want {
			t.Fatalf("step %d: %s is used, want %s", i, got, step.want)
		}
	}
	one := newMembers([]string{"a"}, nil)
	if one.leave(one.now(), true); one.now().endpoint != "a" {
		t.Error("the only one was left")
	}
	answered := m.now()
	answered.silences = 3
	if m.answered(answered); answered.silences != 0 {
		t.Error("an answer is not an end of silence")
	}
}
