package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/lm/decode"
	"deeploop/lm/decode/decodetest"
	"deeploop/lm/serve"
)

var tok = decodetest.Bytes{}

// logBuffer is a log that tests read while a server writes.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// server is a running server.
type server struct {
	t    *testing.T
	url  string
	addr string
	log  *logBuffer
	stop context.CancelFunc
	done chan error
}

func start(t *testing.T, m decode.Decoder, o serve.Options) *server {
	t.Helper()
	return startWith(t, m, tok, o)
}

func startWith(t *testing.T, m decode.Decoder, tok decode.Tokenizer, o serve.Options) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &server{t: t, addr: l.Addr().String(), url: "http://" + l.Addr().String(), log: &logBuffer{}, done: make(chan error, 1)}
	o.Now, o.Log = time.Now, slog.New(slog.NewTextHandler(s.log, nil))
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	h := serve.New(m, tok, o)
	go func() { s.done <- h.Run(ctx, l) }()
	t.Cleanup(func() {
		s.stop()
		select {
		case err := <-s.done:
			require.NoError(t, err)
		case <-time.After(20 * time.Second):
			t.Error("the server does not end")
		}
	})
	return s
}

func (s *server) post(path, body string) (int, http.Header, []byte) {
	s.t.Helper()
	r, err := http.Post(s.url+path, "application/json", strings.NewReader(body))
	require.NoError(s.t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	require.NoError(s.t, err)
	require.NotEmpty(s.t, r.Header.Get("Content-Type"))
	return r.StatusCode, r.Header, b
}

func (s *server) get(path string) (int, map[string]any) {
	s.t.Helper()
	r, err := http.Get(s.url + path)
	require.NoError(s.t, err)
	defer r.Body.Close()
	var v map[string]any
	require.NoError(s.t, json.NewDecoder(r.Body).Decode(&v))
	return r.StatusCode, v
}

// The parts of an answer that clients read.
type answer struct {
	ID, Object, Model string
	Created           int64
	Choices           []choice
	Usage             *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		TotalTokens      int `json:"total_tokens"`
	}
	Error *struct {
		Message, Type string
		Param         *string
	}
}

type choice struct {
	Text         string
	Index        int
	FinishReason *string `json:"finish_reason"`
	Logprobs     *choiceLogprobs
}

type choiceLogprobs struct {
	Tokens        []string
	TokenLogprobs []*float64           `json:"token_logprobs"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"`
}

func (s *server) complete(body string) answer {
	s.t.Helper()
	status, _, b := s.post("/v1/completions", body)
	require.Equal(s.t, http.StatusOK, status, "%s", b)
	var a answer
	require.NoError(s.t, json.Unmarshal(b, &a))
	return a
}

func hashed() *decodetest.Model { return &decodetest.Model{MaxLen: 64, Vocab: 260} }

// What lm-evaluation-harness makes of an answer: the summed log-probability of
// the tokens after the context, and whether all are the likeliest.
func harness(t *testing.T, c choice, contextLen int) (sum float64, greedy bool) {
	t.Helper()
	n := len(c.Logprobs.TokenLogprobs)
	greedy = true
	for i := contextLen; i < n-1; i++ {
		p := c.Logprobs.TokenLogprobs[i]
		require.NotNil(t, p)
		sum += *p
		most := math.Inf(-1)
		for _, v := range c.Logprobs.TopLogprobs[i] {
			most = max(most, v)
		}
		greedy = greedy && *p == most
	}
	return sum, greedy
}

const harnessRequest = `{"model":"x","prompt":%s,"temperature":0,"max_tokens":1,"logprobs":1,"seed":1234,"echo":true}`

