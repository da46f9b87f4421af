package postgres_test

import (
	"fmt"
	"testing"

	"apiengine/internal/testserver"
	"apiengine/lockwrap"
	"apiengine/lockwrap/postgres"
)

// BenchmarkPair is one acquire and one release, nobody else being there.
func BenchmarkPair(b *testing.B) {
	for name, suffix := range map[string]string{"prepared": "", "as through a pooler": "&default_query_exec_mode=exec"} {
		b.Run(name, func(b *testing.B) {
			locks := open(b, postgres.Config{URL: testserver.Database(b) + suffix, PoolSize: 1})
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
		})
	}
}
