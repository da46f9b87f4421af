package testserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TLSRedis is a redis-server that speaks nothing but TLS.
type TLSRedis struct {
	*RedisServer
	CAFile string // of the authority that signed its certificate, for SSL_CERT_FILE
}

// URL is the server's address as the settings take it.
func (s *TLSRedis) URL() string { return "rediss://" + s.Addr() }

// NewTLSRedis starts one with a certificate for 127.0.0.1 by an authority of its own.
func NewTLSRedis(t testing.TB) *TLSRedis {
	t.Helper()
	dir := t.TempDir()
	ca := newCertificate(t, dir, "ca", nil)
	newCertificate(t, dir, "server", ca)
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	return &TLSRedis{CAFile: file("ca.crt"), RedisServer: newRedis(t, &RedisServer{Port: port, tls: &tls.Config{RootCAs: pool},
		args: []string{"--port", "0", "--tls-port", strconv.Itoa(port), "--tls-auth-clients", "no",
			"--tls-cert-file", file("server.crt"), "--tls-key-file", file("server.key"), "--tls-ca-cert-file", file("ca.crt")}})}
}

type certificate struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newCertificate writes name.crt and name.key, signed by ca, or by itself as an authority.
func newCertificate(t testing.TB, dir, name string, ca *certificate) *certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	if ca == nil {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
		ca = &certificate{c, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, ca.cert, &key.PublicKey, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".crt": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &certificate{made, key}
}
