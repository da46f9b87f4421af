package engine

import (
	"encoding/json"
	"time"

	"apiengine/fault"
	"apiengine/jsbridge"
)

// Caller says on whose behalf a call runs. The zero Caller is anonymous.
type Caller struct {
	ID      string // token id or JWT subject; empty = anonymous
	Account string
	Name    string
	Roles   []string
	Level   int
	Issuer  string // who vouches for the caller; empty: this server, whose token it is
}

// Anonymous reports whether nobody signed in.
func (c Caller) Anonymous() bool { return c.ID == "" }

// Origin says through which door a call came in.
type Origin string

// The doors.
const (
	OriginHTTP   Origin = "http"   // gates of the HTTP surface apply: enabled, StopHttp, roles, method, rate
	OriginTest   Origin = "test"   // an administrator's test run: roles, StopHttp and rate do not apply
	OriginScript Origin = "script" // V8.ApiEngine.Run
	OriginTask   Origin = "task"   // a slice of a task: StopHttp and rate do not apply
	OriginOutbox Origin = "outbox" // a message of the outbox, the server's own call: roles, StopHttp and rate do not apply
)

// Call is one wish to run an API. Nothing in Param or Header can change who calls, how
// long the lease is or which lock is taken.
type Call struct {
	Tenant    string
	Key       string          // ApiEngineKey; or
	Path      string          // the address of the request; it finds the API when Key is empty, and its {name} values join Param
	Method    string          // HTTP method; empty: not from HTTP
	Param     json.RawMessage // a valid JSON object, nil = {}
	Header    map[string]string
	Files     map[string]string
	Caller    Caller
	Origin    Origin
	RequestID string
	ClientIP  string // for RateLimit of anonymous callers and V8.Request.Ip
	// IdempotencyKey is the caller's name for this very request; a repeat of it gets the
	// first answer (contract.md section 4.4). Empty: none. With one, Accept must set the
	// Result's Answer.
	IdempotencyKey string
	Version        int // run this stored version instead of the live one; 0 = live (test runs only)
	// Accept says, before anything is committed, whether the answer can be sent. Its error
	// (result_invalid) fails the call. nil accepts everything.
	Accept func(*Result) error

	trust *Trust // set by Trusted alone
	place *place // of a root among the calls in flight
}

// Result is a call's answer before it becomes HTTP.
type Result struct {
	Body         []byte // JSON, or the text of a string result; nil: no value
	IsText       bool   // Body is a string result, not JSON
	ResponseType string // of the definition: auto, JSON, String, HTML, File
	Response     jsbridge.Response
	Execution    *Execution
	Answer       *Answer // what Accept made of the result; of an earlier run when Replayed
	Replayed     bool    // nothing ran: Answer is what was kept for the Idempotency-Key
}

// Execution is the one record of a call; metrics, log line and history are made from it.
type Execution struct {
	ID        string // V8 cannot choose it; X-Execution-Id
	RequestID string
	Tenant    string
	API       string
	Version   int
	Origin    Origin
	CallerID  string
	Started   time.Time
	Duration  time.Duration
	Outcome   string // ok, business, or a fault.Kind
	Kind      fault.Kind
	Lock      string // printable identity; empty without a lock
	Token     int64
	LockWait  time.Duration
	LockHold  time.Duration
	Committed bool // a transaction of the call has been committed
	// CacheEmptied: staged cache writes were not applied after the commit, and their keys were
	// removed instead: the lock was lost in the commit, or the cache failed.
	CacheEmptied bool
	Stats        jsbridge.Stats
	Nested       []string // the APIs that were called by V8.ApiEngine.Run, each once, at most 50
	secrets      secrets
	Console      []jsbridge.Line
	Param        json.RawMessage // only with LogParam
	Result       json.RawMessage // only with LogResult
	Err          error
	ReplayOf     string   // the execution whose kept answer was given; nothing ran
	CorsOrigins  []string // of the definition, for the server
	consoleSize  int
}
