package outbox

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"apiengine/engine"
	"apiengine/fault"
)

// Invoker runs calls; *engine.Engine is one.
type Invoker interface {
	Invoke(ctx context.Context, c engine.Call) (*engine.Result, error)
}

// Poster sends a tenant's POST outside, by the rules of what it may reach, and returns the
// status. Redirects are not followed: a message is for the address it names.
type Poster interface {
	Post(ctx context.Context, tenant, address string, header map[string]string, body []byte) (status int, err error)
}

// Secrets gives the key by which a tenant's messages are signed; fault.NotFound: none set.
type Secrets interface {
	Secret(ctx context.Context, tenant, name string) (string, error)
}

// SigningKey is the name of the tenant's secret that messages are signed with.
const SigningKey = "outbox_signing_key"

// GapHeader tells a receiver that an earlier message of the same Key is a dead letter. One
// that must not go past it refuses: the message is tried again, and holds up its key.
const GapHeader = "X-Outbox-Gap"

// Carrier delivers to APIs and to addresses. All fields are required.
type Carrier struct {
	Calls   Invoker
	Outside Poster
	Secrets Secrets
}

// body is what arrives, the same bytes at every try: V8.Param of an API, the body of a POST.
func body(m Message) ([]byte, error) {
	return json.Marshal(struct {
		EventID      string `json:"EventId"`
		Type         string
		Key          string `json:",omitempty"`
		Data         json.RawMessage
		SentAt       time.Time
		FencingToken int64
	}{m.EventID, m.Type, m.Key, m.Data, m.CreatedAt, m.Token})
}

// header is what goes with every try.
func header(m Message) map[string]string {
	h := map[string]string{
		"Idempotency-Key":  m.EventID,
		"X-Event-Type":     m.Type,
		"X-Outbox-Attempt": strconv.Itoa(m.Attempts),
		"Content-Type":     "application/json",
		engine.HopsHeader:  strconv.FormatInt(m.Hops, 10),
	}
	if m.Token > 0 {
		h["X-Fencing-Token"] = strconv.FormatInt(m.Token, 10)
	}
	if m.Gap {
		h[GapHeader] = "1"
	}
	return h
}

// Deliver implements Deliverer.
func (c Carrier) Deliver(ctx context.Context, tenant string, m Message) error {
	text, err := body(m)
	if err != nil {
		return err
	}
	if engine.IsAddress(m.Target) {
		return c.outside(ctx, tenant, m, text)
	}
	return c.inside(ctx, tenant, m, text)
}

// inside calls an API of the tenant. A run that was rolled back, by its own Code too, has
// not taken the message.
func (c Carrier) inside(ctx context.Context, tenant string, m Message, text []byte) error {
	res, err := c.Calls.Invoke(ctx, engine.Call{Tenant: tenant, Key: m.Target, Method: "POST", Param: text,
		Header: header(m), Caller: engine.Caller{ID: "outbox", Account: "outbox", Name: "outbox"},
		Origin: engine.OriginOutbox, RequestID: m.EventID, IdempotencyKey: m.EventID, Accept: keep})
	if err != nil {
		return err
	}
	if res.Execution.Outcome == engine.OutcomeBusiness {
		return refused(m.Target, res.Body)
	}
	return nil
}

// RefusedError reports a target that was reached and answered that it has not done it.
type RefusedError struct{ Target, Answer string }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the target %s answered %s", e.Target, e.Answer)
}

// Kind is that of a business answer: nothing of the platform has failed.
func (e *RefusedError) Kind() fault.Kind { return engine.OutcomeBusiness }

// Public is the whole text.
func (e *RefusedError) Public() string { return e.Error() }

// refused is an API's business refusal, in its own words.
func refused(target string, body []byte) error {
	var said struct {
		Code json.RawMessage
		Msg  string
	}
	_ = json.Unmarshal(body, &said) // a Msg of another type says nothing
	e := &RefusedError{Target: target, Answer: "without a Code"}
	if len(said.Code) > 0 {
		e.Answer = "Code " + string(said.Code)
	}
	if said.Msg != "" {
		e.Answer += ": " + said.Msg
	}
	return e
}

// keep makes the answer that a later delivery of the same message gets, without another run.
func keep(res *engine.Result) error {
	res.Answer = &engine.Answer{Status: 200, Header: map[string]string{"Content-Type": "application/json"}, Body: res.Body}
	return nil
}

func (c Carrier) outside(ctx context.Context, tenant string, m Message, text []byte) error {
	h := header(m)
	h[engine.HopsHeader] = strconv.FormatInt(m.Hops+1, 10)
	key, err := c.Secrets.Secret(ctx, tenant, SigningKey)
	switch {
	case err == nil:
		sign(h, key, m.EventID, time.Now(), text)
	case fault.Of(err) != fault.NotFound:
		return err
	}
	status, err := c.Outside.Post(ctx, tenant, m.Target, h, text)
	if err == nil && (status < 200 || status > 299) {
		err = &RefusedError{Target: m.Target, Answer: fmt.Sprintf("status %d", status)}
	}
	return err
}

// sign adds the headers of the Standard Webhooks specification, which receivers have
// libraries for: an HMAC-SHA256 over id, timestamp and body, joined by dots.
func sign(h map[string]string, key, id string, now time.Time, text []byte) {
	secret := []byte(key)
	if encoded, ok := strings.CutPrefix(key, "whsec_"); ok {
		if raw, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			secret = raw
		}
	}
	stamp := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(id + "." + stamp + "."))
	mac.Write(text)
	h["Webhook-Id"], h["Webhook-Timestamp"] = id, stamp
	h["Webhook-Signature"] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
