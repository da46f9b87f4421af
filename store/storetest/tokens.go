package storetest

import (
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"apiengine/fault"
	"apiengine/store"
)

func tokenAuthenticates(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	must(s.CreateTenant(ctx, "shop"))(t)
	later := time.Now().Add(time.Hour)
	for _, in := range []store.NewToken{
		{Name: "platform", Roles: []string{store.AdminRole}},
		{Tenant: "Shop", Name: "till", Roles: []string{"cashier", "仓库"}, Scopes: []string{"tasks:submit"}, ExpiresAt: &later},
		{Tenant: "shop", Name: "no roles"},
	} {
		plain, made, err := s.CreateToken(ctx, in)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`^aek_[a-z2-7]{16}_[A-Za-z0-9_-]{43}$`).MatchString(plain) || !strings.Contains(plain, made.ID) {
			t.Errorf("text %q with id %s", plain, made.ID)
		}
		got := must(open(t).Authenticate(ctx, plain))(t)
		if got.Name != in.Name || got.Tenant != strings.ToLower(in.Tenant) || fmt.Sprint(got.Roles) != fmt.Sprint(in.Roles) || fmt.Sprint(got.Scopes) != fmt.Sprint(in.Scopes) {
			t.Errorf("made from %+v, authenticated as %+v", in, got)
		}
		if read := must(s.Token(ctx, made.ID))(t); read.Name != in.Name || !read.CreatedAt.Equal(made.CreatedAt) {
			t.Errorf("made %+v, read %+v", made, read)
		}
		if (got.ExpiresAt == nil) != (in.ExpiresAt == nil) || got.RevokedAt != nil {
			t.Errorf("expires %v, revoked %v", got.ExpiresAt, got.RevokedAt)
		}
	}
	for tenant, want := range map[string]string{"": "[platform]", "SHOP": "[no roles till]", "default": "[]", "a\x00": "[]"} {
		names := []string{}
		for _, tok := range must(s.Tokens(ctx, tenant))(t) {
			names = append(names, tok.Name)
		}
		if fmt.Sprint(names) != want {
			t.Errorf("tokens of %q: %v, want %s", tenant, names, want)
		}
	}
}

