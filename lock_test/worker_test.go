package lock_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"apiengine/lockwrap"
)

const workerEnv = "APIENGINE_LOCK_WORKER"

// job is what a worker process does: hold one lock until it is told to go on, or add to the
// number in a file, in turns with others.
type job struct {
	URL     string
	Name    string
	Lease   time.Duration
	Renewed bool
	File    string // of the number; empty: hold
	Each    int    // turns of each of its goroutines
}

// said is a line of a worker.
type said struct {
	Token   int64              // of the grant
	Error   string             // why there was none
	Confirm lockwrap.LossCause // "" : held
	Release lockwrap.LossCause
	Done    bool
}

// runWorker is the main function of a worker process.
func runWorker(text string) int {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		panic(err)
	}
	b, err := open(j.URL)
	if err != nil {
		panic(err)
	}
	m, err := lockwrap.New(lockwrap.Config{Backend: b, Prefix: prefix, Instance: j.Name})
	if err != nil {
		panic(err)
	}
	if j.File != "" {
		return j.count(m)
	}
	return j.hold(m)
}

func say(s said) {
	text, _ := json.Marshal(s) // plain fields
	fmt.Println(string(text))
}

func (j job) hold(m *lockwrap.Manager) int {
	in := bufio.NewReader(os.Stdin)
	say(said{}) // it runs
	if _, err := in.ReadString('\n'); err != nil {
		return 1
	}
	r := request(j.Lease, 20*time.Second)
	if j.Renewed {
		r = renewed(j.Lease)
	}
	ctx := context.Background()
	l, err := m.Acquire(ctx, r)
	if err != nil {
		say(said{Error: err.Error()})
		return 1
	}
	say(said{Token: l.Token()})
	if _, err := in.ReadString('\n'); err != nil {
		return 1
	}
	say(said{Confirm: cause(l.Confirm(ctx)), Release: cause(l.Release(ctx)), Done: true})
	return 0
}

func cause(err error) lockwrap.LossCause {
	var l *lockwrap.LostError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &l):
		return l.Cause
	}
	return lockwrap.LossCause(err.Error())
}

// count adds one to the number in the file, in a way that only a lock makes safe.
func (j job) count(m *lockwrap.Manager) int {
	var all sync.WaitGroup
	var failed sync.Map
	for range 4 {
		all.Go(func() {
			for range j.Each {
				r := request(j.Lease, time.Minute)
				if err := m.Do(context.Background(), r, func(context.Context, *lockwrap.Lease) error { return addOne(j.File) }); err != nil {
					failed.Store(err.Error(), true)
				}
			}
		})
	}
	all.Wait()
	s := said{Done: true}
	failed.Range(func(k, _ any) bool { s.Error += k.(string) + "\n"; return true })
	say(s)
	return 0
}

func addOne(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	runtime.Gosched()
	return os.WriteFile(file, []byte(strconv.Itoa(n+1)), 0o600)
}

// worker is a process of the test binary with a job.
type worker struct {
	t   testing.TB
	cmd *exec.Cmd
	in  interface{ Write([]byte) (int, error) }
	out chan said
}

// startWorker returns when the process runs; env is added to its environment.
func startWorker(t testing.TB, j job, env ...string) *worker {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{t: t, cmd: exec.Command(os.Args[0]), out: make(chan said, 10)}
	w.cmd.Env = append(append(os.Environ(), workerEnv+"="+string(text)), env...)
	w.cmd.Stderr = os.Stderr
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(w.out)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var s said
			if json.Unmarshal(lines.Bytes(), &s) == nil {
				w.out <- s
			}
		}
	}()
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill() // it may have ended
		<-read
		_ = w.cmd.Wait() // a killed process's status says nothing
	})
	if j.File == "" {
		w.hear()
	}
	return w
}

// goOn tells the worker to take its next step.
func (w *worker) goOn() {
	if _, err := w.in.Write([]byte("\n")); err != nil {
		w.t.Error(err)
	}
}

func (w *worker) hear() said {
	w.t.Helper()
	select {
	case s, ok := <-w.out:
		if !ok {
			w.t.Fatal("the worker ended")
		}
		return s
	case <-time.After(2 * time.Minute):
		w.t.Fatal("the worker says nothing")
	}
	return said{}
}

// stop and cont pause the process and let it go on.
func (w *worker) stop() { w.signal(syscall.SIGSTOP) }
func (w *worker) cont() { w.signal(syscall.SIGCONT) }

func (w *worker) signal(sig syscall.Signal) {
	if err := w.cmd.Process.Signal(sig); err != nil {
		w.t.Fatal(err)
	}
}
