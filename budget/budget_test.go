package budget_test

import (
	"errors"
	"testing"
	"time"

	"apiengine/budget"
	"apiengine/fault"
)

const s = time.Second

func TestDerive(t *testing.T) {
	wait := func(d time.Duration) *time.Duration { return &d }
	for _, c := range []struct {
		name string
		req  budget.Request
		want budget.Plan
	}{
		{"an ordinary call has one number for all", budget.Request{Timeout: 30 * s},
			budget.Plan{Lease: 30 * s, Hold: 30 * s, Wait: 30 * s, Run: 30 * s, Margin: 300 * time.Millisecond}},
		{"the shortest budget keeps a margin of 1 %", budget.Request{Timeout: s},
			budget.Plan{Lease: s, Hold: s, Wait: s, Run: s, Margin: 10 * time.Millisecond}},
		{"the longest ordinary budget is never renewed", budget.Request{Timeout: 43200 * s},
			budget.Plan{Lease: 43200 * s, Hold: 43200 * s, Wait: 43200 * s, Run: 43200 * s, Margin: 432 * s}},
		{"LockWait changes the wait alone", budget.Request{Timeout: 10 * s, Wait: wait(2 * s)},
			budget.Plan{Lease: 10 * s, Hold: 10 * s, Wait: 2 * s, Run: 10 * s, Margin: 100 * time.Millisecond}},
		{"LockWait 0 tries once", budget.Request{Timeout: 10 * s, Wait: wait(0)},
			budget.Plan{Lease: 10 * s, Hold: 10 * s, Run: 10 * s, Margin: 100 * time.Millisecond}},
		{"task of 30 s", budget.Request{Timeout: 30 * s, Trusted: true},
			budget.Plan{Lease: 30 * s, Renew: 10 * s, Hold: 12 * time.Hour, Wait: 30 * s, Run: 30 * s, Margin: 300 * time.Millisecond}},
		{"task of 20 min leases a minute", budget.Request{Timeout: 1200 * s, Trusted: true},
			budget.Plan{Lease: 60 * s, Renew: 20 * s, Hold: 12 * time.Hour, Wait: 60 * s, Run: 1200 * s, Margin: 600 * time.Millisecond}},
		{"task of 13 h holds 13 h", budget.Request{Timeout: 13 * time.Hour, Trusted: true},
			budget.Plan{Lease: 60 * s, Renew: 20 * s, Hold: 13 * time.Hour, Wait: 60 * s, Run: 13 * time.Hour, Margin: 600 * time.Millisecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := budget.Derive(c.req)
			if err != nil || got != c.want {
				t.Fatalf("got %+v, %v\nwant %+v", got, err, c.want)
			}
		})
	}
}

func TestDeriveRefuses(t *testing.T) {
	wait := func(d time.Duration) *time.Duration { return &d }
	for _, c := range []struct {
		name  string
		req   budget.Request
		field string
	}{
		{"zero", budget.Request{}, "Timeout"},
		{"negative", budget.Request{Timeout: -s}, "Timeout"},
		{"half a second", budget.Request{Timeout: s / 2}, "Timeout"},
		{"not whole seconds", budget.Request{Timeout: 1500 * time.Millisecond}, "Timeout"},
		{"over 12 h", budget.Request{Timeout: 43201 * s}, "Timeout"},
		{"over 48 h for a task", budget.Request{Timeout: 172801 * s, Trusted: true}, "Timeout"},
		{"negative wait", budget.Request{Timeout: s, Wait: wait(-s)}, "LockWait"},
		{"wait over 12 h", budget.Request{Timeout: s, Wait: wait(43201 * s)}, "LockWait"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := budget.Derive(c.req)
			var e *budget.Error
			if !errors.As(err, &e) || e.Field != c.field || fault.Of(err) != fault.BadRequest {
				t.Fatalf("got %v, want a bad_request naming %s", err, c.field)
			}
		})
	}
}

func TestCheckNamesTheContradiction(t *testing.T) {
	good := budget.Plan{Lease: 10 * s, Renew: 3 * s, Hold: 60 * s, Wait: s, Run: 60 * s, Margin: 100 * time.Millisecond}
	for _, c := range []struct {
		field string
		spoil func(*budget.Plan)
	}{
		{"Lease", func(p *budget.Plan) { p.Lease = p.Margin }},
		{"Renew", func(p *budget.Plan) { p.Renew = p.Lease }},
		{"Renew", func(p *budget.Plan) { p.Renew = -1 }},
		{"Hold", func(p *budget.Plan) { p.Hold = p.Lease - 1 }},
		{"LockWait", func(p *budget.Plan) { p.Wait = -1 }},
		{"Timeout", func(p *budget.Plan) { p.Run = 0 }},
	} {
		p := good
		c.spoil(&p)
		var e *budget.Error
		if err := p.Check(); !errors.As(err, &e) || e.Field != c.field {
			t.Errorf("got %v, want an error naming %s", err, c.field)
		}
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}

func TestRunDeadline(t *testing.T) {
	sent, start := time.Unix(100, 0), time.Unix(103, 0)
	plain, _ := budget.Derive(budget.Request{Timeout: 10 * s})
	task, _ := budget.Derive(budget.Request{Timeout: 1200 * s, Trusted: true})
	for _, c := range []struct {
		name string
		got  time.Time
		want time.Time
	}{
		{"a locked run ends before its lease", plain.RunDeadline(sent, start), sent.Add(9900 * time.Millisecond)},
		{"an unlocked run has its budget from its start", plain.RunDeadline(time.Time{}, start), start.Add(10 * s)},
		{"a slice has its budget from its start", task.RunDeadline(sent, start), start.Add(1200 * s)},
	} {
		if !c.got.Equal(c.want) {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
}
