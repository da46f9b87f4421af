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

func TestApplier(t *testing.T) {
	b, err := embedded.New(t.Context(), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	locktest.RunApplier(t, func(testing.TB) lockwrap.Backend { return unclosed{b} }, func(testing.TB) locktest.Place {
		value := ""
		write := func(text string) func(bool) int {
			return func(held bool) int {
				if value = text; !held {
					value = ""
				}
				return 0
			}
		}
		return locktest.Place{
			Write:  func(text string) lockwrap.Effects { return write(text) },
			Broken: func() lockwrap.Effects { return func(bool) int { return 1 } },
			Value:  func() string { return value },
			Set:    func(text string) { value = text },
		}
	})
}
