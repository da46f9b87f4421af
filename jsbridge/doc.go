// Package jsbridge compiles and runs one script.
//
//	Compile(Source) (*Program, error)              once, when a definition is saved
//	New(Config) (*Bridge, error)                   once a process: keeps runtimes
//	(*Bridge).Run(ctx, *Program, *Env) (Report, error)
//
// Natives are rows of data (name, doc, argument struct, function); one bind counts,
// decodes, calls and throws. Results leave as JSON text.
//
// # How runs are kept apart
//
// A runtime is kept for one tenant, because making it safe costs milliseconds and using
// it again microseconds. Once, before any script, everything that a script can reach is
// frozen (prelude.js). For each run the program is evaluated anew, so that no function
// object outlives it, with a small V8 object of its own; natives find the run through
// the machine that they belong to. After an interrupt, a limit or a panic the runtime is
// thrown away. A nested call takes another one.
//
// # Where things are
//
//	compile, prescan, scope, lower    from source to Program
//	bridge, machine, run, thrown      pool, kept runtime, one run, its errors
//	func, bind, natives_*             rows and their one way into Go
//	v8object, console, jsonglobal     what scripts see
//	jsonparse, jsonwrite, lazy        values in and out
//	prelude.js, caps                  what scripts must not do
package jsbridge
