package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/command/commandtest"
	"deeploop/internal/kernel/pick"
)

const benchTiny = "bench --preset testing --hidden-size 16 --num-heads 2 --context 8 --batch-size 2 --vocab-size 65 --seconds 0.01 --threads 1 "

// Every kernel gives a document, and nothing else on the standard output.
func TestBenchJSONOfEveryKernel(t *testing.T) {
	for _, kernel := range pick.Available() {
		for _, more := range []string{"--precision fp32", "--precision bf16 --checkpoint-loops"} {
			out, errs := ok(t, benchTiny+"--layers 2 --loops 3 --mlp gelu --steps 5 --json --profile --kernel "+kernel+" "+more)
			require.Contains(t, errs, "kernel "+kernel)
			var d map[string]any
			require.NoError(t, json.Unmarshal([]byte(out), &d), out)
			for _, key := range []string{"train_step_s", "eval_batch_s"} {
				s := d[key].(map[string]any)
				least, middle, most := s["min"].(float64), s["median"].(float64), s["max"].(float64)
				require.Positive(t, least)
				require.LessOrEqual(t, least, middle)
				require.LessOrEqual(t, middle, most)
				require.GreaterOrEqual(t, s["n"], 3.0)
				require.LessOrEqual(t, s["n"], 5.0)
			}
			for _, key := range []string{"tokens_per_s", "eval_tokens_per_s", "gflops", "peak_rss_bytes", "steps_take_s", "train_step_flops"} {
				require.Positive(t, d[key], key)
			}
			require.Equal(t, kernel, d["kernel"])
			require.Equal(t, 1.0, d["threads"])
			require.Equal(t, false, d["interrupted"])
			require.Contains(t, d, "ceiling_share")
			c := d["config"].(map[string]any)
			for key, want := range map[string]any{
				"hidden_size": 16.0, "num_heads": 2.0, "layers": 2.0, "loops": 3.0, "context": 8.0, "batch_size": 2.0, "vocab_size": 65.0,
				"placement": "deeploop", "mlp": "gelu", "checkpoint_loops": strings.Contains(more, "loops"),
			} {
				require.Equal(t, want, c[key], key)
			}
			per := d["flops_per_token"].(map[string]any)
			require.Equal(t, 2.0*65*16, per["head"])
			require.Equal(t, 6*2.0*(4*16*16+2*64*16), per["blocks"])
			require.Equal(t, 6*4.0*8*16, per["attention"])
			// What runs is what the formulas say.
			p := d["profile"].(map[string]any)
			var flops float64
			for _, op := range p["ops"].([]any) {
				o := op.(map[string]any)
				flops += o["gflops"].(float64) * o["seconds"].(float64) * 1e9
			}
			require.InEpsilon(t, d["train_step_flops"], flops, 0.01)
			require.Equal(t, "evaluation batch", d["eval_profile"].(map[string]any)["unit"])
		}
	}
}

func TestBenchForPeople(t *testing.T) {
	out, _ := ok(t, benchTiny+"--steps 20000 --profile --kernel ref --placement prenorm --quiet")
	for _, want := range []string{
		"hidden 16, 2 heads, 1 block, 2 loops, MLP 42 (swiglu), context 8, batch 2, vocabulary 65, prenorm: ", "operations     ", " per token: blocks ",
		"kernel ref, fp32, 1 thread", "training step ", "evaluation batch ", "20000 steps take", "rest: graph and Go",
	} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "computed again")
}

// Values that cannot work are the caller's mistakes, found before any work.
func TestBenchRefusals(t *testing.T) {
	commandtest.BenchRefuses(t, lmProgram, map[string]string{
		"--hidden-size 0":                   "arch.hidden_size is 0, expected a whole number from 1 to 65536 (chosen at --hidden-size)",
		"--num-heads 3":                     "arch.num_heads is 3, expected a divisor of hidden_size 128 (chosen at --num-heads)",
		"--layers 0":                        "(chosen at --layers)",
		"--loops 0":                         "(chosen at --loops)",
		"--context 0":                       "(chosen at --context)",
		"--batch-size 0":                    "(chosen at --batch-size)",
		"--batch-size x":                    `--batch-size is "x", expected a whole number`,
		"--batch-size 1000000":              "of memory, this machine has",
		"--hidden-size 65536 --layers 1000": "fewer --layers or --loops, or --checkpoint-loops",
		"--vocab-size 0":                    "(chosen at --vocab-size)",
		"--vocab-size 99999999":             "(chosen at --vocab-size)",
		"--steps 0":                         "--steps is 0, expected at least 1",
		"--seconds 0":                       "--seconds is 0",
		"--seconds NaN":                     "--seconds is NaN",
		"--threads -1":                      "threads is -1",
		"--precision fp16":                  `precision is "fp16"`,
		"--kernel sse":                      `kernel is "sse"`,
		"--preset x":                        "preset is x",
		"--placement x":                     "(chosen at --placement)",
		"--mlp x":                           "(chosen at --mlp)",
		"--hidden 12":                       "unknown flag --hidden",
		"extra":                             `unexpected argument "extra"`,
	})
}

func TestBenchInterrupted(t *testing.T) { commandtest.BenchInterrupted(t, lmProgram, "eval_batch_s") }
