package engine_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// The settings of an issuer let its tokens in, by their roles, and no other's.
func TestJWTSettings(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{"keys": []map[string]string{
			{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "k", "x": base64.RawURLEncoding.EncodeToString(public)}}})
	}))
	defer keys.Close()
	n := startNode(t, "--data-dir", t.TempDir(), "--jwt-issuer", "https://id.example.com", "--jwt-audience", "apiengine",
		"--jwt-jwks-url", keys.URL, "--jwt-tenant-claim", "org")
	n.push(t, map[string]any{"ApiEngineKey": "who", "ApiRole": []string{"clerk"}, "ApiV8Code": "return { Code: 1, Data: V8.CurrentUser.Name };"})
	for _, c := range []struct {
		name   string
		change jwt.MapClaims
		status int
	}{
		{"good", nil, 200},
		{"another issuer", jwt.MapClaims{"iss": "https://other.example.com"}, 401},
		{"another audience", jwt.MapClaims{"aud": "other"}, 401},
		{"expired", jwt.MapClaims{"exp": time.Now().Add(-time.Hour).Unix()}, 401},
		{"without the role", jwt.MapClaims{"roles": []string{"guest"}}, 403},
		{"no tenant", jwt.MapClaims{"org": ""}, 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			claims := jwt.MapClaims{"iss": "https://id.example.com", "aud": "apiengine", "sub": "u1", "name": "Ada", "org": "default",
				"roles": []string{"clerk"}, "exp": time.Now().Add(time.Hour).Unix()}
			for k, v := range c.change {
				claims[k] = v
			}
			token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
			token.Header["kid"] = "k"
			text, err := token.SignedString(private)
			if err != nil {
				t.Fatal(err)
			}
			req, _ := http.NewRequestWithContext(t.Context(), "GET", n.URL+"/apiengine/who", nil)
			req.Header.Set("Authorization", "Bearer "+text)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if a := answerOf(res); a.Status != c.status || (c.status == 200 && a.JSON.Data != "Ada") {
				t.Errorf("%d %s, want %d", a.Status, a.Body, c.status)
			}
		})
	}
}
