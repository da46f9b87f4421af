package jsbridge

import (
	"slices"
	"strings"

	"apiengine/nearest"
)

// absentGlobals are the globals of browsers and of Node that scripts look for, and what
// there is instead.
var absentGlobals = map[string]string{
	"fetch":          "call addresses with V8.Http",
	"XMLHttpRequest": "call addresses with V8.Http",
	"axios":          "call addresses with V8.Http",
	"$":              "call addresses with V8.Http",
	"WebSocket":      "there are no sockets; use V8.Http",
	"require":        "load shared code with V8.Use",
	"importScripts":  "load shared code with V8.Use",
	"module":         "what a library returns is what V8.Use gives",
	"exports":        "what a library returns is what V8.Use gives",
	"process":        "settings are in V8.SysConfig, secrets in V8.Secret",
	"Buffer":         "use V8.Base64, TextEncoder and Uint8Array",
	"Blob":           "use V8.Base64, TextEncoder and Uint8Array",
	"FormData":       "give V8.Http PostParam, and FilesByteBase64 for files",
	"window":         "a script runs on a server; the request is V8.Param",
	"document":       "a script runs on a server; the request is V8.Param",
	"localStorage":   "keep what outlives the call in V8.Cache or V8.Db",
	"sessionStorage": "keep what outlives the call in V8.Cache or V8.Db",
	"alert":          "answer with V8.Result, or use console.log",
	"Intl":           "write dates with DateFormat and numbers with toFixed",
	"Atomics":        "nothing is shared between runs but V8.Cache and V8.Db",
	"WeakRef":        "nothing outlives the call",
	"Result":         "the result is what the script returns, or V8.Result",
}

// generators run text as code, which no run may.
var generators = []string{"eval", "Function"}

// absentTimers are there only to say that they are not.
var absentTimers = []string{"setTimeout", "setInterval", "setImmediate", "clearTimeout", "clearInterval", "requestAnimationFrame"}

const noTimer = " is not available: a script runs to its end; give later work to a task"

// undefinedGlobal is what there is instead of a global that there is not, beginning with
// ": " or "; ", "" where nothing is known.
func undefinedGlobal(name string) string {
	if hint := absentGlobals[name]; hint != "" {
		return ": " + hint
	}
	if near := nearest.Typo(name, append(slices.Clone(additions), intrinsics...)); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// hintGlobal adds to the message of a ReferenceError what there is instead.
func hintGlobal(msg string) string {
	name, ok := strings.CutSuffix(msg, " is not defined")
	if !ok || strings.ContainsAny(name, " \n") {
		return msg
	}
	return msg + undefinedGlobal(name)
}

// Global returns what a script would be told about a global that it reads, or calls, and
// that no script has declared; "" for one that there is.
func (n *Names) Global(name string, called bool) string {
	switch {
	case called && slices.Contains(generators, name):
		return name + " is not available: a script cannot run text as code"
	case called && slices.Contains(absentTimers, name):
		return name + noTimer
	case name == "V8" || name == "arguments" || isIntrinsic(name):
		return ""
	}
	return name + " is not defined" + undefinedGlobal(name)
}
