// Package server is HTTP in and out: it finds out who calls in which tenant, turns a
// request into an engine.Call, and turns a Result or an error into bytes. It decides
// nothing about APIs: whether a caller may run one is engine's word, what an API is apis'.
//
//	New(Config) (*Server, error)
//	(*Server).Handler() http.Handler        data plane, admin API, health
//	(*Server).HTTPServer() *http.Server     the same with the limits of a public server
//	(*Server).Drain()                       stop taking calls; running ones finish
//	(*Server).Close()                       ends the refresh of the issuer's keys
//
// The files: exchange.go has one request's life; target, tenant, identify, jwt and params
// make the Call; respond, file, headers and fail make the answer; admin.go has the table
// of the admin API, admin_*.go one resource each.
package server
