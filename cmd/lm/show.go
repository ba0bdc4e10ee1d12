package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"deeploop/internal/cli"
	"deeploop/lm/corpus"
)

// showOptions are the flags of lm show.
type showOptions struct {
	split  string
	at     int64
	tokens int
}

func newShowCmd(s *cli.Streams) *cobra.Command {
	opt := showOptions{}
	cmd := &cobra.Command{
		Use:   "show [DATA]",
		Short: "Tell what a dataset holds and show some of its tokens",
		Long: `Tell what a dataset holds, and show some of it with | between tokens.

DATA is a folder that lm prepare wrote, or tokens of llm.c or nanoGPT: a .bin
file, or a folder of them. Without DATA, or with sample, the embedded sample
text is shown.`,
		Example: `  lm show data/shakespeare
  lm show data/books --at 1000 --tokens 50
  lm show fineweb_val_000000.bin`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return showRun(s, opt, args) },
	}
	cmd.Flags().StringVar(&opt.split, "split", "train", "train or val")
	cmd.Flags().Int64Var(&opt.at, "at", 0, "first token to show")
	cmd.Flags().IntVar(&opt.tokens, "tokens", 100, "how many tokens to show")
	return cmd
}

func showRun(s *cli.Streams, opt showOptions, args []string) error {
	path := sampleData
	if len(args) > 0 {
		path = args[0]
	}
	d, err := openData(s, path)
	if err != nil {
		return err
	}
	defer d.Close()
	split := map[string]*corpus.Split{"train": d.Train, "val": d.Val}[opt.split]
	switch {
	case split == nil:
		return cli.Usagef("show: --split is %q, expected train or val", opt.split)
	case opt.tokens < 0 || opt.tokens > 1<<20:
		return cli.Usagef("show: --tokens is %d, expected 0 to %d", opt.tokens, 1<<20)
	case opt.at < 0 || opt.at > split.Len():
		return cli.Usagef("show: --at is %d, expected 0 to %d, the tokens of %s", opt.at, split.Len(), opt.split)
	}
	fmt.Fprintf(s.Out, "%s: %s\n", d.Path, d.Format)
	fmt.Fprintf(s.Out, "  tokenizer    %s, %d ids\n", d.Tokenizer.Name(), d.Tokenizer.VocabSize())
	printCounts(s.Out, "train", d.Manifest.Train)
	printCounts(s.Out, "val", d.Manifest.Val)
	fmt.Fprintf(s.Out, "  hash         %s\n", d.Hash)
	ids := make([]int32, min(int64(opt.tokens), split.Len()-opt.at))
	if len(ids) == 0 {
		return nil
	}
	if err := split.Read(ids, opt.at); err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "\n%s, tokens %d to %d:\n", opt.split, opt.at, opt.at+int64(len(ids))-1)
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte('|')
		}
		if id == d.Tokenizer.Separator() {
			b.WriteString("<separator>")
			continue
		}
		text := d.Tokenizer.AppendBytes(nil, id)
		b.WriteString(visible(text))
	}
	fmt.Fprintln(s.Out, b.String())
	return nil
}

// visible escapes what a terminal would not show, and parts of characters; line
// ends stay.
func visible(text []byte) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '\n':
			b.WriteString("\\n\n")
		default:
			quoted := fmt.Sprintf("%q", string(r))
			if r == '"' || r == '\\' {
				quoted = `"` + string(r) + `"`
			}
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return b.String()
}
