package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"deeploop/lm/decode/decodetest"
	"deeploop/lm/serve"
)

func TestBadRequestsAreExplained(t *testing.T) {
	s := start(t, hashed(), serve.Options{MaxBody: 10000, MaxPrompts: 3, MaxTokens: 100, MaxLogprobs: 5})
	long := strings.Repeat("x", 65)
	for _, c := range []struct{ body, param, says string }{
		{``, "", "the request is empty"},
		{`{"prompt":`, "", "not valid JSON: unexpected end of JSON input at byte 10"},
		{`{"prompt":"a"} x`, "", "not valid JSON: invalid character 'x' after top-level value"},
		{`"a"`, "", "a JSON string, expected an object"},
		{`[]`, "", "a JSON array, expected an object"},
		{"{\"prompt\":\"\xff\"}", "", "not valid UTF-8"},
		{`{"prompt":"\ud800"}`, "", "escapes half a character at byte 11"},
		{`{"prompt":"\\\uDc00a"}`, "", "half a character at byte 13"},
		{`{"prompt":"\ud83d\ud83d\ude00"}`, "", "half a character at byte 11"},
		{`{"prompt":"\ud83d\n"}`, "", "half a character"},
		{`{"prompt":"\ud83d`, "", "half a character"},
		{`{}`, "prompt", `"prompt" is missing`},
		{`{"prompt":null}`, "prompt", `"prompt" is missing`},
		{`{"prompt":3}`, "prompt", `"prompt" is 3, expected a string, a list of strings, a list of token ids or a list of lists of token ids`},
		{`{"prompt":{"a":1}}`, "prompt", "expected a string"},
		{`{"prompt":[]}`, "prompt", "empty list"},
		{`{"prompt":[1,"a"]}`, "prompt", `entry 1 of the list is "a", expected a token id`},
		{`{"prompt":["a",1]}`, "prompt", `"prompt"[1] is 1, expected a string, as the first is`},
		{`{"prompt":["a",null]}`, "prompt", `"prompt"[1] is null`},
		{`{"prompt":[[1],2]}`, "prompt", `"prompt"[1] is 2, expected a list of token ids`},
		{`{"prompt":[[1],["a"]]}`, "prompt", `entry 0 of the list is "a"`},
		{`{"prompt":[[[1]]]}`, "prompt", `entry 0 of the list is [1]`},
		{`{"prompt":[null]}`, "prompt", `entry 0 of the list is null, expected a token id`},
		{`{"prompt":[1.5]}`, "prompt", "entry 0 of the list is 1.5"},
		{`{"prompt":[99999999999]}`, "prompt", "entry 0 of the list is 99999999999"},
		{`{"prompt":[true]}`, "prompt", "entry 0 of the list is true"},
		{`{"prompt":[1,257]}`, "prompt", "prompt 0[1] is 257, expected token ids from 0 to 256"},
		{`{"prompt":[[1],[-1]]}`, "prompt", "prompt 1[0] is -1"},
		{`{"prompt":["a","b","c","d"]}`, "prompt", "4 prompts, expected at most 3"},
		{`{"prompt":"` + long + `"}`, "prompt", "prompt 0 has 65 tokens, more than the model's context of 64"},
		{`{"prompt":["a","` + long + `"],"max_tokens":1}`, "prompt", "prompt 1 has 65 tokens"},
		{`{"prompt":"abcd","max_tokens":62}`, "max_tokens", "prompt 0 has 4 tokens and max_tokens is 62: the model's context of 64 leaves room for 61 after it"},
		{`{"prompt":"a","max_tokens":-1}`, "max_tokens", "max_tokens is -1"},
		{`{"prompt":"a","max_tokens":"7"}`, "max_tokens", `"max_tokens" is a JSON string, expected a whole number`},
		{`{"prompt":"a","max_tokens":1.5}`, "max_tokens", `"max_tokens" is a JSON number 1.5, expected a whole number`},
		{`{"prompt":["a","b"],"max_tokens":50}`, "prompt", "the request has 102 tokens"},
		{`{"prompt":"a","logprobs":6}`, "logprobs", "logprobs is 6, expected 0 to 5"},
		{`{"prompt":"a","logprobs":-1}`, "logprobs", "logprobs is -1"},
		{`{"prompt":"a","logprobs":true}`, "logprobs", `"logprobs" is a JSON bool, expected a whole number`},
		{`{"prompt":"a","echo":1}`, "echo", "expected true or false"},
		{`{"prompt":"a","temperature":-1}`, "", "temperature is -1"},
		{`{"prompt":"a","temperature":"hot"}`, "temperature", "expected a number"},
		{`{"prompt":"a","top_p":0}`, "top_p", "top_p is 0, expected more than 0 and at most 1"},
		{`{"prompt":"a","top_p":1.2}`, "", "top_p is 1.2"},
		{`{"prompt":"a","stop":3}`, "stop", `"stop" is 3, expected a string or a list of strings`},
		{`{"prompt":"a","stop":[` + strings.Repeat(`"x",`, 32) + `"x"]}`, "stop", "33 stop strings"},
		{`{"prompt":"a","model":7}`, "model", "expected a string"},
		{`{"prompt":"a","n":2}`, "n", "n is not supported: expected 1"},
		{`{"prompt":"a","best_of":2}`, "best_of", "not supported"},
		{`{"prompt":"a","suffix":"b"}`, "suffix", "suffix is not supported: leave it out"},
		{`{"prompt":"a","logit_bias":{"1":2}}`, "logit_bias", "not supported"},
		{`{"prompt":"a","presence_penalty":0.5}`, "presence_penalty", "not supported"},
	} {
		for _, stream := range []bool{false, true} {
			body := c.body
			if stream {
				if !strings.HasPrefix(body, `{"`) || !strings.HasSuffix(body, "}") {
					continue
				}
				body = strings.TrimSuffix(body, "}") + `,"stream":true}`
			}
			status, _, b := s.post("/v1/completions", body)
			require.Equal(t, http.StatusBadRequest, status, "%s: %s", body, b)
			var a answer
			decodeStrict(t, b, &a)
			require.NotNil(t, a.Error, body)
			require.Contains(t, a.Error.Message, c.says, body)
			require.Equal(t, "invalid_request_error", a.Error.Type)
			if c.param == "" {
				require.Nil(t, a.Error.Param, body)
			} else {
				require.NotNil(t, a.Error.Param, body)
				require.Equal(t, c.param, *a.Error.Param, body)
			}
		}
	}
}

