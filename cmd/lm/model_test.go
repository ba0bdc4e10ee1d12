package main

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"deeploop/internal/cli"
	"deeploop/internal/command/commandtest"
	"deeploop/internal/files"
	"deeploop/internal/kernel"
	"deeploop/internal/safetensors"
	"deeploop/internal/torchfile"
	"deeploop/lm"
	"deeploop/lm/tokens"
)

// succeed runs a command that must.
func succeed(t *testing.T, args ...string) (out, errs string) {
	t.Helper()
	code, out, errs := lmProgram.Call(args...)
	require.Equal(t, cli.ExitOK, code, "%v: %s", args, errs)
	return out, errs
}

// refuse runs a command that must not.
func refuse(t *testing.T, says string, args ...string) {
	t.Helper()
	code, out, errs := lmProgram.Call(args...)
	require.Equal(t, cli.ExitUsage, code, "%v: %s%s", args, out, errs)
	require.Contains(t, errs, says)
	require.NotContains(t, errs, "goroutine")
}

// freshModel is a model for bytes and its description.
func freshModel(t *testing.T, change func(*lm.Config)) (*lm.Model, lm.Exported) {
	t.Helper()
	tok := tokens.Byte()
	c := lm.PresetTesting().Arch
	if change != nil {
		change(&c)
	}
	c.Vocabulary(tok.VocabSize())
	m, err := lm.NewModel(c, kernel.Float32, 3)
	require.NoError(t, err)
	return m, lm.Exported{
		Architecture: lm.ExportArchitecture, Version: lm.ExportVersion, Config: c, Resolved: m.Resolved(),
		Tokenizer: tok.Name(), TokenizerSize: tok.VocabSize(), Separator: tok.Separator(), Type: lm.Float32Name, Weights: lm.WeightsRaw, Step: 7,
	}
}

// writeModel writes a fresh model for bytes as another program would.
func writeModel(t *testing.T, dir string, change func(*lm.Config)) {
	t.Helper()
	m, e := freshModel(t, change)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	path := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, files.Write(path(lm.ExportTensors), func(w io.Writer) error { return m.WriteTensors(w, kernel.Float32) }))
	require.NoError(t, files.Write(path(lm.ExportTokenizer), func(w io.Writer) error { return tokens.Save(w, tokens.Byte()) }))
	raw, err := json.Marshal(e)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path(lm.ExportConfig), raw, 0o644))
}

