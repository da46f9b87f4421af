package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"
)

// setting is one situation that every contender is put into.
type setting struct {
	processes int
	workers   int // in all processes
	hold      time.Duration
}

func (s setting) String() string {
	if s.workers == 1 {
		return "uncontended, hold 0"
	}
	processes := "1 process"
	if s.processes > 1 {
		processes = fmt.Sprintf("%d processes", s.processes)
	}
	return fmt.Sprintf("%d waiters in %s, hold %d ms", s.workers, processes, s.hold.Milliseconds())
}

func settings() []setting {
	all := []setting{{1, 1, 0}}
	for _, hold := range []time.Duration{0, time.Millisecond} {
		for _, processes := range []int{1, 4} {
			for _, workers := range []int{16, 64} {
				all = append(all, setting{processes, workers, hold})
			}
		}
	}
	return all
}

// round is one contender's figures of one round.
type round struct {
	rate              float64 // acquisitions a second
	p50, p99, worst   time.Duration
	smallest, largest int     // acquisitions of one worker
	commands          float64 // per acquisition; only of a counting round
}

// play lets one contender do one round in worker processes: this program, run again.
// ready is called when all of them have their connections and wait for the word.
func play(ctx context.Context, j job, processes int, ready func() error) (r round, err error) {
	workers := make([]*worker, processes)
	for i := range workers {
		if workers[i], err = startWorker(ctx, j); err != nil {
			return r, err
		}
		defer workers[i].end()
	}
	for _, w := range workers {
		if err := w.ready(); err != nil {
			return r, err
		}
	}
	if err := ready(); err != nil {
		return r, err
	}
	for _, w := range workers {
		if _, err := io.WriteString(w.in, "go\n"); err != nil {
			return r, err
		}
	}
	var all outcome
	for _, w := range workers {
		o, err := w.outcome()
		if err != nil {
			return r, err
		}
		all.Waits, all.Counts, all.Pending = append(all.Waits, o.Waits...), append(all.Counts, o.Counts...), append(all.Pending, o.Pending...)
	}
	return all.figures(j.Time), nil
}

func (o outcome) figures(d time.Duration) round {
	slices.Sort(o.Waits)
	return round{rate: float64(len(o.Waits)) / d.Seconds(), p50: at(o.Waits, 0.5), p99: at(o.Waits, 0.99),
		worst: max(at(o.Waits, 1), slices.Max(o.Pending)), smallest: slices.Min(o.Counts), largest: slices.Max(o.Counts)}
}

// at is the q-quantile of sorted values.
func at(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startWorker(ctx context.Context, j job) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: exec.CommandContext(ctx, self, "worker")}
	w.cmd.Stderr = os.Stderr
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	return w, json.NewEncoder(w.in).Encode(j)
}

func (w *worker) ready() error {
	if _, err := w.out.ReadString('\n'); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}

func (w *worker) outcome() (o outcome, err error) {
	if err := json.NewDecoder(w.out).Decode(&o); err != nil {
		return o, fmt.Errorf("worker: %w", err)
	}
	return o, nil
}

func (w *worker) end() {
	w.in.Close()
	_ = w.cmd.Wait() // what went wrong stands on its standard error
}
