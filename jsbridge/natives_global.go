package jsbridge

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

func globalFuncs() []Func {
	guid := func(*Call, struct{}) (any, error) { return newUUID() }
	return append([]Func{
		Fn(".NewGuid", "a random UUID", guid),
		Fn(".crypto.randomUUID", "a random UUID", guid),
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
		Fn("Base64.StringToBase64", "the base64 of the text's UTF-8 bytes",
			func(_ *Call, in struct{ Text []byte }) (any, error) {
				return base64.StdEncoding.EncodeToString(in.Text), nil
			}),
		Fn("Base64.Base64ToString", "the text whose UTF-8 bytes are given in base64; what is not base64 comes back as it is",
			func(_ *Call, in struct{ Text string }) (any, error) {
				if b, err := decodeBase64(in.Text); err == nil && utf8.Valid(b) {
					return string(b), nil
				}
				return in.Text, nil
			}),
	}, systemFuncs()...)
}

// systemFuncs are what handlers use of .NET's System. Bytes are Uint8Arrays.
func systemFuncs() []Func {
	return []Func{
		Fn(".System.Convert.ToBase64String", "the base64 of bytes, or of a text's UTF-8 bytes",
			func(_ *Call, in struct{ Text []byte }) (any, error) {
				return base64.StdEncoding.EncodeToString(in.Text), nil
			}),
		Fn(".System.Convert.FromBase64String", "the text whose UTF-8 bytes are given in base64; bytes (Uint8Array) when they are no UTF-8",
			func(_ *Call, in struct{ Text string }) (any, error) {
				b, err := decodeBase64(in.Text)
				switch {
				case err != nil:
					return nil, argErrorf("System.Convert.FromBase64String: not base64")
				case !utf8.Valid(b):
					return b, nil
				}
				return string(b), nil
			}),
		Fn(".System.Guid.NewGuid", "a random UUID, a string", func(*Call, struct{}) (any, error) { return newUUID() }),
		Fn(".System.Text.Encoding.UTF8.GetBytes", "the text's UTF-8 bytes, a Uint8Array",
			func(_ *Call, in struct{ Text string }) (any, error) { return []byte(in.Text), nil }),
		Fn(".System.Text.Encoding.UTF8.GetByteCount", "the number of the text's UTF-8 bytes",
			func(_ *Call, in struct{ Text string }) (any, error) { return int64(len(in.Text)), nil }),
		Fn(".System.Text.Encoding.UTF8.GetString", "the text of UTF-8 bytes; a text stays as it is",
			func(_ *Call, in struct{ Bytes []byte }) (any, error) {
				return strings.ToValidUTF8(string(in.Bytes), string(utf8.RuneError)), nil
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
