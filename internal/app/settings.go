package app

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Settings are everything an operator can set: by flag, else by environment variable, else
// in the file that --config names, else the default (contract.md section 7). The struct's
// tags are read by kong.
type Settings struct {
	Addr        string `default:"127.0.0.1:8080" env:"APIENGINE_ADDR" help:"Address to listen on. Loopback unless you say otherwise."`
	DataDir     string `default:"./data" env:"APIENGINE_DATA_DIR" help:"Folder for the embedded databases, the first admin token and the secret key."`
	DatabaseURL string `name:"database-url" env:"APIENGINE_DATABASE_URL" secret:"url" help:"PostgreSQL, postgres://... None: SQLite in data-dir."`
	TenantRoles string `default:"on" enum:"on,off" env:"APIENGINE_TENANT_ROLES" help:"on: each tenant's statements run under a PostgreSQL role of its own (needs CREATEROLE, or roles made by hand); off: under the role of database-url."`
	RedisURL    string `name:"redis-url" env:"APIENGINE_REDIS_URL" secret:"url" help:"Redis for lock and cache: redis://, rediss://, redis-sentinel://h1,h2/master, redis-cluster://h1,h2. None: both embedded."`
	LockBackend string `default:"auto" env:"APIENGINE_LOCK_BACKEND" help:"auto (redis if redis-url is set, else postgres if database-url is, else embedded), redis, postgres, etcd or embedded."`
	Etcd        string `name:"etcd-endpoints" env:"APIENGINE_ETCD_ENDPOINTS" secret:"url" help:"etcd for the lock: http://h1:2379,http://h2:2379 or https; the first may hold user:password@."`
	LockVerify  string `default:"fresh" enum:"fresh,always" env:"APIENGINE_LOCK_VERIFY" help:"fresh: a fresh grant is confirmed by the local clock before the script; always: by the backend."`
	Prefix      string `default:"apiengine" env:"APIENGINE_PREFIX" help:"First part of every Redis key and every lock's name."`
	Instance    string `env:"APIENGINE_INSTANCE" help:"This node's name in locks and logs. None: host name and process id."`

	ApisDir  string `name:"apis-dir" env:"APIENGINE_APIS_DIR" type:"path" help:"Folder of definition files to load and watch."`
	ApisTo   string `name:"apis-tenant" default:"default" env:"APIENGINE_APIS_TENANT" help:"Tenant that apis-dir is loaded into."`
	Examples bool   `env:"APIENGINE_EXAMPLES" help:"Load the examples into the tenant default."`

	AdminToken string `env:"APIENGINE_ADMIN_TOKEN" secret:"all" help:"Admin token to accept, aek_ and at least 28 characters more. None: made at the first start, shown once, kept in data-dir/admin-token."`
	SecretKey  string `env:"APIENGINE_SECRET_KEY" secret:"all" help:"Key for stored secrets: 32 bytes as base64 or hex. None: made in data-dir/secret-key (nodes that share a database must share it)."`
	SqliteSync string `default:"full" enum:"full,normal" env:"APIENGINE_SQLITE_SYNC" help:"full: an answer with Code 1 survives a power cut; normal: faster, survives a crash of the process."`

	StatusMode     string   `default:"http" enum:"http,always200" env:"APIENGINE_STATUS_MODE" help:"always200 answers refusals with status 200, for clients of the original platform."`
	MaxBody        int64    `default:"10485760" env:"APIENGINE_MAX_BODY" help:"Largest request body in bytes."`
	MaxCalls       int      `default:"10000" env:"APIENGINE_MAX_CALLS" help:"Calls in flight on this node, waiting ones included."`
	MaxTenantCalls int      `default:"5000" env:"APIENGINE_MAX_TENANT_CALLS" help:"Calls in flight of one tenant."`
	MaxWaiters     int      `default:"1000" env:"APIENGINE_MAX_WAITERS" help:"Calls of this node that wait for one lock."`
	Memory         int64    `env:"APIENGINE_MEMORY" help:"Bytes that the process may use before runs are ended. None: GOMEMLIMIT, else four fifths of the container's limit, else half of the machine's memory."`
	RunMemory      int64    `env:"APIENGINE_RUN_MEMORY" help:"Bytes that one run may hold. None: a fifth of memory, at most 512 MiB."`
	TrustedProxies []string `env:"APIENGINE_TRUSTED_PROXIES" help:"Networks (CIDR) whose X-Forwarded-For is believed."`
	RedirectHosts  []string `env:"APIENGINE_REDIRECT_HOSTS" help:"Hosts other than our own that V8.Response.Redirect may name."`

	HTTPAllow    []string `name:"http-allow" env:"APIENGINE_HTTP_ALLOW" help:"What V8.Http and the outbox may reach beside public addresses: host, host:port, or a network such as 10.0.0.0/8."`
	HTTPMaxBody  int64    `name:"http-max-body" default:"10485760" env:"APIENGINE_HTTP_MAX_BODY" help:"Largest answer to V8.Http in bytes, unpacked."`
	HTTPMaxCalls int      `name:"http-max-calls" default:"20" env:"APIENGINE_HTTP_MAX_CALLS" help:"Requests of V8.Http that one call may send, with its nested calls."`

	OutboxAttempts int           `default:"20" env:"APIENGINE_OUTBOX_ATTEMPTS" help:"Tries to deliver a message before it is a dead letter."`
	OutboxBackoff  time.Duration `default:"5s" env:"APIENGINE_OUTBOX_BACKOFF" help:"Pause before the second try, doubled for each further one up to 1h."`
	OutboxLease    time.Duration `default:"30s" env:"APIENGINE_OUTBOX_LEASE" help:"How long the messages that a node was delivering wait after it has died."`
	OutboxKeep     time.Duration `default:"168h" env:"APIENGINE_OUTBOX_KEEP" help:"How long delivered messages are kept; a repeated EventId is known as long."`
	InboxKeep      time.Duration `default:"2160h" env:"APIENGINE_INBOX_KEEP" help:"How long V8.Inbox.Once remembers."`

	TaskWorkers  int           `default:"0" env:"APIENGINE_TASK_WORKERS" help:"Slices of background tasks that this node runs at a time. 0: twice the processors, at least 4."`
	TaskAttempts int           `default:"10" env:"APIENGINE_TASK_ATTEMPTS" help:"Tries of a slice before its task is dead, unless the task says otherwise."`
	TaskBackoff  time.Duration `default:"5s" env:"APIENGINE_TASK_BACKOFF" help:"Pause before the second try of a slice, doubled for each further one up to 60 times as long."`
	TaskKeep     time.Duration `default:"720h" env:"APIENGINE_TASK_KEEP" help:"How long tasks that are over are kept."`

	JWTIssuer      string `name:"jwt-issuer" env:"APIENGINE_JWT_ISSUER" help:"Issuer whose JWTs are accepted. None: only this server's tokens."`
	JWTAudience    string `name:"jwt-audience" env:"APIENGINE_JWT_AUDIENCE" help:"Audience that a JWT must have."`
	JWTKeys        string `name:"jwt-jwks-url" env:"APIENGINE_JWT_JWKS_URL" help:"Address of the issuer's keys (JWKS)."`
	JWTTenantClaim string `name:"jwt-tenant-claim" env:"APIENGINE_JWT_TENANT_CLAIM" help:"Claim that names a JWT's tenant. None: every JWT belongs to the tenant default."`

	KeepAnswers time.Duration `default:"24h" env:"APIENGINE_KEEP_ANSWERS" help:"How long the answer to an Idempotency-Key is kept."`
	ClaimLease  time.Duration `default:"15s" env:"APIENGINE_CLAIM_LEASE" help:"How long a repeat with an Idempotency-Key is refused after the node of the first call has died (PostgreSQL)."`

	Grace     time.Duration `default:"30s" env:"APIENGINE_GRACE" help:"Longest that a shutdown waits for running calls."`
	LogLevel  string        `default:"info" enum:"debug,info,warn,error" env:"APIENGINE_LOG_LEVEL" help:"Least level that is logged."`
	LogFormat string        `default:"json" enum:"json,text" env:"APIENGINE_LOG_FORMAT" help:"Form of the log."`
}

