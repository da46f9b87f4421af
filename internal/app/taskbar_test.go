package app

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"apiengine/internal/client"
)

func tasksOnTheWay() (running, done *client.Task) {
	half, all := 45.0, 100.0
	eta := time.Now().Add(time.Hour)
	running = &client.Task{Status: "Running", Current: 9, Total: 20, Progress: &half, Msg: "导入\x1b 9", Eta: &eta, Why: "slice 3 runs for 1s"}
	end := time.Now()
	return running, &client.Task{Status: "Succeeded", Current: 20, Total: 20, Progress: &all, EndedAt: &end}
}

// On a terminal there is one line, written over, with the log above it.
func TestTaskBarOnATerminal(t *testing.T) {
	var out bytes.Buffer
	b := &taskBar{out: &out, width: func() int { return 120 }}
	running, done := tasksOnTheWay()
	b.change(running)
	first := out.String()
	if !strings.HasPrefix(first, clearLine+"[#############.................]   45.0%  Running  9/20  eta 1h0m0s  导入\\x1b 9") || strings.Contains(first, "\n") {
		t.Errorf("the bar is %q", first)
	}
	out.Reset()
	b.line(client.TaskLine{At: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), Text: "read\x1b[2J"})
	if got, want := out.String(), clearLine+`12:00:00.000 read\x1b[2J`+"\n"+strings.TrimPrefix(first, clearLine); got != want {
		t.Errorf("a line is %q, want %q", got, want)
	}
	out.Reset()
	b.change(done)
	b.close()
	if got := out.String(); !strings.HasPrefix(got, clearLine+"["+strings.Repeat("#", barWidth)+"]  100.0%  Succeeded  20/20") || !strings.HasSuffix(got, "\n") {
		t.Errorf("the end is %q", got)
	}
	b.width = func() int { return 20 }
	out.Reset()
	b.change(running)
	if got := strings.TrimPrefix(out.String(), clearLine); len(got) != 19 {
		t.Errorf("on a narrow terminal: %q", got)
	}
	if got := cut("导入a", 4); got != "导入" {
		t.Errorf("cut: %q", got)
	}
}

// Elsewhere each step is a line, and what has not changed is not repeated.
func TestTaskBarInAFile(t *testing.T) {
	var out bytes.Buffer
	b := newTaskBar(&out)
	running, done := tasksOnTheWay()
	b.change(running)
	running.Why = "slice 3 runs for 2s"
	b.change(running)
	b.line(client.TaskLine{At: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), Text: "read"})
	b.change(done)
	b.close()
	if got, want := out.String(), "Running 45.0% 9/20 导入\\x1b 9\n12:00:00.000 read\nSucceeded 100.0% 20/20\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
