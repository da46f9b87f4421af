package server_test

import (
	"context"

	"apiengine/server"
)

type fakeLocks struct{ *said }

func (f fakeLocks) List(_ context.Context, tenant, prefix string) ([]server.LockInfo, error) {
	f.say("locks of %q from %q", tenant, prefix)
	return []server.LockInfo{{Lock: "a:x:1"}, {Lock: "a:x:2"}, {Lock: "a:x:3"}}, nil
}

func (f fakeLocks) Release(_ context.Context, r server.LockRelease) error {
	f.say("release %s %d of %q by %s: %s", r.Lock, r.Token, r.Tenant, r.By, r.Reason)
	return nil
}

type fakeAudit struct{ *said }

func (f fakeAudit) List(_ context.Context, tenant string, before int64, limit int) ([]server.AuditEntry, error) {
	f.say("audit of %q before %d: %d", tenant, before, limit)
	return []server.AuditEntry{{Id: 8, Subject: "x", Detail: []byte("{}")}, {Id: 7, Detail: []byte("{}")}, {Id: 6, Detail: []byte("{}")}}, nil
}
