package jsbridge

import (
	"context"
	"encoding/json"
	"time"
)

// Everything a script can reach comes in through the ports of this file, and only plain
// data passes through them: strings, numbers, bools, nil and JSON text. No Go object is
// ever handed to a script, so a run could as well be in another process.

// Env is what one run is given: the values behind the V8 object and the services behind
// its calls. Every service may be nil where the run must not have it; a script that
// calls one anyway gets an error that says so.
type Env struct {
	Tenant     string
	APIKey     string
	InvokeType string            // "Client" or "Server"
	Param      json.RawMessage   // a valid JSON object; turned into JS values at first touch
	Header     map[string]string // names as Go's canonical form; V8.Header looks them up in any case
	Files      map[string]string // file name -> base64; V8.FilesByteBase64
	User       json.RawMessage   // {} when anonymous; frozen for the script
	SysConfig  json.RawMessage   // tenant settings; {} when none; frozen for the script
	Request    Request
	Limits     Limits
	Lock       Lock // nil without a lock: V8.Lock is null, V8.FencingToken 0

	Secret func(ctx context.Context, name string) (string, error)
	Cache  Cache
	Outbox Outbox
	Tasks  Tasks
	HTTP   HTTP
	DB     func(name string) (Database, error) // "" is V8.Db, else V8.Dbs.<name>
	DBRead func() (Database, error)            // V8.DbRead: V8.Db for what changes nothing
	Invoke func(ctx context.Context, key string, param json.RawMessage) (json.RawMessage, error)
	// Report hears V8.Method.UpdateBackgroundTask; nil: the run is no slice of a task.
	Report func(Progress)
	// Library finds the script of V8.Use by its name, in any case; it is asked once a run.
	Library func(ctx context.Context, name string) (*Program, error)
	// Left is told that the run is left behind, before Run returns; the function that it
	// returns is called when the run has ended after all. nil: nobody wants to know.
	Left func() (ended func())
}

// Progress is what V8.Method.UpdateBackgroundTask tells; a nil number was not given.
type Progress struct {
	Current, Total *int64
	Msg            string
	Log            []string
}

// Request is V8.Request.
type Request struct{ Method, Path, IP, ID string }

// Limits bound one run. A zero field takes its default.
type Limits struct {
	Deadline     time.Time // when the run is interrupted; required
	Depth        int       // of nested ApiEngine.Run calls; 0 for the root (shown as V8.Limits.Depth)
	MaxStack     int       // JS frames; default 1000
	MaxHostCalls int       // default 100000
	MaxResult    int       // bytes of the answer; default 8 MiB
	MaxConsole   int       // bytes of captured console output; default 64 KiB (200 lines)
}

// Lock is what a script sees of the lock it runs in.
type Lock interface {
	Key() string
	Token() int64
	Remaining() time.Duration          // by the local clock
	Held() bool                        // by the local clock
	Confirm(ctx context.Context) error // asks the backend; the run ends when it fails
}

// Cache is the tenant's cache. Keys and values are the script's own strings; ttl 0 means
// for ever. Errors end the run when they carry a fault Kind of the lock or the platform,
// else they are thrown into the script.
type Cache interface {
	Get(ctx context.Context, key string) (value string, found bool, err error)
	Set(ctx context.Context, key, value string, ttl time.Duration) error
	Remove(ctx context.Context, key string) (existed bool, err error)
	Exists(ctx context.Context, key string) (bool, error)
	Expire(ctx context.Context, key string, ttl time.Duration) (existed bool, err error)
	SetIfNotExists(ctx context.Context, key, value string, ttl time.Duration) (stored bool, err error)
	Increment(ctx context.Context, key string, by int64, ttl time.Duration) (int64, error)
	GetAndRemove(ctx context.Context, key string) (value string, found bool, err error)
	CompareAndSet(ctx context.Context, key, old, value string, ttl time.Duration) (stored bool, err error)
	// SetFenced and RemoveFenced are for the holder of a lock, whose token they get.
	SetFenced(ctx context.Context, key, value string, ttl time.Duration, token int64) (stored bool, err error)
	RemoveFenced(ctx context.Context, key string, token int64) (existed bool, err error)
	HashSet(ctx context.Context, key, field, value string) error
	HashGet(ctx context.Context, key, field string) (value string, found bool, err error)
	HashGetAll(ctx context.Context, key string) (map[string]string, error)
	HashDelete(ctx context.Context, key, field string) (existed bool, err error)
	HashIncrement(ctx context.Context, key, field string, by int64) (int64, error)
}

// Database is one database of the tenant inside the run's transaction.
type Database interface {
	// Query returns the rows as the text of a JSON array of objects (columns in the
	// statement's order) and their number. params are nil, bool, int64, float64, string or []byte.
	Query(ctx context.Context, sql string, params map[string]any) (rows json.RawMessage, n int, err error)
	// Scalar returns the first column of the first row as JSON text, null without a row.
	Scalar(ctx context.Context, sql string, params map[string]any) (json.RawMessage, error)
	// Exec returns the number of rows changed.
	Exec(ctx context.Context, sql string, params map[string]any) (int64, error)
	// Form runs the FormEngine operation op ("GetFormData" ...) on a table with the
	// options object that the script passed, or the array of them for a batch.
	Form(ctx context.Context, op, table string, options json.RawMessage) (FormResult, error)
}

// FormResult is a FormEngine answer: {Code, Data, DataCount, Msg}. Data nil is left out.
type FormResult struct {
	Code      int // 1 done, 2 no such row, 0 refused
	Data      json.RawMessage
	DataCount int64
	Msg       string
}

// Outcome is what a run that ended by itself leaves.
type Outcome struct {
	Result   json.RawMessage // of the value returned; nil when it was undefined
	Text     string          // the value itself when IsText
	IsText   bool            // the script returned a string
	IsObject bool            // the script returned an object that is not an array
	Code     *float64        // its own Code, nil when it has none or it is no number
	Response Response
}

// Response is what the script said through V8.Response.
type Response struct {
	Status   int               // 0: not set
	Header   map[string]string // nil: none
	Redirect string
}

// Line is one captured console call.
type Line struct {
	Level string    `json:"Level"` // log, info, warn, error
	Time  time.Time `json:"Time"`
	Line  int       `json:"Line"` // in the author's source; 0 when unknown
	Text  string    `json:"Text"`
}

// Stats are counted in one run.
type Stats struct {
	HostCalls int
	DBTime    time.Duration
	CacheTime time.Duration
}
