package lockwrap

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	randv2 "math/rand/v2"
	"strings"
	"time"

	"apiengine/budget"
)

// maxFloor keeps every token exact in a double.
const maxFloor = 1<<53 - 1<<20

// Request is a wish for a lock.
type Request struct {
	Key   Key
	Plan  budget.Plan // Lease, Renew, Hold, Wait and Margin count here, Run must be set; see package budget
	API   string      // shown as the holder to those who wait; cut after 100 bytes
	Note  string      // shown beside API to administrators, such as the run's id; cut after 100 bytes
	Floor int64       // the token will be greater than this; 0 to 2^53 - 2^20
}

// check names the first field that cannot be used, before anything is sent.
func (r *Request) check() error {
	if err := r.Key.check(); err != nil {
		return err
	}
	p := &r.Plan
	p.Margin = max(p.Margin, budget.Margin(p.Lease))
	var bad *budget.Error
	if err := p.Check(); errors.As(err, &bad) {
		return &InvalidError{"Plan." + bad.Field, bad.Msg}
	}
	const longest = budget.MaxTaskTimeout
	switch {
	case p.Hold > longest:
		return &InvalidError{"Plan.Hold", fmt.Sprintf("must be at most %v, not %v", longest, p.Hold)}
	case p.Wait > longest:
		return &InvalidError{"Plan.LockWait", fmt.Sprintf("must be at most %v, not %v", longest, p.Wait)}
	case p.Renew != 0 && p.Renew < time.Millisecond:
		return &InvalidError{"Plan.Renew", fmt.Sprintf("must be 0 or at least 1ms, not %v", p.Renew)}
	case r.Floor < 0 || r.Floor > maxFloor:
		return &InvalidError{"Floor", fmt.Sprintf("must be from 0 to %d, not %d", int64(maxFloor), r.Floor)}
	}
	return nil
}

// Acquire waits for the lock, at most r.Plan.Wait, the line on this node included; a Wait of
// 0 tries once. The caller must call Release on the Lease.
//
// Errors: *InvalidError; *QueueFullError; *BusyError when others kept the lock;
// *BackendError or *UnknownError when the backend did not serve the request until the wait
// cap, or for Config.Patience; *ClosedError; ctx's cause when ctx ended first. Nothing is
// left behind in any of these cases: where an answer is outstanding, a clean-up of the
// Manager's own waits for it.
func (m *Manager) Acquire(ctx context.Context, r Request) (*Lease, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	m.calls.add() // before the look at quit, so that Close either sees this call or refuses it
	began := time.Now()
	l, err := m.acquire(ctx, r)
	if err != nil {
		m.calls.done()
		m.note(Event{What: Refused, Key: r.Key, Took: time.Since(began), Err: err})
	} else {
		m.note(Event{What: Acquired, Key: r.Key, Took: l.waited, Handed: l.handed})
	}
	return l, err // a lease keeps the call counted
}

func (m *Manager) acquire(ctx context.Context, r Request) (*Lease, error) {
	switch {
	case m.closing():
		return nil, &ClosedError{}
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	now := time.Now()
	h := &hunt{m: m, r: r, lock: m.name(r.Key.String()), holder: m.newHolder(), api: labels(r.API, r.Note),
		began: now, until: now.Add(r.Plan.Wait), limit: m.attempt(r.Plan.Lease)}
	var ok bool
	if h.w, ok = m.lines.join(h, m.cfg.MaxQueue); !ok {
		return nil, &QueueFullError{Key: r.Key, Max: m.cfg.MaxQueue}
	}
	l, err := h.run(ctx)
	if err != nil {
		h.leave()
	}
	return l, err
}

// label makes an API's name fit to be shown: valid UTF-8 of one line, at most 100 bytes.
func label(api string) string {
	api = strings.ToValidUTF8(api[:min(len(api), 100)], "")
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return -1
		}
		return r
	}, api)
}

// newHolder returns a holder that no other acquisition has.
func (m *Manager) newHolder() string {
	var nonce [16]byte
	rand.Read(nonce[:]) // never fails (crypto/rand)
	return m.instance + ":" + hex.EncodeToString(nonce[:])
}

