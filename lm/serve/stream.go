package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// stream answers with server-sent events as text becomes known: one JSON
// object each, and [DONE] last. The model's part runs ahead of the client's
// reading, so that a slow client does not keep the model from others; what
// waits is bounded by the request's max_tokens.
func (s *Server) stream(ctx context.Context, w *response, head completion, todo *work) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	room := 0
	for _, j := range todo.jobs {
		room += j.request.MaxTokens + 1
	}
	pieces := make(chan choice, room)
	var drawn int
	var failure error
	go func() {
		defer close(pieces)
		drawn, failure = s.run(ctx, w, todo, func(c choice) { pieces <- c })
	}()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	var broken error
	for c := range pieces {
		if broken == nil {
			head.Choices = []choice{c}
			if broken = w.event(head); broken != nil {
				cancel() // nobody reads what follows
			}
		}
	}
	if broken != nil {
		w.status = statusGone
		return fmt.Errorf("write to the client: %w", broken)
	}
	if failure != nil {
		if w.status == 0 { // nothing was sent: an ordinary answer
			return failure
		}
		_ = w.event(errorBody(answerOf(failure))) // as far as it reaches
		return failure
	}
	if todo.usage {
		head.Choices, head.Usage = []choice{}, todo.usageOf(drawn)
		if err := w.event(head); err != nil {
			return fmt.Errorf("write to the client: %w", err)
		}
	}
	return w.send([]byte("data: [DONE]\n\n"))
}

// event sends one event.
func (w *response) event(v any) error {
	var b bytes.Buffer
	b.WriteString("data: ")
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	b.WriteByte('\n')
	return w.send(b.Bytes())
}

func (w *response) send(b []byte) error {
	w.deadline()
	w.WriteHeader(http.StatusOK)
	if _, err := w.Write(b); err != nil {
		return err
	}
	return w.control.Flush()
}
