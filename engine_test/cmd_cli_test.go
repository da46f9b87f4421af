package engine_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"apiengine/internal/app"
)

// ran is what a command printed and how it ended.
type ran struct {
	out, err string
	code     int
}

// cli runs a command inside the test process.
func cli(args ...string) ran {
	var out, errs bytes.Buffer
	code := app.Main(args, &out, &errs)
	return ran{out.String(), errs.String(), code}
}

// cli runs a command against this node.
func (n *node) cli(args ...string) ran {
	return cli(append(args, "--url", n.URL, "--token", adminToken)...)
}

// want fails the test unless the command ended with code, saying text.
func (r ran) want(t testing.TB, code int, text string) ran {
	t.Helper()
	if r.code != code || !strings.Contains(r.out+r.err, text) {
		t.Fatalf("exit code %d, want %d saying %q:\n%s%s", r.code, code, text, r.out, r.err)
	}
	return r
}

// write makes a file in dir and returns its path. It appears whole.
func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Wrong settings stop the start, with exit code 2 and the setting's name.
func TestWrongSettingsStopTheStart(t *testing.T) {
	file := write(t, t.TempDir(), "file", "")
	for _, c := range []struct{ name, value, msg string }{
		{"addr", "8080", "host:port"},
		{"addr", "127.0.0.1:99999", "invalid port"},
		{"data-dir", filepath.Join(file, "x"), "cannot be made"},
		{"database-url", "mysql://u:secret-word@h/d", "postgres://"},
		{"database-url", "postgres://u:secret-word@h:port/d", "PostgreSQL"},
		{"redis-url", "http://:secret-word@h", "redis://"},
		{"redis-url", "redis://:secret-word@h:port", "redis"},
		{"lock-backend", "redis", "--redis-url"},
		{"lock-backend", "postgres", "--database-url"},
		{"lock-backend", "etcd", "--etcd-endpoints"},
		{"lock-backend", "zookeeper", "etcd or embedded"},
		{"etcd-endpoints", "http://u:secret-word@h:1", "--lock-backend etcd"},
		{"lock-verify", "never", "fresh"},
		{"prefix", "a b", "white space"},
		{"apis-dir", filepath.Join(file, "x"), "cannot be read"},
		{"apis-dir", file, "must be a folder"},
		{"admin-token", "secret-word", "32 characters"},
		{"admin-token", strings.Repeat("x", 40), "aek_"},
		{"secret-key", "secret-word", "32 bytes"},
		{"sqlite-sync", "off", "full"},
		{"status-mode", "x", "always200"},
		{"max-body", "0", "at least 1"},
		{"max-body", "ten", "ten"},
		{"max-calls", "-1", "at least 1"},
		{"max-tenant-calls", "0", "at least 1"},
		{"max-waiters", "0", "at least 1"},
		{"trusted-proxies", "10.0.0.1", "10.0.0.0/8"},
		{"redirect-hosts", "https://shop.example.com", "shop.example.com"},
		{"jwt-jwks-url", "https://id.example.com/keys", "--jwt-issuer"},
		{"grace", "0s", "longer"},
		{"grace", "soon", "duration"},
		{"log-level", "loud", "debug"},
		{"log-format", "xml", "text"},
	} {
		t.Run(c.name+"="+filepath.Base(c.value), func(t *testing.T) {
			args := []string{"serve", "--addr=127.0.0.1:0", "--data-dir=" + t.TempDir(), "--" + c.name + "=" + c.value}
			r := cli(args...).want(t, 2, c.msg)
			if !strings.Contains(r.err, "--"+c.name) || strings.Contains(r.err, "secret-word") {
				t.Errorf("it does not name the setting, or shows a secret: %s", r.err)
			}
		})
	}
	t.Run("a tenant that is not there", func(t *testing.T) {
		cli("serve", "--addr=127.0.0.1:0", "--data-dir", t.TempDir(), "--apis-dir", t.TempDir(), "--apis-tenant", "nobody").
			want(t, 2, "--apis-tenant")
	})
	t.Run("keys of an issuer over plain HTTP", func(t *testing.T) {
		cli("serve", "--addr=127.0.0.1:0", "--data-dir", t.TempDir(), "--jwt-issuer=i", "--jwt-audience=a", "--jwt-jwks-url=http://id.example.com/keys").
			want(t, 2, "--jwt-jwks-url must be https")
	})
}

type setting struct{ Name, Value, Origin string }

// settingsOf asks `config` for every setting.
func settingsOf(t *testing.T, args ...string) map[string]setting {
	t.Helper()
	var rows []setting
	r := cli(append([]string{"config", "--json"}, args...)...).want(t, 0, "")
	if err := json.Unmarshal([]byte(r.out), &rows); err != nil {
		t.Fatal(err)
	}
	all := map[string]setting{}
	for _, s := range rows {
		all[s.Name] = s
	}
	return all
}

