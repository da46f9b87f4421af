package app

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemoryBudget(t *testing.T) {
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, c := range []struct {
		text string
		want int64
		ok   bool
	}{{"1073741824\n", 1 << 30, true}, {"max\n", 0, false}, {"9223372036854771712\n", 9223372036854771712, false}, {"", 0, false}} {
		if n, ok := readLimit(file(c.text)); n != c.want || ok != c.ok {
			t.Errorf("limit %q: %d %v", c.text, n, ok)
		}
	}
	if n, ok := readTotal(file("MemFree: 1 kB\nMemTotal:       2048 kB\n")); n != 2<<20 || !ok {
		t.Errorf("total: %d %v", n, ok)
	}
	if _, ok := readTotal(filepath.Join(t.TempDir(), "none")); ok {
		t.Error("a file that is not there has a total")
	}
	for _, c := range []struct{ memory, run, all, one int64 }{
		{400 << 20, 0, 300 << 20, 75 << 20}, {64 << 20, 0, 48 << 20, 32 << 20}, {64 << 30, 0, 48 << 30, 512 << 20}, {400 << 20, 50 << 20, 300 << 20, 50 << 20},
	} {
		s := Settings{Memory: c.memory, RunMemory: c.run}
		if all, one := s.scriptMemory(); all != c.all || one != c.one {
			t.Errorf("budget %d: %d %d", c.memory, all, one)
		}
	}
	if (&Settings{}).memoryBudget() <= 0 {
		t.Error("no budget by default")
	}
}