func TestTheHarnessGetsLogProbabilitiesOfPrompts(t *testing.T) {
	m := hashed()
	s := start(t, m, serve.Options{Model: "tiny"})
	prompts := [][]int32{{72, 101}, {1, 2, 3, 4, 5}, {200, 256, 199}, {7}}
	body, err := json.Marshal(prompts)
	require.NoError(t, err)
	a := s.complete(fmt.Sprintf(harnessRequest, body))
	require.Equal(t, "tiny", a.Model)
	require.Equal(t, "text_completion", a.Object)
	require.Len(t, a.Choices, len(prompts))
	require.Equal(t, 11, a.Usage.PromptTokens)
	require.Equal(t, 4, a.Usage.CompletionTokens)
	require.Equal(t, 15, a.Usage.TotalTokens)
	for i, ids := range prompts {
		c := a.Choices[i]
		require.Equal(t, i, c.Index)
		require.Len(t, c.Logprobs.TokenLogprobs, len(ids)+1, "the prompt's tokens and the one drawn")
		require.Len(t, c.Logprobs.Tokens, len(ids)+1)
		require.Len(t, c.Logprobs.TopLogprobs, len(ids)+1)
		require.Len(t, c.Logprobs.TextOffset, len(ids)+1)
		require.Nil(t, c.Logprobs.TokenLogprobs[0])
		require.Nil(t, c.Logprobs.TopLogprobs[0])
		want, err := decode.Score(context.Background(), hashed(), ids, 1)
		require.NoError(t, err)
		for at := 1; at < len(ids); at++ {
			sum, greedy := harness(t, c, at)
			wantSum, wantGreedy := 0.0, true
			for _, w := range want[at:] {
				wantSum += w.LogProb
				wantGreedy = wantGreedy && w.Top[0].ID == w.ID
			}
			require.InDelta(t, wantSum, sum, 1e-12)
			require.NotZero(t, sum)
			require.Equal(t, wantGreedy, greedy)
		}
	}
}

// A model that knows the text is told so, also where the next token is the
// separator: it must not drop out of the lists.
func TestTheHarnessSeesGreedyTexts(t *testing.T) {
	s := start(t, &decodetest.Model{MaxLen: 64, Vocab: 257, Logits: decodetest.Follow("abcd")}, serve.Options{})
	for _, c := range []struct {
		text   string
		greedy bool
	}{{"abcd", true}, {"abc", true}, {"abdd", false}} {
		ids, err := json.Marshal(tok.Append(nil, []byte(c.text)))
		require.NoError(t, err)
		a := s.complete(fmt.Sprintf(harnessRequest, ids))
		require.Len(t, a.Choices[0].Logprobs.TokenLogprobs, len(c.text)+1)
		_, greedy := harness(t, a.Choices[0], 1)
		require.Equal(t, c.greedy, greedy, c.text)
		for i, p := range a.Choices[0].Logprobs.TokenLogprobs[1:] {
			require.Contains(t, a.Choices[0].Logprobs.TopLogprobs[i+1], a.Choices[0].Logprobs.Tokens[i+1])
			require.Equal(t, *p, a.Choices[0].Logprobs.TopLogprobs[i+1][a.Choices[0].Logprobs.Tokens[i+1]])
		}
	}
	a := s.complete(fmt.Sprintf(harnessRequest, `"abcd"`))
	require.Equal(t, "abcd", a.Choices[0].Text)
	require.Equal(t, "stop", *a.Choices[0].FinishReason)
	require.Equal(t, "<|endoftext|>", a.Choices[0].Logprobs.Tokens[4])
}

func TestAPromptAsLongAsTheContext(t *testing.T) {
	s := start(t, hashed(), serve.Options{})
	a := s.complete(fmt.Sprintf(harnessRequest, `"`+strings.Repeat("x", 64)+`"`))
	require.Len(t, a.Choices[0].Logprobs.TokenLogprobs, 65)
}