// useFolder makes a folder with a run, runs/a, and datasets of bytes and
// characters, and works in it.
func useFolder(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("DEEPLOOP_KERNEL", "ref")
	var text strings.Builder
	for i := range 400 {
		text.WriteString(strconv.Itoa(i*i) + " squares; ")
	}
	require.NoError(t, os.WriteFile("a.txt", []byte(text.String()), 0o644))
	succeed(t, "prepare", "--input", "a.txt", "--tokenizer", "byte", "--out", "data/bytes")
	succeed(t, "prepare", "--input", "a.txt", "--tokenizer", "char", "--out", "data/chars")
	writeModel(t, "exported", nil)
	succeed(t, "import", "exported", "--run", "runs/a")
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

func TestExportAndImportRoundTrip(t *testing.T) {
	useFolder(t)
	out, _ := succeed(t, "export", "--run", "runs/a", "--out", "again")
	require.Contains(t, out, "wrote again: ")
	require.Contains(t, out, "raw weights of step 7")
	require.Equal(t, read(t, "exported/model.safetensors"), read(t, "again/model.safetensors"))
	require.Equal(t, read(t, "exported/tokenizer.json"), read(t, "again/tokenizer.json"))
	var a, b lm.Exported
	require.NoError(t, json.Unmarshal(read(t, "exported/config.json"), &a))
	require.NoError(t, json.Unmarshal(read(t, "again/config.json"), &b))
	require.Contains(t, b.Program, "lm ")
	b.Program = ""
	require.Equal(t, a, b)

	succeed(t, "export", "--checkpoint", "runs/a/checkpoints/step-00000007", "--out", "half", "--dtype", "bf16")
	require.Less(t, 2*len(read(t, "half/model.safetensors"))-len(read(t, "exported/model.safetensors")), 4096)
	succeed(t, "import", "half/model.safetensors", "--run", "runs/half")
	succeed(t, "export", "--run", "runs/half", "--out", "half2", "--dtype", "bf16")
	require.Equal(t, read(t, "half/model.safetensors"), read(t, "half2/model.safetensors"))

	refuse(t, "holds an exported model already; replace it with --force", "export", "--run", "runs/a", "--out", "again")
	succeed(t, "export", "--run", "runs/a", "--out", "again", "--force")
	refuse(t, "is not empty and holds no exported model", "export", "--run", "runs/a", "--out", "data/bytes", "--force")
	refuse(t, "--out is missing", "export", "--run", "runs/a")
	refuse(t, `--dtype is "fp16"`, "export", "--run", "runs/a", "--out", "x", "--dtype", "fp16")
	refuse(t, "the run kept no average", "export", "--run", "runs/a", "--out", "x", "--weights", "ema")
	require.NoDirExists(t, "x")
}

func TestImportSaysWhatIsWrong(t *testing.T) {
	useFolder(t)
	refuse(t, "exists already and is not empty", "import", "exported", "--run", "runs/a")
	refuse(t, "--run is missing", "import", "exported")
	refuse(t, "name one exported model", "import", "--run", "runs/b")
	refuse(t, "no such file", "import", "nowhere", "--run", "runs/b")
	refuse(t, "name the configuration with --config", "import", "data/bytes/manifest.json", "--run", "runs/b")

	writeModel(t, "deep", func(c *lm.Config) { c.Layers = 2 })
	require.NoError(t, os.WriteFile("deep/model.safetensors", read(t, "exported/model.safetensors"), 0o644))
	refuse(t, "blocks.1.attn.qkv.weight [96 32] is missing", "import", "deep", "--run", "runs/b")
	refuse(t, "x.embed.weight [257 32] is missing", "import", "exported", "--prefix", "x.", "--run", "runs/b")
	require.NoError(t, os.WriteFile("deep/model.safetensors", []byte("no tensors here"), 0o644))
	refuse(t, "import: read deep/model.safetensors: it is neither", "import", "deep", "--run", "runs/b")
	writeModel(t, "deep", nil)
	weights := read(t, "deep/model.safetensors")
	copy(weights[len(weights)-4:], []byte{0, 0, 0x80, 0xff}) // the last float32
	require.NoError(t, os.WriteFile("deep/model.safetensors", weights, 0o644))
	refuse(t, "is -Inf at element", "import", "deep", "--run", "runs/b")
	require.NoDirExists(t, "runs/b", "nothing was made")

	config := string(read(t, "exported/config.json"))
	for says, with := range map[string]string{
		"GB of memory":                       strings.Replace(config, `"hidden_size":32`, `"hidden_size":65536`, 1),
		"holds tokenizer byte, the model's":  strings.Replace(config, `"tokenizer":"byte"`, `"tokenizer":"gpt2"`, 1),
		"which vocab_multiple 64 makes 320;": strings.Replace(config, `"vocab_multiple":1`, `"vocab_multiple":64`, 1),
	} {
		require.NotEqual(t, config, with)
		commandtest.Write(t, "other.json", with)
		refuse(t, says, "import", "exported", "--config", "other.json", "--run", "runs/b")
	}

	require.NoError(t, os.WriteFile("exported/tokenizer.json", read(t, "data/chars/tokenizer.json"), 0o644))
	refuse(t, "the model's vocab_size is 257", "import", "exported", "--run", "runs/b")
	require.NoError(t, os.Remove("exported/tokenizer.json"))
	_, errs := succeed(t, "import", "exported", "--run", "runs/b")
	require.Contains(t, errs, "no tokenizer came with the model")
	refuse(t, "has no tokenizer", "generate", "--run", "runs/b", "--prompt", "a")
	succeed(t, "eval", "--run", "runs/b", "--data", "data/bytes", "--quiet")
}

// An imported model is trained further from step 0, as by a new run that has
// its weights: the schedule is whole, and a later session resumes like any.
func TestImportedModelIsTrainedFurther(t *testing.T) {
	useFolder(t)
	const flags = " --data data/bytes --resume --lr 0.002 --lr-warmup-steps 2 --eval-tokens 300 --batch-size 2 --grad-accum 1 --threads 1 --precision fp32 "
	_, errs := ok(t, "train --run runs/a --steps 6 --stop-after 3"+flags) // fewer steps than it has made
	require.Contains(t, errs, "step-00000007 holds weights alone: training starts from them at step 0, with a fresh optimizer and the whole schedule of 6 steps, warm-up included; its 7 steps were made elsewhere")
	require.Contains(t, errs, "resuming runs/a at step 0 of 6")
	_, errs = ok(t, "train --run runs/a --resume")
	require.Contains(t, errs, "resuming runs/a at step 3 of 6")
	require.NotContains(t, errs, "weights alone")

	succeed(t, "import", "exported", "--run", "runs/whole")
	ok(t, "train --run runs/whole --steps 6"+flags)
	require.Equal(t, digest(t, "runs/whole"), digest(t, "runs/a"))
	lines := metrics(t, "runs/a")
	require.Equal(t, 1, lines[0].Step)
	require.InDelta(t, 0.001, float64(lines[0].Values["lr"]), 1e-9, "the first of two steps of warm-up")
	require.InDelta(t, 0.002, float64(lines[1].Values["lr"]), 1e-9)

	// It starts from the imported weights, not from new ones: at a rate of
	// almost nothing they stay as they are.
	loss := func(run string) float64 {
		out, _ := ok(t, "eval --data data/bytes --quiet --json --tokens 300 --run "+run)
		var r evalReport
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		return float64(r.Results[0].Loss)
	}
	succeed(t, "import", "exported", "--run", "runs/b")
	imported := loss("runs/b")
	ok(t, "train --run runs/b --steps 1 --lr 1e-12"+strings.Replace(flags, "--lr 0.002", "", 1))
	require.InDelta(t, imported, loss("runs/b"), 1e-6)
	require.Less(t, loss("runs/a"), imported-0.01)

	succeed(t, "import", "exported", "--run", "runs/c")
	refuse(t, "arch.loops: 2, now 3", "train", "--run", "runs/c", "--resume", "--data", "data/bytes", "--loops", "3")
	require.FileExists(t, "runs/c/checkpoints/step-00000007/state.json")
}

// The ids of a dataset of as many but other characters mean other text.
func TestImportedModelOfAnotherTokenizer(t *testing.T) {
	useFolder(t)
	commandtest.Write(t, "b.txt", strings.Repeat("abc <def>\n", 300))
	commandtest.Write(t, "c.txt", strings.Repeat("xyz <uvw>\n", 300))
	for _, name := range []string{"b", "c"} {
		ok(t, "prepare --tokenizer char --input "+name+".txt --out data/"+name)
	}
	ok(t, "train --preset testing --data data/b --steps 1 --eval-tokens 64 --run runs/b")
	ok(t, "export --run runs/b --out out")
	ok(t, "import out --run runs/c")
	refuse(t, "the same ids mean other text", "train", "--run", "runs/c", "--resume", "--data", "data/c", "--steps", "2")
	ok(t, "train --run runs/c --resume --data data/b --steps 2 --eval-tokens 64 --batch-size 2 --grad-accum 1")
}

// A run that cannot be written whole is not there at all.
func TestImportLeavesNothingHalf(t *testing.T) {
	useFolder(t)
	require.Contains(t, lmProgram.SmallDisk(t, "import exported --run runs/new/b"), "file too large")
	require.NoDirExists(t, "runs/new")
	require.NoError(t, os.Mkdir("runs/b", 0o755))
	lmProgram.SmallDisk(t, "import exported --run runs/b")
	left, err := os.ReadDir("runs/b")
	require.NoError(t, err)
	require.Empty(t, left)
	succeed(t, "import", "exported", "--run", "runs/b")
	require.FileExists(t, "runs/b/config.yaml")
	commandtest.Write(t, "file", "x")
	refuse(t, "choose another --run", "import", "exported", "--run", "file/b")
}

// An export that cannot be written whole leaves what was there, or nothing.
func TestExportLeavesNothingHalf(t *testing.T) {
	useFolder(t)
	before := read(t, "exported/config.json")
	require.Contains(t, lmProgram.SmallDisk(t, "export --run runs/a --out exported --force"), "file too large")
	require.Equal(t, before, read(t, "exported/config.json"))
	succeed(t, "import", "exported", "--run", "runs/b")
	left, err := os.ReadDir("exported")
	require.NoError(t, err)
	require.Len(t, left, 3)

	lmProgram.SmallDisk(t, "export --run runs/a --out fresh")
	require.NoDirExists(t, "fresh")
	commandtest.Write(t, "fresh/"+files.TempPrefix+"1-1", "half") // of a process that was killed
	succeed(t, "export", "--run", "runs/a", "--out", "fresh")
}

// Weights that PyTorch saved are read as those of safetensors are.
func TestImportOfAPyTorchFile(t *testing.T) {
	useFolder(t)
	in, err := safetensors.Open("exported/model.safetensors")
	require.NoError(t, err)
	defer in.Close()
	var entries []torchfile.Entry
	for _, name := range in.Names() {
		entries = append(entries, torchfile.Entry{Name: name, DType: "F32", Shape: in.Tensors[name].Shape})
	}
	require.NoError(t, files.Write("weights.pt", func(w io.Writer) error {
		return torchfile.Write(w, "", entries, func(i int, w io.Writer) error {
			r, _, err := in.Reader(entries[i].Name)
			if err == nil {
				_, err = io.Copy(w, r)
			}
			return err
		})
	}))
	succeed(t, "import", "weights.pt", "--config", "exported/config.json", "--tokenizer", "exported/tokenizer.json", "--run", "runs/b")
	succeed(t, "export", "--run", "runs/b", "--out", "again")
	require.Equal(t, read(t, "exported/model.safetensors"), read(t, "again/model.safetensors"))
}

// An empty file of weights is said to be one.
func TestImportOfNoTensors(t *testing.T) {
	useFolder(t)
	require.NoError(t, os.WriteFile("exported/model.safetensors", []byte("\x08\x00\x00\x00\x00\x00\x00\x00{}      "), 0o644))
	refuse(t, "exported/model.safetensors has no tensors", "import", "exported", "--run", "runs/b")
	require.NoDirExists(t, "runs/b")
}

func TestEvalMeasuresLoss(t *testing.T) {
	useFolder(t)
	out, errs := succeed(t, "eval", "--run", "runs/a", "--data", "data/bytes", "--loops", "2,1,4")
	require.Contains(t, out, "val split of data/bytes")
	require.Contains(t, errs, "step 7, raw weights")

	out, _ = succeed(t, "eval", "--run", "runs/a", "--data", "data/bytes", "--split", "train", "--loops", "2,1", "--tokens", "500", "--json", "--quiet")
	var r evalReport
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, 7, r.Step)
	require.Equal(t, "fp32", r.Precision)
	require.Equal(t, "train", r.Split)
	require.NotEmpty(t, r.DataHash)
	require.Len(t, r.Results, 2)
	for i, loops := range []int{2, 1} {
		v := r.Results[i]
		require.Equal(t, loops, v.Loops)
		require.Equal(t, 499, v.Tokens)
		require.InDelta(t, math.Log(257), v.Loss, .3, "a fresh model guesses")
		require.InEpsilon(t, v.Loss/math.Ln2, v.BitsPerByte, 1e-9, "a byte is a token")
	}

	refuse(t, "has tokenizer char with", "eval", "--run", "runs/a", "--data", "data/chars")
	refuse(t, "does not say which dataset", "eval", "--run", "runs/a")
	refuse(t, "--loops holds 0", "eval", "--run", "runs/a", "--data", "data/bytes", "--loops", "1,0")
	refuse(t, `--split is "test"`, "eval", "--run", "runs/a", "--data", "data/bytes", "--split", "test")
	refuse(t, "--tokens is 1", "eval", "--run", "runs/a", "--data", "data/bytes", "--tokens", "1")
	refuse(t, "choose one", "eval", "--run", "runs/a", "--checkpoint", "runs/a", "--data", "data/bytes")
	refuse(t, "expected ema or raw", "eval", "--run", "runs/a", "--data", "data/bytes", "--weights", "best")
	refuse(t, "holds none", "eval", "--run", "data", "--data", "data/bytes")
}

