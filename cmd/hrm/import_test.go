package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/checkpoint"
	"deeploop/internal/cli"
	"deeploop/internal/command/commandtest"
	"deeploop/internal/files"
	"deeploop/internal/torchfile"
	"deeploop/internal/torchtest"
)

// weightsOf are the hashes of a checkpoint's weights and task embeddings.
func weightsOf(t *testing.T, run string) map[string]string {
	t.Helper()
	ck, err := checkpoint.OpenFound(run, checkpoint.LastSaved)
	require.NoError(t, err)
	defer ck.Close()
	sums := map[string]string{}
	for _, i := range ck.Tensors() {
		if i.Group == checkpoint.Weights || i.Group == checkpoint.TaskEmbeddings {
			sums[i.Name] = i.SHA256
		}
	}
	return sums
}

// A model goes out as the reference's checkpoint and comes back as a run that
// predicts the same, can be shown, handed on and trained on.
func TestExportAndImport(t *testing.T) {
	workFolder(t)
	ok(t, trainTiny+"--steps 6 --run runs/a")
	out, _ := ok(t, "export --run runs/a --out ref/step_6 --forward-dtype float32")
	require.Contains(t, out, "wrote ref/step_6: ")
	require.Contains(t, out, "wrote ref/all_config.yaml")

	out, errs := ok(t, "import ref/step_6 --run runs/b --threads 1 --precision fp32")
	require.Contains(t, errs, "configuration: ref/all_config.yaml (beside the checkpoint)")
	require.Contains(t, out, "trained for 6 steps elsewhere")
	require.Contains(t, out, "hrm eval --run runs/b")
	require.Equal(t, weightsOf(t, "runs/a"), weightsOf(t, "runs/b"))
	for _, run := range []string{"a", "b"} {
		ok(t, "eval --run runs/"+run+" --last --batch 8 --augmentations 1 --precision fp32 --out "+run+".preds")
	}
	shown, _ := ok(t, "inspect runs/b")
	require.Contains(t, shown, "imported from step_6")
	scored := func(f string) string {
		out, _ := ok(t, "score --json --predictions "+f)
		return out[strings.Index(out, `"ladder"`):]
	}
	require.Equal(t, scored("a.preds"), scored("b.preds"))

	// As safetensors, with our own configuration.
	out, _ = ok(t, "export --run runs/b --format safetensors --out st/model.safetensors")
	require.NotContains(t, out, "rounded")
	ok(t, "import st/model.safetensors --run runs/c")
	require.Equal(t, weightsOf(t, "runs/a"), weightsOf(t, "runs/c"))

	// Training goes on from the weights at step 0, with settings of its own.
	_, errs = ok(t, "train --run runs/b --resume --steps 4 --lr 0.002 --ema --eval-augmentations 0")
	require.Contains(t, errs, "weights alone")
	shown, _ = ok(t, "inspect runs/b")
	require.Contains(t, shown, "step        4\n")
	require.NotEqual(t, weightsOf(t, "runs/a"), weightsOf(t, "runs/b"))
	require.Contains(t, fails(t, 2, "train --run runs/c --resume --hidden-size 64"), "arch.hidden_size")
	ok(t, "train --run runs/b --resume --steps 6")

	// Files of somebody else stay.
	require.NoError(t, os.WriteFile("ref/step_7", []byte("precious"), 0o644))
	require.Contains(t, fails(t, 2, "export --run runs/a --out ref/step_7"), "--force")
	require.NoError(t, os.MkdirAll("other", 0o755))
	require.NoError(t, os.WriteFile("other/all_config.yaml", []byte("arch: {}\n"), 0o644))
	require.Contains(t, fails(t, 2, "export --run runs/a --out other/step_6"), "all_config.yaml")
	ok(t, "export --run runs/a --out ref/step_6") // its own is replaced

	// One configuration serves the checkpoints of one run, not another model's.
	ok(t, "export --run runs/a --out ref/step_8")
	config := readFile(t, "ref/all_config.yaml")
	ok(t, trainTiny+"--steps 6 --H-cycles 3 --run runs/other")
	msg := fails(t, 2, "export --run runs/other --out ref/step_9")
	require.Contains(t, msg, "says how "+filepath.FromSlash("ref/step_8")+" is to be run")
	require.Equal(t, config, readFile(t, "ref/all_config.yaml"))
	require.NoFileExists(t, "ref/step_9")
	ok(t, "export --run runs/other --out ref/step_9 --force")
}