func TestHugeRequestsAreNotRead(t *testing.T) {
	s := start(t, hashed(), serve.Options{MaxBody: 1000})
	status, _, b := s.post("/v1/completions", `{"prompt":"`+strings.Repeat("x", 1<<20)+`"}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	require.Contains(t, string(b), "more than 1000 bytes")

	// Without a length, for ever.
	read, write := io.Pipe()
	go func() {
		for {
			if _, err := write.Write([]byte(`{"prompt":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`)); err != nil {
				return
			}
		}
	}()
	r, err := http.Post(s.url+"/tokenize", "application/json", read)
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestEntityTooLarge, r.StatusCode)
	r.Body.Close()
	read.Close()

	// A promise of more than there is.
	c := s.dial()
	fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n{")
	require.Contains(t, readAll(t, c), "413")
	// Headers without end.
	c = s.dial()
	fmt.Fprintf(c, "GET /health HTTP/1.1\r\nHost: x\r\n")
	for range 100 {
		if _, err := fmt.Fprintf(c, "X: %s\r\n", strings.Repeat("y", 2000)); err != nil {
			break
		}
	}
	s.healthy()
}

func (s *server) dial() net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	require.NoError(s.t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return c
}

func readAll(t *testing.T, c net.Conn) string {
	t.Helper()
	b, err := io.ReadAll(c)
	if err != nil {
		var network net.Error
		require.False(t, errors.As(err, &network) && network.Timeout(), "the server does not close: %v", err)
	}
	return string(b)
}

func (s *server) healthy() {
	s.t.Helper()
	status, _ := s.get("/health")
	require.Equal(s.t, http.StatusOK, status)
	require.Len(s.t, s.complete(`{"prompt":"a","max_tokens":2,"logprobs":0,"echo":true}`).Choices[0].Logprobs.Tokens[:2], 2)
}

func TestTricklingClientsAreClosed(t *testing.T) {
	s := start(t, hashed(), serve.Options{ReadHeaderTimeout: 150 * time.Millisecond, ReadTimeout: 300 * time.Millisecond, IdleTimeout: 200 * time.Millisecond})
	trickle := func(c net.Conn, head, rest string) string {
		t.Helper()
		begin := time.Now()
		fmt.Fprint(c, head)
		go func() {
			for i := range rest {
				time.Sleep(20 * time.Millisecond)
				if _, err := c.Write([]byte{rest[i]}); err != nil {
					return
				}
			}
		}()
		answer := readAll(t, c)
		require.Less(t, time.Since(begin), 5*time.Second)
		return answer
	}
	line := strings.Repeat("X-Slow: y\r\n", 1000)
	trickle(s.dial(), "", "POST /v1/completions HTTP/1.1\r\nHost: x\r\n"+line)
	answer := trickle(s.dial(), "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n", strings.Repeat(" ", 5000))
	require.Contains(t, answer, "408")
	require.Contains(t, answer, "did not arrive in time")
	c := s.dial() // nothing at all
	readAll(t, c)
	c = s.dial() // kept alive, then idle
	fmt.Fprint(c, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
	require.Contains(t, readAll(t, c), "200 OK")
	s.healthy()
}

// The time to read a request is no limit for the work.
func TestWorkMayTakeLongerThanReading(t *testing.T) {
	m := hashed()
	m.Before = func(ids []int32) error { time.Sleep(20 * time.Millisecond); return nil }
	s := start(t, m, serve.Options{ReadTimeout: 100 * time.Millisecond, WriteTimeout: 100 * time.Millisecond})
	require.Len(t, s.complete(`{"prompt":"a","max_tokens":25,"temperature":0,"logprobs":0}`).Choices[0].Logprobs.Tokens, 25)
	require.Greater(t, len(s.events(`{"prompt":"a","max_tokens":25,"temperature":0,"stream":true}`)), 1)
}

func TestBrokenClients(t *testing.T) {
	s := start(t, hashed(), serve.Options{})
	for _, bytes := range []string{
		"", "\x00\x01\x02", "GET", "POST /v1/completions HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{\"prompt\":",
		"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
		"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"GET http://example.org/health HTTP/9.9\r\n\r\n",
	} {
		c := s.dial()
		fmt.Fprint(c, bytes)
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		readAll(t, c)
		c.Close()
	}
	s.healthy()
}

// gated is a model that waits at every Append until it is let on.
func gated() (m *decodetest.Model, entered chan struct{}, let chan struct{}) {
	m = hashed()
	m.Logits = func(_ []int32, dst []float32) { clear(dst); dst['x'] = 50 }
	entered, let = make(chan struct{}, 1000), make(chan struct{}, 1000)
	m.Before = func([]int32) error {
		entered <- struct{}{}
		<-let
		return nil
	}
	return m, entered, let
}

func (s *server) async(body string) chan answer {
	out := make(chan answer, 1)
	go func() {
		r, err := http.Post(s.url+"/v1/completions", "application/json", strings.NewReader(body))
		if err != nil {
			out <- answer{}
			return
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		var a answer
		if strings.HasPrefix(string(b), "{") {
			decodeStrict(s.t, b, &a)
		}
		a.Object = fmt.Sprint(r.StatusCode)
		out <- a
	}()
	return out
}

func TestAFullQueueSaysSo(t *testing.T) {
	m, entered, let := gated()
	s := start(t, m, serve.Options{Queue: 2})
	const body = `{"prompt":"a","max_tokens":1}`
	answers := make(chan answer, 6)
	for i := range 6 { // one runs, two wait, three are refused at once
		one := s.async(body)
		go func() { answers <- <-one }()
		if i == 0 {
			<-entered
		}
	}
	for range 3 {
		a := <-answers
		require.Equal(t, "503", a.Object)
		require.Contains(t, a.Error.Message, "too many requests are waiting")
	}
	status, h, _ := s.post("/v1/completions", body)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "1", h.Get("Retry-After"))
	status, _ = s.get("/health")
	require.Equal(t, http.StatusOK, status, "other answers need no model")
	for range 10 {
		let <- struct{}{}
	}
	for range 3 {
		require.Equal(t, "200", (<-answers).Object)
	}
}

// A client that goes away gives the model back, also where it waits.
func TestAClientThatGoesAwayStopsItsWork(t *testing.T) {
	m, entered, let := gated()
	s := start(t, m, serve.Options{})
	for _, stream := range []string{"false", "true"} {
		ctx, cancel := context.WithCancel(context.Background())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/completions", strings.NewReader(`{"prompt":"a","max_tokens":60,"stream":`+stream+`}`))
		require.NoError(t, err)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if r, err := http.DefaultClient.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
				r.Body.Close()
			}
		}()
		<-entered
		waiting := s.async(`{"prompt":"b","max_tokens":1}`)
		cancel()
		<-gone
		// The first request ends after the step it is in, or few more until the
		// server notices, not after 60.
		steps := 0
	wait:
		for {
			select {
			case a := <-waiting:
				require.Equal(t, "200", a.Object)
				break wait
			case let <- struct{}{}:
				steps++
				time.Sleep(5 * time.Millisecond)
				select {
				case <-entered:
				default:
				}
			}
		}
		require.Less(t, steps, 50)
		for len(let) > 0 {
			<-let
		}
		for len(entered) > 0 {
			<-entered
		}
	}
	require.Eventually(t, func() bool { return strings.Contains(s.log.String(), "status=499") }, 5*time.Second, 5*time.Millisecond)
}

// A stream that nobody reads does not keep the model, and is given up.
func TestASlowReaderKeepsNobodyWaiting(t *testing.T) {
	m := &decodetest.Model{MaxLen: 9000, Vocab: 257, Logits: func(_ []int32, dst []float32) { dst['x'] = 50 }}
	body := `{"prompt":"a","max_tokens":8000,"stream":true,"logprobs":20}`
	for _, timeout := range []time.Duration{time.Minute, 300 * time.Millisecond} {
		s := start(t, m, serve.Options{WriteTimeout: timeout})
		c := s.dial()
		require.NoError(t, c.(*net.TCPConn).SetReadBuffer(4096))
		fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		_, err := io.ReadFull(c, make([]byte, 100))
		require.NoError(t, err)
		gone := func() bool { return strings.Contains(s.log.String(), "status=499") }
		if timeout == time.Minute {
			s.healthy()
			require.False(t, gone(), "the stream waits for its reader, the model does not")
			c.Close()
		}
		require.Eventually(t, gone, 15*time.Second, 10*time.Millisecond)
		s.stop()
		require.NoError(t, <-s.done) // the next server has the model
		s.done <- nil
	}
}

func TestConcurrentClientsGetWhatEachGetsAlone(t *testing.T) {
	s := start(t, hashed(), serve.Options{Queue: 100})
	body := func(i int) string {
		return fmt.Sprintf(`{"prompt":[[%d,2,3],[4]],"max_tokens":8,"seed":%d,"logprobs":3,"echo":true}`, i, i)
	}
	alone := make([]answer, 8)
	for i := range alone {
		alone[i] = s.complete(body(i))
	}
	var wg sync.WaitGroup
	var wrong atomic.Int32
	for i := range 40 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			a := <-s.async(body(i % 8))
			if len(a.Choices) != 2 || fmt.Sprint(a.Choices[1].Text) != alone[i%8].Choices[1].Text ||
				strings.Join(a.Choices[0].Logprobs.Tokens, "|") != strings.Join(alone[i%8].Choices[0].Logprobs.Tokens, "|") {
				wrong.Add(1)
			}
		}()
	}
	wg.Wait()
	require.Zero(t, wrong.Load())
}

func TestConnectionsAreLimited(t *testing.T) {
	s := start(t, hashed(), serve.Options{MaxConnections: 2})
	a, b := s.dial(), s.dial()
	for _, c := range []net.Conn{a, b} {
		fmt.Fprint(c, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
		line, err := bufio.NewReader(c).ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "200")
	}
	third := s.dial()
	fmt.Fprint(third, "GET /health HTTP/1.0\r\n\r\n")
	require.NoError(t, third.SetReadDeadline(time.Now().Add(150*time.Millisecond)))
	_, err := third.Read(make([]byte, 1))
	var network net.Error
	require.True(t, errors.As(err, &network) && network.Timeout(), "it waits")
	a.Close()
	require.NoError(t, third.SetReadDeadline(time.Now().Add(10*time.Second)))
	require.Contains(t, readAll(t, third), "200 OK")
}

func TestRequestsThatTakeTooLongAreGivenUp(t *testing.T) {
	m := hashed()
	m.Logits = func(_ []int32, dst []float32) { dst['x'] = 50 }
	m.Before = func([]int32) error { time.Sleep(10 * time.Millisecond); return nil }
	s := start(t, m, serve.Options{RequestTimeout: 100 * time.Millisecond})
	status, _, b := s.post("/v1/completions", `{"prompt":"a","max_tokens":60}`)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, string(b), "took too long")
	events := s.events(`{"prompt":"a","max_tokens":60,"stream":true}`)
	require.Contains(t, events[len(events)-1].Error.Message, "took too long")
}

func TestAModelThatFails(t *testing.T) {
	m := hashed()
	var mode atomic.Int32
	m.Before = func([]int32) error {
		switch mode.Load() {
		case 1:
			return errors.New("secret path of a kernel")
		case 2:
			panic("kernel panics")
		}
		return nil
	}
	s := start(t, m, serve.Options{})
	for i, stream := range []string{"false", "true", "false", "true"} {
		mode.Store(int32(i/2 + 1))
		status, _, b := s.post("/v1/completions", `{"prompt":"a","stream":`+stream+`}`)
		require.Equal(t, http.StatusInternalServerError, status)
		require.Contains(t, string(b), "the model failed")
		require.NotContains(t, string(b), "kernel")
	}
	require.Contains(t, s.log.String(), "secret path")
	require.Contains(t, s.log.String(), "kernel panics")
	mode.Store(0)
	s.healthy()
}

func TestRunningRequestsMayEnd(t *testing.T) {
	m, entered, let := gated()
	s := start(t, m, serve.Options{Grace: 20 * time.Second})
	running := s.async(`{"prompt":"a","max_tokens":2}`)
	<-entered
	waiting := s.async(`{"prompt":"b","max_tokens":1}`)
	require.Eventually(t, func() bool { status, _ := s.get("/health"); return status == 200 }, time.Second, time.Millisecond)
	time.Sleep(50 * time.Millisecond) // the second is in the queue
	s.stop()
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", s.addr)
		if err == nil {
			c.Close()
		}
		return err != nil
	}, 5*time.Second, 5*time.Millisecond, "no new connections")
	for range 10 {
		let <- struct{}{}
	}
	require.Equal(t, "200", (<-running).Object)
	require.Equal(t, "200", (<-waiting).Object)
}

func TestWhatDoesNotEndIsCutOff(t *testing.T) {
	m, entered, let := gated()
	s := start(t, m, serve.Options{Grace: 100 * time.Millisecond})
	running := s.async(`{"prompt":"a","max_tokens":60}`)
	<-entered
	waiting := s.async(`{"prompt":"b","max_tokens":1}`)
	time.Sleep(50 * time.Millisecond)
	s.stop()
	a := <-waiting
	require.Equal(t, "503", a.Object)
	require.Contains(t, a.Error.Message, "the server is stopping")
	select {
	case <-s.done:
		t.Fatal("Run ends while the model is in use")
	case <-time.After(50 * time.Millisecond):
	}
	for range 100 {
		let <- struct{}{}
	}
	require.NoError(t, <-s.done)
	s.done <- nil
	<-running
	require.Contains(t, s.log.String(), "requests cut off")
}

func TestRequestsAreLogged(t *testing.T) {
	s := start(t, hashed(), serve.Options{})
	s.complete(`{"prompt":["abc","d"],"max_tokens":2,"temperature":0}`)
	s.post("/v1/completions", `{}`)
	_, err := http.Get(s.url + "/x%0Alevel=ERROR")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.Count(s.log.String(), "msg=request") == 3 }, 5*time.Second, time.Millisecond)
	log := s.log.String()
	require.Equal(t, 3, strings.Count(log, "\n"), "a line each: %s", log)
	for _, want := range []string{"path=/v1/completions status=200", "prompts=2 prompt_tokens=4 drawn_tokens=", "status=400", `error="\"prompt\" is missing"`, "status=404"} {
		require.Contains(t, log, want)
	}
}

func decodeStrict(t *testing.T, b []byte, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(b, v), "%s", b)
}
