package engine

import (
	"context"
	"strconv"
	"strings"

	"apiengine/fault"
	"apiengine/jsbridge"
)

// HopsHeader says how often the chain of requests that led to a call has left a server of
// this kind. maxHops ends a chain that comes back over a name of ours.
const (
	HopsHeader = "X-Apiengine-Hops"
	maxHops    = 8
)

// Mailbox is the part of a transaction that keeps messages.
type Mailbox interface {
	Send(ctx context.Context, m Message) (stored bool, err error)
	Once(ctx context.Context, eventID string) (first bool, err error)
}

// Message is an event with what the platform adds to it.
type Message struct {
	jsbridge.Event
	Token int64 // of the lock that the sender ran in; 0: none
	Hops  int64
}

// Posts decides where messages may go and hears when some are to go.
type Posts interface {
	// Allows reports whether a tenant's messages can be sent to an address (not an API) at all.
	Allows(ctx context.Context, tenant, address string) error
	// Expect is called before a message is kept in a transaction of the tenant.
	Expect(ctx context.Context, tenant string) error
	// Posted says that a commit has left messages behind. It must not wait.
	Posted(tenant string)
}

// mailbox is V8.Outbox and V8.Inbox of one frame.
type mailbox struct{ f *frame }

func (m mailbox) Send(ctx context.Context, e jsbridge.Event) (stored bool, err error) {
	if err := m.f.deliverable(ctx, e.Target); err != nil {
		return false, err
	}
	if err := m.f.tree.e.cfg.Posts.Expect(ctx, m.f.call.Tenant); err != nil {
		return false, err
	}
	hops := m.f.tree.hops()
	err = session{f: m.f}.with(ctx, func(tx Tx) (err error) {
		stored, err = tx.Send(ctx, Message{Event: e, Token: m.f.token(), Hops: int64(hops)})
		m.f.scope.posted = m.f.scope.posted || stored
		return err
	})
	return stored, err
}

func (m mailbox) Once(ctx context.Context, eventID string) (first bool, err error) {
	err = session{f: m.f}.with(ctx, func(tx Tx) (err error) { first, err = tx.Once(ctx, eventID); return })
	return first, err
}

// deliverable refuses a target that nothing could be delivered to.
func (f *frame) deliverable(ctx context.Context, target string) error {
	e := f.tree.e
	switch api, found := e.cfg.Catalog.ByKey(f.call.Tenant, target); {
	case e.cfg.Posts == nil:
		return fault.New(fault.Forbidden, "V8.Outbox is not available on this server")
	case IsAddress(target):
		return e.cfg.Posts.Allows(ctx, f.call.Tenant, target)
	case !found:
		return fault.New(fault.NotFound, "there is no API %q to deliver to; a Target is an ApiEngineKey or begins with https://", target)
	case api.Definition.Library:
		return fault.New(fault.BadRequest, "%q is a library: nobody calls it, so nothing is delivered to it", target)
	}
	return nil
}

// IsAddress tells a target that is an address from one that is an API.
func IsAddress(target string) bool { return strings.Contains(target, "://") }

// token is what the frame's script sees as V8.FencingToken.
func (f *frame) token() int64 {
	if f.lease == nil {
		return 0
	}
	return f.lease.Token()
}

// hops is how often the chain that led to this call has left a server.
func (t *tree) hops() int {
	n, err := strconv.Atoi(t.call.Header[HopsHeader])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// announce tells the relay and the tasks' runner of what a commit has left behind.
func (s *scope) announce(f *frame) {
	if len(s.ordered) > 0 {
		f.tree.e.cfg.Tasks.Submitted(f.call.Tenant, s.ordered)
		s.ordered = nil
	}
	if s.posted {
		s.posted = false
		f.tree.e.cfg.Posts.Posted(f.call.Tenant)
	}
}
