package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// httpError is an answer that is not 200.
type httpError struct {
	status  int
	message string
}

func (e *httpError) Error() string { return e.message }

// BadInput tells the command line, of a report, that the input is at fault.
func (e *httpError) BadInput() bool { return e.status < http.StatusInternalServerError }

func notFound(format string, args ...any) error {
	return &httpError{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) error {
	return &httpError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// errBusy is told to who finds the queue full.
var errBusy = &httpError{http.StatusServiceUnavailable, "too many requests are waiting; try again"}

// input is an error of what the user named, whose sentence is for the page.
type input interface{ BadInput() bool }

// statusOf says what an error is to the page: the server's own failures are
// told in full too, since whoever reads them started the server.
func statusOf(err error) (status int, message string) {
	var h *httpError
	var in input
	switch {
	case errors.As(err, &h):
		return h.status, h.message
	case errors.Is(err, context.Canceled):
		return 499, "the page went away"
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable, fmt.Sprintf("this took longer than %v", requestTimeout)
	case errors.As(err, &in) && in.BadInput():
		return http.StatusUnprocessableEntity, err.Error()
	}
	return http.StatusInternalServerError, err.Error()
}

// contentSecurity lets the page use what this server sends and nothing else.
const contentSecurity = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func secure(h http.Header) {
	h.Set("Content-Security-Policy", contentSecurity)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY")
}

// hostAllowed protects from pages elsewhere whose name was made to lead here
// (DNS rebinding): such a request has that name as its Host. An address in
// digits cannot be made to lead anywhere else.
func hostAllowed(host, own string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return net.ParseIP(host) != nil || strings.EqualFold(host, "localhost") || own != "" && strings.EqualFold(host, own)
}

// foreign reports a request for data that a page of another site makes.
func foreign(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// writeJSON sends a whole answer.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(v); err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // who went away reads no error either
	return nil
}

// number reads a number from the path.
func number(r *http.Request, name string, below int) (int, error) {
	text := r.PathValue(name)
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n >= below || strconv.Itoa(n) != text {
		return 0, notFound("%s %q: there are %d, counted from 0", name, text, below)
	}
	return n, nil
}

// query reads an optional number, at least least.
func query(r *http.Request, name string, least, unset int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return unset, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		return 0, badRequest("%s is %q, expected a number of at least %d", name, text, least)
	}
	return n, nil
}

// page is a part of a list.
type page[T any] struct {
	Total int `json:"total"`
	Page  int `json:"page"`
	Pages int `json:"pages"`
	Rows  []T `json:"rows"`
}

// pageOf makes the page that a request asks for of n rows.
func pageOf[T any](r *http.Request, n int, row func(i int) (T, error)) (page[T], error) {
	p := page[T]{Total: n, Pages: max(1, (n+pageRows-1)/pageRows), Rows: []T{}}
	at, err := query(r, "page", 0, 0)
	if err != nil {
		return p, err
	}
	if at >= p.Pages {
		return p, notFound("page %d: there are %d, counted from 0", at, p.Pages)
	}
	p.Page = at
	for i := at * pageRows; i < min(n, (at+1)*pageRows); i++ {
		v, err := row(i)
		if err != nil {
			return p, err
		}
		p.Rows = append(p.Rows, v)
	}
	return p, nil
}
