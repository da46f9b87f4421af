// Package testserver starts real servers for tests: each on a free loopback port, in a
// temporary folder, stopped by the process that started it, also when that is killed.
//
// A test package that uses it has
//
//	func TestMain(m *testing.M) { testserver.Main(m) }
package testserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Main runs the tests of a package and stops the servers that they shared.
func Main(m *testing.M) {
	code := m.Run()
	shared.stop()
	os.Exit(code)
}

// shared holds the servers that live as long as the test process.
var shared registry

type registry struct {
	mu    sync.Mutex
	stops []func()
}

func (r *registry) add(stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stops = append(r.stops, stop)
}

func (r *registry) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range slices.Backward(r.stops) { // a server before its folder
		s()
	}
	r.stops = nil
}

// Process is a server process that a test may pause, continue and kill.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// start runs cmd so that it dies with this process: the parent-death signal goes by
// thread, so one locked thread lives as long as the child does.
func start(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // a killed server's exit status says nothing
		}
	}()
	return p, <-started
}

// Signal sends sig to the server.
func (p *Process) Signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }

// Pid is the server's process number.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Kill ends the server at once and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.done
}

// Stop ends the server in an orderly way with sig and waits at most 10 s before it kills.
func (p *Process) Stop(sig syscall.Signal) {
	_ = p.cmd.Process.Signal(sig) // it may have ended by itself
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		p.Kill()
	}
}

// FreePort returns a loopback TCP port that was free a moment ago.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// await calls ready until it returns nil, the process, if there is one, ends, or 60 s pass.
func await(p *Process, ready func(context.Context) error) error {
	return awaitFor(60*time.Second, p, ready)
}

// awaitFor is await with another limit. The error is the last one that ready had before the
// time was over.
func awaitFor(limit time.Duration, p *Process, ready func(context.Context) error) error {
	var done <-chan struct{}
	if p != nil {
		done = p.done
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var last error
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil && last != nil {
			return last
		}
		last = err
		select {
		case <-done:
			return fmt.Errorf("the server ended: %w", err)
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// Program returns the path of a program (see scripts/find-or-install.sh), installing it when
// it is missing.
func Program(name string) (string, error) {
	_, here, _, _ := runtime.Caller(0)
	script := filepath.Join(filepath.Dir(here), "..", "..", "scripts", "find-or-install.sh")
	cmd := exec.Command(script, name)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("testserver: %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}