// A run that cannot be written whole is not there at all.
func TestImportLeavesNothingHalf(t *testing.T) {
	workFolder(t)
	ok(t, trainTiny+"--steps 1 --run runs/a")
	ok(t, "export --run runs/a --out ref/step_1")
	for _, run := range []string{"runs/b", "runs/new/b"} {
		require.Contains(t, hrmProgram.SmallDisk(t, "import ref/step_1 --run "+run), "file too large")
		require.NoDirExists(t, run)
	}
	require.NoDirExists(t, "runs/new")
	msg := fails(t, cli.ExitUsage, "import ref/step_1 --run runs/a")
	require.Contains(t, msg, "choose another --run")
	require.NotContains(t, msg, "--resume", "import has no such flag")
}

// An empty state dict is said to be one, in both formats.
func TestImportOfNoTensors(t *testing.T) {
	workFolder(t)
	require.NoError(t, files.Write("step_1", func(w io.Writer) error { return torchfile.Write(w, "", nil, nil) }))
	commandtest.Write(t, "empty.safetensors", "\x08\x00\x00\x00\x00\x00\x00\x00{}      ")
	for _, file := range []string{"step_1", "empty.safetensors"} {
		require.Contains(t, fails(t, cli.ExitUsage, "import "+file+" --data data/small"), file+" has no tensors")
	}
}

// What has a NaN is no model.
func TestImportOfBrokenWeights(t *testing.T) {
	workFolder(t)
	ok(t, trainTiny+"--steps 1 --run runs/a")
	ok(t, "export --run runs/a --format safetensors --out st/model.safetensors")
	raw := []byte(readFile(t, "st/model.safetensors"))
	copy(raw[len(raw)-4:], "\x00\x00\xc0\x7f")
	require.NoError(t, os.WriteFile("st/model.safetensors", raw, 0o644))
	msg := fails(t, 2, "import st/model.safetensors --run runs/b")
	require.Contains(t, msg, "is NaN at element")
	require.Contains(t, msg, "the checkpoint is broken")
	require.NoDirExists(t, "runs/b")
}

func TestImportAsksForWhatTheTensorsDoNotShow(t *testing.T) {
	workFolder(t)
	ok(t, trainTiny+"--steps 2 --run runs/a")
	ok(t, "export --run runs/a --out ref/step_2 --forward-dtype float32")
	require.NoError(t, os.Rename("ref/all_config.yaml", "config.yaml"))
	require.Contains(t, fails(t, 2, "import ref/step_2 --run runs/b"), "--num-heads 8 --H-cycles 2 --L-cycles 2 --halt-max-steps 16")
	const shape = "import ref/step_2 --run runs/b --num-heads 2 --H-cycles 2 --L-cycles 2 --halt-max-steps 4 "
	errs := fails(t, 2, shape)
	require.Contains(t, errs, "--data DIR")
	require.NoDirExists(t, "runs/b")
	ok(t, shape+"--data data/small")
	require.Equal(t, weightsOf(t, "runs/a"), weightsOf(t, "runs/b"))
	require.Contains(t, fails(t, 2, shape+"--data data/small"), "exists already")

	require.NoError(t, os.WriteFile("bad.yaml", []byte("arch:\n  hidden_size: 64\n  run: 1\n"), 0o644))
	require.Contains(t, fails(t, 2, "import ref/step_2 --config bad.yaml"), `unknown key "arch.run"`)
	require.NoError(t, os.WriteFile("bad.yaml", []byte("arch:\n  hidden_size: 64\n"), 0o644))
	errs = fails(t, 2, "import ref/step_2 --config bad.yaml")
	require.Contains(t, errs, "arch.hidden_size is 64, expected 32")
	require.Contains(t, errs, "bad.yaml:2")
	ok(t, "import ref/step_2 --config config.yaml --run runs/c")
}

// T16, T17: a checkpoint of another dataset names both numbers and the ways
// out, and its table is replaced only where that is asked for.
func TestImportOnAnotherDataset(t *testing.T) {
	workFolder(t)
	ok(t, trainTiny+"--steps 2 --run runs/a")
	ok(t, "export --run runs/a --out ref/step_2")
	ok(t, "build-data --num-aug 5 --tasks tasks.txt --out data/other")
	errs := fails(t, 2, "import ref/step_2 --data data/other --run runs/b")
	for _, part := range []string{"identifiers, dataset data/other has", "hrm build-data", "--reset-task-embeddings"} {
		require.Contains(t, errs, part)
	}
	out, _ := ok(t, "import ref/step_2 --data data/other --run runs/b --reset-task-embeddings")
	require.Contains(t, out, "has the mean of the checkpoint's")
	ok(t, "eval --run runs/b --augmentations 0")
	ok(t, "build-data --num-aug 3 --max-grid 12 --tasks tasks.txt --out data/wide")
	ok(t, "import ref/step_2 --data data/wide --run runs/c")
	require.Contains(t, fails(t, 2, "import ref/step_2 --data data/none"), "data/none")
}

