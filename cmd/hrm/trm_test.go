package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/hrm"
	"deeploop/internal/torchtest"
)

const trainTRM = trainTiny + "--arch-name trm --L-layers 2 --puzzle-emb-len 3 --ema "

// A TRM trains, resumes to the same bits, is evaluated, shown and timed, and
// goes out as the reference's checkpoint and back.
func TestTRMTrainsResumesAndTravels(t *testing.T) {
	workFolder(t)
	_, errs := ok(t, trainTRM+"--steps 6 --run runs/whole")
	require.Contains(t, errs, "H and L: 2 blocks, placement postnorm")
	ok(t, trainTRM+"--steps 6 --run runs/a --stop-after 3")
	ok(t, "train --run runs/a --resume")
	require.Equal(t, digest(t, "runs/whole"), digest(t, "runs/a"))
	require.Equal(t, readFile(t, "runs/whole/metrics.jsonl"), readFile(t, "runs/a/metrics.jsonl"))

	ok(t, "export --run runs/a --last --out ref/step_6 --forward-dtype float32 --weights raw")
	config := readFile(t, "ref/all_config.yaml")
	for _, line := range []string{
		"  name: recursive_reasoning.trm@TinyRecursiveReasoningModel_ACTV1\n", "  puzzle_emb_len: 3\n", "  no_ACT_continue: true\n", "  H_layers: 0\n",
		"\ndata_paths: [\"data/small\"]\n", "\nema: true\n",
	} {
		require.Contains(t, config, line)
	}
	// As the reference's trainer writes it, which ignores H_layers.
	more := strings.Replace(config, "  H_layers: 0\n", "  H_layers: 4\n  causal: false\n", 1) +
		"evaluators:\n- name: arc@ARC\ndata_paths_test: []\nmin_eval_interval: 0\nfreeze_weights: false\nload_checkpoint: null\n"
	require.NoError(t, os.WriteFile("ref/all_config.yaml", []byte(more), 0o644))
	ok(t, "import ref/step_6 --data data/small --run runs/b --threads 1 --precision fp32")
	require.Equal(t, weightsOf(t, "runs/a"), weightsOf(t, "runs/b"))
	for _, run := range []string{"a --last --weights raw", "b"} {
		ok(t, "eval --run runs/"+run+" --batch 8 --augmentations 1 --precision fp32 --force --out "+run[:1]+".preds")
	}
	scored := func(f string) string {
		out, _ := ok(t, "score --json --predictions "+f)
		return out[strings.Index(out, `"ladder"`):]
	}
	require.Equal(t, scored("a.preds"), scored("b.preds"))
	ok(t, "train --run runs/b --resume --steps 2")
	shown, _ := ok(t, "inspect runs/b")
	require.Contains(t, shown, "L_level.layers.1.mlp.down_proj.weight")
	require.NotContains(t, shown, "H_level")

	require.NoError(t, os.WriteFile("ref/all_config.yaml", []byte("arch:\n  name: hrm_v1\n"), 0o644))
	require.Contains(t, fails(t, 2, "import ref/step_6 --data data/small"), "arch.name is hrm_v1, expected trm")
	require.NoError(t, os.Remove("ref/all_config.yaml"))
	require.Contains(t, fails(t, 2, "import ref/step_6 --data data/small"), "published TRM on ARC: --num-heads 8 --H-cycles 3 --L-cycles 4")
}

// loadTRM checks that a file has the tensors of the reference's model, all and
// no others, so that load_state_dict takes it.
const loadTRM = `
import sys, torch
d = torch.load(sys.argv[1], map_location="cpu")
want = {"H_init": (32,), "L_init": (32,), "embed_tokens.embedding_weight": (12, 32), "lm_head.weight": (12, 32),
        "q_head.weight": (2, 32), "q_head.bias": (2,), "puzzle_emb.weights": None}
for i in range(2):
    p = "L_level.layers.%d." % i
    want.update({p + "self_attn.qkv_proj.weight": (96, 32), p + "self_attn.o_proj.weight": (32, 32),
                 p + "mlp.gate_up_proj.weight": (512, 32), p + "mlp.down_proj.weight": (32, 256)})
for name, shape in want.items():
    t = d.pop("_orig_mod.model.inner." + name)
    assert shape is None or tuple(t.shape) == shape, (name, t.shape)
assert not d, list(d)
`

