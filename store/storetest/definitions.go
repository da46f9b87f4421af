package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"apiengine/fault"
	"apiengine/store"
)

func saveMakesVersion(t *testing.T, open Opener) {
	s := open(t)
	before := must(s.Revision(t.Context()))(t)
	first := must(s.SaveDefinition(t.Context(), store.Save{
		Tenant: "Default", Key: "Order_Pay", Body: json.RawMessage("{ \"a\" : \"<é\\u0000>\" }"), By: "ann", Note: "new"}))(t)
	if first.Version != 1 || first.Tenant != "default" || string(first.Body) != "{\"a\":\"<é\\u0000>\"}" ||
		first.SavedBy != "ann" || first.Note != "new" || first.Revision <= before {
		t.Errorf("first version: %+v", first)
	}
	second := save(t, s, "order_PAY", `{"a":2}`)
	if second.Version != 2 || second.Revision <= first.Revision {
		t.Errorf("second version: %+v", second)
	}
	same := save(t, s, "order_pay", ` {"a": 2} `)
	if same.Version != 2 || same.Revision != second.Revision || same.Key != "order_PAY" {
		t.Errorf("the same body again: %+v, want the live version", same)
	}
	if rev := must(s.Revision(t.Context()))(t); rev != second.Revision {
		t.Errorf("revision %d, want that of the last change, %d", rev, second.Revision)
	}
	got := must(open(t).Definition(t.Context(), "default", "ORDER_PAY"))(t)
	if fmt.Sprint(got) != fmt.Sprint(second) {
		t.Errorf("another node reads %v, want %v", got, second)
	}
	if old := must(s.DefinitionVersion(t.Context(), "default", "order_pay", 1))(t); fmt.Sprint(old) != fmt.Sprint(first) {
		t.Errorf("version 1 reads %v, want %v", old, first)
	}
	if got := keys(must(s.DefinitionVersions(t.Context(), "default", "Order_pay"))(t)); got != "[order_PAY@2 Order_Pay@1]" {
		t.Errorf("versions %s, want the newest first", got)
	}
}

func conditions(t *testing.T, open Opener) {
	s := open(t)
	for _, c := range []struct {
		name, key, body string
		want            *int
		conflict        *int // the live version that the conflict reports
		version         int
	}{
		{"must not exist, and does not", "k", `1`, ptr(0), nil, 1},
		{"must not exist, but does", "K", `2`, ptr(0), ptr(1), 0},
		{"must not exist, but does, with the same body", "k", `1`, ptr(0), ptr(1), 0},
		{"the live version", "k", `2`, ptr(1), nil, 2},
		{"an old version", "k", `3`, ptr(1), ptr(2), 0},
		{"a version that never was", "k", `3`, ptr(9), ptr(2), 0},
		{"a version of what does not exist", "other", `1`, ptr(1), ptr(0), 0},
		{"whatever is live", "k", `3`, nil, nil, 3},
	} {
		before := must(s.Revision(t.Context()))(t)
		d, err := s.SaveDefinition(t.Context(), store.Save{Tenant: "default", Key: c.key, Body: json.RawMessage(c.body), IfVersion: c.want})
		var conflict *store.ConflictError
		switch {
		case c.conflict == nil && (err != nil || d.Version != c.version):
			t.Errorf("%s: version %d, error %v, want version %d", c.name, d.Version, err, c.version)
		case c.conflict != nil && (!errors.As(err, &conflict) || conflict.Live != *c.conflict):
			t.Errorf("%s: %v, want a conflict with live version %d", c.name, err, *c.conflict)
		}
		if c.conflict != nil {
			wantKind(t, c.name, err, fault.VersionConflict)
			if after := must(s.Revision(t.Context()))(t); after != before {
				t.Errorf("%s: the refused save moved the revision", c.name)
			}
		}
	}
}

