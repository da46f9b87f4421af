// Package storetest is the contract of package store as a test suite: it runs on every
// database that a Store can live in.
package storetest

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"apiengine/fault"
	"apiengine/store"
)

// Opener opens a Store on one database, as one more node would, and closes it when the
// test ends. Edits change its Config first.
type Opener func(t testing.TB, edit ...func(*store.Config)) *store.Store

// Run runs the suite. fresh makes an empty database and returns the Opener of it.
func Run(t *testing.T, fresh func(testing.TB) Opener) {
	suite := []struct {
		name string
		test func(*testing.T, Opener)
	}{
		{"nodes that start at once migrate once", startTogether},
		{"the mark never goes back", markRises},

		{"a save makes a version", saveMakesVersion},
		{"a condition on the version holds or nothing changes", conditions},
		{"a deletion is a version too", deletion},
		{"bad definitions are refused", badDefinitions},
		{"what is not there is not_found", notFound},
		{"tenants do not see each other's definitions", definitionsApart},
		{"a follower sees every change", follower},
		{"of 20 creators one wins", oneCreator},
		{"no conditional update is lost", noLostUpdate},

		{"the first word about an unknown outcome counts", outcomesKept},
		{"what people have seen of a task never goes back", shownKept},

		{"tenants", tenants},
		{"settings", settings},
		{"what a tenant may reach, and who said so", egressRules},
		{"named databases, and who made them", namedDatabases},
		{"secrets come back", secretsComeBack},
		{"secrets and their limits", secretLimits},
		{"another secret key is named as the reason", otherSecretKey},

		{"a token authenticates", tokenAuthenticates},
		{"a verified token costs no query", verifiedTokenIsRemembered},
		{"every bad token gets one answer", badTokens},
		{"bad tokens are not made", badNewTokens},
		{"revoking ends a token at once", revoke},
		{"of 20 first starts one makes the admin token", bootstrap},
		{"the configured admin token follows the setting", configuredToken},

		{"the audit trail is read from its newest entry", auditEntries},
	}
	for _, c := range suite {
		t.Run(c.name, func(t *testing.T) { c.test(t, fresh(t)) })
	}
}

func startTogether(t *testing.T, open Opener) {
	var stores [8]*store.Store
	parallel(len(stores), func(i int) { stores[i] = open(t) })
	for _, s := range stores {
		if s == nil {
			t.Fatal("a node did not start")
		}
		applied, pending, err := s.Migrations(t.Context())
		if err != nil || len(applied) == 0 || len(pending) != 0 {
			t.Errorf("applied %v, pending %v, error %v", applied, pending, err)
		}
		if err := s.Ping(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if list := must(stores[0].Tenants(t.Context()))(t); len(list) != 1 || list[0].Name != store.DefaultTenant {
		t.Errorf("tenants %v, want the default one alone", list)
	}
}

func markRises(t *testing.T, open Opener) {
	s := open(t)
	for _, c := range []struct{ save, want int64 }{{5, 5}, {3, 5}, {1 << 52, 1 << 52}, {6, 1 << 52}} {
		if err := s.SaveMark(t.Context(), c.save); err != nil {
			t.Fatal(err)
		}
		if got := must(s.LoadMark(t.Context()))(t); got != c.want {
			t.Errorf("after saving %d: %d, want %d", c.save, got, c.want)
		}
	}
	if got := must(open(t).LoadMark(t.Context()))(t); got != 1<<52 {
		t.Errorf("another node loads %d", got)
	}
}

// parallel calls f with 0 to n-1 at the same time and waits for all.
func parallel(n int, f func(int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// must turns (v, err) into v, or ends the test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantKind(t testing.TB, what string, err error, want fault.Kind) {
	t.Helper()
	if got := fault.Of(err); got != want {
		t.Errorf("%s: kind %q (%v), want %q", what, got, err, want)
	}
}

func save(t testing.TB, s *store.Store, key, body string) store.Definition {
	t.Helper()
	return must(s.SaveDefinition(t.Context(), store.Save{Tenant: store.DefaultTenant, Key: key, Body: json.RawMessage(body)}))(t)
}

func keys(list []store.Definition) string {
	var names []string
	for _, d := range list {
		name := fmt.Sprintf("%s@%d", d.Key, d.Version)
		if d.Deleted {
			name += "!"
		}
		names = append(names, name)
	}
	return fmt.Sprint(names)
}

func ptr[T any](v T) *T { return &v }