func TestTRMExportIsReadByPyTorch(t *testing.T) {
	workFolder(t)
	ok(t, trainTRM+"--steps 1 --run runs/a")
	ok(t, "export --run runs/a --out ref/step_1")
	torchtest.Run(t, loadTRM, "ref/step_1")
}

// The same with an MLP over positions.
func TestTRMWithMLPOverPositions(t *testing.T) {
	workFolder(t)
	ok(t, trainTRM+"--mlp-t --steps 4 --run runs/whole")
	ok(t, trainTRM+"--mlp-t --steps 4 --run runs/a --stop-after 2")
	ok(t, "train --run runs/a --resume")
	require.Equal(t, digest(t, "runs/whole"), digest(t, "runs/a"))
	ok(t, "export --run runs/a --last --out ref/step_4 --forward-dtype float32 --weights raw")
	config := readFile(t, "ref/all_config.yaml")
	require.Contains(t, config, "  mlp_t: true\n")
	// The reference ignores its positions then.
	require.NoError(t, os.WriteFile("ref/all_config.yaml", []byte(strings.Replace(config, "pos_encodings: none", "pos_encodings: rope", 1)), 0o644))
	ok(t, "import ref/step_4 --data data/small --run runs/b")
	require.Equal(t, weightsOf(t, "runs/a"), weightsOf(t, "runs/b"))
	ok(t, "eval --run runs/b --augmentations 0")
	require.NoError(t, os.WriteFile("ref/all_config.yaml", []byte("arch:\n  mlp_t: false\n"), 0o644))
	require.Contains(t, fails(t, 2, "import ref/step_4 --data data/small"), "arch.mlp_t is false, expected true")
}

func TestTRMRefusals(t *testing.T) {
	workFolder(t)
	for line, part := range map[string]string{
		trainTiny + "--arch-name trm --H-layers 2":                            "plays both roles (chosen at --H-layers)",
		trainTiny + "--arch-name trm --placement deeploop --p-H 0.5":          "whose one network has p_L (chosen at --p-H)",
		trainTiny + "--arch-name trm --puzzle-emb-ndim 0 --puzzle-emb-len 4":  "expected 0 without task embeddings (puzzle_emb_ndim is 0) (chosen at --puzzle-emb-len)",
		trainTiny + "--arch-name trm --puzzle-emb-ndim 80 --puzzle-emb-len 2": "enough positions",
		trainTiny + "--mlp-t": "false with name hrm_v1 (only trm has it) (chosen at --mlp-t)",
		trainTiny + "--arch-name trm --mlp-t --pos-encodings rope": "no attention to rotate for",
		trainTiny + "--pos-encodings none":                         "rope, learned",
	} {
		require.Contains(t, fails(t, 2, line+" --run runs/x"), part, line)
	}
	ok(t, trainTiny+"--puzzle-emb-len 2 --no-ACT-continue --steps 1 --run runs/hrm")
	require.Contains(t, fails(t, 2, "export --run runs/hrm --out step_1"), "puzzle_emb_len")
}

func TestBenchOfTRM(t *testing.T) {
	out, _ := ok(t, benchTiny+"--kernel ref --preset trm --layers 1 --H-cycles 2 --L-cycles 2")
	require.Contains(t, out, "1 blocks for both levels, cycles 2x2, 9 cells")
}

// A configuration of the reference's, key by key.
func TestTRMReferenceKeysAreUnderstood(t *testing.T) {
	path := t.TempDir() + "/trm.yaml"
	require.NoError(t, os.WriteFile(path, []byte(`
arch:
  name: recursive_reasoning.trm@TinyRecursiveReasoningModel_ACTV1
  loss:
    name: losses@ACTLossHead
    loss_type: stablemax_cross_entropy
  halt_exploration_prob: 0.1
  halt_max_steps: 16
  H_cycles: 3
  L_cycles: 4
  H_layers: 0
  L_layers: 2
  hidden_size: 512
  num_heads: 8
  expansion: 4
  puzzle_emb_ndim: 512
  pos_encodings: rope
  puzzle_emb_len: 16
  no_ACT_continue: True
ema: True
`), 0o644))
	got, err := resolveTrain(t, "hrm_v1", "--config", path)
	require.NoError(t, err)
	want := hrm.PresetTRM()
	want.Arch.Name, want.Arch.Loss.Name = got.Arch.Name, got.Arch.Loss.Name
	require.True(t, got.Arch.OneNetwork())
	require.Equal(t, want, got)
}
