package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"deeploop/lm/decode"
)

// maxStops bounds the stop strings of a request.
const maxStops = 32

// completionRequest is the body of /v1/completions. null is as if it were not
// there, and so are fields that are not.
type completionRequest struct {
	Model         *string  `json:"model"` // any: there is one
	Prompt        prompts  `json:"prompt"`
	MaxTokens     *int     `json:"max_tokens"`
	Temperature   *float64 `json:"temperature"`
	TopP          *float64 `json:"top_p"`
	TopK          *int     `json:"top_k"`
	Seed          *int64   `json:"seed"`
	Stop          texts    `json:"stop"`
	Echo          *bool    `json:"echo"`
	Logprobs      *int     `json:"logprobs"`
	Stream        *bool    `json:"stream"`
	StreamOptions *struct {
		IncludeUsage *bool `json:"include_usage"`
	} `json:"stream_options"`

	// What would change the answer, and is not there.
	N                *int               `json:"n"`
	BestOf           *int               `json:"best_of"`
	Suffix           *string            `json:"suffix"`
	PresencePenalty  *float64           `json:"presence_penalty"`
	FrequencyPenalty *float64           `json:"frequency_penalty"`
	LogitBias        map[string]float64 `json:"logit_bias"`
}

// prompts are the prompts of a request: texts, or token ids. The JSON is a
// string, a list of strings, a list of ids or a list of lists of ids.
type prompts struct {
	texts []string
	ids   [][]int32
	given bool
}

func (p *prompts) UnmarshalJSON(b []byte) error {
	inner := bytes.TrimSpace(b)
	if string(inner) == "null" {
		return nil
	}
	p.given = true
	if inner[0] == '"' {
		p.texts = []string{""}
		return json.Unmarshal(inner, &p.texts[0])
	}
	const want = "expected a string, a list of strings, a list of token ids or a list of lists of token ids"
	if inner[0] != '[' {
		return badRequest("prompt", `"prompt" is %s, %s`, brief(inner), want)
	}
	switch first := bytes.TrimSpace(inner[1:]); {
	case first[0] == ']':
		return badRequest("prompt", `"prompt" is an empty list, %s`, want)
	case first[0] == '"':
		return p.list(inner, &p.texts, "a string")
	case first[0] == '[':
		var lists []idList
		if err := p.list(inner, &lists, "a list of token ids"); err != nil {
			return err
		}
		for _, l := range lists {
			p.ids = append(p.ids, l)
		}
		return nil
	}
	var ids idList
	if err := ids.UnmarshalJSON(inner); err != nil {
		return badRequest("prompt", `"prompt": %v`, err)
	}
	p.ids = [][]int32{ids}
	return nil
}

// list reads a list of one kind of prompt into v.
func (p *prompts) list(b []byte, v any, kind string) error {
	var each []json.RawMessage
	if err := json.Unmarshal(b, &each); err != nil {
		return err
	}
	for i, e := range each {
		if e[0] != each[0][0] {
			return badRequest("prompt", `"prompt"[%d] is %s, expected %s, as the first is`, i, brief(e), kind)
		}
	}
	if err := json.Unmarshal(b, v); err != nil {
		return badRequest("prompt", `"prompt": %v`, err)
	}
	return nil
}

// texts is a string or a list of strings.
type texts []string

func (t *texts) UnmarshalJSON(b []byte) error {
	inner := bytes.TrimSpace(b)
	if inner[0] == '"' {
		*t = texts{""}
		return json.Unmarshal(inner, &(*t)[0])
	}
	var list []*string
	if err := json.Unmarshal(inner, &list); err != nil {
		return badRequest("stop", `"stop" is %s, expected a string or a list of strings`, brief(inner))
	}
	for _, s := range list {
		if s != nil {
			*t = append(*t, *s)
		}
	}
	return nil
}

// work is a checked request: what to do with each prompt.
type work struct {
	jobs    []job
	stops   []string
	echo    bool
	stream  bool
	usage   bool // a last event of a stream with the usage
	scores  bool
	tops    bool // top_logprobs are not null
	prompts int  // tokens
}

type job struct {
	request decode.Request
	text    string // of the prompt
}

func valueOr[T any](v *T, d T) T {
	if v == nil {
		return d
	}
	return *v
}