func TestPromptsOfEveryForm(t *testing.T) {
	s := start(t, &decodetest.Model{MaxLen: 64, Vocab: 257, Logits: decodetest.Follow("hexyz")}, serve.Options{})
	for prompt, want := range map[string][]string{
		`"h"`:                    {"exy"},
		`["h","he"]`:             {"exy", "xyz"},
		`[104]`:                  {"exy"},
		`[104,101]`:              {"xyz"},
		`[[104],[104,101],[]]`:   {"exy", "xyz", "hex"},
		` [ [ 104 ] , [ 256 ] ]`: {"exy", "hex"},
		`""`:                     {"hex"},
		`["",""]`:                {"hex", "hex"},
		`"\\ud800\ud83d\ude00h"`: {"exy"}, // a backslash, and a whole character
	} {
		a := s.complete(`{"prompt":` + prompt + `,"max_tokens":3,"temperature":0,"unknown":{"field":[1]},"user":null}`)
		require.Len(t, a.Choices, len(want), prompt)
		for i, c := range a.Choices {
			require.Equal(t, i, c.Index)
			require.Equal(t, want[i], c.Text, prompt)
			require.Nil(t, c.Logprobs)
		}
	}
}

func TestMaxTokensHasADefault(t *testing.T) {
	m := &decodetest.Model{MaxLen: 64, Vocab: 257, Logits: func(_ []int32, dst []float32) { dst[65] = 99 }}
	s := start(t, m, serve.Options{})
	n := func(prompt string) int {
		return s.complete(`{"prompt":"` + prompt + `","logit_bias":{},"n":1,"max_tokens":null,"stop":null}`).Usage.CompletionTokens
	}
	require.Equal(t, 16, n("q"))
	require.Equal(t, 5, n(strings.Repeat("q", 60)), "what the context has room for")
}

func TestEchoAndOffsets(t *testing.T) {
	s := start(t, &decodetest.Model{MaxLen: 64, Vocab: 257, Logits: decodetest.Follow("aé€b")}, serve.Options{})
	a := s.complete(`{"prompt":"aé","max_tokens":0,"echo":true,"logprobs":2}`)
	c := a.Choices[0]
	require.Equal(t, "aé", c.Text)
	require.Equal(t, []string{"a", `bytes:\xc3`, `bytes:\xa9`}, c.Logprobs.Tokens)
	require.Equal(t, []int{0, 1, 1}, c.Logprobs.TextOffset)
	require.Equal(t, "length", *c.FinishReason)
	require.Zero(t, a.Usage.CompletionTokens)

	c = s.complete(`{"prompt":"a","max_tokens":9,"temperature":0,"logprobs":0}`).Choices[0]
	require.Equal(t, "é€b", c.Text)
	require.Equal(t, "stop", *c.FinishReason)
	require.Nil(t, c.Logprobs.TopLogprobs, "none were asked for")
	require.Len(t, c.Logprobs.Tokens, 7, "six bytes and the end")
	require.Equal(t, 1+0, c.Logprobs.TextOffset[2], "a token inside a character is where it ends at the earliest")

	c = s.complete(`{"prompt":[226,130],"max_tokens":1,"temperature":0,"echo":true}`).Choices[0]
	require.Equal(t, "€", c.Text, "prompt and drawn bytes are one text")
	c = s.complete(`{"prompt":"x","max_tokens":0,"echo":false}`).Choices[0]
	require.Empty(t, c.Text)
}

func TestTopLogprobsHoldTheTokenItself(t *testing.T) {
	s := start(t, hashed(), serve.Options{})
	c := s.complete(`{"prompt":"hello","max_tokens":3,"echo":true,"logprobs":4,"seed":1}`).Choices[0]
	for i := 1; i < 8; i++ {
		top := c.Logprobs.TopLogprobs[i]
		require.Contains(t, top, c.Logprobs.Tokens[i])
		require.Equal(t, *c.Logprobs.TokenLogprobs[i], top[c.Logprobs.Tokens[i]])
		require.GreaterOrEqual(t, len(top), 4)
		require.LessOrEqual(t, len(top), 5)
	}
}

