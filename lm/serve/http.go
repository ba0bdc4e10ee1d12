package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"deeploop/lm/decode"
)

// httpError is an answer that is not 200.
type httpError struct {
	status     int
	message    string
	param      string        // the field at fault, "" for none
	retryAfter time.Duration // 0 for never
}

func (e *httpError) Error() string { return e.message }

func badRequest(param, format string, args ...any) error {
	return &httpError{status: http.StatusBadRequest, param: param, message: fmt.Sprintf(format, args...)}
}

var (
	errInternal = &httpError{status: http.StatusInternalServerError, message: "the model failed; the server's log says more"}
	errEnding   = &httpError{status: http.StatusServiceUnavailable, message: "the server is stopping", retryAfter: 10 * time.Second}
	errBusy     = &httpError{status: http.StatusServiceUnavailable, message: "too many requests are waiting; try again", retryAfter: time.Second}
)

// statusGone is what the log says of a client that went away.
const statusGone = 499

// answerOf is what to tell a client about any error.
func answerOf(err error) *httpError {
	var h *httpError
	var in *decode.InputError
	switch {
	case errors.As(err, &h):
		return h
	case errors.As(err, &in):
		return &httpError{status: http.StatusBadRequest, message: in.Problem}
	case errors.Is(err, context.Canceled):
		return &httpError{status: statusGone, message: "the client went away"}
	}
	return errInternal
}

// response writes an answer and notes what the log wants to know. Every write
// has a deadline, so that a client that does not read holds nothing up.
type response struct {
	http.ResponseWriter
	control *http.ResponseController
	now     func() time.Time
	timeout time.Duration
	status  int
	bytes   int64
	attrs   []slog.Attr
}

func newResponse(w http.ResponseWriter, now func() time.Time, timeout time.Duration) *response {
	return &response{ResponseWriter: w, control: http.NewResponseController(w), now: now, timeout: timeout}
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		w.ResponseWriter.WriteHeader(status)
	}
}

// deadline gives the client until now plus the write timeout to read.
func (w *response) deadline() {
	_ = w.control.SetWriteDeadline(w.now().Add(w.timeout)) // a writer of a test has none
}

func (w *response) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// json writes a whole answer.
func (w *response) json(status int, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.deadline()
	w.WriteHeader(status)
	if _, err := w.Write(b.Bytes()); err != nil {
		w.status = statusGone
	}
	return nil
}

// errorBody is the form of OpenAI's errors.
func errorBody(e *httpError) any {
	kind := "invalid_request_error"
	if e.status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	var param any
	if e.param != "" {
		param = e.param
	}
	return map[string]any{"error": map[string]any{"message": e.message, "type": kind, "param": param, "code": e.status}}
}

// fail answers with an error, unless an answer has begun.
func (w *response) fail(err error) {
	h := answerOf(err)
	if w.status != 0 {
		return
	}
	if h.status == statusGone {
		w.status = statusGone // nobody reads it
		return
	}
	if h.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(h.retryAfter.Seconds())))
	}
	_ = w.json(h.status, errorBody(h)) // errors have a form that can be written
}

// parse reads a request's JSON body into v and calls use, which must not wait
// for anyone.
func (s *Server) parse(w *response, r *http.Request, v any, use func() error) error {
	b, err := s.body(w, r)
	if err != nil {
		return err
	}
	select {
	case s.parsers <- struct{}{}:
		defer func() { <-s.parsers }()
	case <-r.Context().Done():
		return context.Cause(r.Context())
	}
	if err := decodeJSON(b, v); err != nil {
		return err
	}
	return use()
}

// body reads a request's body.
func (s *Server) body(w *response, r *http.Request) ([]byte, error) {
	if r.ContentLength > s.MaxBody {
		w.Header().Set("Connection", "close") // rather than read it all
		return nil, s.tooLarge()
	}
	b, err := io.ReadAll(http.MaxBytesReader(w.ResponseWriter, r.Body, s.MaxBody))
	var large *http.MaxBytesError
	var network net.Error
	switch {
	case errors.As(err, &large):
		return nil, s.tooLarge()
	case errors.As(err, &network) && network.Timeout():
		return nil, &httpError{status: http.StatusRequestTimeout, message: "the request did not arrive in time"}
	case err != nil && r.Context().Err() != nil:
		return nil, context.Canceled
	case err != nil:
		return nil, badRequest("", "the request ended early: %v", err)
	}
	// What is left of the read timeout must not end the work.
	_ = w.control.SetReadDeadline(time.Time{})
	if !utf8.Valid(b) {
		return nil, badRequest("", "the request is not valid UTF-8; send other bytes as token ids")
	}
	if at := halfSurrogate(b); at >= 0 {
		return nil, badRequest("", "the request escapes half a character at byte %d (a surrogate without its other half); send other bytes as token ids", at)
	}
	return b, nil
}

func (s *Server) tooLarge() error {
	return &httpError{status: http.StatusRequestEntityTooLarge, message: fmt.Sprintf("the request has more than %d bytes", s.MaxBody)}
}

// decodeJSON says in a sentence what is wrong with a body. Fields that v does
// not have are ignored.
func decodeJSON(b []byte, v any) error {
	if len(bytes.TrimSpace(b)) == 0 {
		return badRequest("", "the request is empty, expected a JSON object")
	}
	err := json.Unmarshal(b, v)
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	var h *httpError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &h):
		return h
	case errors.As(err, &kind) && kind.Field == "":
		return badRequest("", "the request is a JSON %s, expected an object", kind.Value)
	case errors.As(err, &kind):
		return badRequest(kind.Field, "%q is a JSON %s, expected %s", kind.Field, kind.Value, wanted(kind.Type.Kind().String()))
	case errors.As(err, &syntax):
		return badRequest("", "the request is not valid JSON: %v at byte %d", syntax, syntax.Offset)
	}
	return badRequest("", "the request is not valid JSON: %v", err)
}

func wanted(kind string) string {
	switch {
	case kind == "bool":
		return "true or false"
	case kind == "string":
		return "a string"
	case strings.HasPrefix(kind, "int"):
		return "a whole number"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "slice":
		return "a list"
	}
	return "an object"
}
