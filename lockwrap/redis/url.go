package redis

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// ParseURL reads a Redis address in one of these forms, each with ?options of go-redis
// (pool_size, client_name ...) and with user and password where needed:
//
//	redis://user:password@host:port/db             one server
//	redis-sentinel://user:password@h1,h2/master    those that Sentinel calls master; ?db=,
//	                                               ?sentinel_username=, ?sentinel_password=
//	redis-cluster://user:password@h1,h2            a cluster; any of its servers
//
// rediss, rediss-sentinel and rediss-cluster are the same over TLS (?skip_verify=true for
// tests). Ports default to 6379, Sentinel's to 26379. No error repeats the address, which
// may hold a password.
func ParseURL(address string) (*goredis.UniversalOptions, error) {
	a, err := split(address)
	if err != nil {
		return nil, err
	}
	sentinelUser, sentinelPassword := a.take("sentinel_username"), a.take("sentinel_password")
	o, err := goredis.ParseURL(a.simple())
	if err != nil {
		return nil, fmt.Errorf("redis: the address cannot be used: %w", withoutURL(err))
	}
	u := universal(o)
	u.Addrs = a.addrs
	if u.TLSConfig != nil && a.mode != "" {
		u.TLSConfig.ServerName = "" // each server's own, not the first one's
	}
	switch a.mode {
	case "sentinel":
		u.MasterName, u.SentinelUsername, u.SentinelPassword = a.path, sentinelUser, sentinelPassword
	case "cluster":
		u.IsClusterMode = true
		if o.DB != 0 {
			return nil, errors.New("redis: a cluster has no database numbers")
		}
	}
	return u, nil
}

// address is a Redis address in its parts.
type address struct {
	tls   bool
	mode  string // empty, sentinel or cluster
	user  *url.Userinfo
	addrs []string // host:port
	path  string   // without slashes: the database, or the master's name
	query url.Values
}

var errUnreadable = errors.New("redis: the address cannot be read; a password with / ? # @ or % must be percent-encoded")

func split(text string) (a address, err error) {
	scheme, rest, found := strings.Cut(text, "://")
	base, mode, _ := strings.Cut(strings.ToLower(scheme), "-")
	a.tls, a.mode = base == "rediss", mode
	if !found || base != "redis" && base != "rediss" || mode != "" && mode != "sentinel" && mode != "cluster" {
		return a, errors.New("redis: an address starts with redis://, rediss://, redis-sentinel:// or redis-cluster://")
	}
	end := len(rest)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		end = i
	}
	if strings.Contains(rest[end:], "@") { // a password with a slash: no later message must show its end
		return a, errUnreadable
	}
	hosts := rest[:end]
	at := strings.LastIndexByte(hosts, '@')
	// Everything but the list of hosts, which net/url would not take.
	u, err := url.Parse("redis://" + hosts[:at+1] + "host" + rest[end:])
	if err != nil || u.Fragment != "" {
		return a, errUnreadable
	}
	a.user, a.query, a.path = u.User, u.Query(), strings.Trim(u.Path, "/")
	if a.addrs, err = addresses(hosts[at+1:], a.port()); err != nil {
		return a, err
	}
	return a, a.check()
}

func (a *address) port() string {
	if a.mode == "sentinel" {
		return "26379"
	}
	return "6379"
}

func (a *address) check() error {
	switch {
	case a.mode == "" && len(a.addrs) > 1:
		return errors.New("redis: several hosts need redis-sentinel:// or redis-cluster://")
	case a.mode == "sentinel" && (a.path == "" || strings.Contains(a.path, "/")):
		return errors.New("redis: redis-sentinel:// needs the master's name: redis-sentinel://host,host/name")
	}
	return nil
}

// addresses completes each host of a comma-separated list with the port.
func addresses(list, port string) ([]string, error) {
	var all []string
	for part := range strings.SplitSeq(list, ",") {
		u, err := url.Parse("redis://" + part)
		if err != nil || u.User != nil || u.Hostname() == "" {
			return nil, errUnreadable
		}
		p := port
		if u.Port() != "" {
			p = u.Port()
		}
		all = append(all, net.JoinHostPort(u.Hostname(), p))
	}
	return all, nil
}

// take removes an option and returns it.
func (a *address) take(name string) string {
	v := a.query.Get(name)
	a.query.Del(name)
	return v
}

// simple is the address as go-redis reads that of one server.
func (a *address) simple() string {
	u := url.URL{Scheme: "redis", User: a.user, Host: a.addrs[0], RawQuery: a.query.Encode()}
	if a.tls {
		u.Scheme = "rediss"
	}
	if a.mode != "sentinel" {
		u.Path = "/" + a.path
	}
	return u.String()
}

// withoutURL keeps the reason of an error of net/url and drops the address.
func withoutURL(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return errUnreadable
	}
	return err
}

// universal carries over what an address can set.
func universal(o *goredis.Options) *goredis.UniversalOptions {
	return &goredis.UniversalOptions{
		DB: o.DB, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		Protocol: o.Protocol, ClientName: o.ClientName,
		MaxRetries: o.MaxRetries, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		PoolFIFO: o.PoolFIFO, PoolSize: o.PoolSize, PoolTimeout: o.PoolTimeout,
		MinIdleConns: o.MinIdleConns, MaxIdleConns: o.MaxIdleConns, MaxActiveConns: o.MaxActiveConns,
		MaxConcurrentDials: o.MaxConcurrentDials, PipelinePoolSize: o.PipelinePoolSize,
		PipelineReadBufferSize: o.PipelineReadBufferSize, PipelineWriteBufferSize: o.PipelineWriteBufferSize,
		ConnMaxIdleTime: o.ConnMaxIdleTime, ConnMaxLifetime: o.ConnMaxLifetime, ConnMaxLifetimeJitter: o.ConnMaxLifetimeJitter,
	}
}