func TestEvalDumpsLogits(t *testing.T) {
	useFolder(t)
	_, errs := succeed(t, "eval", "--run", "runs/a", "--data", "data/bytes", "--loops", "3,1", "--batch", "3", "--dump-logits", "l.safetensors")
	require.Contains(t, errs, "wrote l.safetensors: logits of 3 sequences of 32 tokens at 3 loops")
	f, err := safetensors.Open("l.safetensors")
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, []int{3, 32}, f.Tensors["tokens"].Shape)
	require.Equal(t, []int{3, 32, 257}, f.Tensors["logits"].Shape)
	require.Equal(t, "3", f.Metadata["loops"])
	ids, err := f.Int32s("tokens")
	require.NoError(t, err)
	require.Equal(t, []byte(strconv.Itoa(0)), read(t, "a.txt")[:1])
	for _, id := range ids {
		require.Less(t, id, int32(257))
	}
	logits, err := f.Float32s("logits")
	require.NoError(t, err)

	// The loss of these logits is the one that is reported for these tokens.
	out, _ := succeed(t, "eval", "--run", "runs/a", "--data", "data/bytes", "--loops", "3", "--tokens", "33", "--json", "--quiet")
	var r evalReport
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	sum := 0.0
	for i := range 32 {
		row := logits[i*257 : (i+1)*257]
		total := 0.0
		for _, v := range row {
			total += math.Exp(float64(v))
		}
		sum += math.Log(total) - float64(row[ids[i+1]])
	}
	require.InEpsilon(t, sum/32, r.Results[0].Loss, 1e-5)

	refuse(t, "is no safetensors file", "eval", "--run", "runs/a", "--data", "data/bytes", "--dump-logits", "a.txt")
	succeed(t, "eval", "--run", "runs/a", "--data", "data/bytes", "--dump-logits", "l.safetensors", "--quiet")
}

