package engine_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/aymanbagabas/go-udiff"
)

// docs/tour.md is what scripts/tour.sh prints today; `make tour` writes it.
func TestTour(t *testing.T) {
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../docs/tour.md")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("../scripts/tour.sh", path)
	cmd.Stderr = os.Stderr
	got, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	if d := udiff.Unified("docs/tour.md", "the tour as it goes now", string(want), string(got)); d != "" {
		t.Errorf("the tour goes otherwise than docs/tour.md says; `make tour` rewrites it\n%s", d)
	}
}
