package server

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
)

// Server answers HTTP. Make it with New; it is safe for concurrent use.
type Server struct {
	cfg      Config
	router   http.Handler
	jwt      *verifier // nil: none accepted
	failures *backoff
	conns    *connLimit
	draining atomic.Bool
	drained  chan struct{} // closed when draining begins
	streams  atomic.Int64  // of events, under way
}

// Handler serves the data plane, the admin API and health.
func (s *Server) Handler() http.Handler { return s.router }

// HTTPServer returns a server with the limits that face a network: header and idle
// times, sizes, connections of one address. The caller serves a Listener and shuts it down.
func (s *Server) HTTPServer() *http.Server {
	return &http.Server{
		Addr:    s.cfg.Addr,
		Handler: inside(s.router),
		// ReadTimeout ends with the body. WriteTimeout would begin there and cut long runs off,
		// so an answer has a deadline of its own (exchange.go).
		ReadTimeout:       s.cfg.BodyTimeout,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    s.cfg.MaxHeader,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 250},
		ConnState:         s.state,
		ConnContext:       withConn,
		ErrorLog:          slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelWarn),
	}
}

// Drain makes /readyz fail and refuses new calls of the data plane and of tasks; running ones
// go on, but streams of events end.
func (s *Server) Drain() {
	if !s.draining.Swap(true) {
		close(s.drained)
	}
}

// Close ends what New began.
func (s *Server) Close() {
	if s.jwt != nil {
		s.jwt.close()
	}
}

func (s *Server) routes() http.Handler {
	m := chi.NewRouter()
	m.Get("/healthz", s.handle((*exchange).healthz))
	m.Head("/healthz", s.handle((*exchange).healthz))
	m.Get("/readyz", s.handle((*exchange).readyz))
	m.Head("/readyz", s.handle((*exchange).readyz))
	s.mountAdmin(m)
	s.mountOutcome(m)
	s.mountTasks(m)
	call := s.handle((*exchange).call)
	m.Handle("/apiengine/*", call)
	m.NotFound(call)
	m.MethodNotAllowed(s.handle(wrongMethodIn(m, "")))
	return m
}