func TestEvalAsksSuites(t *testing.T) {
	useFolder(t)
	out, _ := succeed(t, "eval", "--run", "runs/a", "--suite", "sample", "--shots", "0,1", "--json", "--quiet")
	var r evalReport
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Empty(t, r.Results, "only suites were asked for")
	require.Len(t, r.Suites, 2)
	require.Equal(t, 1, r.Suites[1].Results[0].Shots)
	out, _ = succeed(t, "eval", "--run", "runs/a", "--suite", "sample", "--data", "data/bytes")
	require.Contains(t, out, "nats per token")
	require.Contains(t, out, "questions")
	_, errs := succeed(t, "eval", "--run", "runs/a", "--suite", "sample", "--shots", "100", "--quiet")
	require.Contains(t, errs, "sample: 100 shots asked for, there are 31 examples: 31 used")
	writeModel(t, "base", func(c *lm.Config) { c.Placement, c.P, c.InnerNorm = "prenorm", 0, false })
	succeed(t, "import", "base", "--run", "runs/base")
	found := map[float64]bool{}
	for _, loops := range []string{"1", "2", "5", "9"} {
		var e evalReport
		out, _ = succeed(t, "eval", "--run", "runs/base", "--suite", "sample", "--loops", loops+",3", "--json", "--quiet")
		require.NoError(t, json.Unmarshal([]byte(out), &e))
		var want suiteReport
		out, _ = succeed(t, "suite", "--run", "runs/base", "--loops", loops, "--json", "--quiet")
		require.NoError(t, json.Unmarshal([]byte(out), &want))
		require.Equal(t, want.MeanAccuracyNorm, e.Suites[0].MeanAccuracyNorm, "the first loop count is that of the suites: %s", loops)
		found[want.MeanAccuracyNorm] = true
	}
	require.Greater(t, len(found), 1, "loop counts make a difference")
	refuse(t, "no such file", "eval", "--run", "runs/a", "--suite", "none.jsonl")
	refuse(t, "data is a folder, expected a file", "suite", "--run", "runs/a", "--suite", "data")
	refuse(t, "--shots holds -1", "eval", "--run", "runs/a", "--suite", "sample", "--shots", "-1")
}