func TestExportRefusesWhatTheReferenceIsNot(t *testing.T) {
	workFolder(t)
	ok(t, trainTiny+"--steps 2 --run runs/a --placement deeploop --norm-gain --ema")
	require.Contains(t, fails(t, 2, "export --run runs/a --out step_2"), "--format safetensors takes any model")
	require.NoFileExists(t, "step_2")
	out, _ := ok(t, "export --run runs/a --format safetensors --out s/a.safetensors --weights raw")
	require.Contains(t, out, "raw weights of step 2")
	ok(t, "import s/a.safetensors --run runs/b")
	require.Equal(t, weightsOf(t, "runs/a"), weightsOf(t, "runs/b"))
	ok(t, "export --run runs/a --format safetensors --out s/ema.safetensors")
	ok(t, "import s/ema.safetensors --run runs/c")
	require.NotEqual(t, weightsOf(t, "runs/a"), weightsOf(t, "runs/c"))
	for line, part := range map[string]string{
		"export --run runs/a":                              "--out",
		"export --run runs/a --out x --format gguf":        "gguf",
		"export --run runs/a --out x --forward-dtype int8": "int8",
		"export --run runs/a --out all_config.yaml":        "another name",
		"import runs/a":                                    "already",
		"import s":                                         "it is a folder",
		"import data/small/test/all__inputs.npy":           "neither a zip archive",
		"import none":                                      "none",
		"import":                                           "name one checkpoint",
		"import runs/a/checkpoints/step-00000002/weights.safetensors": "part of a checkpoint",
	} {
		require.Contains(t, fails(t, 2, line), part, line)
	}
}

// The kinds of file that people hand to the wrong command.
func TestForeignCheckpointGivenToEval(t *testing.T) {
	workFolder(t)
	ok(t, trainTiny+"--steps 2 --run runs/a")
	ok(t, "export --run runs/a --out ref/step_2")
	require.Contains(t, fails(t, 2, "eval --checkpoint ref/step_2"), "hrm import")
	require.Contains(t, fails(t, 2, "inspect ref/step_2"), "hrm import")
	require.Contains(t, fails(t, 2, "score --predictions ref/step_2"), "hrm import")
}

// loadAndSave reads a file as the reference's evaluate.py does, checks what it
// finds, and writes it again as the reference's trainer does.
const loadAndSave = `
import collections, sys, torch
d = torch.load(sys.argv[1], map_location="cpu")
try:
    safe = torch.load(sys.argv[1], map_location="cpu", weights_only=True)
    assert list(safe) == list(d)
except TypeError:
    pass  # a PyTorch without weights_only
assert isinstance(d, collections.OrderedDict), type(d)
plain = {k.removeprefix("_orig_mod."): v for k, v in d.items()}
for name, shape in (("H_init", (32,)), ("L_init", (32,)), ("embed_tokens.embedding_weight", (12, 32)), ("lm_head.weight", (12, 32)),
                    ("q_head.weight", (2, 32)), ("q_head.bias", (2,)), ("H_level.layers.0.self_attn.qkv_proj.weight", (96, 32)),
                    ("L_level.layers.0.mlp.gate_up_proj.weight", (512, 32)), ("L_level.layers.0.mlp.down_proj.weight", (32, 256)),
                    ("H_level.layers.0.self_attn.o_proj.weight", (32, 32))):
    t = plain.pop("model.inner." + name)
    assert tuple(t.shape) == shape, (name, t.shape)
    assert t.dtype == (torch.bfloat16 if name.endswith("_init") else torch.float32), (name, t.dtype)
    assert t.is_contiguous() and torch.isfinite(t.float()).all()
assert plain.pop("model.inner.puzzle_emb.weights").shape[1] == 32
rest = [k for k in plain if not k.startswith("model.inner.") or ".layers.0." not in k]
assert not rest, rest
torch.save(d, sys.argv[2])
`

// What is exported is what torch.load expects, and what torch.save writes of it
// comes back unchanged.
func TestExportIsReadByPyTorch(t *testing.T) {
	workFolder(t)
	ok(t, trainTiny+"--steps 2 --run runs/a")
	out, _ := ok(t, "export --run runs/a --out ref/step_2")
	require.Contains(t, out, "rounded to bfloat16")
	torchtest.Run(t, loadAndSave, "ref/step_2", "ref/step_3")
	ok(t, "import ref/step_2 --run runs/b")
	ok(t, "import ref/step_3 --run runs/c")
	require.Equal(t, weightsOf(t, "runs/b"), weightsOf(t, "runs/c"))
	for name, sum := range weightsOf(t, "runs/a") {
		require.Equal(t, strings.HasSuffix(name, "_init"), sum != weightsOf(t, "runs/b")[name], name)
	}
}
