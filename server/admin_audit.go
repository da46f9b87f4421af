package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"apiengine/fault"
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
	var before int64
	if cursor := query.Get("cursor"); cursor != "" {
		if before, err = strconv.ParseInt(cursor, 10, 64); err != nil || before < 1 {
			return answer{}, refuse(fault.BadRequest, "cursor must come from NextCursor").with(map[string]any{"Field": "cursor"})
		}
	}
	found, err := a.port.List(c.ctx, tenant, before, limit+1)
	if err != nil {
		return answer{}, err
	}
	out := listed{Items: found}
	if len(found) > limit {
		out = listed{found[:limit], strconv.FormatInt(found[limit-1].Id, 10)}
	} else if len(found) == 0 {
		out.Items = []AuditEntry{}
	}
	return answer{data: out}, nil
}
