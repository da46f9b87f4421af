package app

import (
	"context"
	"time"

	"apiengine/engine"
	"apiengine/outbox"
	"apiengine/server"
	"apiengine/store/tenantdb"
)

// openRelay makes the delivery of what scripts send; the tasks' runner works it.
func (a *App) openRelay(context.Context) (err error) {
	s := &a.Settings
	a.relay, err = outbox.New(outbox.Config{
		Boxes:     boxes{a},
		Deliverer: outbox.Carrier{Calls: a.Engine, Outside: poster{a}, Secrets: a.Store},
		Log:       a.Log, Instance: s.instanceName(), Lease: s.OutboxLease, Backoff: s.OutboxBackoff,
		Attempts: s.OutboxAttempts, Keep: s.OutboxKeep, KeepSeen: s.InboxKeep, Grace: s.Grace,
	})
	return err
}

// until runs a part until the node is told to end, or another part of it has failed.
func until(ctx, background context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(background, cancel)()
	return run(ctx)
}

func leaseProblem(d time.Duration) string {
	if d < time.Second {
		return "must be at least 1s, not " + d.String()
	}
	return ""
}

// posts implements engine.Posts; the tasks' runner is made after the engine.
type posts struct{ a *App }

func (p posts) Allows(ctx context.Context, tenant, address string) error {
	rules, err := p.a.reach.of(ctx, tenant)
	if err == nil {
		_, err = p.a.outside.CheckFor(rules, address)
	}
	return err
}

func (p posts) Expect(ctx context.Context, tenant string) error { return p.a.tasks.Expect(ctx, tenant) }

func (p posts) Posted(tenant string) { p.a.tasks.Posted(tenant) }

func (t transaction) Send(ctx context.Context, m engine.Message) (bool, error) {
	return t.Tx.Send(ctx, tenantdb.Event{ID: m.EventID, Type: m.Type, Key: m.Key, Target: m.Target, Data: m.Data, Token: m.Token, Hops: m.Hops})
}

// boxes implements outbox.Boxes.
type boxes struct{ a *App }

func (b boxes) Box(ctx context.Context, tenant string) (outbox.Box, error) {
	db, err := b.a.databases.tenant(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return box{db}, nil
}

// box implements outbox.Box.
type box struct{ db *tenantdb.DB }

func (b box) Claim(ctx context.Context, c outbox.Claim) ([]outbox.Message, time.Duration, error) {
	events, wait, err := b.db.ClaimEvents(ctx, tenantdb.EventsClaim(c))
	out := make([]outbox.Message, len(events))
	for i, e := range events {
		m := outbox.Message{Row: e.Row, Attempts: e.Attempts, Gap: e.Gap, CreatedAt: e.CreatedAt}
		m.EventID, m.Type, m.Key, m.Target, m.Data, m.Token, m.Hops = e.ID, e.Type, e.Key, e.Target, e.Data, e.Token, e.Hops
		out[i] = m
	}
	return out, wait, err
}

func (b box) Extend(ctx context.Context, row int64, claim string, lease time.Duration) (bool, error) {
	return b.db.ExtendClaim(ctx, row, claim, lease)
}

func (b box) End(ctx context.Context, row int64, claim string, v outbox.Verdict) (bool, error) {
	switch v.Outcome {
	case outbox.Delivered:
		return b.db.Delivered(ctx, row, claim)
	case outbox.Retry:
		return b.db.Failed(ctx, row, claim, v.After, v.Why)
	case outbox.Dead:
		return b.db.Dead(ctx, row, claim, v.Why)
	default:
		return b.db.GiveBack(ctx, row, claim)
	}
}

func (b box) Sweep(ctx context.Context, ended, seen time.Duration) (bool, error) {
	return b.db.Sweep(ctx, ended, seen)
}

// adminOutbox implements server.Outbox.
type adminOutbox struct{ a *App }

func (o adminOutbox) List(ctx context.Context, tenant string, f server.OutboxFilter) ([]server.OutboxMessage, error) {
	db, err := o.a.databases.tenant(ctx, tenant)
	if err != nil {
		return nil, err
	}
	list, err := db.Events(ctx, tenantdb.EventFilter(f))
	out := make([]server.OutboxMessage, len(list))
	for i, e := range list {
		m := server.OutboxMessage{Id: e.Row, EventId: e.ID, Type: e.Type, Key: e.Key, Target: e.Target, Data: e.Data, FencingToken: e.Token,
			State: e.State, Attempts: e.Attempts, Error: e.Error, Delivering: e.Claimed, CreatedAt: e.CreatedAt}
		if !e.EndedAt.IsZero() {
			m.EndedAt = &e.EndedAt
		}
		if e.State == tenantdb.StatePending && !e.Claimed {
			m.NextRunAt = &e.NextTry
		}
		out[i] = m
	}
	return out, err
}

func (o adminOutbox) Retry(ctx context.Context, tenant string, id int64) error {
	if err := o.a.tasks.Expect(ctx, tenant); err != nil {
		return err
	}
	db, err := o.a.databases.tenant(ctx, tenant)
	if err == nil {
		err = db.RetryEvent(ctx, id)
	}
	if err == nil {
		o.a.tasks.Posted(tenant)
	}
	return err
}

func (o adminOutbox) Drop(ctx context.Context, tenant string, id int64) error {
	db, err := o.a.databases.tenant(ctx, tenant)
	if err != nil {
		return err
	}
	return db.DropEvent(ctx, id)
}
