package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
	"deeploop/lm/corpus"
)

func TestPrepareAndShow(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("a.txt", []byte(strings.Repeat("Hello \"world\"\n\t\xff", 40)), 0o644))
	code, out, errs := lmProgram.Call("prepare", "--input", "a.txt", "--tokenizer", "char", "--out", "data/a")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "wrote data/a")
	require.Contains(t, out, "train        576 tokens of 1 document, 0.0 MB, 1.00 bytes a token")
	code, _, errs = lmProgram.Call("prepare", "--input", "a.txt", "--out", "data/a")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "--force")
	code, out, errs = lmProgram.Call("prepare", "--input", "a.txt", "--out", "data/a", "--tokenizer", "byte", "--force", "--json", "--quiet", "--val-fraction", "0.5", "--seed", "3", "--shard-tokens", "100")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Empty(t, errs)
	var m corpus.Manifest
	require.NoError(t, json.Unmarshal([]byte(out), &m))
	require.Equal(t, int64(320), m.Val.Tokens)
	require.Len(t, m.Files, 9)

	code, out, errs = lmProgram.Call("prepare", "--verify", "data/a")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "data/a is whole: dataset of lm prepare, 9 files")
	code, out, errs = lmProgram.Call("show", "data/a", "--tokens", "16", "--split", "train")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "H|e|l|l|o| |\"|w|o|r|l|d|\"|\\n\n|\\t|\\xff\n")
	code, out, errs = lmProgram.Call("show", "--tokens", "3")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "embedded sample")

	shard := filepath.Join("data", "a", "train_001.bin")
	b, err := os.ReadFile(shard)
	require.NoError(t, err)
	b[1100] ^= 1
	require.NoError(t, os.WriteFile(shard, b, 0o644))
	code, out, errs = lmProgram.Call("prepare", "--verify", "data/a", "--json")
	require.Equal(t, cli.ExitFailure, code)
	require.Contains(t, errs, "1 problems found")
	require.True(t, json.Valid([]byte(out)))
	refuse(t, "open dataset data/a: it has changed since it was prepared: train_001.bin: SHA-256 is", "train", "--preset", "testing", "--steps", "1", "--data", "data/a", "--run", "runs/a", "--kernel", "ref")
	require.NoDirExists(t, "runs/a")
}

func TestPrepareMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("a.txt", []byte("Hello"), 0o644))
	for want, args := range map[string][]string{
		"expected byte, char or gpt2": {"prepare", "--input", "a.txt", "--out", "x", "--tokenizer", "bpe"},
		"no input":                    {"prepare", "--out", "x"},
		"(--out) is missing":          {"prepare", "--input", "a.txt"},
		"no such file":                {"prepare", "--input", "gone.txt", "--out", "x"},
		"val-fraction is -0.5":        {"prepare", "--input", "a.txt", "--out", "x", "--val-fraction", "-0.5"},
		"val-fraction is 1":           {"prepare", "--input", "a.txt", "--out", "x", "--val-fraction", "1"},
		"does not go with --input":    {"prepare", "--verify", "x", "--input", "a.txt"},
		"not a dataset of lm prepare": {"prepare", "--verify", "."},
		`--split is "test"`:           {"show", "--split", "test"},
		"--at is -1":                  {"show", "--at", "-1"},
		"--tokens is -1":              {"show", "--tokens", "-1"},
		"unknown flag --inptu":        {"prepare", "--inptu", "a.txt"},
		"expected a whole number":     {"prepare", "--seed", "x"},
		"lm prepare --input a.txt --out data/text makes a dataset of it": {"show", "a.txt"},
	} {
		code, _, errs := lmProgram.Call(args...)
		require.Equal(t, cli.ExitUsage, code, "%q: %s", args, errs)
		require.Contains(t, errs, want)
		_, err := os.Stat("x")
		require.Error(t, err)
	}
}
