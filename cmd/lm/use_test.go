package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
	"deeploop/lm/decode"
	"deeploop/lm/decode/decodetest"
	"deeploop/lm/tokens"
)

// fakeOpen opens a model that continues every text with text.
func fakeOpen(text string) openFunc {
	return func(*cli.Streams, modelFlags) (decode.Decoder, tokens.Tokenizer, func(), error) {
		return &decodetest.Model{MaxLen: 300, Vocab: 260, Logits: decodetest.Follow(text)}, tokens.Byte(), func() {}, nil
	}
}

// use runs one of the commands that use a model.
func use(t *testing.T, in string, open openFunc, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	s := &cli.Streams{In: strings.NewReader(in), Out: &o, Err: &e}
	code = cli.Run(useRoot(s, open), args, s)
	return code, o.String(), e.String()
}

func useRoot(s *cli.Streams, open openFunc) *cobra.Command {
	root := &cobra.Command{Use: "lm"}
	root.AddCommand(newGenerateCmd(s, open), newServeCmd(s, open), newSuiteCmd(s, open))
	cli.AddLogFlags(root, s)
	return root
}

func TestGenerateStreamsText(t *testing.T) {
	open := fakeOpen("hel wörcd!")
	for _, c := range []struct {
		in   string
		args []string
		out  string
	}{
		{"", []string{"--prompt", "w", "--temperature", "0"}, "örcd!"},
		{"w\n", []string{"--prompt", "-", "--temperature", "0"}, "örcd!"},
		{"w\r\n", []string{"--prompt", "-", "--temperature", "0", "--echo"}, "wörcd!"},
		{"", []string{"--prompt", "w", "--temperature", "0", "--stop", "x", "--stop", "cd"}, "ör"},
		{"", []string{"--prompt", "w", "--temperature", "0", "--tokens", "2"}, "ö"},
	} {
		code, out, errs := use(t, c.in, open, append([]string{"generate"}, c.args...)...)
		require.Equal(t, cli.ExitOK, code, errs)
		require.Equal(t, c.out, out, c.args)
		require.Contains(t, errs, "prompt: 1 token in ")
		require.Contains(t, errs, "tokens/s")
	}
	_, out, errs := use(t, "", open, "generate", "--quiet", "--temperature", "0", "--tokens", "3")
	require.Equal(t, "hel", out, "a document from its beginning")
	require.Empty(t, errs)
	_, out, errs = use(t, "", fakeOpen("ababa"), "generate", "--prompt", "b", "--temperature", "2", "--tokens", "3", "--seed", "4")
	_, again, _ := use(t, "", fakeOpen("ababa"), "generate", "--prompt", "b", "--temperature", "2", "--tokens", "3", "--seed", "4")
	require.Equal(t, out, again, errs)
	_, _, errs = use(t, "", func(s *cli.Streams, m modelFlags) (decode.Decoder, tokens.Tokenizer, func(), error) {
		return &decodetest.Model{MaxLen: 10, Vocab: 260}, tokens.Byte(), func() {}, nil
	}, "generate", "--prompt", "b", "--temperature", "0")
	require.Contains(t, errs, "the model's context of 10 tokens is full")
}

func TestGenerateExplainsMistakes(t *testing.T) {
	open := fakeOpen("abc")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--tokens", "0"}, "--tokens is 0, expected at least 1"},
		{[]string{"--tokens", "x"}, `--tokens is "x", expected a whole number`},
		{[]string{"--temperature", "-1"}, "temperature is -1"},
		{[]string{"--top-p", "0"}, "--top-p is 0"},
		{[]string{"--top-p", "2"}, "top_p is 2"},
		{[]string{"--top-k", "-2"}, "top_k is -2"},
		{[]string{"--seed", "-2"}, "--seed"},
		{[]string{"--stop", "b", "--stop", ""}, "--stop is empty, expected a text"},
		{[]string{"--prompt", strings.Repeat("a", 301)}, "the prompt has 301 tokens, more than the model's context of 300"},
		{[]string{"prompt"}, `unexpected argument "prompt"`},
	} {
		code, out, errs := use(t, "", open, append([]string{"generate"}, c.args...)...)
		require.Equal(t, cli.ExitUsage, code, errs)
		require.Contains(t, errs, c.says)
		require.Empty(t, out)
	}
	var set tokens.CharSet
	set.Add([]byte("abc"))
	chars, err := set.Tokenizer(false)
	require.NoError(t, err)
	open = func(*cli.Streams, modelFlags) (decode.Decoder, tokens.Tokenizer, func(), error) {
		return &decodetest.Model{MaxLen: 10, Vocab: 3}, chars, func() {}, nil
	}
	code, _, errs := use(t, "", open, "generate", "--prompt", "ax")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, `tokenize the prompt: character "x" at byte 1 is not in the vocabulary`)
	code, _, errs = use(t, "", open, "generate")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "give a --prompt")
	t.Chdir(t.TempDir())
	code, _, errs = use(t, "", openModel, "generate")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "find a run: none below runs/")
}

