package engine

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"apiengine/fault"
)

// minSecret is the length in bytes below which a secret is not looked for: it would be found
// everywhere.
const minSecret = 4

// secrets are the values that the scripts of one call have read with V8.Secret. None of them
// may show in the console, in the log or in the text of an error.
type secrets struct {
	mu    sync.Mutex // an abandoned run may still read one while the call is recorded
	texts []string   // from, to, from, to
}

// read notes a value, in the forms in which it usually turns up again.
func (s *secrets) read(value string) {
	if len(value) < minSecret {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range forms(value) {
		s.texts = append(s.texts, text, redacted)
	}
}

// forms are a value as it is, inside a JSON string of a script and of Go, in base64, and in
// an address as Go and as a script writes it.
func forms(value string) []string {
	component := strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(url.QueryEscape(value))
	out := []string{value, base64.StdEncoding.EncodeToString([]byte(value)), url.QueryEscape(value), component}
	if text, err := jsontext.AppendQuote(nil, value); err == nil {
		out = append(out, string(text[1:len(text)-1]))
	}
	if text, err := json.Marshal(value); err == nil {
		out = append(out, string(text[1:len(text)-1]))
	}
	return out
}

func (s *secrets) replacer() *strings.Replacer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.texts) == 0 {
		return nil
	}
	return strings.NewReplacer(s.texts...)
}

// hidden is text without the secrets.
func (s *secrets) hidden(text string) string {
	if r := s.replacer(); r != nil {
		return r.Replace(text)
	}
	return text
}

// hide takes the secrets out of everything that is kept of the call, and out of its error.
func (x *Execution) hide(err error) error {
	r := x.secrets.replacer()
	if r == nil {
		return err
	}
	for i := range x.Console {
		x.Console[i].Text = r.Replace(x.Console[i].Text)
	}
	for _, text := range []*json.RawMessage{&x.Param, &x.Result} {
		if *text != nil {
			*text = json.RawMessage(r.Replace(string(*text)))
		}
	}
	if err == nil || r.Replace(err.Error()) == err.Error() && r.Replace(fault.Public(err)) == fault.Public(err) {
		return err
	}
	return &hiddenError{err: err, r: r}
}

// hiddenError is an error whose texts had a secret in them.
type hiddenError struct {
	err error
	r   *strings.Replacer
}

func (e *hiddenError) Error() string { return e.r.Replace(e.err.Error()) }

// Unwrap keeps what the error is.
func (e *hiddenError) Unwrap() error { return e.err }

// Public is what the error says for callers.
func (e *hiddenError) Public() string { return e.r.Replace(fault.Public(e.err)) }

// secret reads a secret for a script and notes its value.
func (f *frame) secret(ctx context.Context, name string) (string, error) {
	value, err := f.tree.e.cfg.Settings.Secret(ctx, f.call.Tenant, name)
	if err == nil {
		f.x.secrets.read(value)
	}
	return value, err
}
