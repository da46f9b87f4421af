package jsbridge

import (
	"context"
	"encoding/json"
	"testing"
	"time"
)

func newBridge(t testing.TB, cfg Config) *Bridge {
	t.Helper()
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func compile(t testing.TB, code string) *Program {
	t.Helper()
	p, err := Compile(Source{Name: "test.js", Code: code})
	if err != nil {
		t.Fatalf("compile %s: %v", code, err)
	}
	return p
}

// env is a run without services and 5 s to live.
func env() *Env {
	return &Env{Tenant: "t1", APIKey: "test", InvokeType: "Client", Param: json.RawMessage(`{}`),
		Limits: Limits{Deadline: time.Now().Add(5 * time.Second)}}
}

// result runs code and returns its result as text.
func result(t testing.TB, b *Bridge, e *Env, code string) string {
	t.Helper()
	rep, err := b.Run(context.Background(), compile(t, code), e)
	if err != nil {
		t.Fatalf("run %s: %v", code, err)
	}
	if rep.Outcome.IsText {
		return rep.Outcome.Text
	}
	if rep.Outcome.Result == nil {
		return "undefined"
	}
	return string(rep.Outcome.Result)
}

// failure runs code and returns the error it must end with.
func failure(t testing.TB, b *Bridge, e *Env, code string) error {
	t.Helper()
	rep, err := b.Run(context.Background(), compile(t, code), e)
	if err == nil {
		t.Fatalf("%s ended with %s %q, want an error", code, rep.Outcome.Result, rep.Outcome.Text)
	}
	return err
}

type jsonRaw = json.RawMessage
