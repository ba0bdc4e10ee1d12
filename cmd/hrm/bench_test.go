package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
	"deeploop/internal/command"
	"deeploop/internal/command/commandtest"
	"deeploop/internal/kernel/pick"
)

const benchTiny = "bench --preset testing --hidden-size 16 --num-heads 2 --seq-len 9 --batch-size 2 --seconds 0.01 --threads 1 "

// Every kernel gives a document, and nothing else on the standard output.
func TestBenchJSONOfEveryKernel(t *testing.T) {
	for _, kernel := range pick.Available() {
		for _, precision := range []string{"fp32", "bf16"} {
			out, errs := ok(t, benchTiny+"--layers 2 --H-cycles 1 --L-cycles 3 --steps 5 --json --profile --kernel "+kernel+" --precision "+precision)
			require.Contains(t, errs, "kernel "+kernel)
			var d map[string]any
			require.NoError(t, json.Unmarshal([]byte(out), &d), out)
			for _, key := range []string{"train_step_s", "eval_segment_s"} {
				s := d[key].(map[string]any)
				least, middle, most := s["min"].(float64), s["median"].(float64), s["max"].(float64)
				require.Positive(t, least)
				require.LessOrEqual(t, least, middle)
				require.LessOrEqual(t, middle, most)
				require.GreaterOrEqual(t, s["n"], 3.0)
				require.LessOrEqual(t, s["n"], 5.0)
			}
			for _, key := range []string{"tokens_per_s", "gflops", "peak_rss_bytes", "steps_take_s", "train_step_flops"} {
				require.Positive(t, d[key], key)
			}
			require.Equal(t, kernel, d["kernel"])
			require.Equal(t, precision, d["precision"])
			require.Equal(t, 1.0, d["threads"])
			require.Equal(t, 5.0, d["steps"])
			require.Equal(t, false, d["interrupted"])
			require.Contains(t, d, "ceiling_share")
			if share := d["ceiling_share"]; share != nil {
				require.Positive(t, share)
				require.Positive(t, d["ceiling_gflops"])
			}
			c := d["config"].(map[string]any)
			for key, want := range map[string]any{
				"hidden_size": 16.0, "num_heads": 2.0, "H_layers": 2.0, "L_layers": 2.0, "H_cycles": 1.0, "L_cycles": 3.0, "seq_len": 9.0,
				"batch_size": 2.0, "vocab_size": 12.0, "placement": "postnorm",
			} {
				require.Equal(t, want, c[key], key)
			}
			// What runs is what the formulas say.
			p := d["profile"].(map[string]any)
			var flops float64
			for _, op := range p["ops"].([]any) {
				o := op.(map[string]any)
				flops += o["gflops"].(float64) * o["seconds"].(float64) * 1e9
			}
			require.InEpsilon(t, d["train_step_flops"], flops, 1e-6)
			require.Equal(t, "evaluation segment", d["eval_profile"].(map[string]any)["unit"])
		}
	}
}

func TestBenchForPeople(t *testing.T) {
	out, _ := ok(t, benchTiny+"--steps 20000 --profile --kernel ref")
	for _, want := range []string{
		"hidden 16, 2 heads, 1+1 blocks, cycles 2x2, 9 cells, batch 2", "kernel ref, fp32, 1 thread", "training step ", "evaluation segment ",
		"20000 steps take", "at the median", "MB resident", "rest: graph and Go", "profile: mean of",
	} {
		require.Contains(t, out, want)
	}
	out, _ = ok(t, benchTiny+"--kernel ref --placement deeploop --quiet")
	require.Contains(t, out, "deeploop")
	require.NotContains(t, out, "profile:")
}

func TestBenchTakesTheEnvironmentsKernel(t *testing.T) {
	t.Setenv(command.KernelVariable, "ref")
	out, _ := ok(t, benchTiny)
	require.Contains(t, out, "kernel ref,")
	t.Setenv(command.KernelVariable, "none")
	require.Contains(t, fails(t, cli.ExitUsage, benchTiny), "kernel is \"none\" (by $"+command.KernelVariable+")")
}

// Values that cannot work are the caller's mistakes, found before any work.
func TestBenchRefusals(t *testing.T) {
	commandtest.BenchRefuses(t, hrmProgram, map[string]string{
		"--hidden-size 0":                   "arch.hidden_size is 0, expected a whole number from 1 to 65536 (chosen at --hidden-size)",
		"--hidden-size -8":                  "(chosen at --hidden-size)",
		"--num-heads 3":                     "arch.num_heads is 3, expected a divisor of hidden_size 128 (chosen at --num-heads)",
		"--num-heads 128":                   "an even head width",
		"--hidden-size 130":                 "expected a divisor of hidden_size 130",
		"--layers 0":                        "(chosen at --layers)",
		"--H-cycles 0":                      "(chosen at --H-cycles)",
		"--L-cycles -1":                     "(chosen at --L-cycles)",
		"--seq-len 0":                       "(chosen at --seq-len)",
		"--seq-len 99999999":                "(chosen at --seq-len)",
		"--batch-size 0":                    "(chosen at --batch-size)",
		"--batch-size x":                    `--batch-size is "x", expected a whole number`,
		"--batch-size 2000000000":           "of memory, this machine has",
		"--hidden-size 65536 --layers 1000": "use a smaller --batch-size, --seq-len or --hidden-size, or fewer --layers",
		"--vocab-size 1":                    "(chosen at --vocab-size)",
		"--steps 0":                         "--steps is 0, expected at least 1",
		"--seconds 0":                       "--seconds is 0",
		"--seconds NaN":                     "--seconds is NaN",
		"--threads -1":                      "threads is -1",
		"--threads 99999":                   "threads is 99999",
		"--precision fp16":                  `precision is "fp16"`,
		"--kernel sse":                      `kernel is "sse"`,
		"--preset x":                        "preset is x",
		"--placement x":                     "(chosen at --placement)",
		"--hidden 12":                       "unknown flag --hidden",
		"extra":                             `unexpected argument "extra"`,
	})
}

func TestBenchInterrupted(t *testing.T) {
	commandtest.BenchInterrupted(t, hrmProgram, "eval_segment_s")
}
