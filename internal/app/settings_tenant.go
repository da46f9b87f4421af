package app

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"apiengine/engine"
	"apiengine/store"
)

// tenantSettings serves V8.SysConfig from memory; what an administrator changes is seen by
// every node within settingsFor.
type tenantSettings struct {
	store *store.Store

	mu    sync.RWMutex
	known map[string]knownSettings
}

type knownSettings struct {
	json json.RawMessage
	at   time.Time
}

const settingsFor = time.Second

// SysConfig implements engine.Settings. While the store is down the last known ones hold.
func (t *tenantSettings) SysConfig(tenant string) json.RawMessage {
	t.mu.RLock()
	k, ok := t.known[tenant]
	t.mu.RUnlock()
	if ok && time.Since(k.at) < settingsFor {
		return k.json
	}
	ctx, cancel := context.WithTimeout(context.Background(), settingsFor)
	defer cancel()
	row, err := t.store.Tenant(ctx, tenant)
	if err != nil {
		row.Settings = k.json
	}
	if len(row.Settings) == 0 {
		row.Settings = json.RawMessage("{}")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[string]knownSettings{}
	}
	t.known[tenant] = knownSettings{row.Settings, time.Now()}
	return row.Settings
}

// Secret implements engine.Settings.
func (t *tenantSettings) Secret(ctx context.Context, tenant, name string) (string, error) {
	return t.store.Secret(ctx, tenant, name)
}

var _ engine.Settings = (*tenantSettings)(nil)