// JSON has no infinity.
func TestImpossibleTokensHaveANumber(t *testing.T) {
	m := &decodetest.Model{MaxLen: 64, Vocab: 257, Logits: func(_ []int32, dst []float32) {
		for i := range dst {
			dst[i] = float32(math.Inf(-1))
		}
		dst[65] = 0
	}}
	s := start(t, m, serve.Options{})
	c := s.complete(`{"prompt":"AB","max_tokens":1,"echo":true,"logprobs":2}`).Choices[0]
	require.Equal(t, -9999.0, *c.Logprobs.TokenLogprobs[1])
	require.Equal(t, 0.0, *c.Logprobs.TokenLogprobs[2])
}

func TestSeeds(t *testing.T) {
	s := start(t, hashed(), serve.Options{Seed: 5})
	text := func(extra string) string {
		return s.complete(`{"prompt":"hello","max_tokens":20,"logprobs":0` + extra + `}`).Choices[0].Logprobs.join()
	}
	require.Equal(t, text(`,"seed":7`), text(`,"seed":7`))
	require.NotEqual(t, text(`,"seed":7`), text(`,"seed":8`))
	require.NotEqual(t, text(""), text(""), "requests without a seed differ")
	require.Equal(t, text(`,"seed":1,"temperature":0`), text(`,"seed":2,"temperature":0`))
	require.Equal(t, text(`,"temperature":0`), text(`,"seed":2,"top_k":1`))
	require.Equal(t, text(`,"temperature":0`), text(`,"seed":3,"top_p":1e-9`))
	both := s.complete(`{"prompt":["hello","hello"],"max_tokens":20,"logprobs":0,"seed":7}`)
	require.Equal(t, text(`,"seed":7`), both.Choices[1].Logprobs.join(), "as if alone")
	both = s.complete(`{"prompt":["hello","hello"],"max_tokens":20,"logprobs":0}`)
	require.NotEqual(t, both.Choices[0].Logprobs.join(), both.Choices[1].Logprobs.join(), "prompts without a seed differ")
	drawn := make(chan string, 8) // of requests that are there at once
	for range cap(drawn) {
		go func() { drawn <- text("") }()
	}
	seen := map[string]bool{}
	for range cap(drawn) {
		seen[<-drawn] = true
	}
	require.Len(t, seen, cap(drawn))
}

func (l *choiceLogprobs) join() string { return strings.Join(l.Tokens, "|") }

func TestStopStrings(t *testing.T) {
	s := start(t, &decodetest.Model{MaxLen: 64, Vocab: 257, Logits: decodetest.Follow("abcdefg")}, serve.Options{})
	for _, c := range []struct{ stop, text, reason string }{
		{`"de"`, "bc", "stop"},
		{`["xx","fg","e"]`, "bcd", "stop"},
		{`["xx"]`, "bcdefg", "stop"}, // the separator
		{`null`, "bcdefg", "stop"},
		{`["gh", null]`, "bcdefg", "stop"},
		{`""`, "bcdefg", "stop"},
		{`"b"`, "", "stop"},
	} {
		a := s.complete(`{"prompt":"a","temperature":0,"max_tokens":30,"stop":` + c.stop + `}`)
		require.Equal(t, c.text, a.Choices[0].Text, c.stop)
		require.Equal(t, c.reason, *a.Choices[0].FinishReason)
	}
	a := s.complete(`{"prompt":"a","temperature":0,"max_tokens":3,"stop":"de"}`)
	require.Equal(t, "bcd", a.Choices[0].Text, "a beginning of a stop string is text after all")
	require.Equal(t, "length", *a.Choices[0].FinishReason)
	a = s.complete(`{"prompt":"abc","temperature":0,"max_tokens":2,"stop":"bc","echo":true}`)
	require.Equal(t, "abcde", a.Choices[0].Text, "stop strings are for what is drawn")
}