// hunt is one Acquire under way.
type hunt struct {
	m      *Manager
	r      Request
	lock   string
	holder string
	api    string
	w      *waiter
	began  time.Time
	until  time.Time     // end of the wait cap
	limit  time.Duration // of one attempt

	sent    time.Time     // when the last attempt was
	pending <-chan answer // of an attempt whose answer was not waited for
	doubt   bool          // an attempt's outcome is unknown: the lock may be, or become, this holder's
	errs    int           // failures in a row
	busies  int           // busy answers in a row
	left    time.Duration // of the holder's lease, by the last busy answer
	patient bool          // others come first: there is no use in asking at once
}

// run stands in line and then tries until one of the ends that Acquire names.
func (h *hunt) run(ctx context.Context) (*Lease, error) {
	for first := true; ; first = false {
		turn, gone := h.m.lines.place(h.w)
		if gone {
			return (<-h.w.offer).lease, nil
		}
		if turn && !h.patient && (first || !h.over()) {
			if l, err := h.try(ctx); l != nil || err != nil {
				return l, err
			}
		}
		h.patient = false
		if h.over() {
			return nil, h.gaveUp()
		}
		pause := time.Until(h.until)
		if turn {
			pause = min(pause, h.backOff())
		}
		if l, err := h.sleep(ctx, pause); l != nil || err != nil {
			return l, err
		}
	}
}

// over reports that the wait cap allows no further attempt. An answer that got lost is
// asked for once more all the same, lest one cut connection fail a call that tries once.
func (h *hunt) over() bool {
	now := time.Now()
	again := h.doubt && h.errs == 1 && now.Before(h.last())
	return !again && !now.Before(h.until)
}

// last is when every attempt must have ended.
func (h *hunt) last() time.Time {
	if h.r.Plan.Wait == 0 {
		return h.began.Add(h.limit)
	}
	return h.until.Add(minAttempt)
}

// gaveUp says why the wait cap passed in vain. A failure that is younger than one attempt
// does not hide a holder whose lease still runs: the cap may have cut that attempt short.
func (h *hunt) gaveUp() error {
	s := h.m.lines.look(h.lock)
	if s.err != nil && (s.left == 0 || time.Since(s.since) >= h.limit) {
		return s.err
	}
	return &BusyError{Key: h.r.Key, Waited: time.Since(h.began), Left: s.left, Holder: s.by}
}

// minAttempt is what an attempt is given even where the wait cap has less left.
const minAttempt = 100 * time.Millisecond

// try makes one attempt. It returns neither lease nor error when another may follow.
func (h *hunt) try(ctx context.Context) (*Lease, error) {
	h.sent = time.Now()
	limit := h.limit
	if h.r.Plan.Wait > 0 {
		limit = min(limit, max(minAttempt, h.until.Sub(h.sent)))
	}
	if h.doubt && !h.sent.Before(h.until) { // see over
		limit = min(limit, h.last().Sub(h.sent))
	}
	c := h.claim()
	h.pending = h.m.send(ctx, limit, func(ctx context.Context, b Backend) (Reply, error) { return b.Acquire(ctx, c) })
	select {
	case a := <-h.pending:
		h.pending = nil
		return h.judge(a)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-h.m.quit:
		return nil, &ClosedError{}
	}
}

// claim is what the backend is asked for. A wish that waits stands in the backend's line.
func (h *hunt) claim() Claim {
	return Claim{Lock: h.lock, Holder: h.holder, TTL: h.r.Plan.Lease, Floor: h.r.Floor,
		Keep: max(24*time.Hour, 10*h.r.Plan.Hold), API: h.api, Node: h.m.node, Queue: h.r.Plan.Wait > 0}
}

func (h *hunt) judge(a answer) (*Lease, error) {
	now := time.Now()
	switch {
	case a.err != nil:
		return nil, h.failed(a.err, now)
	case !a.reply.Held:
		h.errs, h.left = 0, a.reply.Left
		h.busies++
		h.m.lines.taken(h.lock, a.reply, now, h.r.Plan.Wait > 0)
		return nil, nil
	case now.Sub(h.sent) >= h.r.Plan.Lease-h.r.Plan.Margin:
		h.anew()
		return nil, h.failed(&UnknownError{"acquire", errLate}, now)
	}
	return h.m.grant(h, a.reply.Token), nil
}