// work checks a request. Everything that can be refused is refused here,
// before the request waits for the model.
func (s *Server) work(r *completionRequest) (*work, error) {
	if err := unsupported(r); err != nil {
		return nil, err
	}
	if !r.Prompt.given {
		return nil, badRequest("prompt", `"prompt" is missing`)
	}
	if n := len(r.Prompt.texts) + len(r.Prompt.ids); n > s.MaxPrompts {
		return nil, badRequest("prompt", "%d prompts, expected at most %d in a request", n, s.MaxPrompts)
	}
	if len(r.Stop) > maxStops {
		return nil, badRequest("stop", "%d stop strings, expected at most %d", len(r.Stop), maxStops)
	}
	top := valueOr(r.Logprobs, 0)
	if top < 0 || top > s.MaxLogprobs {
		return nil, badRequest("logprobs", "logprobs is %d, expected 0 to %d", top, s.MaxLogprobs)
	}
	base := decode.Request{
		Echo: valueOr(r.Echo, false), Scores: r.Logprobs != nil, Top: top,
		Stop: []int32{s.tok.Separator()}, Vocabulary: s.vocabulary,
	}
	var err error
	if base.Sampling, err = s.sampling(r); err != nil {
		return nil, err
	}
	w := &work{
		stops: r.Stop, echo: base.Echo, scores: base.Scores, tops: top > 0, stream: valueOr(r.Stream, false),
		usage: r.StreamOptions != nil && valueOr(r.StreamOptions.IncludeUsage, false),
	}
	add := func(i int, ids []int32, text string) error {
		base.Prompt = ids
		if r.Seed == nil { // each prompt's own, also of requests that come together
			base.Seed = s.Seed + s.seeds.Add(1) - 1
		}
		if base.MaxTokens, err = s.room(i, ids, r.MaxTokens); err != nil {
			return err
		}
		w.jobs = append(w.jobs, job{base, text})
		w.prompts += len(ids)
		return nil
	}
	for i, text := range r.Prompt.texts {
		if err := s.tok.Check([]byte(text)); err != nil {
			return nil, badRequest("prompt", "prompt %d cannot be tokenized: %v", i, err)
		}
		if err := add(i, s.tok.Append(nil, []byte(text)), text); err != nil {
			return nil, err
		}
	}
	for i, ids := range r.Prompt.ids {
		if err := s.checkIDs("prompt", fmt.Sprintf("prompt %d", i), ids); err != nil {
			return nil, err
		}
		if err := add(i, ids, string(s.tok.AppendBytes(nil, ids...))); err != nil {
			return nil, err
		}
	}
	total := w.prompts
	for i := range w.jobs {
		j := &w.jobs[i]
		if len(j.request.Prompt) == 0 {
			if s.tok.Separator() < 0 {
				return nil, badRequest("prompt", "prompt %d is empty, and tokenizer %s has no document separator to begin with", i, s.tok.Name())
			}
			j.request.Prompt = []int32{s.tok.Separator()}
			w.prompts++
		}
		total += j.request.MaxTokens
	}
	if total > s.MaxTokens {
		return nil, badRequest("prompt", "the request has %d tokens, prompts and max_tokens together, expected at most %d; send fewer prompts at a time", total, s.MaxTokens)
	}
	return w, nil
}

// room returns how many tokens to draw after a prompt.
func (s *Server) room(i int, ids []int32, asked *int) (int, error) {
	context := s.decoder.Context()
	n := max(1, len(ids))
	if n > context {
		return 0, badRequest("prompt", "prompt %d has %d tokens, more than the model's context of %d", i, n, context)
	}
	room := context - n + 1 // the last token is not read
	if asked == nil {
		return min(16, room), nil
	}
	if *asked < 0 {
		return 0, badRequest("max_tokens", "max_tokens is %d, expected at least 0", *asked)
	}
	if *asked > room {
		return 0, badRequest("max_tokens", "prompt %d has %d tokens and max_tokens is %d: the model's context of %d leaves room for %d after it", i, n, *asked, context, room)
	}
	return *asked, nil
}

func (s *Server) sampling(r *completionRequest) (decode.Sampling, error) {
	p := decode.Sampling{
		Temperature: valueOr(r.Temperature, 1), TopK: max(0, valueOr(r.TopK, 0)), TopP: valueOr(r.TopP, 1),
		Seed: uint64(valueOr(r.Seed, 0)),
	}
	if p.TopP == 0 {
		return p, badRequest("top_p", "top_p is 0, expected more than 0 and at most 1")
	}
	return p, p.Check()
}

// unsupported refuses what would silently give another answer than asked for.
func unsupported(r *completionRequest) error {
	for _, f := range []struct {
		name string
		bad  bool
	}{
		{"n", valueOr(r.N, 1) != 1},
		{"best_of", valueOr(r.BestOf, 1) != 1},
		{"suffix", valueOr(r.Suffix, "") != ""},
		{"presence_penalty", valueOr(r.PresencePenalty, 0) != 0},
		{"frequency_penalty", valueOr(r.FrequencyPenalty, 0) != 0},
		{"logit_bias", len(r.LogitBias) > 0},
	} {
		if f.bad {
			hint := "leave it out"
			if slices.Contains([]string{"n", "best_of"}, f.name) {
				hint = "expected 1; repeat the prompt with other seeds"
			}
			return badRequest(f.name, "%s is not supported: %s", f.name, hint)
		}
	}
	return nil
}
