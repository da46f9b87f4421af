package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"apiengine/fault"
	"apiengine/jsbridge"
	"apiengine/lockwrap"
)

func newID() string {
	id, err := uuid.NewV7()
	if err != nil { // no randomness left: the machine is beyond help, the call is not
		return time.Now().UTC().Format("20060102T150405.000000000")
	}
	return id.String()
}

// locked notes the first lock that the call took.
func (x *Execution) locked(l *lockwrap.Lease) {
	x.LockWait += l.Waited()
	if x.Token == 0 {
		x.Lock, x.Token = l.Key().String(), l.Token()
	}
}

// released notes how long the call's own lock was held.
func (x *Execution) released(l *lockwrap.Lease) {
	if l.Token() == x.Token {
		x.LockHold = time.Since(l.Sent())
	}
}

// add counts what a nested call did.
func (x *Execution) add(r jsbridge.Report) {
	x.Stats.HostCalls += r.Stats.HostCalls
	x.Stats.DBTime += r.Stats.DBTime
	x.Stats.CacheTime += r.Stats.CacheTime
	for _, l := range r.Console {
		if x.consoleSize += len(l.Text); len(x.Console) >= maxConsoleLines || x.consoleSize > maxConsoleBytes {
			return
		}
		x.Console = append(x.Console, l)
	}
}

// calls notes the name of a nested API, each once.
func (x *Execution) calls(key string) {
	if len(x.Nested) < maxNestedNames && !slices.Contains(x.Nested, key) {
		x.Nested = append(x.Nested, key)
	}
}

// maxNestedNames is how many nested APIs one execution names.
const maxNestedNames = 50

// What one execution keeps of the console, its nested calls included; each run is bounded
// by itself already.
const (
	maxConsoleLines = 1000
	maxConsoleBytes = 256 << 10
)

// note records what the root's run left.
func (x *Execution) note(f *frame, r jsbridge.Report, err error) {
	x.add(r)
	slices.SortStableFunc(x.Console, func(a, b jsbridge.Line) int { return a.Time.Compare(b.Time) })
	d := &f.api.Definition
	if d.LogParam {
		x.Param = Redact(f.call.Param)
	}
	if d.LogResult && r.Outcome.Result != nil {
		x.Result = Redact(r.Outcome.Result)
	}
	if o := r.Outcome; err == nil && o.IsObject && o.Code != nil && *o.Code != 1 {
		x.Outcome = OutcomeBusiness
	}
}

// The outcomes that are not a fault.Kind.
const (
	OutcomeOK       = "ok"
	OutcomeBusiness = "business" // the script returned a Code other than 1
)

// finish completes the record and hands it on: to the log, and to who observes.
func (e *Engine) finish(x *Execution, err error) {
	x.Duration = time.Since(x.Started)
	x.Err, x.Kind = err, fault.Of(err)
	switch {
	case err != nil:
		x.Outcome = string(x.Kind)
	case x.Outcome == "":
		x.Outcome = OutcomeOK
	}
	if level := levelOf(x.Kind); e.cfg.Log.Enabled(context.Background(), level) {
		e.cfg.Log.LogAttrs(context.Background(), level, "call", x.attrs()...)
	}
	if e.cfg.Observe != nil {
		e.cfg.Observe(x)
	}
}

// levelOf is error for what an operator must look at, warn for what an author or a caller
// should, else info.
func levelOf(k fault.Kind) slog.Level {
	switch k {
	case "", fault.Canceled, fault.NotFound, fault.Unauthenticated, fault.Forbidden, fault.MethodNotAllowed, fault.BadRequest:
		return slog.LevelInfo
	case fault.Internal, fault.OutcomeUnknown, fault.LockUnavailable, fault.StoreUnavailable:
		return slog.LevelError
	}
	return slog.LevelWarn
}

func (x *Execution) attrs() []slog.Attr {
	as := make([]slog.Attr, 0, 20)
	as = append(as, slog.String("execution", x.ID), slog.String("request", x.RequestID), slog.String("tenant", x.Tenant),
		slog.String("api", x.API), slog.Int("version", x.Version), slog.String("origin", string(x.Origin)),
		slog.String("outcome", x.Outcome), millis("took_ms", x.Duration))
	if x.CallerID != "" {
		as = append(as, slog.String("caller", x.CallerID))
	}
	if x.ReplayOf != "" {
		as = append(as, slog.String("replay_of", x.ReplayOf))
	}
	if x.Lock != "" {
		as = append(as, slog.String("lock", x.Lock), slog.Int64("token", x.Token),
			millis("lock_wait_ms", x.LockWait), millis("lock_hold_ms", x.LockHold))
	}
	if x.Committed {
		as = append(as, slog.Bool("committed", true))
	}
	if x.CacheEmptied {
		as = append(as, slog.Bool("cache_emptied", true))
	}
	if x.Stats.HostCalls > 0 {
		as = append(as, slog.Int("host_calls", x.Stats.HostCalls), millis("db_ms", x.Stats.DBTime), millis("cache_ms", x.Stats.CacheTime))
	}
	if x.Err != nil {
		as = append(as, slog.String("error", x.Err.Error()))
	}
	for name, text := range map[string]json.RawMessage{"param": x.Param, "result": x.Result} {
		if text != nil {
			as = append(as, slog.String(name, string(text)))
		}
	}
	if len(x.Nested) > 0 {
		as = append(as, slog.Any("nested", x.Nested))
	}
	if len(x.Console) > 0 {
		as = append(as, slog.Any("console", x.Console))
	}
	return as
}

// millis shows a time in milliseconds, to the microsecond.
func millis(name string, d time.Duration) slog.Attr {
	return slog.Float64(name, float64(d.Microseconds())/1000)
}

func nestedAttrs(f *frame, key string, err error) []slog.Attr {
	return []slog.Attr{slog.String("execution", f.x.ID), slog.String("tenant", f.call.Tenant),
		slog.String("api", key), slog.String("caller_api", f.api.Definition.ApiEngineKey), slog.String("error", f.x.secrets.hidden(err.Error()))}
}

// Envelope is the answer of the platform itself (contract.md section 4.3).
type Envelope struct {
	Code       int
	Msg        string
	DataAppend struct{ Error map[string]any }
}

// Codes of an Envelope.
const (
	codeFailed      = 0
	codeNotSignedIn = 1001
	codeWrongTenant = 1002
)

// Failure makes the envelope for err. Its details are the error's own, Kind, RequestId
// and ExecutionId; nothing of err's cause.
func Failure(err error, x *Execution) Envelope {
	env := Envelope{Code: codeFailed, Msg: fault.Public(err)}
	k := fault.Of(err)
	if k == fault.Unauthenticated {
		env.Code = codeNotSignedIn
	}
	details := map[string]any{}
	maps.Copy(details, fault.Details(err))
	if details["WrongTenant"] == true {
		env.Code = codeWrongTenant
	}
	details["Kind"] = k
	if x != nil {
		details["RequestId"], details["ExecutionId"] = x.RequestID, x.ID
	}
	env.DataAppend.Error = details
	return env
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