// anew gives back a grant that came too late, as nobody knows whether its lease still
// stands, and goes on as another holder.
func (h *hunt) anew() {
	h.doubt = true
	h.abandon()
	h.holder, h.doubt = h.m.newHolder(), false
}

var errLate = errors.New("the grant arrived after the end of its own lease")

// failed takes note of an attempt that the backend did not serve, and returns the error
// once patience is over.
func (h *hunt) failed(err error, now time.Time) error {
	if !notApplied(err) {
		h.doubt = h.doubt || !errors.Is(err, errLate)
		err = asUnknown("acquire", err)
	}
	h.errs++
	h.busies = 0
	if now.Sub(h.m.lines.failed(h.lock, err, h.sent)) >= h.m.cfg.Patience {
		return err
	}
	return nil
}

// backOff is the pause before the next attempt. After a busy answer a node that is told of
// its turn asks only to be safe: when the holder's lease may have ended, and every second.
// One that hears nothing asks with full jitter: up to 4 ms, doubling to 80 ms, but not past
// the end of the holder's lease. After a failure: 25 ms, doubling to 1 s, full jitter, but
// none after the first lost answer.
func (h *hunt) backOff() time.Duration {
	switch {
	case h.errs == 1 && h.doubt:
		return 0
	case h.errs > 0:
		return jitter(25*time.Millisecond, time.Second, h.errs)
	case h.m.hears.Load():
		pause := time.Second
		if h.left > 0 {
			pause = min(pause, h.left+jitter(10*time.Millisecond, 10*time.Millisecond, 1))
		}
		return pause
	}
	pause := jitter(4*time.Millisecond, 80*time.Millisecond, max(1, h.busies))
	if h.left > 0 {
		pause = min(pause, h.left+time.Millisecond)
	}
	return pause
}

// jitter returns a random pause of at most first, doubled for each try after the first, and
// at most most.
func jitter(first, most time.Duration, try int) time.Duration {
	bound := min(most, first<<min(try-1, 20))
	return 1 + randv2.N(bound)
}

// sleep waits for d, for the head's place, for a release or for the lock itself, whichever
// is first.
func (h *hunt) sleep(ctx context.Context, d time.Duration) (*Lease, error) {
	if d <= 0 {
		return nil, nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil, nil
	case <-h.w.signal:
		return nil, nil
	case o := <-h.w.offer:
		h.heard(&o)
		return o.lease, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-h.m.quit:
		return nil, &ClosedError{}
	}
}

// heard takes note of how a hand-over ended.
func (h *hunt) heard(o *offer) {
	switch {
	case o.lease != nil:
		return
	case o.late:
		h.sent = o.sent
		h.anew()
	case o.doubt:
		h.sent, h.doubt = o.sent, true
	case o.yielded:
		// Nobody tells of the end of a keeping that its node has not used: that one may be dead.
		h.patient, h.errs, h.left = true, 0, Grace
	}
}

// leave takes the waiter out of the line with everything that it may have got.
func (h *hunt) leave() {
	given, quit := h.m.lines.leave(h.w)
	if given != nil { // it crossed with the end of the wait
		h.m.calls.add()                                               // a lease keeps a call counted, and Acquire's own is about to end
		h.m.spawn(func() { _ = given.Release(context.Background()) }) // there is nobody to tell
	}
	if quit {
		h.m.quitLine(h.lock)
	}
	h.abandon()
}

// abandon starts a clean-up where the lock may be, or become, this holder's.
func (h *hunt) abandon() {
	if h.pending == nil && !h.doubt {
		return
	}
	h.m.sweep(leftover{key: h.r.Key, lock: h.lock, owner: Owner{Holder: h.holder}, limit: h.limit,
		over: h.sent.Add(h.r.Plan.Lease), pending: h.pending, doubt: h.doubt, queues: h.r.Plan.Wait > 0})
	h.pending = nil
}