// events reads a stream.
func (s *server) events(body string) (events []answer) {
	s.t.Helper()
	r, err := http.Post(s.url+"/v1/completions", "application/json", strings.NewReader(body))
	require.NoError(s.t, err)
	defer r.Body.Close()
	require.Equal(s.t, http.StatusOK, r.StatusCode)
	require.Equal(s.t, "text/event-stream", r.Header.Get("Content-Type"))
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<20)
	done := false
	for lines.Scan() {
		if lines.Text() == "" {
			continue
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		require.True(s.t, ok, lines.Text())
		require.False(s.t, done, "nothing follows [DONE]")
		if data == "[DONE]" {
			done = true
			continue
		}
		var a answer
		require.NoError(s.t, json.Unmarshal([]byte(data), &a))
		events = append(events, a)
	}
	require.NoError(s.t, lines.Err())
	require.True(s.t, done || events[len(events)-1].Error != nil)
	return events
}

func TestStreamsAddUpToTheWhole(t *testing.T) {
	s := start(t, &decodetest.Model{MaxLen: 64, Vocab: 257, Logits: decodetest.Follow("añ€😀xyz")}, serve.Options{})
	for _, body := range []string{
		`{"prompt":"a","temperature":0,"max_tokens":20`,
		`{"prompt":["a","x",""],"temperature":0,"max_tokens":20,"logprobs":2,"echo":true`,
		`{"prompt":"a","temperature":0,"max_tokens":20,"stop":"yz"`,
		`{"prompt":"a","max_tokens":0,"echo":true`,
		`{"prompt":"a","max_tokens":3,"temperature":0,"logprobs":0`,
	} {
		whole := s.complete(body + "}")
		events := s.events(body + `,"stream":true,"stream_options":{"include_usage":true}}`)
		last := events[len(events)-1]
		require.Empty(t, last.Choices)
		require.Equal(t, whole.Usage, last.Usage)
		joined := make([]choice, len(whole.Choices))
		for _, e := range events[:len(events)-1] {
			require.Equal(t, events[0].ID, e.ID)
			require.Len(t, e.Choices, 1)
			c := e.Choices[0]
			if c.FinishReason == nil {
				require.NotContains(t, c.Text, "\ufffd", "characters are whole")
			}
			j := &joined[c.Index]
			require.Nil(t, j.FinishReason, "the reason is in the last event of a choice")
			j.Index, j.FinishReason = c.Index, c.FinishReason
			j.Text += c.Text
			if c.Logprobs != nil {
				if j.Logprobs == nil {
					j.Logprobs = c.Logprobs
				} else {
					j.Logprobs.Tokens = append(j.Logprobs.Tokens, c.Logprobs.Tokens...)
					j.Logprobs.TokenLogprobs = append(j.Logprobs.TokenLogprobs, c.Logprobs.TokenLogprobs...)
					j.Logprobs.TopLogprobs = append(j.Logprobs.TopLogprobs, c.Logprobs.TopLogprobs...)
					j.Logprobs.TextOffset = append(j.Logprobs.TextOffset, c.Logprobs.TextOffset...)
				}
			}
		}
		require.Equal(t, whole.Choices, joined, body)
	}
}