// A model that diverged is measured like any other, but the command fails and
// says why; JSON has no NaN.
func TestFiguresThatAreNotFiniteAreWritten(t *testing.T) {
	useFolder(t)
	m, e := freshModel(t, func(c *lm.Config) { c.Placement, c.P, c.InnerNorm = "prenorm", 0, false })
	last := m.Params()[len(m.Params())-1].Data
	last.SetAt(last.Len()-1, math.NaN())
	_, err := saveImported("runs/nan", "nan", e, m, read(t, "exported/tokenizer.json"))
	require.NoError(t, err)
	broken := func(args ...string) string {
		code, out, errs := lmProgram.Call(args...)
		require.Equal(t, 1, code, errs)
		require.Contains(t, errs, "is NaN at element")
		require.Contains(t, errs, "what it computes means nothing")
		return out
	}
	out := broken("eval", "--run", "runs/nan", "--data", "data/bytes", "--json", "--quiet")
	require.Contains(t, out, `"loss": "NaN"`)
	require.Contains(t, out, `"bits_per_byte": "NaN"`)
	require.Equal(t, 1, strings.Count(out, `"loss"`))
	require.Contains(t, broken("eval", "--run", "runs/nan", "--data", "data/bytes", "--quiet"), "NaN")
	require.Empty(t, broken("generate", "--run", "runs/nan", "--prompt", "1"))
	out = broken("diagnose", "kappa", "--run", "runs/nan", "--data", "data/bytes", "--split", "train", "--batches", "1", "--json", "--quiet")
	require.Contains(t, out, `"kappa_g_max": "NaN"`)
	require.Contains(t, out, `"cosine_mean": "NaN"`)
}

