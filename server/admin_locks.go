package server

import (
	"context"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"time"

	"apiengine/fault"
)

// Locks shows the locks of all nodes and takes them away by force.
type Locks interface {
	// List returns the held locks of a tenant, of all tenants for "", ordered by their
	// names. prefix is what the names begin with, after the tenant where there is one.
	List(ctx context.Context, tenant, prefix string) ([]LockInfo, error)
	// Release takes a lock from its holder and writes that to the audit trail first; what
	// cannot be written there is not done. A lock of another tenant than r.Tenant ("": any)
	// is a not_found, one held with another token a version_conflict.
	Release(ctx context.Context, r LockRelease) error
}

// LockInfo is one held lock.
type LockInfo struct {
	Lock      string // as in the log and in executions: tenant:scope:value
	Token     int64
	Node      string
	Api       string //nolint:revive // the contract's spelling
	Execution string
	Since     time.Time
	LeftMs    int64
	Waiting   []LockWaiting
}

// LockWaiting is a node that waits for a lock; Count is known of the node that answers, and 0
// for others.
type LockWaiting struct {
	Node  string
	Since time.Time
	ForMs int64
	Count int `json:",omitempty"`
}

// LockRelease is a forced release.
type LockRelease struct {
	Tenant string // whose locks the caller may handle; empty: all
	Lock   string
	Token  int64 // of the holder that the caller means: not of one that came after it
	Reason string
	By     string
}

type locks struct{ port Locks }

func lockRoutes(p Locks) []route {
	l := locks{p}
	return []route{
		{http.MethodGet, "/locks", RoleAdmin, ofTenant, l.list},
		{http.MethodPost, "/locks/release", RoleAdmin, ofTenant, l.release},
	}
}

func (l locks) list(c *adminCall) (answer, error) {
	tenant, query, err := c.reach()
	if err != nil {
		return answer{}, err
	}
	limit, err := limitOf(query)
	if err != nil {
		return answer{}, err
	}
	all, err := l.port.List(c.ctx, tenant, query.Get("prefix"))
	if err != nil {
		return answer{}, err
	}
	cursor := query.Get("cursor")
	all = all[sort.Search(len(all), func(i int) bool { return all[i].Lock > cursor }):]
	return page(all, limit, func(l LockInfo) string { return l.Lock }), nil
}

const maxReason = 500 // bytes

func (l locks) release(c *adminCall) (answer, error) {
	tenant, _, err := c.reach()
	if err != nil {
		return answer{}, err
	}
	var in struct {
		Lock   string
		Token  int64
		Reason string
	}
	if err := c.decode(&in); err != nil {
		return answer{}, err
	}
	for field, bad := range map[string]string{
		"Lock": missing(in.Lock == ""), "Token": missing(in.Token <= 0), "Reason": tooLong(in.Reason, maxReason),
	} {
		if bad != "" {
			return answer{}, refuse(fault.BadRequest, "%s %s", field, bad).with(map[string]any{"Field": field})
		}
	}
	return answer{}, l.port.Release(c.ctx, LockRelease{Tenant: tenant, Lock: in.Lock, Token: in.Token, Reason: in.Reason, By: c.by()})
}

func missing(yes bool) string {
	if yes {
		return "is missing"
	}
	return ""
}

func tooLong(text string, most int) string {
	if len(text) > most {
		return "is longer than " + strconv.Itoa(most) + " bytes"
	}
	return ""
}

// reach is the tenant whose things the caller may handle: its own, or, for a token of every
// tenant that names none, "" for all.
func (c *adminCall) reach() (tenant string, query url.Values, err error) {
	query, err = plainQuery(c.x.r.URL)
	if err != nil || c.id.Tenant != "" {
		return c.tenant, query, err
	}
	tenant, err = namedTenant("", query, c.x.r.Header)
	return tenant, query, err
}
