package testserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// EtcdCluster is a cluster of three etcd servers.
type EtcdCluster struct {
	Servers []*EtcdServer
}

// NewEtcdCluster starts the servers and waits until each of them serves.
func NewEtcdCluster(t testing.TB) *EtcdCluster {
	t.Helper()
	c := &EtcdCluster{}
	var members []string
	for i := range 3 {
		s, err := newEtcd()
		if err != nil {
			t.Fatal(err)
		}
		s.name = fmt.Sprint("m", i)
		c.Servers, members = append(c.Servers, s), append(members, s.member())
	}
	for _, s := range c.Servers { // none serves before two run
		s.cluster = strings.Join(members, ",")
		if err := s.Launch(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Stop(syscall.SIGKILL) })
	}
	for _, s := range c.Servers {
		eventually(t, "etcd", s.Process, s.healthy)
	}
	return c
}

// URL is the cluster's address as the settings take it.
func (c *EtcdCluster) URL() string {
	var all []string
	for _, s := range c.Servers {
		all = append(all, s.URL())
	}
	return strings.Join(all, ",")
}

// Leader waits until the servers that answer know a leader among them, and returns it.
func (c *EtcdCluster) Leader(t testing.TB) (leader *EtcdServer) {
	t.Helper()
	eventually(t, "a leader", nil, func(ctx context.Context) error {
		for _, s := range c.Servers {
			if id, err := s.status(ctx); err == nil && id.Leader != "" && id.Leader == id.Header.MemberID {
				leader = s
				return nil
			}
		}
		return errors.New("testserver: no etcd server leads")
	})
	return leader
}

type etcdStatus struct {
	Header struct {
		MemberID string `json:"member_id"`
	} `json:"header"`
	Leader string `json:"leader"`
}

// status asks by the gateway of etcd's own API. A stopped server does not answer.
func (s *EtcdServer) status(ctx context.Context) (id etcdStatus, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v3/maintenance/status", strings.NewReader("{}"))
	if err != nil {
		return id, err
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return id, err
	}
	defer a.Body.Close()
	return id, json.NewDecoder(a.Body).Decode(&id)
}
