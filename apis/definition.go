// Package apis says what an API is, and which one a request means.
//
// A Definition is one API: its settings and its script. Authors write it as a file
// (ParseFile, FormatFile), programs as JSON (DecodeJSON, EncodeJSON); Validate gives the
// defaults and finds what is wrong. A Catalog holds the live definitions of all tenants
// with their compiled programs, and finds one by its key or by an address.
package apis

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"apiengine/budget"
)

// Definition is one API (contract.md section 1). Field names are those of the file and of
// the JSON. The zero value of a field means its default; Validate fills it in.
type Definition struct {
	ApiEngineKey string // [A-Za-z0-9_.-]{1,100}, not beginning with a dot; found in any case
	ApiName      string `json:",omitempty"` // for people, as are the next two
	ApiRemark    string `json:",omitempty"`
	Category     string `json:",omitempty"`
	ApiAddress   string `json:",omitempty"` // absolute path with {name} segments; empty: none
	Language     string // js or ts; default js

	IsEnable       *bool    // default true; read it with Enabled
	StopHttp       bool     // not callable over HTTP
	Library        bool     `json:",omitempty"` // not callable at all: other scripts load it by V8.Use
	AllowAnonymous bool     // callable without a token
	ApiRole        []string `json:",omitempty"` // empty: any signed-in caller
	Methods        []string // upper case; default all of GET POST PUT PATCH DELETE
	ResponseType   string   // auto, JSON, String, HTML or File; default auto

	Lock      bool
	LockKey   string `json:",omitempty"` // parameter names with dots, joined by ',' without spaces
	LockScope string `json:",omitempty"` // empty: see EffectiveLockScope
	LockMsg   string `json:",omitempty"` // empty: the built-in message of lock_busy
	Timeout   int    // seconds, 1 to 43200; default 30
	LockWait  *int   `json:",omitempty"` // seconds, 0 = try once; nil: as long as Timeout

	Transaction string          // auto, own or none; default auto
	Effects     string          `json:",omitempty"` // staged or immediate; default staged when Lock and Transaction auto
	Idempotency string          // off, optional or required; default optional
	RateLimit   string          `json:",omitempty"` // see ParseRate; empty: none
	LogParam    bool            // keep the request with the execution record
	LogResult   bool            // keep the result with the execution record
	Cors        []string        `json:",omitempty"` // origins, or "*" alone
	TestParam   json.RawMessage `json:",omitempty"` // a JSON object in compact form; default {}
	Schedule    string          `json:",omitempty"` // cron, 5 fields, may begin with TZ=; empty: none

	// FirstLine is the line of the author's file on which ApiV8Code begins, so that
	// errors point into that file; 0 means 1. It is no setting: Same ignores it.
	FirstLine int    `json:",omitempty"`
	ApiV8Code string // the script, at most MaxCode bytes, lines ended by \n
}

// Limits of a definition, in bytes.
const (
	MaxCode      = 1 << 20  // ApiV8Code
	maxText      = 1000     // a one-line text
	maxRemark    = 16 << 10 // ApiRemark
	maxTestParam = 64 << 10 // TestParam
	maxNesting   = 100      // levels of objects and lists in TestParam
	maxItems     = 100      // in a list
	maxItem      = 255      // one item of a list
)

var allMethods = []string{"GET", "POST", "PUT", "PATCH", "DELETE"}

// Enabled reports whether the API may be called at all.
func (d *Definition) Enabled() bool { return d.IsEnable == nil || *d.IsEnable }

// EffectiveLockScope is what the lock's value names: LockScope, else the text of LockKey,
// else "api:<key>" in lower case.
func (d *Definition) EffectiveLockScope() string {
	switch {
	case d.LockScope != "":
		return d.LockScope
	case d.LockKey != "":
		return d.LockKey
	}
	return "api:" + strings.ToLower(d.ApiEngineKey)
}

// FileName is the name of the file that this definition is written to.
func (d *Definition) FileName() string {
	if d.Language == "ts" {
		return d.ApiEngineKey + ".ts"
	}
	return d.ApiEngineKey + ".js"
}

// Same reports whether two definitions, both validated, are the same API text.
func (d *Definition) Same(other *Definition) bool {
	a, b := *d, *other
	a.FirstLine, b.FirstLine = 0, 0
	ja, errA := EncodeJSON(a)
	jb, errB := EncodeJSON(b)
	return errA == nil && errB == nil && bytes.Equal(ja, jb)
}

// Plan derives the limits of a call's lock and run. An unusable Timeout or LockWait is a
// *budget.Error that names it.
func (d Definition) Plan(trusted bool) (budget.Plan, error) {
	r := budget.Request{Timeout: seconds(d.Timeout), Trusted: trusted}
	if d.Timeout == 0 {
		r.Timeout = budget.DefaultTimeout
	}
	if d.LockWait != nil {
		wait := seconds(*d.LockWait)
		r.Wait = &wait
	}
	return budget.Derive(r)
}

// forTasks reports whether the API may have a Timeout that no ordinary call can have: it is
// one that the platform itself runs.
func (d *Definition) forTasks() bool { return d.Schedule != "" || d.StopHttp }

// seconds is n seconds, held within what is surely out of range where the product would
// not fit.
func seconds(n int) time.Duration {
	const far = int(budget.MaxTaskTimeout/time.Second) * 1000
	return time.Duration(max(-far, min(n, far))) * time.Second
}

// defaultEffects depends on two other fields.
func (d *Definition) defaultEffects() string {
	if d.Lock && d.Transaction == "auto" {
		return "staged"
	}
	return "immediate"
}

// withDefaults fills the fields that are not set.
func (d Definition) withDefaults() Definition {
	enabled := d.Enabled()
	d.IsEnable = &enabled
	if len(d.Methods) == 0 {
		d.Methods = slices.Clone(allMethods)
	}
	if d.Timeout == 0 {
		d.Timeout = int(budget.DefaultTimeout / time.Second)
	}
	for _, f := range []struct {
		value *string
		def   string
	}{
		{&d.Language, "js"}, {&d.ResponseType, "auto"}, {&d.Transaction, "auto"}, {&d.Idempotency, "optional"},
	} {
		if *f.value == "" {
			*f.value = f.def
		}
	}
	if d.Effects == "" {
		d.Effects = d.defaultEffects()
	}
	if len(d.TestParam) == 0 || string(d.TestParam) == "null" {
		d.TestParam = json.RawMessage("{}")
	}
	return d
}
