package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What somebody types first, without a dataset or a flag that is not needed.
func TestFirstCommands(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("DEEPLOOP_KERNEL", "ref")
	ok(t, "train --preset testing --steps 2")
	out, _ := ok(t, "eval")
	require.Contains(t, out, "nats per token")
	out, _ = ok(t, "eval --data sample --split train --tokens 100")
	require.Contains(t, out, "train split of the embedded sample text")
	out, _ = ok(t, "diagnose kappa")
	require.Contains(t, out, "kappa_G: max")
	out, _ = ok(t, "generate --tokens 5")
	require.Len(t, []rune(out), 5, "from the beginning of a line: characters of one text know no documents")
	refuse(t, "ask a model of byte or gpt2 tokens", "suite")
	out, _ = ok(t, "bench --help")
	require.NotContains(t, out, "(default )")
}

// The graph of hundreds of blocks takes minutes to build; that is said first.
func TestManyBlocksAreAnnounced(t *testing.T) {
	t.Chdir(t.TempDir())
	args := []string{"train", "--preset", "testing", "--loops", "400", "--batch-size", "1048576"} // too large, so it ends before the work
	_, _, errs := lmProgram.Call(args...)
	require.Contains(t, errs, "note: a step of 400 blocks takes minutes to prepare")
	_, _, errs = lmProgram.Call(append(args, "--checkpoint-loops")...)
	require.NotContains(t, errs, "note: a step")
}
