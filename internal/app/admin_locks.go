package app

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"apiengine/lockwrap"
	"apiengine/server"
	"apiengine/store"
)

// adminLocks is the admin API's view of the locks.
type adminLocks struct {
	locks *lockwrap.Manager
	store *store.Store
}

// List implements server.Locks.
func (a adminLocks) List(ctx context.Context, tenant, prefix string) ([]server.LockInfo, error) {
	if tenant != "" {
		prefix = ofTenant(tenant) + prefix
	}
	found, err := a.locks.Locks(ctx, prefix)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	list := make([]server.LockInfo, len(found))
	for i, s := range found {
		list[i] = lockInfo(s, now)
	}
	return list, nil
}

func lockInfo(s lockwrap.Status, now time.Time) server.LockInfo {
	info := server.LockInfo{Lock: s.Lock, Token: s.Token, Node: s.Node, Api: s.By.API, Execution: s.By.Note,
		Since: s.By.Since.UTC(), LeftMs: s.Left.Milliseconds(), Waiting: []server.LockWaiting{}}
	for _, w := range s.Waiting {
		info.Waiting = append(info.Waiting, server.LockWaiting{Node: w.Node, Since: w.Since.UTC(),
			ForMs: max(0, now.Sub(w.Since).Milliseconds()), Count: w.Count})
	}
	return info
}

// ofTenant is what the names of a tenant's locks begin with.
func ofTenant(tenant string) string {
	return strings.TrimSuffix(lockwrap.Key{Tenant: tenant}.String(), ":")
}

// Release implements server.Locks.
func (a adminLocks) Release(ctx context.Context, r server.LockRelease) error {
	if r.Tenant != "" && !strings.HasPrefix(r.Lock, ofTenant(r.Tenant)) {
		return &lockwrap.NotHeldError{Lock: r.Lock}
	}
	s, err := a.locks.Lock(ctx, r.Lock)
	if err != nil {
		return err
	}
	if s.Token != r.Token {
		return &lockwrap.NotHeldError{Lock: r.Lock, Token: s.Token}
	}
	detail, err := json.Marshal(map[string]any{"Token": s.Token, "Node": s.Node, "Api": s.By.API, "Execution": s.By.Note,
		"Since": s.By.Since.UTC(), "Reason": r.Reason})
	if err != nil {
		return err
	}
	tenant, _, _ := strings.Cut(r.Lock, ":") // a tenant's name is its own encoded form
	// The trail first: a release that nobody can trace must not happen, a line about one that
	// came too late does no harm.
	if err := a.store.AddAudit(ctx, store.AuditEntry{Tenant: tenant, Actor: r.By, Action: "lock.release", Subject: r.Lock, Detail: detail}); err != nil {
		return err
	}
	return a.locks.ForceRelease(ctx, r.Lock, r.Token)
}

type adminAudit struct{ *store.Store }

// List implements server.Audit.
func (a adminAudit) List(ctx context.Context, tenant string, before int64, limit int) ([]server.AuditEntry, error) {
	found, err := a.Audit(ctx, store.AuditQuery{Tenant: tenant, Before: before, Limit: limit})
	list := make([]server.AuditEntry, len(found))
	for i, e := range found {
		list[i] = server.AuditEntry{Id: e.ID, At: e.At, Tenant: e.Tenant, Actor: e.Actor, Action: e.Action, Subject: e.Subject, Detail: e.Detail}
	}
	return list, err
}
