package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Results that cannot be printed are a failure, and a reader who has seen enough
// is none.
func TestUnwritableOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("text.txt", []byte("one two three four five six seven eight nine ten\n"), 0o644))
	require.NoError(t, os.WriteFile("suite.jsonl", []byte(`{"context": "a", "choices": ["b", "c"], "gold": 0}`+"\n"), 0o644))
	const train = "train --preset testing --steps 1 --threads 1 --kernel ref --force --run "
	code, _, errs := lmProgram.Call("train", "--preset", "testing", "--steps", "1", "--threads", "1", "--kernel", "ref", "--run", "runs/a")
	require.Zero(t, code, errs)
	lmProgram.UnwritableOutput(t,
		"", "--help", "--version", "help train", "train --help", "suite --help", "diagnose --help", "completion zsh",
		"prepare --input text.txt --tokenizer byte --out data/x --force", "show data/x",
		train+"runs/b",
		"eval --run runs/a --threads 1 --kernel ref", "eval --run runs/a --threads 1 --kernel ref --json",
		"generate --run runs/a --prompt Once --tokens 5 --threads 1 --kernel ref",
		"suite --suite suite.jsonl --run runs/a --threads 1 --kernel ref",
		benchTiny+"--kernel ref", benchTiny+"--kernel ref --json",
		"inspect runs/a", "inspect runs/a --digest", "plot runs/a", "export --run runs/a --out exported --force",
		"diagnose kappa --run runs/a --threads 1 --kernel ref", "diagnose kappa --run runs/a --threads 1 --kernel ref --json",
	)
}
