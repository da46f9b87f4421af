package app

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"apiengine/egress"
	"apiengine/store"
)

// reach knows what each tenant may reach outside. A change counts on every node within
// settingsFor; while the store is away the last known rules hold, and a tenant of which
// none are known sends nothing.
type reach struct {
	store *store.Store

	mu    sync.Mutex
	known map[string]knownRules
}

type knownRules struct {
	rules egress.Rules
	at    time.Time
}

func (r *reach) of(ctx context.Context, tenant string) (egress.Rules, error) {
	r.mu.Lock()
	k, ok := r.known[tenant]
	r.mu.Unlock()
	if ok && time.Since(k.at) < settingsFor {
		return k.rules, nil
	}
	text, err := r.store.EgressRules(ctx, tenant)
	if err != nil {
		if ok && ctx.Err() == nil {
			return k.rules, nil
		}
		return egress.Rules{}, err
	}
	rules, err := egress.ParseRules(text)
	if err != nil {
		return egress.Rules{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[tenant] = knownRules{rules, time.Now()}
	return rules, nil
}

// adminEgress implements server.Egress.
type adminEgress struct{ a *App }

func (e adminEgress) Rules(ctx context.Context, tenant string) (json.RawMessage, error) {
	text, err := e.a.Store.EgressRules(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return rulesJSON(text)
}

func (e adminEgress) SetRules(ctx context.Context, tenant, by string, rules json.RawMessage) (json.RawMessage, error) {
	text, err := rulesJSON(rules)
	if err != nil {
		return nil, err
	}
	return text, e.a.Store.SetEgressRules(ctx, tenant, by, text)
}

// rulesJSON is the full form of rules.
func rulesJSON(text json.RawMessage) (json.RawMessage, error) {
	r, err := egress.ParseRules(text)
	if err != nil {
		return nil, err
	}
	if r.Allow == nil {
		r.Allow = []string{}
	}
	if r.Mode == "" {
		r.Mode = egress.ModePublic
	}
	return json.Marshal(r)
}
