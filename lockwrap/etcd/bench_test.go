package etcd_test

import (
	"fmt"
	"testing"

	"apiengine/internal/testserver"
	"apiengine/lockwrap"
	"apiengine/lockwrap/etcd"
)

// BenchmarkPair is one acquire and one release, nobody else being there; etcd writes to memory.
func BenchmarkPair(b *testing.B) {
	locks := open(b, etcd.Config{Endpoints: testserver.Etcd(b).URL()})
	defer locks.Close()
	for i := 0; b.Loop(); i++ {
		c := claim(lockName, fmt.Sprint("n1:", i), lease)
		r, err := locks.Acquire(b.Context(), c)
		if err != nil || !r.Held {
			b.Fatal(r, err)
		}
		if r, err := locks.Release(b.Context(), lockName, lockwrap.Owner{Token: r.Token, Holder: c.Holder}, nil); err != nil || !r.Held {
			b.Fatal(r, err)
		}
	}
}
