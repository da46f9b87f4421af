package tasks

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A node rings once for what is posted in quick succession, and once more a little later if
// nobody came here: the bell may have been heard elsewhere, just before the last commit.
func TestPostedRingsSparingly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Runner{ordered: make(chan Bell, 100)}
		post := func() {
			for range 50 {
				r.Posted("t")
				time.Sleep(time.Millisecond)
			}
		}
		post()
		if n := len(r.ordered); n != 1 {
			t.Errorf("rang %d times within 50 ms, want once", n)
		}
		time.Sleep(time.Second)
		if n := len(r.ordered); n != 2 {
			t.Errorf("rang %d times, want once more", n)
		}
		post()
		r.posts.heard("t")
		time.Sleep(time.Second)
		if n := len(r.ordered); n != 3 {
			t.Errorf("rang %d times, want no more after it was heard here", n)
		}
		r.Posted("t")
		r.Posted("other")
		if n := len(r.ordered); n != 5 {
			t.Errorf("rang %d times, want for each tenant and at once", n)
		}
	})
}

// Whoever delivers rings for the time of the next message, many as one.
func TestDeliveryRingsForTheNextTime(t *testing.T) {
	o := newOffice(t)
	o.working, o.rest = context.WithCancel(t.Context())
	if again := o.turn(t.Context(), "t", ""); again != never || o.delivered != 1 || len(o.rung) != 0 {
		t.Errorf("again %v, %d deliveries, rang %v", again, o.delivered, o.rung)
	}
	o.next = time.Now().Add(time.Minute)
	for range 3 {
		if again := o.turn(t.Context(), "t", ""); again != never {
			t.Errorf("the bell is kept for %v", again)
		}
	}
	if len(o.rung) != 3 || o.rung[0].Once != o.rung[2].Once || o.rung[0].Once == "" || o.rung[0].After < 50*time.Second || o.rung[0].Task != "" {
		t.Errorf("rang %+v, want one bell for one time", o.rung)
	}
}

// Messages that nobody was told of are found, and keep their tenant from being forgotten.
func TestTheWatchOverMessages(t *testing.T) {
	o := newOffice(t)
	if err := o.Expect(t.Context(), "t"); err != nil || len(o.marks) != 1 {
		t.Fatal(err, o.marks)
	}
	o.next = time.Now().Add(time.Hour)
	o.lookAt(t.Context(), 0, time.Second)
	if len(o.rung) != 0 || len(o.marks) != 1 {
		t.Errorf("before its time: rang %v, marked %v", o.rung, o.marks)
	}
	o.next = time.Now().Add(-time.Minute)
	o.lookAt(t.Context(), 0, time.Second)
	if len(o.rung) != 1 || o.rung[0].Task != "" || o.rung[0].Once == "" {
		t.Errorf("rang %v", o.rung)
	}
	o.next = time.Time{}
	o.lookAt(t.Context(), 0, time.Second)
	if len(o.rung) != 1 || len(o.marks) != 0 {
		t.Errorf("when all is delivered: rang %v, marked %v", o.rung, o.marks)
	}
}
