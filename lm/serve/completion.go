package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"unicode/utf8"

	"deeploop/lm/decode"
)

// completion is an answer of /v1/completions, or a piece of one.
type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

type choice struct {
	Text         string    `json:"text"`
	Index        int       `json:"index"`
	Logprobs     *logprobs `json:"logprobs"`
	FinishReason *string   `json:"finish_reason"`
}

// logprobs has an entry per token in each list.
type logprobs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []*float64           `json:"token_logprobs"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs"` // null where none were asked for
	TextOffset    []int                `json:"text_offset"`  // characters of the text before the token
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// lowest is what stands for log-probabilities below it: JSON has no -Inf.
const lowest = -9999

var errSlow = &httpError{status: http.StatusServiceUnavailable, message: "the request took too long and was given up"}

func (s *Server) completions(w *response, r *http.Request) error {
	if s.ending.Load() {
		return errEnding
	}
	var req completionRequest
	var todo *work
	err := s.parse(w, r, &req, func() (err error) {
		todo, err = s.work(&req)
		return err
	})
	if err != nil {
		return err
	}
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		return errBusy
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), s.RequestTimeout, errSlow)
	defer cancel()
	head := completion{
		ID: fmt.Sprintf("cmpl-%d-%d", s.created.UnixNano(), s.requests.Add(1)), Object: "text_completion",
		Created: s.Now().Unix(), Model: s.Model,
	}
	if todo.stream {
		return s.stream(ctx, w, head, todo)
	}
	return s.whole(ctx, w, head, todo)
}

// whole answers when everything is known.
func (s *Server) whole(ctx context.Context, w *response, head completion, todo *work) error {
	head.Choices = make([]choice, len(todo.jobs))
	for i := range head.Choices {
		head.Choices[i].Index = i
	}
	drawn, err := s.run(ctx, w, todo, func(c choice) {
		all := &head.Choices[c.Index]
		all.Text += c.Text
		all.FinishReason = c.FinishReason
		all.Logprobs = all.Logprobs.join(c.Logprobs)
	})
	if err != nil {
		return err
	}
	head.Usage = todo.usageOf(drawn)
	return w.json(http.StatusOK, head)
}

func (w *work) usageOf(drawn int) *usage {
	return &usage{PromptTokens: w.prompts, CompletionTokens: drawn, TotalTokens: w.prompts + drawn}
}

// run does the work once the model is free. emit gets pieces of choices, of
// each at least a last one with its reason; it must not wait.
func (s *Server) run(ctx context.Context, w *response, todo *work, emit func(choice)) (drawn int, err error) {
	asked := s.Now()
	err = s.withModel(ctx, func() error {
		w.attrs = append(w.attrs, slog.Duration("waited", s.Now().Sub(asked)))
		for i, j := range todo.jobs {
			c := newCollector(s, todo, j, i)
			reason, err := decode.Complete(ctx, s.decoder, j.request, func(t decode.Token) error {
				if t.Drawn {
					drawn++
				}
				stopped := c.add(t)
				if t.Drawn && c.ready() {
					emit(c.take())
				}
				if stopped && !t.End {
					return decode.ErrStop
				}
				return nil
			})
			if err != nil {
				return err
			}
			c.finish(reason)
			emit(c.take())
		}
		return nil
	})
	w.attrs = append(w.attrs, slog.Int("prompts", len(todo.jobs)), slog.Int("prompt_tokens", todo.prompts), slog.Int("drawn_tokens", drawn))
	var in *decode.InputError
	var h *httpError
	switch {
	case err == nil:
		return drawn, nil
	case ctx.Err() != nil:
		return drawn, context.Cause(ctx)
	case errors.As(err, &in), errors.As(err, &h):
		return drawn, err
	}
	s.Log.Error("model failed", "error", err.Error())
	return drawn, errInternal
}

// collector turns the tokens of one prompt into pieces of a choice.
type collector struct {
	s      *Server
	todo   *work
	index  int
	stop   *decode.Text // drawn text up to a stop string
	shown  decode.Text  // whole characters
	offset decode.Text  // characters of all tokens so far
	runes  int
	piece  choice
}

func newCollector(s *Server, todo *work, j job, index int) *collector {
	c := &collector{s: s, todo: todo, index: index, stop: decode.NewText(todo.stops...)}
	c.take()
	if todo.echo {
		c.show([]byte(j.text))
	}
	return c
}

func (c *collector) show(b []byte) {
	out, _ := c.shown.Add(b)
	c.piece.Text += string(out)
}

// add takes the next token, and says whether a stop string was found.
func (c *collector) add(t decode.Token) (stopped bool) {
	text := c.s.tok.AppendBytes(nil, t.ID)
	c.log(t)
	out, _ := c.offset.Add(text)
	c.runes += utf8.RuneCount(out)
	if !t.Drawn || t.End {
		return false // the prompt's text is shown already
	}
	out, stopped = c.stop.Add(text)
	c.show(out)
	return stopped
}

// log adds the token's entry to the lists.
func (c *collector) log(t decode.Token) {
	if !c.todo.scores {
		return
	}
	l := c.piece.Logprobs
	l.Tokens = append(l.Tokens, c.s.tokenText(t.ID))
	l.TextOffset = append(l.TextOffset, c.runes)
	if !t.Scored {
		l.TokenLogprobs = append(l.TokenLogprobs, nil)
		if c.todo.tops {
			l.TopLogprobs = append(l.TopLogprobs, nil)
		}
		return
	}
	own := max(t.LogProb, lowest)
	l.TokenLogprobs = append(l.TokenLogprobs, &own)
	if !c.todo.tops {
		return
	}
	top := make(map[string]float64, len(t.Top)+1)
	for _, k := range t.Top {
		top[c.s.tokenText(k.ID)] = max(k.LogProb, lowest)
	}
	name := c.s.tokenText(t.ID)
	if p, ok := top[name]; !ok || own > p {
		top[name] = own
	}
	l.TopLogprobs = append(l.TopLogprobs, top)
}

// ready reports whether there is text to show.
func (c *collector) ready() bool { return c.piece.Text != "" }

// finish shows what was held back and says why the text ended.
func (c *collector) finish(reason decode.Reason) {
	c.show(c.stop.Rest())
	c.piece.Text += string(c.shown.Rest())
	why := "length"
	if reason == decode.ByStop {
		why = "stop"
	}
	c.piece.FinishReason = &why
}

// take returns the piece and begins the next.
func (c *collector) take() choice {
	p := c.piece
	c.piece = choice{Index: c.index}
	if c.todo.scores {
		c.piece.Logprobs = &logprobs{Tokens: []string{}, TokenLogprobs: []*float64{}, TextOffset: []int{}}
		if c.todo.tops {
			c.piece.Logprobs.TopLogprobs = []map[string]float64{}
		}
	}
	return p
}

// join appends the entries of a later piece.
func (l *logprobs) join(m *logprobs) *logprobs {
	if l == nil || m == nil {
		return m
	}
	l.Tokens = append(l.Tokens, m.Tokens...)
	l.TokenLogprobs = append(l.TokenLogprobs, m.TokenLogprobs...)
	if m.TopLogprobs != nil {
		l.TopLogprobs = append(l.TopLogprobs, m.TopLogprobs...)
	}
	l.TextOffset = append(l.TextOffset, m.TextOffset...)
	return l
}
