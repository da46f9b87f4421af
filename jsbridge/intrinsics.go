package jsbridge

import "slices"

// intrinsics are the names of every global that goja has, as a fixed list: the global
// object itself does not name those that no script has used yet.
var intrinsics = []string{
	"Object", "Function", "Array", "String", "Number", "BigInt", "RegExp", "Date", "Boolean", "Proxy", "Reflect",
	"Error", "AggregateError", "TypeError", "ReferenceError", "SyntaxError", "RangeError", "EvalError", "URIError",
	"eval", "Math", "JSON", "Symbol", "WeakSet", "WeakMap", "Map", "Set", "Promise",
	"globalThis", "NaN", "undefined", "Infinity",
	"isNaN", "parseInt", "parseFloat", "isFinite", "decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent",
	"escape", "unescape",
	"ArrayBuffer", "DataView", "Uint8Array", "Uint8ClampedArray", "Uint16Array", "Uint32Array", "Int8Array", "Int16Array",
	"Int32Array", "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array",
}

// additions are the globals that the bridge adds.
var additions = []string{
	"console", "DateNow", "DateFormat", "DateAdd", "NewGuid", "System", "atob", "btoa", "crypto",
	"structuredClone", "TextEncoder", "TextDecoder", "URL", "URLSearchParams",
	"setTimeout", "setInterval", "setImmediate", "clearTimeout", "clearInterval", "queueMicrotask", "requestAnimationFrame",
}

// isIntrinsic tells whether a script that assigns name without declaring it means a
// built-in, which stays as it is.
func isIntrinsic(name string) bool {
	return slices.Contains(intrinsics, name) || slices.Contains(additions, name)
}
