package view

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"deeploop/arc"
	"deeploop/internal/netlimit"
)

// Server is the http.Handler of the page and its data.
type Server struct {
	Options
	mux    *http.ServeMux
	items  *items
	work   chan struct{} // held while votes are counted or the model runs
	places chan struct{} // of those who have it or wait for it
}

// New returns a server of the things at paths; see Guess for what they may be.
// It opens none of them before somebody looks.
func New(found []Item, o Options) *Server {
	if o.Now == nil {
		panic("view: Options.Now is missing")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{Options: o, items: newItems(found), work: make(chan struct{}, 1), places: make(chan struct{}, 1+waiting)}
	s.mux = http.NewServeMux()
	for path, answer := range map[string]func(*http.Request) (any, error){
		"/api/items":                                 s.listItems,
		"/api/tasks/{item}":                          s.listTasks,
		"/api/tasks/{item}/{task}":                   s.oneTask,
		"/api/dataset/{item}/{split}":                s.listGroups,
		"/api/dataset/{item}/{split}/{group}/{copy}": s.onePuzzle,
		"/api/answers/{item}":                        s.listAnswers,
		"/api/answers/{item}/{task}":                 s.oneAnswer,
		"/api/answers/{item}/curve":                  s.answersCurve,
		"/api/run/{item}":                            s.oneRun,
		"/api/run/{item}/curves":                     s.curves,
		"/api/model/{item}":                          s.describeModel,
		"/api/model/{item}/{split}/{row}":            s.trace,
		"/api/model/{item}/{split}/{row}/attention":  s.attention,
	} {
		s.mux.HandleFunc("GET "+path, s.answer(answer))
	}
	s.mux.HandleFunc("GET /api/", s.answer(func(r *http.Request) (any, error) { return nil, notFound("no %s here", r.URL.Path) }))
	s.mux.Handle("GET /", http.HandlerFunc(serveAsset))
	return s
}

// answer turns a function of a request into a handler.
func (s *Server) answer(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		v, err := s.safely(f, r.WithContext(ctx))
		// A page that does not read holds nothing up; a writer of a test has no deadline.
		_ = http.NewResponseController(w).SetWriteDeadline(s.Now().Add(writeTimeout))
		if err == nil {
			err = writeJSON(w, http.StatusOK, v)
		}
		if err == nil {
			return
		}
		status, message := statusOf(err)
		if status >= http.StatusInternalServerError {
			s.Log.Error("request", "path", r.URL.Path, "error", err)
		}
		_ = writeJSON(w, status, map[string]string{"error": message})
	}
}

// safely keeps a failing request from ending the server.
func (s *Server) safely(f func(*http.Request) (any, error), r *http.Request) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error("panic", "path", r.URL.Path, "value", p, "stack", string(debug.Stack()))
			err = errors.New("the server failed here; its output says more")
		}
	}()
	return f(r)
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	data := strings.HasPrefix(r.URL.Path, "/api/")
	switch {
	case !hostAllowed(r.Host, s.Host):
		http.Error(w, "this server is reached by this machine's addresses only, not as "+fmt.Sprintf("%.100q", r.Host), http.StatusMisdirectedRequest)
	case data && foreign(r):
		http.Error(w, "pages of other sites get nothing here", http.StatusForbidden)
	default:
		s.mux.ServeHTTP(w, r)
	}
}

// alone runs f while nothing else computes.
func (s *Server) alone(ctx context.Context, f func() error) error {
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		return errBusy
	}
	select {
	case s.work <- struct{}{}:
		defer func() { <-s.work }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return f()
}

// Close releases what is open. No request may run.
func (s *Server) Close() { s.items.close() }

// grace is how long running requests have when the server ends.
const grace = 3 * time.Second

// Run serves connections of the listener until ctx ends.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	hs := &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- hs.Serve(netlimit.Listener(l, maxConnections)) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := hs.Shutdown(end)
	if errors.Is(err, context.DeadlineExceeded) {
		cut()
		hs.Close()
		err = nil
	}
	s.work <- struct{}{} // nothing computes any more
	return err
}

// listItems is what the page begins with.
func (s *Server) listItems(*http.Request) (any, error) {
	palette := make([]string, len(arc.Palette))
	for i, c := range arc.Palette {
		palette[i] = fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)
	}
	return map[string]any{
		"version": s.Version, "palette": palette, "items": s.items.refresh(),
		"can_answer": s.Answers != nil, "can_model": s.Model != nil,
	}, nil
}
