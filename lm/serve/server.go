package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"deeploop/internal/netlimit"
	"deeploop/lm/decode"
)

// Server is the http.Handler of one model.
type Server struct {
	Options
	decoder    decode.Decoder
	tok        decode.Tokenizer
	vocabulary int
	created    time.Time
	routes     map[string]route
	places     chan struct{} // one per request that waits for the model or is answered
	model      chan struct{} // held by the request that has the model
	parsers    chan struct{} // held while a body is taken apart, which needs many times its size
	requests   atomic.Uint64
	seeds      atomic.Uint64 // given to prompts without one
	ending     atomic.Bool
}

type route struct {
	method string
	handle func(w *response, r *http.Request) error
}

// New returns the handler. The server alone may use the decoder from now on.
func New(d decode.Decoder, tok decode.Tokenizer, o Options) *Server {
	o = o.withDefaults()
	s := &Server{
		Options: o, decoder: d, tok: tok, vocabulary: decode.Vocabulary(d, tok), created: o.Now(),
		places: make(chan struct{}, 1+o.Queue), model: make(chan struct{}, 1), parsers: make(chan struct{}, 4),
	}
	s.routes = map[string]route{
		"/v1/completions": {http.MethodPost, s.completions},
		"/v1/models":      {http.MethodGet, s.models},
		"/tokenizer_info": {http.MethodGet, s.tokenizerInfo},
		"/tokenize":       {http.MethodPost, s.tokenize},
		"/detokenize":     {http.MethodPost, s.detokenize},
		"/health":         {http.MethodGet, s.health},
		"/version":        {http.MethodGet, s.version},
	}
	return s
}

// ServeHTTP answers a request and writes a line to the log.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := s.Now()
	out := newResponse(w, s.Now, s.WriteTimeout)
	err := s.serve(out, r)
	if err != nil {
		out.fail(err)
	}
	attrs := append([]slog.Attr{
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", out.status),
		slog.Int64("bytes", out.bytes), slog.Duration("took", s.Now().Sub(start).Round(time.Microsecond)), slog.String("client", r.RemoteAddr),
	}, out.attrs...)
	level := slog.LevelInfo
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
		if out.status >= http.StatusInternalServerError {
			level = slog.LevelError
		}
	}
	s.Log.LogAttrs(context.WithoutCancel(r.Context()), level, "request", attrs...)
}

func (s *Server) serve(w *response, r *http.Request) (err error) {
	defer func() { // a request must not take the others with it
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			s.Log.Error("panic", "value", p, "stack", string(debug.Stack()))
			err = errInternal
		}
	}()
	path := r.URL.Path
	if id, ok := strings.CutPrefix(path, "/v1/models/"); ok {
		if id != s.Model {
			return &httpError{status: http.StatusNotFound, message: fmt.Sprintf("no model %q, this server has %q", id, s.Model)}
		}
		path = "/v1/models"
	}
	to, ok := s.routes[path]
	if !ok {
		return &httpError{status: http.StatusNotFound, message: fmt.Sprintf("no %s here; see /v1/completions, /v1/models, /tokenizer_info, /tokenize, /detokenize, /health, /version", r.URL.Path)}
	}
	if r.Method != to.method && !(r.Method == http.MethodHead && to.method == http.MethodGet) {
		w.Header().Set("Allow", to.method)
		return &httpError{status: http.StatusMethodNotAllowed, message: fmt.Sprintf("%s is for %s, not %s", path, to.method, r.Method)}
	}
	return to.handle(w, r)
}

// withModel runs do once the model is free. ctx ends the wait.
func (s *Server) withModel(ctx context.Context, do func() error) (err error) {
	select {
	case s.model <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.model }()
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error("panic", "value", p, "stack", string(debug.Stack()))
			err = errInternal
		}
	}()
	if ctx.Err() != nil { // both were ready
		return context.Cause(ctx)
	}
	return do()
}

// Run serves connections of the listener until ctx ends: then no new ones are
// taken, running and waiting requests have Options.Grace to end, and what is
// left is cut off. The error is nil unless serving itself failed.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	base, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	hs := &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: s.ReadHeaderTimeout,
		ReadTimeout:       s.ReadTimeout,
		IdleTimeout:       s.IdleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- hs.Serve(netlimit.Listener(l, s.MaxConnections)) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	s.ending.Store(true)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Grace)
	defer cancel()
	err := hs.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		s.Log.Warn("requests cut off", "grace", s.Grace)
		cut(errEnding)
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // to say so
		defer cancel()
		err = hs.Shutdown(last)
		hs.Close()
		if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
	}
	// The decoder is the caller's again when nobody has it.
	s.model <- struct{}{}
	return err
}

// models lists the one model.
func (s *Server) models(w *response, r *http.Request) error {
	m := map[string]any{"id": s.Model, "object": "model", "created": s.created.Unix(), "owned_by": "deeploop", "max_model_len": s.decoder.Context()}
	if r.URL.Path != "/v1/models" {
		return w.json(http.StatusOK, m)
	}
	return w.json(http.StatusOK, map[string]any{"object": "list", "data": []any{m}})
}

func (s *Server) health(w *response, _ *http.Request) error {
	if s.ending.Load() {
		return errEnding
	}
	return w.json(http.StatusOK, map[string]string{"status": "ok"})
}

func (s *Server) version(w *response, _ *http.Request) error {
	return w.json(http.StatusOK, map[string]string{"version": s.Version})
}
