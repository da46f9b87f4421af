package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Audit reads the trail of what administrators did.
type Audit interface {
	// List returns at most limit entries of a tenant, of all for "", the newest first; only
	// those older than the entry before, if that is not 0.
	List(ctx context.Context, tenant string, before int64, limit int) ([]AuditEntry, error)
}

// AuditEntry is one thing that an administrator did.
type AuditEntry struct {
	Id      int64 //nolint:revive // the contract's spelling
	At      time.Time
	Tenant  string
	Actor   string
	Action  string
	Subject string
	Detail  json.RawMessage
}

type audit struct{ port Audit }

func auditRoutes(p Audit) []route {
	return []route{{http.MethodGet, "/audit", RoleAdmin, ofTenant, audit{p}.list}}
}

func (a audit) list(c *adminCall) (answer, error) {
	tenant, query, err := c.reach()
	if err != nil {
		return answer{}, err
	}
	limit, err := limitOf(query)
	if err != nil {
		return answer{}, err
	}
	before, err := cursorOf(query)
	if err != nil {
		return answer{}, err
	}
	found, err := a.port.List(c.ctx, tenant, before, limit+1)
	return page(found, limit, func(e AuditEntry) string { return strconv.FormatInt(e.Id, 10) }), err
}