func TestControlCharactersDoNotReachATerminal(t *testing.T) {
	require.Equal(t, "a\n\té"+`\x1b[2J\xff\u0085\x00`, string(escapeControls([]byte("a\n\té\x1b[2J\xff\u0085\x00"))))
	var b bytes.Buffer
	w := &textWriter{w: &b, escape: true, text: decode.NewText()}
	require.NoError(t, w.add([]byte("x\xc3")))
	require.NoError(t, w.end())
	require.Equal(t, `x\xc3`+"\n", b.String())
}

// lockedBuffer is a stream that tests read while a command writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestServeAnswersAndEndsOnASignal(t *testing.T) {
	var out bytes.Buffer
	errs := &lockedBuffer{}
	s := &cli.Streams{In: strings.NewReader(""), Out: &out, Err: errs}
	done := make(chan int, 1)
	go func() {
		done <- cli.Run(useRoot(s, fakeOpen("abc")), []string{"serve", "--addr", "127.0.0.1:0", "--run", "runs/tiny/"}, s)
	}()
	var url string
	require.Eventually(t, func() bool {
		m := regexp.MustCompile(`listening on (http://\S+)`).FindStringSubmatch(errs.String())
		if m != nil {
			url = m[1]
		}
		return m != nil
	}, 10*time.Second, 5*time.Millisecond)
	r, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"a","temperature":0}`))
	require.NoError(t, err)
	b, err := io.ReadAll(r.Body)
	r.Body.Close()
	require.NoError(t, err)
	require.Contains(t, string(b), `"text":"bc"`)
	require.Contains(t, string(b), `"model":"tiny"`)
	require.NotContains(t, errs.String(), "warning")

	code, _, says := use(t, "", fakeOpen("abc"), "serve", "--addr", strings.TrimPrefix(url, "http://"))
	require.Equal(t, cli.ExitFailure, code)
	require.Equal(t, "lm: listen on "+strings.TrimPrefix(url, "http://")+": another program has this port (address already in use); end it, or choose another --addr (port 0 is any free one)\n", says)

	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	if err := self.Signal(syscall.SIGTERM); err != nil {
		t.Skip("signals cannot be sent here:", err)
	}
	select {
	case code := <-done:
		require.Equal(t, cli.ExitOK, code, errs.String())
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
	require.Contains(t, errs.String(), "stopping: running requests have 10s")
	require.Contains(t, errs.String(), "status=200")
}

func TestServeExplainsMistakes(t *testing.T) {
	for flag, says := range map[string]string{
		"--queue=0":           "--queue is 0, expected at least 1",
		"--grace=0s":          "--grace is 0s, expected a time such as 30s or 5m",
		"--grace=x":           "grace",
		"--max-connections=x": "expected a whole number",
		"--addr=nowhere":      "choose another --addr",
	} {
		code, _, errs := use(t, "", fakeOpen("abc"), "serve", flag)
		require.Equal(t, cli.ExitUsage, code, errs)
		require.Contains(t, errs, says)
	}
}

func TestSuiteOnTheSampleAndOnFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	open := fakeOpen(" abc")
	code, out, errs := use(t, "", open, "suite", "--quiet")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Regexp(t, `(?m)^sample +32 +0 +\d+\.\d\d \+- \d+\.\d\d`, out)

	require.NoError(t, os.WriteFile("mine.jsonl", []byte(`{"context":"q","choices":["abc","xyz"],"gold":0}`+"\n"+`{"context":"r","choices":["xyz","abc"],"gold":1}`), 0o644))
	code, out, errs = use(t, "", open, "suite", "--suite", "mine.jsonl", "--suite", "sample", "--limit", "2", "--shots", "9", "--json")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, errs, "mine: 9 shots asked for, there are 1 examples: 1 used")
	var report suiteReport
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.Len(t, report.Results, 2)
	require.Equal(t, 1.0, report.Results[0].Accuracy)
	require.Equal(t, 2, report.Results[1].N)
	require.Equal(t, (1+report.Results[1].Accuracy)/2, report.MeanAccuracy)
	code, out, _ = use(t, "", open, "suite", "--suite", "mine.jsonl", "--suite", "sample", "--shots", "1", "--shots-from", "mine.jsonl")
	require.Equal(t, cli.ExitOK, code)
	require.Regexp(t, `(?m)^mean +\d`, out)

	require.NoError(t, os.WriteFile("bad.jsonl", []byte("{}"), 0o644))
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--shots", "-1"}, "--shots is -1"},
		{[]string{"--limit", "-1"}, "--limit is -1"},
		{[]string{"--suite", "none.jsonl"}, "none.jsonl"},
		{[]string{"--suite", "bad.jsonl"}, `bad.jsonl:1: no "context"`},
		{[]string{"--shots-from", "bad.jsonl"}, "bad.jsonl:1"},
		{[]string{"bad.jsonl"}, "unexpected argument"},
	} {
		code, _, errs := use(t, "", open, append([]string{"suite"}, c.args...)...)
		require.Equal(t, cli.ExitUsage, code, errs)
		require.Contains(t, errs, c.says)
	}
}

func TestSuiteConvert(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o644)) }
	write("rows.jsonl", `{"goal":"g","sol1":"abc","sol2":"b"}`)
	write("labels.lst", "0\n")
	convert := func(args ...string) (int, string, string) {
		return use(t, "", openModel, append([]string{"suite", "convert"}, args...)...)
	}
	args := []string{"--task", "piqa", "--input", "rows.jsonl", "--labels", "labels.lst", "--out", "piqa.jsonl"}
	code, out, errs := convert(args...)
	require.Equal(t, cli.ExitOK, code, errs)
	require.Equal(t, "wrote piqa.jsonl: 1 question of piqa\n", out)
	code, out, _ = convert(args...)
	require.Equal(t, cli.ExitOK, code)
	require.Contains(t, out, "replaced")
	code, _, errs = use(t, "", fakeOpen(" abc"), "suite", "--suite", "piqa.jsonl")
	require.Equal(t, cli.ExitOK, code, errs)

	write("notes", "mine")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--input", "rows.jsonl", "--out", "x"}, "--task is missing"},
		{[]string{"--task", "pika", "--input", "rows.jsonl", "--out", "x"}, "did you mean piqa?"},
		{[]string{"--task", "zzzzzzzz", "--input", "rows.jsonl", "--out", "x"}, "expected one of arc_challenge"},
		{[]string{"--task", "sciq", "--labels", "l", "--input", "rows.jsonl", "--out", "x"}, "are in its rows"},
		{[]string{"--task", "piqa", "--input", "rows.jsonl", "--out", "notes"}, "exists and is no suite"},
		{[]string{"--task", "piqa", "--input", "none", "--out", "x"}, "none"},
		{[]string{"--task", "piqa", "--input", "rows.jsonl", "--labels", "none", "--out", "x"}, "none"},
		{[]string{"--task", "piqa", "--input", "rows.jsonl", "--out", "x"}, "rows.jsonl:1: no answer"},
	} {
		code, _, errs := convert(c.args...)
		require.Equal(t, cli.ExitUsage, code, errs)
		require.Contains(t, errs, c.says)
		require.NoFileExists(t, "x")
	}
	_, out, _ = use(t, "", openModel, "suite", "convert", "--help")
	require.Contains(t, out, "winogrande")
}
