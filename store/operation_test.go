package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"apiengine/fault"
	"apiengine/internal/testserver"
	"apiengine/store"
)

func TestConfigErrorsNameTheField(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(dir, "a.db")
	for _, c := range []struct {
		cfg  store.Config
		want string
	}{
		{store.Config{}, "SQLitePath or Config.Pool is missing"},
		{store.Config{SQLitePath: db, Pool: pool(t, testserver.Postgres(t).URL("postgres"))}, "both set"},
		{store.Config{SQLitePath: db, Sync: "off"}, "Config.Sync"},
		{store.Config{SQLitePath: db, SecretKey: []byte("short")}, "Config.SecretKey"},
		{store.Config{SQLitePath: filepath.Join(file, "a.db")}, "Config.SQLitePath"},
		{store.Config{SQLitePath: dir}, "Config.SQLitePath"},
	} {
		if _, err := store.Open(t.Context(), c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

const canary = "canary-7f3a91-canary"

// fill stores a secret and two tokens and returns what must not be found at rest.
func fill(t *testing.T, s *store.Store) [][]byte {
	t.Helper()
	if err := s.SetSecret(t.Context(), "default", "k", canary); err != nil {
		t.Fatal(err)
	}
	plain, made, err := s.CreateToken(t.Context(), store.NewToken{Name: "visible-name"})
	if err != nil {
		t.Fatal(err)
	}
	const configured = "configured-token-9d2c"
	if err := s.EnsureAdminToken(t.Context(), configured); err != nil {
		t.Fatal(err)
	}
	return [][]byte{[]byte(canary), []byte(strings.TrimPrefix(plain, "aek_"+made.ID+"_")), []byte(configured)}
}

func searchDump(t *testing.T, dump []byte, hidden [][]byte) {
	t.Helper()
	if !bytes.Contains(dump, []byte("visible-name")) {
		t.Error("the dump misses what is stored in the clear: the search proves nothing")
	}
	for _, h := range hidden {
		if bytes.Contains(dump, h) || bytes.Contains(dump, []byte(hex.EncodeToString(h))) {
			t.Errorf("%q is stored in the clear", h)
		}
	}
}

func secretKey(cfg *store.Config) { cfg.SecretKey = bytes.Repeat([]byte("k"), 32) }

func TestSQLiteFilesHideSecretsAndArePrivate(t *testing.T) {
	dir := t.TempDir()
	hidden := fill(t, sqliteAt(filepath.Join(dir, "p.db"))(t, secretKey))
	var dump []byte
	files, err := filepath.Glob(filepath.Join(dir, "p.db*"))
	if err != nil || len(files) < 3 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		dump = append(dump, b...)
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, ".migrate") && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
	searchDump(t, dump, hidden)
}

func TestPostgresTablesHideSecrets(t *testing.T) {
	url := testserver.Database(t)
	hidden := fill(t, postgresAt(url)(t, secretKey))
	p := pool(t, url)
	rows, err := p.Query(t.Context(), "SELECT tablename FROM pg_tables WHERE schemaname = '_apiengine_platform'")
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, name)
	}
	var dump []byte
	for _, name := range tables {
		var text string
		err := p.QueryRow(t.Context(), "SELECT coalesce(string_agg(x::text, ' '), '') FROM _apiengine_platform."+name+" x").Scan(&text)
		if err != nil {
			t.Fatal(err)
		}
		dump = append(dump, text...)
	}
	searchDump(t, dump, hidden)
}

func TestASecretMovedToAnotherRowDoesNotOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	s, ctx := sqliteAt(path)(t, secretKey), t.Context()
	for _, name := range []string{"a", "b"} {
		if err := s.SetSecret(ctx, "default", name, name); err != nil {
			t.Fatal(err)
		}
	}
	raw := rawSQLite(t, path)
	if _, err := raw.Exec("UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE name = 'a') WHERE name = 'b'"); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Secret(ctx, "default", "b"); fault.Of(err) != fault.Internal || v != "" {
		t.Errorf("the moved secret opened as %q, %v", v, err)
	}
	if v, err := s.Secret(ctx, "default", "a"); v != "a" {
		t.Errorf("the other one is %q, %v", v, err)
	}
}

func rawSQLite(t *testing.T, path string) *sql.DB {
	t.Helper()
	raw, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_busy_timeout=5000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	return raw
}