// SettingError names the setting that stops the start.
type SettingError struct {
	Name string // as a flag
	Msg  string
}

func (e *SettingError) Error() string { return fmt.Sprintf("--%s %s", e.Name, e.Msg) }

// Check reports the first unusable setting.
func (s *Settings) Check() error {
	checks := []struct {
		name string
		err  string
	}{
		{"addr", addrProblem(s.Addr)},
		{"data-dir", emptyProblem(s.DataDir)},
		{"database-url", schemeProblem(s.DatabaseURL, "postgres", "postgresql")},
		{"redis-url", schemeProblem(s.RedisURL, "redis", "rediss", "redis-sentinel", "redis-cluster")},
		{"lock-backend", s.lockBackendProblem()},
		{"etcd-endpoints", s.etcdProblem()},
		{"prefix", prefixProblem(s.Prefix)},
		{"max-body", atLeastOne(s.MaxBody)},
		{"max-calls", atLeastOne(int64(s.MaxCalls))},
		{"memory", notNegative(s.Memory)},
		{"run-memory", notNegative(s.RunMemory)},
		{"max-tenant-calls", atLeastOne(int64(s.MaxTenantCalls))},
		{"max-waiters", atLeastOne(int64(s.MaxWaiters))},
		{"trusted-proxies", networksProblem(s.TrustedProxies)},
		{"redirect-hosts", hostsProblem(s.RedirectHosts)},
		{"admin-token", adminTokenProblem(s.AdminToken)},
		{"secret-key", secretKeyProblem(s.SecretKey)},
		{"jwt-jwks-url", s.jwtProblem()},
		{"keep-answers", positiveProblem(s.KeepAnswers)},
		{"claim-lease", leaseProblem(s.ClaimLease)},
		{"grace", positiveProblem(s.Grace)},
		{"http-allow", allowProblem(s.HTTPAllow)},
		{"http-max-body", atLeastOne(s.HTTPMaxBody)},
		{"http-max-calls", atLeastOne(int64(s.HTTPMaxCalls))},
		{"outbox-attempts", atLeastOne(int64(s.OutboxAttempts))},
		{"outbox-backoff", positiveProblem(s.OutboxBackoff)},
		{"outbox-lease", leaseProblem(s.OutboxLease)},
		{"outbox-keep", positiveProblem(s.OutboxKeep)},
		{"inbox-keep", positiveProblem(s.InboxKeep)},
		{"task-workers", notNegative(int64(s.TaskWorkers))},
		{"task-attempts", atLeastOne(int64(s.TaskAttempts))},
		{"task-backoff", positiveProblem(s.TaskBackoff)},
		{"task-keep", positiveProblem(s.TaskKeep)},
	}
	for _, c := range checks {
		if c.err != "" {
			return &SettingError{c.name, c.err}
		}
	}
	return nil
}

