package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"apiengine/fault"
	"apiengine/store"
)

func tenants(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	made := must(s.CreateTenant(ctx, "Shop_1"))(t)
	got := must(s.Tenant(ctx, "SHOP_1"))(t)
	if made.Name != "shop_1" || fmt.Sprint(got) != fmt.Sprint(made) {
		t.Errorf("made %v, read %v", made, got)
	}
	for name, want := range map[string]fault.Kind{
		"shop_1": fault.VersionConflict, "SHOP_1": fault.VersionConflict, "default": fault.VersionConflict,
		"": fault.BadRequest, "a b": fault.BadRequest, "a:b": fault.BadRequest, "a\x00": fault.BadRequest,
		"é": fault.BadRequest, "K\u212A": fault.BadRequest, strings.Repeat("a", 41): fault.BadRequest,
	} {
		_, err := s.CreateTenant(ctx, name)
		wantKind(t, fmt.Sprintf("creating %q", name), err, want)
	}
	for _, name := range []string{"nobody", "", "a\x00", "\xff"} {
		_, err := s.Tenant(ctx, name)
		wantKind(t, fmt.Sprintf("reading %q", name), err, fault.NotFound)
	}
	var names []string
	for _, tn := range must(s.Tenants(ctx))(t) {
		names = append(names, tn.Name)
	}
	if fmt.Sprint(names) != "[default shop_1]" {
		t.Errorf("tenants %v", names)
	}
}

func settings(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	if got := must(s.Tenant(ctx, "default"))(t); string(got.Settings) != "{}" {
		t.Errorf("settings at first: %s", got.Settings)
	}
	before := must(s.Revision(ctx))(t)
	if err := s.SetTenantSettings(ctx, "default", json.RawMessage(`{ "Title": "é" }`)); err != nil {
		t.Fatal(err)
	}
	got := must(open(t).Tenant(ctx, "default"))(t)
	if string(got.Settings) != `{"Title":"é"}` || got.Revision <= before || must(s.Revision(ctx))(t) != got.Revision {
		t.Errorf("%s at revision %d, before %d", got.Settings, got.Revision, before)
	}
	for _, bad := range []string{"", "[]", `"x"`, "null", "{", "{}{}", "{\"a\":\"\xff\"}"} {
		wantKind(t, bad, s.SetTenantSettings(ctx, "default", json.RawMessage(bad)), fault.BadRequest)
	}
	for _, name := range []string{"nobody", "", "a\x00"} {
		wantKind(t, name, s.SetTenantSettings(ctx, name, json.RawMessage("{}")), fault.NotFound)
	}
	if after := must(s.Tenant(ctx, "default"))(t); fmt.Sprint(after) != fmt.Sprint(got) {
		t.Errorf("a refused change left %v", after)
	}
}

func withKey(b byte) func(*store.Config) {
	return func(cfg *store.Config) { cfg.SecretKey = []byte(strings.Repeat(string(rune(b)), 32)) }
}

func secretsComeBack(t *testing.T, open Opener) {
	s, ctx := open(t, withKey('a')), t.Context()
	must(s.CreateTenant(ctx, "other"))(t)
	for _, c := range []struct{ tenant, name, value string }{
		{"default", "API_KEY", "first"}, {"default", "API_KEY", "second"}, {"other", "API_KEY", "theirs"},
		{"default", "empty", ""}, {"default", "bytes", "\x00\xff"}, {"default", "api_key", "small letters"},
		{"default", "long", strings.Repeat("x", 64<<10)},
	} {
		before := must(s.Revision(ctx))(t)
		if err := s.SetSecret(ctx, c.tenant, c.name, c.value); err != nil {
			t.Fatal(err)
		}
		if got := must(open(t, withKey('a')).Secret(ctx, c.tenant, c.name))(t); got != c.value {
			t.Errorf("%s/%s is %.20q, want %.20q", c.tenant, c.name, got, c.value)
		}
		if tn := must(s.Tenant(ctx, c.tenant))(t); tn.Revision <= before {
			t.Errorf("%s/%s: the tenant's revision did not rise", c.tenant, c.name)
		}
	}
	if names := must(s.SecretNames(ctx, "default"))(t); fmt.Sprint(names) != "[API_KEY api_key bytes empty long]" {
		t.Errorf("names %v", names)
	}
	if err := s.DeleteSecret(ctx, "default", "API_KEY"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Secret(ctx, "default", "API_KEY")
	wantKind(t, "deleted", err, fault.NotFound)
	if got := must(s.Secret(ctx, "other", "API_KEY"))(t); got != "theirs" {
		t.Errorf("the other tenant's secret is now %q", got)
	}
}

func secretLimits(t *testing.T, open Opener) {
	s, ctx := open(t, withKey('a')), t.Context()
	for _, c := range []struct {
		tenant, name, value string
		want                fault.Kind
	}{
		{"default", "", "v", fault.BadRequest},
		{"default", "a/b", "v", fault.BadRequest},
		{"default", "a\x00", "v", fault.BadRequest},
		{"default", "long", strings.Repeat("x", 64<<10+1), fault.BadRequest},
		{"a b", "k", "v", fault.BadRequest},
		{"nobody", "k", "v", fault.NotFound},
	} {
		wantKind(t, fmt.Sprintf("set %q %.5q", c.tenant, c.name), s.SetSecret(ctx, c.tenant, c.name, c.value), c.want)
		_, err := s.Secret(ctx, c.tenant, c.name)
		wantKind(t, "get", err, fault.NotFound)
		wantKind(t, "delete", s.DeleteSecret(ctx, c.tenant, c.name), fault.NotFound)
	}
}

func otherSecretKey(t *testing.T, open Opener) {
	ctx := t.Context()
	if err := open(t, withKey('a')).SetSecret(ctx, "default", "k", "v"); err != nil {
		t.Fatal(err)
	}
	_, err := open(t, withKey('b')).Secret(ctx, "default", "k")
	if err == nil || !strings.Contains(fault.Public(err), "another secret key") {
		t.Errorf("with another key: %v", err)
	}
	none := open(t)
	_, err = none.Secret(ctx, "default", "k")
	for _, err := range []error{err, none.SetSecret(ctx, "default", "k", "v")} {
		if err == nil || !strings.Contains(fault.Public(err), "--secret-key") {
			t.Errorf("without a key: %v", err)
		}
	}
}
