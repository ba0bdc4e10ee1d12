package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/train"
	"deeploop/internal/wording"
	"deeploop/lm/corpus"
)

// prepareOptions are the flags of lm prepare.
type prepareOptions struct {
	inputs   []string
	out      string
	verify   string
	force    bool
	json     bool
	settings corpus.Settings
}

func newPrepareCmd(s *cli.Streams) *cobra.Command {
	opt := prepareOptions{settings: corpus.DefaultSettings()}
	cmd := &cobra.Command{
		Use:   "prepare",
		Short: "Tokenize text into a dataset to train and evaluate on",
		Long: `Tokenize text into a dataset: shards of tokens in the format of llm.c, the
tokenizer and a manifest.

--input is a text file (one document), JSON lines (.jsonl, .ndjson), a parquet
file, each plain or with .gz or .zst, or a folder of these; it may be repeated,
and the order matters. Of a folder, files named .txt, .text or .md are text.

Documents are split into train and val by a hash of their text. A single
document is cut: its last part is val. The separator of documents stands before
each of several documents; in a text, <|endoftext|> is ordinary text.

Memory does not grow with the input. The folder appears when it is complete.
--verify checks every file of a dataset against its manifest: exit code 1 when
something is changed, 2 when the folder is no dataset.`,
		Example: `  lm prepare --input shakespeare.txt --tokenizer char --out data/shakespeare
  lm prepare --input books/ --input notes.jsonl.zst --tokenizer byte --out data/books
  lm prepare --input fineweb/ --tokenizer gpt2 --val-fraction 0.001 --out data/fineweb
  lm prepare --verify data/books`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			changed := func(flag string) bool { return cmd.Flags().Changed(flag) }
			if changed("verify") {
				return verifyRun(cmd.Context(), s, opt, changed)
			}
			if changed("val-fraction") && opt.settings.ValFraction < 0 {
				return cli.Usagef("prepare: val-fraction is %v, expected 0 to below 1", opt.settings.ValFraction)
			}
			return prepareRun(cmd.Context(), s, opt)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&opt.inputs, "input", nil, "file or folder of text, may be repeated")
	f.StringVar(&opt.settings.Tokenizer, "tokenizer", opt.settings.Tokenizer, "byte, char (the characters of the input) or gpt2")
	f.StringVar(&opt.out, "out", "", "dataset `folder` to write")
	f.StringVar(&opt.settings.TextKey, "text-key", opt.settings.TextKey, "key (JSON lines) or column (parquet) of the text")
	f.Float64Var(&opt.settings.ValFraction, "val-fraction", -1, "share of val (default 0.005 of documents, 0.1 of a single one)")
	f.Lookup("val-fraction").DefValue = "0" // hides -1
	f.Uint64Var(&opt.settings.Seed, "seed", 0, "chooses which documents are val")
	f.Int64Var(&opt.settings.ShardTokens, "shard-tokens", opt.settings.ShardTokens, "most tokens of a file")
	f.BoolVar(&opt.force, "force", false, "replace an existing dataset when the new one is complete")
	f.StringVar(&opt.verify, "verify", "", "check the dataset in this `folder` instead of writing one")
	f.BoolVar(&opt.json, "json", false, "print the manifest (with --verify, what is wrong) as JSON")
	return cmd
}

func prepareRun(ctx context.Context, s *cli.Streams, opt prepareOptions) error {
	ctx, stop := train.OnInterrupt(command.OrBackground(ctx), func(os.Signal) {})
	defer stop()
	progress := command.NewProgress(s)
	defer progress.End()
	progress.Doing("looking at the input")
	m, err := corpus.Prepare(ctx, opt.inputs, opt.out, corpus.Options{
		Settings: opt.settings, Force: opt.force, Progress: progress.Bytes(), Program: cli.Release(),
	})
	progress.Clear()
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("prepare %s: %w, nothing was left behind", opt.out, cli.ErrInterrupted)
	}
	if err != nil {
		return err
	}
	for _, w := range m.Warnings {
		s.Warnf("%s", w)
	}
	if m.Val.Tokens == 0 {
		s.Infof("note: there is no val, so nothing to evaluate on")
	}
	if opt.json {
		return writeJSON(s.Out, m)
	}
	fmt.Fprintf(s.Out, "wrote %s\n", opt.out)
	fmt.Fprintf(s.Out, "  tokenizer    %s, %d ids\n", m.Tokenizer, m.VocabSize)
	printCounts(s.Out, "train", m.Train)
	printCounts(s.Out, "val", m.Val)
	if m.EmptyDocuments > 0 {
		fmt.Fprintf(s.Out, "  left out     %d empty documents\n", m.EmptyDocuments)
	}
	fmt.Fprintf(s.Out, "  dataset hash %s\n", m.DatasetHash)
	return nil
}

func printCounts(w io.Writer, name string, c corpus.Counts) {
	perToken := ""
	if c.Tokens > 0 && c.Bytes > 0 {
		perToken = fmt.Sprintf(", %.2f bytes a token", float64(c.Bytes)/float64(c.Tokens))
	}
	documents := ""
	if c.Documents > 0 {
		documents = fmt.Sprintf(" of %s, %s", wording.Count(int(c.Documents), "document"), wording.Bytes(uint64(c.Bytes)))
	}
	fmt.Fprintf(w, "  %-12s %s%s%s\n", name, wording.Count(int(c.Tokens), "token"), documents, perToken)
}

// writeJSON prints a document for programs.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// verifyRun checks a dataset.
func verifyRun(ctx context.Context, s *cli.Streams, opt prepareOptions, changed func(string) bool) error {
	for _, flag := range []string{"input", "tokenizer", "out", "text-key", "val-fraction", "seed", "shard-tokens", "force"} {
		if changed(flag) {
			return cli.Usagef("verify dataset: --verify writes nothing, so it does not go with --%s", flag)
		}
	}
	d, err := corpus.Open(opt.verify)
	if err != nil {
		return command.Instead(err, "verify dataset", opt.verify, command.TextData)
	}
	defer d.Close()
	ctx, stop := train.OnInterrupt(command.OrBackground(ctx), func(os.Signal) {})
	defer stop()
	progress := command.NewProgress(s)
	defer progress.End()
	show := progress.Bytes()
	problems, err := d.Verify(ctx, func(done, total int64) { show("verifying", done, total) })
	progress.Clear()
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("verify dataset %s: %w", opt.verify, cli.ErrInterrupted)
	}
	if err != nil {
		return err
	}
	if opt.json {
		err = writeJSON(s.Out, struct {
			Data     string   `json:"data"`
			Format   string   `json:"format"`
			Hash     string   `json:"hash"`
			Problems []string `json:"problems"`
		}{opt.verify, d.Format, d.Hash, append([]string{}, problems...)})
		if err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		if !opt.json {
			for _, p := range problems {
				fmt.Fprintln(s.Out, p)
			}
		}
		return fmt.Errorf("verify dataset %s: %d problems found; prepare it again", opt.verify, len(problems))
	}
	if !opt.json {
		fmt.Fprintf(s.Out, "%s is whole: %s, %d files, hash %s\n", opt.verify, d.Format, len(d.Manifest.Files), d.Hash)
	}
	return nil
}