// Flags win over the environment, that over the file, that over the defaults; config says so.
func TestSettingsAndTheirOrigin(t *testing.T) {
	file := write(t, t.TempDir(), "settings.yaml", strings.Join([]string{
		"prefix: from-file", "instance: from-file", "addr: 127.0.0.1:1", "max-calls: 10000", "grace: 5s", "examples: true",
		"trusted-proxies: [10.0.0.0/8, 192.168.0.0/16]", "max-body: 1000000", "token: t"}, "\n"))
	t.Setenv("APIENGINE_PREFIX", "from-env")
	t.Setenv("APIENGINE_INSTANCE", "from-env")
	t.Setenv("APIENGINE_GRACE", "")
	t.Setenv("APIENGINE_LOG_LEVEL", "")
	for _, c := range []struct {
		how  string
		args []string
	}{{"by flag", []string{"--config", file}}, {"by environment", nil}} {
		t.Run(c.how, func(t *testing.T) {
			if c.args == nil {
				t.Setenv("APIENGINE_CONFIG", file)
			}
			all := settingsOf(t, append(c.args, "--instance=from-flag", "--max-waiters=1000")...)
			for _, want := range []setting{
				{"instance", "from-flag", "flag"},
				{"max-waiters", "1000", "flag"},
				{"prefix", "from-env", "environment APIENGINE_PREFIX"},
				{"addr", "127.0.0.1:1", "file"},
				{"max-calls", "10000", "file"}, // the default's value, and yet the file's
				{"grace", "5s", "file"},        // an empty variable says nothing
				{"examples", "true", "file"},
				{"max-body", "1000000", "file"},
				{"trusted-proxies", "10.0.0.0/8,192.168.0.0/16", "file"},
				{"log-level", "info", "default"},
				{"data-dir", "./data", "default"},
			} {
				if got := all[want.Name]; got != want {
					t.Errorf("got %v, want %v", got, want)
				}
			}
		})
	}
}

// A settings file that is not understood stops every command.
func TestSettingsFilesThatAreRefused(t *testing.T) {
	for _, c := range []struct{ name, text, msg string }{
		{"an unknown name", "adr: x", `"adr"`},
		{"a flag of one command", "force: true", `"force"`},
		{"another file", "config: x", `"config"`},
		{"no value", "addr:", "addr"},
		{"a map", "addr: {a: 1}", "addr"},
		{"a list", "- addr", "settings file"},
		{"no YAML", "addr: [", "settings file"},
		{"a value of the wrong kind", "max-calls: many", "--max-calls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cli("config", "--config", write(t, t.TempDir(), "s.yaml", c.text)).want(t, 2, c.msg)
		})
	}
	cli("config", "--config", "/nowhere/s.yaml").want(t, 2, "--config")
}

// Neither config nor a help text shows a secret.
func TestSecretsAreMasked(t *testing.T) {
	secret := strings.Repeat("5ec2e7", 8) + strings.Repeat("a", 16)
	for _, name := range []string{"APIENGINE_SECRET_KEY", "APIENGINE_TOKEN"} {
		t.Setenv(name, secret)
	}
	t.Setenv("APIENGINE_ADMIN_TOKEN", "aek_"+secret)
	t.Setenv("APIENGINE_DATABASE_URL", "postgres://u:"+secret+"@h/d?sslpassword="+secret)
	t.Setenv("APIENGINE_REDIS_URL", "redis-sentinel://:"+secret+"@h1,h2/m?sentinel_password="+secret)
	for _, args := range [][]string{{"config"}, {"config", "--json"}, {"serve", "--help"}, {"config", "--help"},
		{"push", "--help"}, {"migrate", "--help"}, {"serve", "--nonsense"}} {
		r := cli(args...)
		if strings.Contains(r.out+r.err, secret) {
			t.Errorf("%v shows a secret", args)
		}
	}
	if got := settingsOf(t)["redis-url"].Value; got != "redis-sentinel://:********@h1,h2/m?sentinel_password=********" {
		t.Errorf("the address is shown as %s", got)
	}
}

// Usage errors end with 2 and name the help that says more.
func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		msg  string
	}{
		{nil, "apiengine --help"},
		{[]string{"nonsense"}, "nonsense"},
		{[]string{"run"}, "apiengine run --help"},
		{[]string{"run", "a", "--param", "[1]"}, "--param"},
		{[]string{"run", "a", "--param", "@/nowhere"}, "--param"},
		{[]string{"token", "create", "x", "--expires=-1h"}, "--expires"},
	} {
		cli(c.args...).want(t, 2, c.msg)
	}
	for _, args := range [][]string{{"--help"}, {"version"}, {"version", "--json"}} {
		if r := cli(args...); r.code != 0 || r.out == "" {
			t.Errorf("%v: exit code %d, %s", args, r.code, r.err)
		}
	}
	cli("run", "a", "--url=http://127.0.0.1:1").want(t, 1, "cannot be reached")
	cli("run", "a", "--url=http://127.0.0.1:1", "--json").want(t, 1, `"Kind"`)
	cli("check", "/nowhere").want(t, 1, "/nowhere")
}
