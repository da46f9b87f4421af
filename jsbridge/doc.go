// Package jsbridge compiles and runs one script.
//
//	Compile(Source) (*Program, error)              once, when a definition is saved
//	New(Config) (*Bridge, error)                   once a process: keeps runtimes
//	(*Bridge).Run(ctx, *Program, *Env) (Report, error)
//
// Natives are rows of data (name, doc, argument struct, function); one bind counts,
// decodes, calls and throws. Results leave as JSON text.
package jsbridge