func deletion(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	save(t, s, "a", `1`)
	live := save(t, s, "b", `1`)
	wantKind(t, "a wrong version", s.DeleteDefinition(ctx, "default", "b", ptr(2), "ann"), fault.VersionConflict)
	if err := s.DeleteDefinition(ctx, "default", "B", ptr(1), "ann"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Definition(ctx, "default", "b")
	wantKind(t, "the deleted one", err, fault.NotFound)
	wantKind(t, "deleting again", s.DeleteDefinition(ctx, "default", "b", nil, ""), fault.NotFound)
	wantKind(t, "deleting again on a condition", s.DeleteDefinition(ctx, "default", "b", ptr(1), ""), fault.VersionConflict)
	wantKind(t, "deleting what never was", s.DeleteDefinition(ctx, "default", "zzz", nil, ""), fault.NotFound)
	if got := keys(must(s.Definitions(ctx, "default"))(t)); got != "[a@1]" {
		t.Errorf("live definitions %s", got)
	}
	gone := must(s.ChangedSince(ctx, live.Revision))(t)
	if keys(gone) != "[B@2!]" || gone[0].Body != nil || gone[0].SavedBy != "ann" {
		t.Errorf("changes %+v, want the deletion", gone)
	}
	again := must(s.SaveDefinition(ctx, store.Save{Tenant: "default", Key: "b", Body: json.RawMessage(`1`), IfVersion: ptr(0)}))(t)
	if again.Version != 3 {
		t.Errorf("saved again as version %d, want 3", again.Version)
	}
	if got := keys(must(s.DefinitionVersions(ctx, "default", "b"))(t)); got != "[b@3 B@2! b@1]" {
		t.Errorf("history %s", got)
	}
}

func badDefinitions(t *testing.T, open Opener) {
	s := open(t)
	good := store.Save{Tenant: "default", Key: "k", Body: json.RawMessage(`{}`)}
	for _, c := range []struct {
		name string
		edit func(*store.Save)
		want fault.Kind
	}{
		{"no key", func(in *store.Save) { in.Key = "" }, fault.BadRequest},
		{"a long key", func(in *store.Save) { in.Key = strings.Repeat("k", 101) }, fault.BadRequest},
		{"a key with a slash", func(in *store.Save) { in.Key = "a/b" }, fault.BadRequest},
		{"a key with a NUL", func(in *store.Save) { in.Key = "a\x00" }, fault.BadRequest},
		{"a key with a newline at its end", func(in *store.Save) { in.Key = "a\n" }, fault.BadRequest},
		{"no body", func(in *store.Save) { in.Body = nil }, fault.BadRequest},
		{"no JSON", func(in *store.Save) { in.Body = json.RawMessage(`{"a":}`) }, fault.BadRequest},
		{"two JSON values", func(in *store.Save) { in.Body = json.RawMessage(`{} {}`) }, fault.BadRequest},
		{"a body that is not UTF-8", func(in *store.Save) { in.Body = json.RawMessage("\"\xff\"") }, fault.BadRequest},
		{"a note that is not UTF-8", func(in *store.Save) { in.Note = "\xff" }, fault.BadRequest},
		{"a note with a NUL", func(in *store.Save) { in.Note = "a\x00b" }, fault.BadRequest},
		{"a long name", func(in *store.Save) { in.By = strings.Repeat("x", 201) }, fault.BadRequest},
		{"no tenant", func(in *store.Save) { in.Tenant = "" }, fault.BadRequest},
		{"a bad tenant", func(in *store.Save) { in.Tenant = "a b" }, fault.BadRequest},
		{"an unknown tenant", func(in *store.Save) { in.Tenant = "nobody" }, fault.NotFound},
	} {
		in := good
		c.edit(&in)
		_, err := s.SaveDefinition(t.Context(), in)
		wantKind(t, c.name, err, c.want)
	}
	if list := must(s.Definitions(t.Context(), "default"))(t); len(list) != 0 {
		t.Errorf("a refused definition was stored: %v", list)
	}
}

func notFound(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	save(t, s, "k", `1`)
	for _, tenant := range []string{"default", "nobody", "", "a\x00", "\xff"} {
		for _, key := range []string{"none", "", "a\x00", "\xff", "'"} {
			_, err := s.Definition(ctx, tenant, key)
			wantKind(t, "definition", err, fault.NotFound)
			_, err = s.DefinitionVersion(ctx, tenant, key, 1)
			wantKind(t, "version", err, fault.NotFound)
			_, err = s.DefinitionVersions(ctx, tenant, key)
			wantKind(t, "versions", err, fault.NotFound)
		}
	}
	for _, version := range []int{0, -1, 2, 1 << 40} {
		_, err := s.DefinitionVersion(ctx, "default", "k", version)
		wantKind(t, fmt.Sprint("version ", version), err, fault.NotFound)
	}
	if list := must(s.Definitions(ctx, "nobody"))(t); len(list) != 0 {
		t.Errorf("an unknown tenant has %v", list)
	}
}

func definitionsApart(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	must(s.CreateTenant(ctx, "other"))(t)
	save(t, s, "k", `"mine"`)
	must(s.SaveDefinition(ctx, store.Save{Tenant: "other", Key: "k", Body: json.RawMessage(`"theirs"`), IfVersion: ptr(0)}))(t)
	for tenant, want := range map[string]string{"default": `"mine"`, "other": `"theirs"`} {
		list := must(s.Definitions(ctx, tenant))(t)
		if len(list) != 1 || string(list[0].Body) != want || list[0].Tenant != tenant {
			t.Errorf("%s has %+v", tenant, list)
		}
	}
	if err := s.DeleteDefinition(ctx, "other", "k", nil, ""); err != nil {
		t.Fatal(err)
	}
	must(s.Definition(ctx, "default", "k"))(t)
}

// follower: a revision that becomes visible after a larger one would be skipped by a node
// that has already read the larger one.
func follower(t *testing.T, open Opener) {
	const savers, saves = 4, 25
	var left atomic.Int32 // savers still at work
	left.Store(savers)
	var last int64
	reader := open(t)
	seen := map[string]store.Definition{}
	poll := func() {
		rev := must(reader.Revision(t.Context()))(t)
		from := last
		for _, d := range must(reader.ChangedSince(t.Context(), last))(t) {
			if d.Revision <= from {
				t.Errorf("%s@%d has revision %d after %d", d.Key, d.Version, d.Revision, from)
			}
			from = d.Revision
			seen[d.Key] = d
		}
		last = rev
	}
	parallel(savers+1, func(i int) {
		if i == savers {
			for left.Load() > 0 {
				poll()
			}
			return
		}
		defer left.Add(-1)
		s := open(t)
		for n := range saves {
			in := store.Save{Tenant: "default", Key: fmt.Sprintf("k%d_%d", i, n%5), Body: json.RawMessage(fmt.Sprint(n))}
			if _, err := s.SaveDefinition(t.Context(), in); err != nil {
				t.Error(err)
			}
		}
	})
	poll()
	for _, d := range must(reader.Definitions(t.Context(), "default"))(t) {
		if seen[d.Key].Version != d.Version {
			t.Errorf("the follower has %s@%d, live is @%d", d.Key, seen[d.Key].Version, d.Version)
		}
	}
	if len(seen) != savers*5 {
		t.Errorf("the follower saw %d definitions, want %d", len(seen), savers*5)
	}
}

func oneCreator(t *testing.T, open Opener) {
	nodes := []*store.Store{open(t), open(t)}
	var won atomic.Int32
	parallel(20, func(i int) {
		_, err := nodes[i%2].SaveDefinition(t.Context(), store.Save{
			Tenant: "default", Key: "k", Body: json.RawMessage(fmt.Sprint(i)), IfVersion: ptr(0)})
		if err == nil {
			won.Add(1)
			return
		}
		wantKind(t, "a loser", err, fault.VersionConflict)
	})
	if won.Load() != 1 {
		t.Errorf("%d creators won", won.Load())
	}
}

func noLostUpdate(t *testing.T, open Opener) {
	const writers, adds = 4, 5
	nodes := []*store.Store{open(t), open(t)}
	save(t, nodes[0], "n", `0`)
	parallel(writers, func(i int) {
		s := nodes[i%2]
		for added := 0; added < adds; {
			d, err := s.Definition(t.Context(), "default", "n")
			if err != nil {
				t.Error(err)
				return
			}
			var n int
			if err := json.Unmarshal(d.Body, &n); err != nil {
				t.Error(err)
				return
			}
			_, err = s.SaveDefinition(t.Context(), store.Save{
				Tenant: "default", Key: "n", Body: json.RawMessage(fmt.Sprint(n + 1)), IfVersion: &d.Version})
			if err == nil {
				added++
				continue
			}
			if fault.Of(err) != fault.VersionConflict {
				t.Error(err)
				return
			}
		}
	})
	d := must(nodes[0].Definition(t.Context(), "default", "n"))(t)
	if string(d.Body) != fmt.Sprint(writers*adds) || d.Version != writers*adds+1 {
		t.Errorf("%s at version %d after %d additions", d.Body, d.Version, writers*adds)
	}
}