// Defaults are the settings of an operator who sets nothing.
func Defaults() Settings {
	var s Settings
	parser, err := kong.New(&s)
	if err == nil {
		_, err = parser.Parse(nil)
	}
	if err != nil { // the struct's tags are wrong: every test fails at once
		panic(err)
	}
	return s
}

// lockKind is the lock backend that the settings mean.
func (s *Settings) lockKind() string {
	switch {
	case s.LockBackend != "auto":
		return s.LockBackend
	case s.RedisURL != "":
		return "redis"
	case s.DatabaseURL != "":
		return "postgres"
	}
	return "embedded"
}

func (s *Settings) lockBackendProblem() string {
	needs := map[string]struct{ setting, value string }{
		"auto": {"", "-"}, "embedded": {"", "-"},
		"redis": {"redis-url", s.RedisURL}, "postgres": {"database-url", s.DatabaseURL}, "etcd": {"etcd-endpoints", s.Etcd},
	}
	n, known := needs[s.LockBackend]
	switch {
	case !known:
		return "must be auto, redis, postgres, etcd or embedded, not " + s.LockBackend
	case n.value == "":
		return s.LockBackend + " needs --" + n.setting
	}
	return ""
}

func (s *Settings) etcdProblem() string {
	if s.Etcd != "" && s.LockBackend != "etcd" {
		return "goes together with --lock-backend etcd"
	}
	return schemeProblem(s.Etcd, "http", "https")
}