func TestTokenizerEndpoints(t *testing.T) {
	s := start(t, hashed(), serve.Options{})
	status, info := s.get("/tokenizer_info")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "<|endoftext|>", info["eos_token"])
	require.Equal(t, "<|endoftext|>", info["bos_token"])
	require.Equal(t, 257.0, info["vocab_size"], "what the model pads is no token")
	require.Equal(t, 64.0, info["model_max_length"])

	status, _, b := s.post("/tokenize", `{"prompt":"test","add_special_tokens":false}`)
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"count":4,"max_model_len":64,"tokens":[116,101,115,116]}`, string(b))
	_, _, b = s.post("/tokenize", `{"prompt":""}`)
	require.JSONEq(t, `{"count":0,"max_model_len":64,"tokens":[]}`, string(b))
	_, _, b = s.post("/tokenize", `{"prompt":"<|endoftext|>"}`)
	require.JSONEq(t, `{"count":1,"max_model_len":64,"tokens":[256]}`, string(b), "how the harness finds the separator's id")
	_, _, b = s.post("/tokenize", `{"prompt":"a<|endoftext|>"}`)
	require.Contains(t, string(b), `"count":14`, "in a text it is text")

	_, _, b = s.post("/detokenize", `{"tokens":[226,130,172,256,255]}`)
	require.JSONEq(t, `{"prompt":"€<|endoftext|>\ufffd"}`, string(b))
	_, _, b = s.post("/detokenize", `{"tokens":[]}`)
	require.JSONEq(t, `{"prompt":""}`, string(b))

	for _, c := range []struct{ path, body, says string }{
		{"/tokenize", `{}`, `\"prompt\" is missing`},
		{"/tokenize", `{"prompt":3}`, `\"prompt\" is a JSON number, expected a string`},
		{"/detokenize", `{}`, `\"tokens\" is missing`},
		{"/detokenize", `{"tokens":[257]}`, "tokens[0] is 257, expected token ids from 0 to 256"},
		{"/detokenize", `{"tokens":[1,null]}`, "entry 1 of the list is null"},
		{"/detokenize", `{"tokens":"x"}`, "expected a list of token ids"},
	} {
		status, _, b := s.post(c.path, c.body)
		require.Equal(t, http.StatusBadRequest, status)
		require.Contains(t, string(b), c.says)
	}
}

func TestAVocabularyWithoutSeparator(t *testing.T) {
	s := startWith(t, &decodetest.Model{MaxLen: 64, Vocab: 256}, decodetest.Bytes{NoSeparator: true, Unknown: "#"}, serve.Options{})
	_, info := s.get("/tokenizer_info")
	require.Contains(t, info, "eos_token")
	require.Nil(t, info["eos_token"])
	status, _, b := s.post("/v1/completions", `{"prompt":""}`)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, string(b), "no document separator to begin with")
	status, _, b = s.post("/v1/completions", `{"prompt":["a","b#"]}`)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, string(b), "prompt 1 cannot be tokenized: character '#' at byte 1 is not in the vocabulary")
	status, _, _ = s.post("/tokenize", `{"prompt":"#"}`)
	require.Equal(t, http.StatusBadRequest, status)
	require.Len(t, s.complete(`{"prompt":"a","max_tokens":40,"logprobs":0}`).Choices[0].Logprobs.Tokens, 40)
}

func TestModelsHealthAndVersion(t *testing.T) {
	s := start(t, hashed(), serve.Options{Model: "m/1", Version: "0.1.0 (commit x)"})
	_, v := s.get("/v1/models")
	require.Equal(t, "list", v["object"])
	m := v["data"].([]any)[0].(map[string]any)
	require.Equal(t, "m/1", m["id"])
	require.Equal(t, 64.0, m["max_model_len"])
	_, v = s.get("/v1/models/m/1")
	require.Equal(t, "m/1", v["id"])
	status, v := s.get("/v1/models/other")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, v, "error")
	status, v = s.get("/health")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "ok", v["status"])
	_, v = s.get("/version")
	require.Equal(t, "0.1.0 (commit x)", v["version"])
	status, _ = s.get("/nothing")
	require.Equal(t, http.StatusNotFound, status)
	status, v = s.get("/v1/completions")
	require.Equal(t, http.StatusMethodNotAllowed, status)
	require.Contains(t, v, "error")
	status, h, _ := s.post("/health", "")
	require.Equal(t, http.StatusMethodNotAllowed, status)
	require.Equal(t, "GET", h.Get("Allow"))
	r, err := http.Head(s.url + "/health")
	require.NoError(t, err)
	r.Body.Close()
	require.Equal(t, http.StatusOK, r.StatusCode)
}
