package jsbridge

import (
	"crypto/rand"
	"encoding/base64"
	"strings"

	"github.com/google/uuid"
)

func globalFuncs() []Func {
	guid := func(*Call, struct{}) (any, error) { return newUUID() }
	toBase64 := func(_ *Call, in struct{ Text string }) (any, error) {
		return base64.StdEncoding.EncodeToString([]byte(in.Text)), nil
	}
	return []Func{
		Fn(".NewGuid", "a random UUID", guid),
		Fn(".crypto.randomUUID", "a random UUID", guid),
		Fn(".System.Convert.ToBase64String", "the base64 of the text's UTF-8 bytes", toBase64),
		Fn(".System.Convert.FromBase64String", "the text whose UTF-8 bytes are given in base64",
			func(_ *Call, in struct{ Text string }) (any, error) {
				b, err := decodeBase64(in.Text)
				if err != nil {
					return nil, argErrorf("System.Convert.FromBase64String: not base64")
				}
				return string(b), nil
			}),
		Fn(".btoa", "the base64 of a string of bytes (characters up to 255)",
			func(_ *Call, in struct{ Text string }) (any, error) {
				b, ok := latin1(in.Text)
				if !ok {
					return nil, argErrorf("btoa: a character is beyond 255; use System.Convert.ToBase64String for text")
				}
				return base64.StdEncoding.EncodeToString(b), nil
			}),
		Fn(".atob", "the string of bytes that base64 stands for",
			func(_ *Call, in struct{ Text string }) (any, error) {
				b, err := decodeBase64(in.Text)
				if err != nil {
					return nil, argErrorf("atob: not base64")
				}
				runes := make([]rune, len(b))
				for i, c := range b {
					runes[i] = rune(c)
				}
				return string(runes), nil
			}),
	}
}

func newUUID() (string, error) {
	id, err := uuid.NewRandomFromReader(rand.Reader)
	return id.String(), err
}

// decodeBase64 accepts both alphabets, with or without padding and white space.
func decodeBase64(s string) ([]byte, error) {
	s = strings.NewReplacer("-", "+", "_", "/", " ", "", "\n", "", "\r", "", "\t", "").Replace(s)
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
}

func latin1(s string) ([]byte, bool) {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 255 {
			return nil, false
		}
		out = append(out, byte(r))
	}
	return out, true
}
