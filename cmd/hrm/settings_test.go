package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"deeploop/hrm"
)

// resolveTrain parses configuration flags on top of a preset.
func resolveTrain(t *testing.T, preset string, args ...string) (hrm.TrainConfig, error) {
	t.Helper()
	base, err := hrm.Preset(preset)
	require.NoError(t, err)
	s := newTrainSettings()
	fs := pflag.NewFlagSet("train", pflag.ContinueOnError)
	s.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		return hrm.TrainConfig{}, err
	}
	r, err := s.Resolve(base)
	if err != nil {
		return hrm.TrainConfig{}, err
	}
	return r.Value, r.Explain(r.Value.Validate())
}

// Every key of the reference's two files is a key and a flag here.
func TestReferenceKeysAreUnderstood(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reference.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`
arch:
  name: hrm.hrm_act_v1@HierarchicalReasoningModel_ACTV1
  loss:
    name: losses@ACTLossHead
    loss_type: softmax_cross_entropy
  halt_exploration_prob: 0.2
  halt_max_steps: 8
  H_cycles: 3
  L_cycles: 4
  H_layers: 5
  L_layers: 6
  hidden_size: 96
  num_heads: 3
  expansion: 2.5
  puzzle_emb_ndim: 7
  pos_encodings: learned
  rms_norm_eps: 1e-6
  rope_theta: 5000
data_path: data/x
global_batch_size: 384
epochs: 20000
eval_interval: 2000
checkpoint_every_eval: False
lr: 7e-5
lr_min_ratio: 0.1
lr_warmup_steps: 3
beta1: 0.8
beta2: 0.99
weight_decay: 1.0
puzzle_emb_weight_decay: 1.5
puzzle_emb_lr: 7e-3
seed: 4
eval_save_outputs: [logits]
`), 0o644))
	got, err := resolveTrain(t, "laptop", "--config", path)
	require.NoError(t, err)
	base := hrm.PresetLaptop()
	want := base
	want.Arch = hrm.Config{
		Name: "hrm.hrm_act_v1@HierarchicalReasoningModel_ACTV1",
		Loss: hrm.LossConfig{Name: "losses@ACTLossHead", LossType: "softmax_cross_entropy"}, HaltExplorationProb: 0.2, HaltMaxSteps: 8,
		HCycles: 3, LCycles: 4, HLayers: 5, LLayers: 6, HiddenSize: 96, NumHeads: 3, Expansion: 2.5, PuzzleEmbDim: 7, PosEncodings: "learned",
		RMSNormEps: 1e-6, RopeTheta: 5000, Placement: "postnorm", NgMode: "paper", SwiGLUBeta: "all",
	}
	want.DataPath, want.GlobalBatchSize, want.Epochs, want.EvalInterval, want.CheckpointEveryEval = "data/x", 384, 20000, 2000, false
	want.LR, want.LRMinRatio, want.LRWarmupSteps, want.Beta1, want.Beta2 = 7e-5, 0.1, 3, 0.8, 0.99
	want.WeightDecay, want.PuzzleEmbWeightDecay, want.PuzzleEmbLR = 1, 1.5, 7e-3
	want.Seed, want.EvalSaveOutputs = 4, []string{"logits"}
	want.Steps, want.EvalSteps = 0, 0 // epochs were chosen
	require.Equal(t, want, got)
}

func TestEveryKeyHasHelpAndReferenceFlag(t *testing.T) {
	flags := map[string]string{}
	for _, f := range newTrainSettings().Fields() {
		require.NotEmpty(t, f.Help, f.Key)
		flags[f.Key] = f.Flag
	}
	for key, flag := range map[string]string{
		"arch.hidden_size": "hidden-size", "arch.H_cycles": "H-cycles", "arch.loss.loss_type": "loss-type", "arch.p_L": "p-L",
		"global_batch_size": "global-batch-size", "data_path": "data", "steps": "steps", "seed": "seed", "puzzle_emb_lr": "puzzle-emb-lr",
		"threads": "threads", "precision": "precision", "kernel": "kernel", "keep": "keep", "epochs": "epochs",
	} {
		require.Equal(t, flag, flags[key], key)
	}
}

func TestKeysThatFollowOthers(t *testing.T) {
	c, err := resolveTrain(t, "hrm_v1", "--hidden-size=256", "--placement", "deeploop")
	require.NoError(t, err)
	require.Equal(t, 256, c.Arch.PuzzleEmbDim)
	require.Equal(t, 0.5, c.Arch.PH)
	require.True(t, c.Arch.InnerNorm)
}

func TestBadValueNamesItsPlace(t *testing.T) {
	_, err := resolveTrain(t, "hrm_v1", "--num-heads=7")
	require.ErrorContains(t, err, "arch.num_heads is 7")
	require.ErrorContains(t, err, "--num-heads")
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte("lr: 1e-3\n\nbeta2: 1.5\n"), 0o644))
	_, err = resolveTrain(t, "hrm_v1", "--config", path)
	require.ErrorContains(t, err, path+":3")
}

// Whatever is set, the printed flags and the written file repeat it.
func TestResolvedConfigurationRepeatsItself(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	s := newTrainSettings()
	for range 300 {
		preset := hrm.Presets()[rng.IntN(3)]
		base, err := hrm.Preset(preset)
		require.NoError(t, err)
		c := base
		mutate(rng, reflect.ValueOf(&c).Elem())

		// Follow does not apply to values somebody chose, so the mutation stands.
		args := s.Args(c, base)
		got, err := resolveAny(t, base, args...)
		require.NoError(t, err)
		require.Equal(t, c, got, "%q", args)

		var b strings.Builder
		require.NoError(t, s.WriteYAML(&b, c, "repeat"))
		path := filepath.Join(t.TempDir(), "config.yaml")
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
		got, err = resolveAny(t, base, "--config", path)
		require.NoError(t, err, b.String())
		require.Equal(t, c, got, b.String())
	}
}

// resolveAny resolves without checking the values.
func resolveAny(t *testing.T, base hrm.TrainConfig, args ...string) (hrm.TrainConfig, error) {
	t.Helper()
	s := newTrainSettings()
	fs := pflag.NewFlagSet("train", pflag.ContinueOnError)
	s.AddFlags(fs)
	require.NoError(t, fs.Parse(args), "%q", args)
	r, err := s.Resolve(base)
	if err != nil {
		return hrm.TrainConfig{}, err
	}
	return r.Value, nil
}

// mutate changes some of the fields that have a key.
func mutate(rng *rand.Rand, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		if v.Type().Field(i).Tag.Get("yaml") == "-" {
			continue
		}
		if f.Kind() == reflect.Struct {
			mutate(rng, f)
			continue
		}
		if rng.IntN(3) > 0 {
			continue
		}
		switch f.Kind() {
		case reflect.Int:
			f.SetInt([]int64{0, 1, 128, 256, -1, 1 << 40}[rng.IntN(6)])
		case reflect.Float64:
			f.SetFloat([]float64{0, 0.25, 0.5, 1e-5, 1e22, 1.0 / 3}[rng.IntN(6)])
		case reflect.Bool:
			f.SetBool(rng.IntN(2) == 0)
		case reflect.String:
			f.SetString([]string{"", "deeploop", "prenorm", "a b'c\"", "12", "data/ü"}[rng.IntN(6)])
		case reflect.Slice:
			f.Set(reflect.ValueOf([]string{"a, b", "-"}))
		}
	}
}