func (s *Settings) jwtProblem() string {
	if s.JWTIssuer == "" && s.JWTAudience == "" && s.JWTKeys == "" {
		return ""
	}
	if s.JWTIssuer == "" || s.JWTAudience == "" || s.JWTKeys == "" {
		return "goes together with --jwt-issuer and --jwt-audience: set all three or none"
	}
	u, err := url.Parse(s.JWTKeys)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return "must be an address such as https://id.example.com/keys"
	}
	if host, err := netip.ParseAddr(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (err != nil || !host.IsLoopback()) {
		return "must be https, or http to this machine: whoever can change the keys on their way can sign in"
	}
	return ""
}

func addrProblem(a string) string {
	if _, _, err := net.SplitHostPort(a); err != nil {
		return fmt.Sprintf("must be host:port, not %q", a)
	}
	return ""
}

func emptyProblem(v string) string {
	if v == "" {
		return "must not be empty"
	}
	return ""
}

// schemeProblem never repeats the address, which can hold a password.
func schemeProblem(raw string, schemes ...string) string {
	if raw == "" {
		return ""
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || rest == "" {
		return "must be an address such as " + schemes[0] + "://host"
	}
	for _, s := range schemes {
		if strings.EqualFold(s, scheme) {
			return ""
		}
	}
	return fmt.Sprintf("must begin with %s://, not %s://", strings.Join(schemes, ":// or "), scheme)
}

func prefixProblem(p string) string {
	if p == "" || strings.ContainsAny(p, "{}: \t\n") {
		return "must not be empty or hold braces, colons or white space"
	}
	return ""
}

func notNegative(n int64) string {
	if n < 0 {
		return fmt.Sprintf("must not be negative, not %d", n)
	}
	return ""
}

func atLeastOne(n int64) string {
	if n < 1 {
		return fmt.Sprintf("must be at least 1, not %d", n)
	}
	return ""
}

func positiveProblem(d time.Duration) string {
	if d <= 0 {
		return fmt.Sprintf("must be longer than nothing, not %v", d)
	}
	return ""
}

func networksProblem(list []string) string {
	for _, n := range list {
		if _, err := netip.ParsePrefix(n); err != nil {
			return fmt.Sprintf("must be networks such as 10.0.0.0/8, not %q", n)
		}
	}
	return ""
}

// hostsProblem takes what a browser sends as Host: a name or an address, with a port or without.
func hostsProblem(list []string) string {
	for _, h := range list {
		if h == "" || strings.ContainsAny(h, "/@?# \t") {
			return fmt.Sprintf("must be hosts such as shop.example.com, not %q", h)
		}
	}
	return ""
}

func adminTokenProblem(t string) string {
	if t != "" && (len(t) < 32 || !strings.HasPrefix(t, "aek_")) {
		return "must begin with aek_ and have at least 32 characters"
	}
	return ""
}

func secretKeyProblem(k string) string {
	if k == "" {
		return ""
	}
	if _, err := parseSecretKey(k); err != nil {
		return err.Error()
	}
	return ""
}

func parseSecretKey(k string) ([]byte, error) {
	if b, err := hex.DecodeString(k); err == nil && len(b) == sha256.Size {
		return b, nil
	}
	if b, err := base64.StdEncoding.DecodeString(k); err == nil && len(b) == sha256.Size {
		return b, nil
	}
	return nil, fmt.Errorf("must be 32 bytes as 64 hex digits or as base64")
}

// instanceName is unique among the nodes that share a Redis, and readable in a log.
func (s *Settings) instanceName() string {
	if s.Instance != "" {
		return s.Instance
	}
	host, err := os.Hostname()
	if err != nil {
		host = "node"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// masked stands for a secret.
const masked = "********"

// maskURL hides the password of an address, and those in its query. Lists of hosts, which
// net/url does not take, come through.
func maskURL(raw string) string {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return masked
	}
	rest, query, hasQuery := strings.Cut(rest, "?")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, _, hasPassword := strings.Cut(rest[:at], ":")
		if hasPassword {
			user += ":" + masked
		}
		rest = user + rest[at:]
	}
	if hasQuery {
		rest += "?" + maskQuery(query)
	}
	return scheme + "://" + rest
}

func maskQuery(query string) string {
	fields := strings.Split(query, "&")
	for i, f := range fields {
		if name, _, _ := strings.Cut(f, "="); strings.Contains(strings.ToLower(name), "password") {
			fields[i] = name + "=" + masked
		}
	}
	return strings.Join(fields, "&")
}
