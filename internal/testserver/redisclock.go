package testserver

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed stepped/clock.c
var steppedClock []byte

// SteppedRedis is a redis-server whose wall clock a test may step.
type SteppedRedis struct {
	*RedisServer
	file string // the seconds that are added
}

// NewSteppedRedis is NewRedis with a clock that first shows the true time. It needs a C
// compiler, as the race detector does.
func NewSteppedRedis(t testing.TB, args ...string) *SteppedRedis {
	t.Helper()
	dir := t.TempDir()
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, steppedClock, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-O1", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("testserver: %v\n%s", err, out)
	}
	s := &SteppedRedis{file: filepath.Join(dir, "step")}
	s.write(t, 0)
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	s.RedisServer = newRedis(t, &RedisServer{Port: port, args: args, env: []string{"LD_PRELOAD=" + library, "STEPPED_CLOCK=" + s.file}})
	return s
}

// Step makes the server's wall clock differ from the true time by so much, and returns when
// the server has seen it.
func (s *SteppedRedis) Step(t testing.TB, by time.Duration) {
	t.Helper()
	s.write(t, by)
	eventually(t, "the step of the clock", s.Process, func(ctx context.Context) error {
		return s.ask(ctx, func(c *redis.Client) error {
			now, err := c.Time(ctx).Result()
			if off := now.Sub(time.Now().Add(by)); err == nil && off.Abs() > time.Minute {
				err = fmt.Errorf("the clock is off by %v", off)
			}
			return err
		})
	})
}

// write changes the file in place: the server has it in its memory.
func (s *SteppedRedis) write(t testing.TB, by time.Duration) {
	t.Helper()
	f, err := os.OpenFile(s.file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(int64(by/time.Second))), 0); err != nil {
		t.Fatal(err)
	}
}
