package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/train"
	"deeploop/internal/wording"
	"deeploop/lm/decode"
	"deeploop/lm/tokens"
)

// maxPrompt bounds a prompt in bytes, far above any context.
const maxPrompt = 16 << 20

// generateOptions are the flags of lm generate.
type generateOptions struct {
	model       modelFlags
	prompt      string
	tokens      int
	temperature float64
	topK        int
	topP        float64
	seed        uint64
	stop        []string
	echo        bool
}

func newGenerateCmd(s *cli.Streams, open openFunc) *cobra.Command {
	var o generateOptions
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Write text with a trained language model",
		Long: `Continue a text with a trained language model. The text goes to standard
output as it comes, figures to standard error.

Each token is drawn in this order: the logits are divided by --temperature (at
0 the likeliest token is taken), the --top-k likeliest stay, of those the
smallest set stays that holds --top-p of the probability, and one is drawn by
its probability. A seed and a prompt give one text.

Writing ends at --tokens, where the model ends the document, before the first
of the --stop texts, or when the model's context is full.`,
		Example: `  lm generate --prompt "Once upon a time"
  lm generate --run runs/a --tokens 500 --temperature 0
  head -c 200 story.txt | lm generate --prompt -`,
		RunE: func(c *cobra.Command, _ []string) error { return generateRun(c.Context(), s, open, o) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.model.add(f)
	f.StringVar(&o.prompt, "prompt", "", "`TEXT` to continue; - reads standard input, without its last newline (default the beginning of a document, or of a line where the model knows no documents)")
	f.IntVar(&o.tokens, "tokens", 200, "most tokens to draw")
	f.Float64Var(&o.temperature, "temperature", 0.8, "below 1 likelier tokens, above 1 less likely ones; 0 always the likeliest")
	f.IntVar(&o.topK, "top-k", 200, "draw among this many tokens; 0 is all")
	f.Float64Var(&o.topP, "top-p", 1, "draw among the likeliest tokens that hold this much probability")
	f.Uint64Var(&o.seed, "seed", 1, "of the draws")
	f.StringArrayVar(&o.stop, "stop", nil, "end before this `TEXT`; may be repeated")
	f.BoolVar(&o.echo, "echo", false, "write the prompt first")
	return cmd
}

func generateRun(ctx context.Context, s *cli.Streams, open openFunc, o generateOptions) error {
	sampling := decode.Sampling{Temperature: o.temperature, TopK: o.topK, TopP: o.topP, Seed: o.seed}
	switch {
	case o.tokens < 1:
		return cli.Usagef("--tokens is %d, expected at least 1", o.tokens)
	case o.topP == 0:
		return cli.Usagef("--top-p is 0, expected more than 0 and at most 1")
	}
	if slices.Contains(o.stop, "") {
		return cli.Usagef("--stop is empty, expected a text")
	}
	if err := sampling.Check(); err != nil {
		return err
	}
	text, err := promptText(s, o.prompt)
	if err != nil {
		return err
	}
	d, tok, closeModel, err := open(s, o.model)
	if err != nil {
		return err
	}
	defer closeModel()
	ids, err := promptTokens(tok, text)
	if err != nil {
		return err
	}
	ctx, stop := train.OnInterrupt(command.OrBackground(ctx), func(os.Signal) {})
	defer stop()
	w := &textWriter{w: s.Out, escape: cli.IsTerminal(s.Out), text: decode.NewText(o.stop...)}
	if o.echo {
		if err := w.write(text); err != nil {
			return err
		}
	}
	progress := command.NewProgress(s)
	defer progress.End()
	if !o.echo { // else the prompt is in the line already
		progress.Doing(fmt.Sprintf("reading the prompt, %d tokens", len(ids)))
	}
	start := time.Now()
	var first time.Time
	drawn := 0
	reason, err := decode.Generate(ctx, d, ids, decode.Options{
		MaxTokens: o.tokens, Sampling: sampling, Stop: []int32{tok.Separator()}, Vocabulary: decode.Vocabulary(d, tok),
	}, func(id int32) error {
		if drawn++; drawn == 1 {
			first = time.Now()
			progress.End()
		}
		return w.add(tok.AppendBytes(nil, id))
	})
	end := time.Now()
	err = errors.Join(err, w.end())
	if errors.Is(err, context.Canceled) {
		return cli.ErrInterrupted
	}
	if err != nil {
		return err
	}
	printSpeed(s, len(ids), drawn, first.Sub(start), end.Sub(first))
	if reason == decode.ByContext {
		s.Infof("ended early: the model's context of %d tokens is full", d.Context())
	}
	return nil
}

// printSpeed tells how fast the prompt was read and tokens were drawn.
func printSpeed(s *cli.Streams, prompt, drawn int, read, draw time.Duration) {
	if drawn == 0 {
		return
	}
	s.Infof("prompt: %s in %.2f s", wording.Count(prompt, "token"), read.Seconds())
	if drawn > 1 && draw > 0 { // the first is part of reading
		s.Infof("drawn: %d tokens, %.1f tokens/s", drawn, float64(drawn-1)/draw.Seconds())
	}
}

// promptText is the prompt that a flag names.
func promptText(s *cli.Streams, prompt string) ([]byte, error) {
	if prompt != "-" {
		return []byte(prompt), nil
	}
	text, err := io.ReadAll(io.LimitReader(s.In, maxPrompt+1))
	if err != nil {
		return nil, fmt.Errorf("read the prompt from standard input: %w", err)
	}
	if len(text) > maxPrompt {
		return nil, cli.Usagef("read the prompt from standard input: more than %d MiB", maxPrompt>>20)
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r")), nil
}

// promptTokens are the tokens to begin with: without text, the separator, or
// the end of a line where the training text was one document of characters.
func promptTokens(tok tokens.Tokenizer, text []byte) ([]int32, error) {
	if err := tok.Check(text); err != nil {
		return nil, cli.Usagef("tokenize the prompt: %w", err)
	}
	if len(text) > 0 {
		return tok.Append(nil, text), nil
	}
	lineEnd := []byte("\n")
	switch {
	case tok.Separator() >= 0:
		return []int32{tok.Separator()}, nil
	case tok.Check(lineEnd) == nil:
		return tok.Append(nil, lineEnd), nil
	}
	return nil, cli.Usagef("tokenizer %s has no document separator and no line end to begin with; give a --prompt", tok.Name())
}

// textWriter writes text as it becomes whole. To a terminal control
// characters go as escapes: a model may write any.
type textWriter struct {
	w      io.Writer
	escape bool
	text   *decode.Text
}

func (t *textWriter) add(b []byte) error {
	out, stopped := t.text.Add(b)
	if err := t.write(out); err != nil {
		return err
	}
	if stopped {
		return decode.ErrStop
	}
	return nil
}

func (t *textWriter) end() error {
	rest := t.text.Rest()
	if t.escape {
		rest = append(rest, '\n')
	}
	return t.write(rest)
}

func (t *textWriter) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if t.escape {
		b = escapeControls(b)
	}
	if _, err := t.w.Write(b); err != nil {
		return fmt.Errorf("write text: %w", err)
	}
	return nil
}

// escapeControls escapes what would steer a terminal.
func escapeControls(b []byte) []byte {
	var out strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&out, `\x%02x`, b[0])
		case r != '\n' && r != '\t' && unicode.IsControl(r):
			out.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			out.Write(b[:n])
		}
		b = b[n:]
	}
	return []byte(out.String())
}
