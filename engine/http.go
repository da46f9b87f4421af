package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"apiengine/fault"
	"apiengine/jsbridge"
)

// HTTP sends the requests of a tenant's scripts. Platform headers win over the script's own.
type HTTP interface {
	Do(ctx context.Context, tenant string, r jsbridge.HTTPRequest, platform map[string]string) (jsbridge.HTTPResponse, error)
}

// outside is V8.Http of one frame.
type outside struct{ f *frame }

// Do sends the fencing token, which the other side can compare, and for what may change
// something an Idempotency-Key that is the same when the call is repeated with its own.
func (o outside) Do(ctx context.Context, r jsbridge.HTTPRequest) (jsbridge.HTTPResponse, error) {
	t := o.f.tree
	if t.requests++; t.requests > t.e.cfg.MaxHTTP {
		return jsbridge.HTTPResponse{}, &fault.Error{K: fault.LimitOutput, Msg: "one call sends at most " + strconv.Itoa(t.e.cfg.MaxHTTP) + " HTTP requests"}
	}
	hops := t.hops() + 1
	if hops > maxHops {
		return jsbridge.HTTPResponse{}, fault.New(fault.Forbidden, "this call came over %d servers already: the requests go in a circle", hops-1)
	}
	t.acted.Store(true) // no rollback takes a request back
	platform := map[string]string{HopsHeader: strconv.Itoa(hops)}
	if token := o.f.token(); token > 0 {
		platform["X-Fencing-Token"] = strconv.FormatInt(token, 10)
	}
	if key := t.call.IdempotencyKey; key != "" && r.Method != "GET" && !hasHeader(r.Header, "Idempotency-Key") {
		platform["Idempotency-Key"] = t.requestKey(key)
	}
	return t.e.cfg.HTTP.Do(ctx, t.call.Tenant, r, platform)
}

// requestKey is the key of the tree's n-th request.
func (t *tree) requestKey(key string) string {
	sum := sha256.Sum256([]byte(t.call.Tenant + "\x00" + t.call.Key + t.call.Path + "\x00" + key + "\x00" + strconv.Itoa(t.requests)))
	return hex.EncodeToString(sum[:16])
}

func hasHeader(h map[string]string, name string) bool {
	for k := range h {
		if strings.EqualFold(k, name) {
			return true
		}
	}
	return false
}