// An imported model is a run that can be used, and no training to plot or
// continue.
func TestNewestRunMayBeImported(t *testing.T) {
	useFolder(t)
	out, _ := succeed(t, "eval", "--data", "data/bytes", "--json", "--quiet")
	require.Contains(t, out, "runs/a")
	succeed(t, "inspect")
	refuse(t, "find a run: none below runs/", "plot")
	refuse(t, "no run below runs/", "train", "--resume")
}

// What was trained on the embedded sample is measured on it.
func TestSampleTextIsADatasetEverywhere(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("DEEPLOOP_KERNEL", "ref")
	succeed(t, "train", "--preset", "testing", "--steps", "1", "--eval-tokens", "65", "--run", "runs/a", "--quiet")
	out, _ := succeed(t, "eval", "--tokens", "65", "--quiet")
	require.Contains(t, out, "val split of the embedded sample text")
	out, _ = succeed(t, "diagnose", "kappa", "--data", "sample", "--batches", "1", "--quiet")
	require.Contains(t, out, "kappa_G: max ")
	named, _ := succeed(t, "show", "sample")
	without, _ := succeed(t, "show")
	require.Equal(t, without, named)
}

func TestDiagnoseKappa(t *testing.T) {
	useFolder(t)
	out, _ := succeed(t, "diagnose", "kappa", "--run", "runs/a", "--data", "data/bytes", "--split", "train", "--batches", "2", "--json", "--quiet")
	var r kappaReport
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, 2, r.Visits)
	require.Len(t, r.Sublayers, 2)
	require.NotNil(t, r.CosineMean)
	for _, a := range r.Sublayers {
		require.Len(t, a.Norms, 2)
		require.Greater(t, a.KappaG, 0.)
		require.LessOrEqual(t, a.KappaG, 2.)
		require.LessOrEqual(t, a.KappaG, r.KappaGMax)
	}
	out, errs := succeed(t, "diagnose", "kappa", "--run", "runs/a", "--data", "data/bytes", "--split", "train")
	require.Contains(t, out, "blocks.0.attn")
	require.Contains(t, out, "kappa_G: max ")
	require.Contains(t, errs, "measuring")

	writeModel(t, "untied", func(c *lm.Config) { c.Layers, c.Loops = 4, 1 })
	succeed(t, "import", "untied", "--run", "runs/untied")
	args := []string{"diagnose", "kappa", "--run", "runs/untied", "--data", "data/bytes", "--split", "train", "--json", "--quiet"}
	out, _ = succeed(t, args...)
	r = kappaReport{}
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, 1, r.Visits)
	require.Nil(t, r.CosineMean)
	require.InDelta(t, 1, float64(r.KappaGMax), 1e-9)
	out, _ = succeed(t, append(args, "--group", "2")...)
	r = kappaReport{}
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, 2, r.Visits)
	require.Len(t, r.Sublayers, 4)
	require.NotNil(t, r.CosineMean)

	require.Nil(t, r.Full)
	out, _ = succeed(t, append(args, "--group", "2", "--full", "--iterations", "1", "--batches", "1", "--batch", "1")...)
	r = kappaReport{}
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, 1, r.Full.Iterations)
	require.Greater(t, r.Full.KappaMax, 0.)
	require.LessOrEqual(t, r.Full.KappaMedian, r.Full.KappaMax)
	for _, a := range r.Sublayers {
		require.Len(t, a.Full.Sensitivities, 2)
		require.LessOrEqual(t, a.Full.Kappa, r.Full.KappaMax)
	}
	out, errs = succeed(t, "diagnose", "kappa", "--run", "runs/a", "--data", "data/bytes", "--split", "train", "--full", "--iterations", "0", "--batches", "1")
	require.Contains(t, out, "kappa: max ")
	require.Contains(t, out, "0 power iterations")
	require.Contains(t, errs, "fp32 (--full needs it)")
	refuse(t, "--full needs --precision fp32", append(args, "--full", "--precision", "bf16")...)
	refuse(t, "--iterations is -1", append(args, "--full", "--iterations", "-1")...)

	refuse(t, "expected a divisor of the model's 4 layers", append(args, "--group", "3")...)
	refuse(t, "not 100000; use a smaller --batches", append(args, "--batches", "100000")...)
	refuse(t, "numbers of at least 1", append(args, "--batches", "0")...)
}

func TestGenerateWithATrainedModel(t *testing.T) {
	useFolder(t)
	a, errs := succeed(t, "generate", "--run", "runs/a", "--prompt", "12", "--tokens", "10")
	require.Contains(t, errs, "drawn: 10 tokens")
	b, _ := succeed(t, "generate", "--run", "runs/a", "--prompt", "12", "--tokens", "10", "--quiet")
	require.Equal(t, a, b)
	c, errs := succeed(t, "generate", "--run", "runs/a", "--prompt", "12", "--tokens", "10", "--loops", "4")
	require.Contains(t, errs, "4 loops")
	require.NotEqual(t, a, c)
	refuse(t, "--loops is 5000", "generate", "--run", "runs/a", "--prompt", "1", "--loops", "5000")
}