func verifiedTokenIsRemembered(t *testing.T, open Opener) {
	s := open(t)
	plain, _, err := s.CreateToken(t.Context(), store.NewToken{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	must(s.Authenticate(t.Context(), plain))(t)
	s.Close() // from here on a query would fail
	_, err = s.Authenticate(t.Context(), plain)
	if err != nil && time.Since(start) < time.Second {
		t.Errorf("the second time: %v", err)
	}
	_, err = s.Authenticate(t.Context(), store.NewTokenText())
	wantKind(t, "another token without a database", err, fault.StoreUnavailable)
}

func badTokens(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	plain, made, err := s.CreateToken(ctx, store.NewToken{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	must(s.Authenticate(ctx, plain))(t)
	revoked, victim, err := s.CreateToken(ctx, store.NewToken{Name: "revoked"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RevokeToken(ctx, victim.ID); err != nil {
		t.Fatal(err)
	}
	soon := time.Now().Add(300 * time.Millisecond)
	expired, _, err := s.CreateToken(ctx, store.NewToken{Name: "expired", ExpiresAt: &soon})
	if err != nil {
		t.Fatal(err)
	}
	must(s.Authenticate(ctx, expired))(t) // so that it expires while it is remembered
	time.Sleep(time.Until(soon))          // the time itself is what is tested

	other := store.NewTokenText()
	for name, text := range map[string]string{
		"unknown": other, "revoked": revoked, "expired": expired, "empty": "", "the id alone": made.ID,
		"the id with another secret": "aek_" + made.ID + other[len("aek_")+len(made.ID):],
		"cut":                        plain[:len(plain)-1], "longer": plain + "A", "upper case": strings.ToUpper(plain), "a space": plain + " ",
		"NUL": "\x00", "not UTF-8": "\xff", "long": strings.Repeat("a", 1<<20), "quote": "' OR 1=1 --",
	} {
		_, err := s.Authenticate(ctx, text)
		wantKind(t, name, err, fault.Unauthenticated)
		if got := fault.Public(err); got != "the token is unknown, expired or revoked" {
			t.Errorf("%s: %q tells more than it should", name, got)
		}
	}
}

func badNewTokens(t *testing.T, open Opener) {
	s := open(t)
	past := time.Now().Add(-time.Second)
	for name, c := range map[string]struct {
		in   store.NewToken
		want fault.Kind
	}{
		"an unknown tenant":      {store.NewToken{Tenant: "nobody"}, fault.NotFound},
		"a bad tenant":           {store.NewToken{Tenant: "a b"}, fault.BadRequest},
		"a name with a NUL":      {store.NewToken{Name: "a\x00"}, fault.BadRequest},
		"a long name":            {store.NewToken{Name: strings.Repeat("n", 101)}, fault.BadRequest},
		"an empty role":          {store.NewToken{Roles: []string{"a", ""}}, fault.BadRequest},
		"a role that isn't UTF8": {store.NewToken{Roles: []string{"\xff"}}, fault.BadRequest},
		"an empty scope":         {store.NewToken{Scopes: []string{""}}, fault.BadRequest},
		"an end in the past":     {store.NewToken{ExpiresAt: &past}, fault.BadRequest},
	} {
		_, _, err := s.CreateToken(t.Context(), c.in)
		wantKind(t, name, err, c.want)
	}
}

func revoke(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	plain, made, err := s.CreateToken(ctx, store.NewToken{Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	must(s.Authenticate(ctx, plain))(t)
	for range 2 {
		if err := s.RevokeToken(ctx, made.ID); err != nil {
			t.Fatal(err)
		}
		_, err = s.Authenticate(ctx, plain)
		wantKind(t, "after revoking", err, fault.Unauthenticated)
	}
	if tok := must(s.Token(ctx, made.ID))(t); tok.RevokedAt == nil {
		t.Error("RevokedAt is not set")
	}
	for _, id := range []string{"none", "", "a\x00"} {
		wantKind(t, id, s.RevokeToken(ctx, id), fault.NotFound)
		_, err := s.Token(ctx, id)
		wantKind(t, id, err, fault.NotFound)
	}
}

func bootstrap(t *testing.T, open Opener) {
	ctx := t.Context()
	nodes := []*store.Store{open(t), open(t), open(t)}
	texts := make([]string, 20)
	var winner atomic.Int32
	var won atomic.Int32
	parallel(len(texts), func(i int) {
		texts[i] = store.NewTokenText()
		mine, err := nodes[i%len(nodes)].BootstrapAdminToken(ctx, texts[i])
		if err != nil {
			t.Error(err)
		}
		if mine {
			won.Add(1)
			winner.Store(int32(i))
		}
	})
	if won.Load() != 1 {
		t.Fatalf("%d first starts won", won.Load())
	}
	for i, text := range texts {
		mine := must(nodes[0].BootstrapAdminToken(ctx, text))(t)
		if mine != (i == int(winner.Load())) {
			t.Errorf("asked again, start %d is told %v", i, mine)
		}
	}
	tok := must(nodes[0].Authenticate(ctx, texts[winner.Load()]))(t)
	if fmt.Sprint(tok.Roles) != "[admin]" || tok.Tenant != "" {
		t.Errorf("the first token is %+v", tok)
	}
	if err := nodes[0].RevokeToken(ctx, tok.ID); err != nil {
		t.Fatal(err)
	}
	if must(nodes[0].BootstrapAdminToken(ctx, store.NewTokenText()))(t) {
		t.Error("a revoked first token was replaced by a restart")
	}
	if list := must(nodes[0].Tokens(ctx, ""))(t); len(list) != 1 {
		t.Errorf("%d tokens are stored", len(list))
	}
}

func configuredToken(t *testing.T, open Opener) {
	ctx := t.Context()
	nodes := []*store.Store{open(t), open(t)}
	const first, second = "correct-horse-battery", "staple-correct-horse-battery"
	parallel(8, func(i int) {
		if err := nodes[i%2].EnsureAdminToken(ctx, first); err != nil {
			t.Error(err)
		}
	})
	s := nodes[0]
	admin := func(text string) store.Token {
		t.Helper()
		tok := must(s.Authenticate(ctx, text))(t)
		if fmt.Sprint(tok.Roles) != "[admin]" || tok.Tenant != "" || tok.ExpiresAt != nil {
			t.Errorf("%+v is no admin token", tok)
		}
		return tok
	}
	made := admin(first)
	if err := s.EnsureAdminToken(ctx, second); err != nil {
		t.Fatal(err)
	}
	admin(second)
	_, err := s.Authenticate(ctx, first)
	wantKind(t, "the text that the setting held before", err, fault.Unauthenticated)
	if err := s.EnsureAdminToken(ctx, first); err != nil {
		t.Fatal(err)
	}
	if again := admin(first); again.ID != made.ID {
		t.Errorf("set back, the token is %s, was %s", again.ID, made.ID)
	}

	plain, lowly, err := s.CreateToken(ctx, store.NewToken{Tenant: "default", Name: "lowly"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.EnsureAdminToken(ctx, plain); err != nil {
		t.Fatal(err)
	}
	admin(plain)
	if err := s.RevokeToken(ctx, lowly.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.EnsureAdminToken(ctx, plain); err != nil {
		t.Fatal(err)
	}
	admin(plain)
	forged := "aek_" + lowly.ID + store.NewTokenText()[len("aek_")+len(lowly.ID):]
	wantKind(t, "another token's id", s.EnsureAdminToken(ctx, forged), fault.BadRequest)
	admin(plain)
	for _, bad := range []string{"", "short", strings.Repeat("x", 513), "not UTF-8 but long\xff"} {
		wantKind(t, bad, s.EnsureAdminToken(ctx, bad), fault.BadRequest)
	}
}
