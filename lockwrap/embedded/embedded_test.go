package embedded_test

import (
	"testing"

	"apiengine/lockwrap"
	"apiengine/lockwrap/embedded"
	"apiengine/lockwrap/locktest"
)

// unclosed lets several Managers of one test share the process's locks.
type unclosed struct{ *embedded.Backend }

func (unclosed) Close() error { return nil }

func TestContract(t *testing.T) {
	b, err := embedded.New(t.Context(), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	locktest.Run(t, func(testing.TB) lockwrap.Backend { return unclosed{b} })
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}