func TestRevocationReachesOtherNodesWithin2Seconds(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		open := sqliteAt(filepath.Join(dir, "p.db"))
		here, there, ctx := open(t), open(t), t.Context()
		defer here.Close()
		defer there.Close()
		plain, made, err := here.CreateToken(ctx, store.NewToken{Name: "n"})
		if err != nil {
			t.Fatal(err)
		}
		accepted := func() bool {
			_, err := there.Authenticate(ctx, plain)
			if err != nil && fault.Of(err) != fault.Unauthenticated {
				t.Error(err)
			}
			return err == nil
		}
		first := accepted()
		if err := here.RevokeToken(ctx, made.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*time.Second - time.Nanosecond)
		remembered := accepted() // without a query, and without a longer life
		time.Sleep(time.Nanosecond)
		if last := accepted(); !first || !remembered || last {
			t.Errorf("accepted at first %v, until 2 s %v, from then on %v", first, remembered, last)
		}
	})
}

func TestSQLiteWaitsForAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	s, ctx := sqliteAt(path)(t), t.Context()
	in := store.Save{Tenant: "default", Key: "k", Body: json.RawMessage("1")}
	other, err := rawSQLite(t, path).Begin()
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := s.SaveDefinition(short, in); fault.Of(err) != fault.Timeout {
		t.Errorf("a save while another process writes: %v, want the context's end", err)
	}
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("it came back after %v", d)
	}
	if _, err := s.Definitions(ctx, "default"); err != nil {
		t.Errorf("reading meanwhile: %v", err)
	}
	if err := other.Rollback(); err != nil {
		t.Fatal(err)
	}
	if d, err := s.SaveDefinition(ctx, in); err != nil || d.Version != 1 {
		t.Errorf("afterwards: version %d, %v", d.Version, err)
	}
}

func TestPostgresAwayAndBack(t *testing.T) {
	url, server := testserver.Database(t), testserver.Postgres(t)
	s, ctx := postgresAt(url)(t), t.Context()
	save := func(body string) error {
		_, err := s.SaveDefinition(ctx, store.Save{Tenant: "default", Key: "k", Body: json.RawMessage(body)})
		return err
	}
	if err := save("1"); err != nil {
		t.Fatal(err)
	}
	server.Stop(syscall.SIGQUIT)
	_, readErr := s.Definition(ctx, "default", "k")
	for name, err := range map[string]error{"save": save("2"), "read": readErr, "ping": s.Ping(ctx)} {
		if fault.Of(err) != fault.StoreUnavailable {
			t.Errorf("%s without a server: %v", name, err)
		}
		if got := fault.Public(err); strings.Contains(got, "127.0.0.1") || got == "" {
			t.Errorf("%s: a caller is told %q", name, got)
		}
	}
	server.Restart(t)
	if err := save("3"); err != nil {
		t.Errorf("after the restart: %v", err)
	}
}

func TestAnEndedContextIsTheCallersEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, s := range map[string]*store.Store{
		"sqlite":   sqliteAt(filepath.Join(t.TempDir(), "p.db"))(t),
		"postgres": postgresAt(testserver.Database(t))(t),
	} {
		_, _, err := s.Migrations(ctx)
		_, authErr := s.Authenticate(ctx, store.NewTokenText())
		for i, err := range []error{s.Ping(ctx), s.SaveMark(ctx, 1), err, authErr} {
			if fault.Of(err) != fault.Canceled {
				t.Errorf("%s, call %d: %v", name, i, err)
			}
		}
	}
}

// TestManyDefinitionsAtOnce is the size of a large installation.
func TestManyDefinitionsAtOnce(t *testing.T) {
	s, ctx := sqliteAt(filepath.Join(t.TempDir(), "p.db"))(t), t.Context()
	body := json.RawMessage(`{"ApiV8Code":"` + strings.Repeat("x", 8<<10) + `"}`)
	const n = 300
	for i := range n {
		if _, err := s.SaveDefinition(ctx, store.Save{Tenant: "default", Key: fmt.Sprintf("k%03d", i), Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.ChangedSince(ctx, 0)
	if err != nil || len(list) != n || !bytes.Equal(list[n-1].Body, body) {
		t.Errorf("%d definitions, %v", len(list), err)
	}
}
